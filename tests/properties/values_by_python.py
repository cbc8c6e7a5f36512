"""What bytes stand for, by Python's standard library alone: the oracle of everything that is read.

Written from docs/sources.md, "Bad rows" and "Types". Three verdicts: a value that must be read, a value that may be
read or refused (forms on which the page is silent, such as a day as 20260131), and none: the row must be quarantined.
Which of the two a reader does with the second kind is its own affair; that it does the same beside any neighbours is
not.
"""

from __future__ import annotations

import csv
import io
import json
import math
import re
import sys
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

LONGEST_LINE = 16 << 20
DEPTH = 100  # how deep a line of JSON may be nested
POWERS = 9_999  # how far the exponent of a zero may be from zero
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
FIRST, LAST = (
    (datetime(year, *rest, tzinfo=UTC) - EPOCH) // timedelta(microseconds=1)
    for year, *rest in ((1, 1, 1), (9999, 12, 31, 23, 59, 59, 999_999))
)
_NUMBER = re.compile(r"([+-]?)([0-9]*)(?:\.([0-9]*))?(?:[eE]([+-]?[0-9]+))?", re.ASCII)
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_MOMENT = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})[T ]([0-9]{2}):([0-9]{2})(?::([0-9]{2})(?:\.([0-9]{1,9}))?)?"
    r"(?:(Z)|([+-])([0-9]{2}):([0-9]{2}))?"
)


@dataclass(frozen=True)
class Verdict:
    """What becomes of a value; `sure` says that it must, `field` that the reason has to name the field."""

    good: bool
    value: Any = None
    sure: bool = True
    field: bool = True


NONE = Verdict(False)
NO_LINE = Verdict(False, field=False)
NULL = Verdict(True)


def must(value: Any) -> Verdict:
    """A value that has to be read."""
    return Verdict(True, value)


def may(value: Any) -> Verdict:
    """A value that is read so, or refused."""
    return Verdict(True, value, sure=False)


@dataclass(frozen=True)
class Lexeme:
    """A number of JSON, as it was written."""

    text: str
    whole: bool


@dataclass(frozen=True)
class Word:
    """NaN or an infinity, which Python's json takes for numbers."""

    text: str


def json_line(line: bytes, kinds: dict[str, str]) -> dict[str, Verdict] | Verdict | None:
    """Each column of a line of JSON; or why the line is none; or nothing, for a line of blanks."""
    if len(line) > LONGEST_LINE:
        return NO_LINE
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError:
        return NO_LINE
    if not text.strip():
        return None
    if _depth(text) > DEPTH:
        return NO_LINE
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(20_000)
    try:
        found = json.loads(
            text,
            parse_int=lambda one: Lexeme(one, True),
            parse_float=lambda one: Lexeme(one, False),
            parse_constant=Word,
        )
    except ValueError:
        return NO_LINE
    finally:
        sys.setrecursionlimit(limit)
    if not isinstance(found, dict):
        return NO_LINE
    return {name: NULL if found.get(name) is None else of_json(found[name], kind) for name, kind in kinds.items()}


def of_json(value: Any, kind: str) -> Verdict:
    """A value of a declared column."""
    if kind in ("int", "long"):
        if not isinstance(value, Lexeme) or not value.whole:
            return NONE
        return within(Decimal(value.text), 31 if kind == "int" else 63)
    if kind in ("float", "double"):
        return NONE if not isinstance(value, Lexeme) else finite(float(value.text))
    if kind == "boolean":
        return must(value) if isinstance(value, bool) else NONE
    if kind == "string":
        return must(value) if isinstance(value, str) and _whole(value) else NONE
    if kind == "date":
        return day(value) if isinstance(value, str) else NONE
    if kind == "timestamp":
        if isinstance(value, Lexeme):
            return microseconds(int(Decimal(value.text))) if value.whole and len(value.text) < 30 else NONE
        return moment(value) if isinstance(value, str) else NONE
    if isinstance(value, Lexeme):
        return scaled(value.text, kind)
    return of_number_text(value, kind) if isinstance(value, str) else NONE


def csv_field(text: str | None, kind: str) -> Verdict:
    """A field of CSV, unquoted; None is an empty one."""
    if kind == "string":
        return NULL if text is None else must(text)
    if not text:
        return NULL
    if kind in ("int", "long"):
        good = re.fullmatch(r"[+-]?[0-9]+", text)
        if good and len(text.lstrip("+-0")) > 4_000:
            return NONE
        found = within(Decimal(text), 31 if kind == "int" else 63) if good else NONE
        # Zeros before a number are digits; forty of them are no number that anybody writes.
        return may(found.value) if found.good and len(text) > 40 else found
    if kind in ("float", "double"):
        return _csv_double(text)
    if kind == "boolean":
        words = {"true": True, "false": False, "1": True, "0": False}
        word = text.lower() if text.isascii() else text
        return must(words[word]) if word in words else NONE
    if kind == "date":
        return day(text)
    if kind == "timestamp":
        return moment(text)
    return of_number_text(text, kind, power=False)


def _csv_double(text: str) -> Verdict:
    if text in ("NaN", "Infinity", "-Infinity"):
        return must(float(text))
    if text in ("+Infinity", "inf", "+inf", "-inf"):
        return may(float(text))
    if re.fullmatch(r"[+-]?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?", text):
        return finite(float(text))
    if re.fullmatch(r"[+-]?([0-9]+\.|\.[0-9]+)([eE][+-]?[0-9]+)?", text):
        found = finite(float(text))
        return may(found.value) if found.good else NONE
    return NONE


def of_number_text(text: str, kind: str, power: bool = True) -> Verdict:
    """A decimal that is written as text: digits with a sign and a point, in JSON with an exponent too.

    A point with no digit on one side of it is one that some take for a number.
    """
    parts = _NUMBER.fullmatch(text)
    if parts is None or not (parts[2] or parts[3]) or (parts[4] and not power):
        return NONE
    found = scaled(text, kind)
    return found if not found.good or (parts[2] and parts[3] != "") else may(found.value)


def scaled(text: str, kind: str) -> Verdict:
    """A number as a decimal of a precision and a scale, if no digit is lost: by whole numbers alone."""
    precision, scale = decimal_of(kind)
    parts = _NUMBER.fullmatch(text)
    assert parts is not None, text
    sign, whole, fraction, power = parts[1], parts[2] or "", parts[3] or "", parts[4] or "0"
    digits = (whole + fraction).lstrip("0")
    bare = digits.rstrip("0")
    zero = Decimal(0).scaleb(-scale)
    if not bare:
        return must(zero) if abs(int(power)) <= POWERS else may(zero)
    # value = bare × 10 ** shift
    shift = int(power) - len(fraction) + len(digits) - len(bare)
    lift = shift + scale
    if lift < 0 or len(bare) + lift > precision:
        return NONE
    value = Decimal((1 if sign == "-" else 0, tuple(map(int, bare + "0" * lift)), -scale))
    return must(value)


def decimal_of(kind: str) -> tuple[int, int]:
    """The precision and the scale that a type names."""
    precision, scale = kind[len("decimal(") : -1].split(",")
    return int(precision), int(scale)


def within(value: Decimal, bits: int) -> Verdict:
    """A whole number of at most so many bits."""
    return must(int(value)) if value.adjusted() < 30 and -(2**bits) <= int(value) < 2**bits else NONE


def finite(value: float) -> Verdict:
    """A double that is a number."""
    return must(value) if math.isfinite(value) else NONE


def microseconds(value: int) -> Verdict:
    """A count of microseconds since 1970."""
    return must(value) if FIRST <= value <= LAST else NONE


def day(text: str) -> Verdict:
    """A day as 2026-01-31; Python knows more forms of ISO 8601, which may be read."""
    if not text.isascii():
        return NONE
    try:
        found = date.fromisoformat(text)
    except ValueError:
        return NONE
    return must(found) if _DAY.fullmatch(text) else may(found)


def moment(text: str) -> Verdict:
    """A moment of ISO 8601, without a zone in UTC; what is below a microsecond is cut."""
    if not text.isascii():
        return NONE
    if _DAY.fullmatch(text):
        found = day(text)
        return (
            must(_since_epoch(datetime(found.value.year, found.value.month, found.value.day))) if found.good else NONE
        )
    parts = _MOMENT.fullmatch(text)
    if parts is None:
        return _odd_moment(text)
    first = day(parts[1])
    hour, minute, second = (int(part or 0) for part in parts.group(2, 3, 4))
    hours, minutes = int(parts[8] or 0), int(parts[9] or 0)
    if not first.good or hour > 23 or minute > 59 or second > 59 or hours > 23 or minutes > 59:
        return NONE
    micros = int((parts[5] or "").ljust(6, "0")[:6])
    offset = timedelta(hours=hours, minutes=minutes) * (-1 if parts[7] == "-" else 1)
    local = datetime(first.value.year, first.value.month, first.value.day, hour, minute, second, micros)
    instant = _since_epoch(local) - offset // timedelta(microseconds=1)
    return microseconds(instant)


def _odd_moment(text: str) -> Verdict:
    """Weeks, compact forms, commas: what Python reads of them, or nothing."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return NONE
    instant = _since_epoch(found.replace(tzinfo=None)) - (found.utcoffset() or timedelta()) // timedelta(microseconds=1)
    return may(instant) if FIRST <= instant <= LAST else NONE


def csv_records(text: str) -> list[list[str]]:
    """The records of a text, by Python's own module; an empty line is none."""
    return [record for record in csv.reader(io.StringIO(text, newline="")) if record]


def _since_epoch(local: datetime) -> int:
    return (local.replace(tzinfo=UTC) - EPOCH) // timedelta(microseconds=1)


def _whole(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _depth(text: str) -> int:
    """How deep brackets are nested outside texts."""
    deepest = depth = 0
    inside = escaped = False
    for sign in text if "[" in text or text.count("{") > 1 else "":
        if inside:
            inside, escaped = escaped or sign != '"', not escaped and sign == "\\"
        elif sign == '"':
            inside = True
        elif sign in "[{":
            depth += 1
            deepest = max(deepest, depth)
        elif sign in "]}":
            depth -= 1
    return max(deepest, 1)


def same(left: Any, right: Any) -> bool:
    """Whether two values are one: of one type, the sign of a zero and NaN among them."""
    if isinstance(left, float) and isinstance(right, float):
        if math.isnan(left) or math.isnan(right):
            return math.isnan(left) and math.isnan(right)
        return left == right and math.copysign(1, left) == math.copysign(1, right)
    return type(left) is type(right) and left == right
