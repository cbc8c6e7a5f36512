"""What text stands for which number, date or time: one strict reader, so that no two engines can differ."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Context, Decimal, InvalidOperation
from functools import cache
from typing import Any

from penstock.types import timestamps
from penstock.types.schema import FLOATS

EXACT = Context(prec=100)
_LONG = re.compile(r"[+-]?0*[0-9]{1,40}")
_DOUBLE = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?")
_SPECIAL = frozenset({"NaN", "inf", "+inf", "-inf", "Infinity", "+Infinity", "-Infinity"})
_DECIMAL = re.compile(r"[+-]?[0-9]+(\.[0-9]+)?")
_DATE = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})")
_DAY = r"(?:[0-9]{4}-[0-9]{2}-[0-9]{2}|[0-9]{8}|[0-9]{4}-W[0-9]{2}-[0-9]|[0-9]{4}W[0-9]{3})"
_ISO_DAY = re.compile(_DAY)
_ISO_TIME = re.compile(
    _DAY + r"(?:[ Tt](?:[01][0-9]|2[0-3])(?::?[0-5][0-9](?::?[0-5][0-9](?:[.,][0-9]{1,9})?)?)?"
    r"(?:Z|[+-](?:[01][0-9]|2[0-3])(?::?[0-5][0-9])?)?)?"
)
_TIME = re.compile(
    _DATE.pattern + r"(?:[ T]([0-9]{2}):([0-9]{2})(?::([0-9]{2})(?:\.([0-9]{1,6}))?)?(Z|[+-][0-9]{2}:[0-9]{2})?)?"
)


def read_long(text: str) -> int:
    """Digits and perhaps a sign, within 64 bits."""
    if not _LONG.fullmatch(text):
        raise ValueError(f"{text!r} is not a long")
    return fits(int(text), "long")


def read_double(text: str) -> float:
    """A decimal number, perhaps with an exponent, or NaN, Infinity and -Infinity."""
    if text in _SPECIAL:
        return float(text)
    if not _DOUBLE.fullmatch(text) or abs(float(text)) == float("inf"):
        raise ValueError(f"{text!r} is not a double")
    return float(text)


def read_date(text: str) -> date:
    """A day written as 2026-01-31."""
    if not _DATE.fullmatch(text):
        raise ValueError(f"{text!r} is not a date")
    return date.fromisoformat(text)


def read_timestamp(text: str) -> int:
    """A moment written as 2026-01-31 12:00:00.5+01:00, where all after the day may be left out, in microseconds."""
    parts = _TIME.fullmatch(text)
    if parts is None:
        raise ValueError(f"{text!r} is not a timestamp")
    year, month, day, hour, minute, second = (int(part or 0) for part in parts.groups()[:6])
    micros = int((parts[7] or "").ljust(6, "0"))
    moment = datetime(year, month, day, hour, minute, second, micros, tzinfo=_zone(parts[8]))
    found = timestamps.from_datetime(moment)
    if not timestamps.EARLIEST <= found <= timestamps.LATEST:
        raise ValueError(f"{text!r} is outside the years 1 to 9999")
    return found


def read_decimal(text: str, precision: int, scale: int) -> Decimal:
    """A number with at most as many digits after the point as the type holds."""
    if not _DECIMAL.fullmatch(text):
        raise ValueError(f"{text!r} is not a decimal")
    return fit_decimal(Decimal(text), precision, scale)


def read_iso_day(text: str) -> date:
    """A day as files and messages have it, in a form of ISO 8601."""
    if not _ISO_DAY.fullmatch(text):
        raise ValueError(f"{text!r} is not a date")
    return date.fromisoformat(text)


def read_iso_time(text: str) -> int:
    """A moment as files and messages have it, in a form of ISO 8601, in microseconds: what is finer is cut off."""
    if not _ISO_TIME.fullmatch(text):
        raise ValueError(f"{text!r} is not a timestamp")
    found = timestamps.from_datetime(datetime.fromisoformat(text))
    if not timestamps.EARLIEST <= found <= timestamps.LATEST:
        raise ValueError(f"the timestamp {text!r} is outside the years 1 to 9999")
    return found


def read_number(text: str) -> Decimal:
    """A decimal number of any length, perhaps with an exponent; exactly that number."""
    if not _DOUBLE.fullmatch(text):
        raise ValueError(f"{text!r} is not a decimal")
    try:
        return Decimal(text)
    except InvalidOperation:
        raise ValueError(f"the exponent of {text} is beyond any decimal") from None


def fit_decimal(value: Decimal | int, precision: int, scale: int) -> Decimal:
    """A number at a scale, or ValueError where digits would be lost."""
    exact, whole = Decimal(value), precision - scale
    if exact and exact.adjusted() >= whole:
        digits = f"{exact.adjusted() + 1} digits before the point, where it has {whole}"
        raise ValueError(f"{value} does not fit in decimal({precision},{scale}): {digits}")
    # Not before it is known to be small: an exponent may be of any size.
    found = EXACT.quantize(exact, _unit(scale))
    if found != exact:
        more = f"it has more than {scale} digits after the point"
        raise ValueError(f"{value} does not fit in decimal({precision},{scale}): {more}")
    return found if found else EXACT.abs(found)


def fits(value: int, type_name: str) -> int:
    """A whole number that fits in its type."""
    bits = 31 if type_name == "int" else 63
    if not -(2**bits) <= value < 2**bits:
        raise ValueError(f"{value} does not fit in {type_name}")
    return value


@cache
def _unit(scale: int) -> Decimal:
    return Decimal(1).scaleb(-scale)


@cache
def decimal_parts(type_name: str) -> tuple[int, int]:
    """The precision and the scale of a decimal type."""
    precision, scale = re.findall(r"-?\d+", type_name)
    return int(precision), int(scale)


def by_value(source: str, target: str) -> Callable[[Any], object]:
    """The cast of one value from text or a decimal, or to a decimal, which both engines share."""
    if target.startswith("decimal"):
        precision, scale = decimal_parts(target)
        if source == "string":
            return lambda value: read_decimal(value, precision, scale)
        return lambda value: fit_decimal(value, precision, scale)
    if source.startswith("decimal"):
        return float if target in FLOATS else lambda value: fits(int(value), target)
    readers: dict[str, Callable[[Any], object]] = {
        "int": lambda text: fits(read_long(text), "int"),
        "long": read_long,
        "float": read_double,
        "double": read_double,
        "date": read_date,
        "timestamp": read_timestamp,
    }
    return readers[target]


def _zone(text: str | None) -> timezone:
    if text is None or text == "Z":
        return UTC
    hours, minutes = int(text[1:3]), int(text[4:6])
    if hours > 23 or minutes > 59:
        raise ValueError(f"{text!r} is not an offset")
    return timezone((1 if text[0] == "+" else -1) * timedelta(hours=hours, minutes=minutes))
