"""Is this a row of that schema: plain Python values checked against types, or the reason why not."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

from penstock.errors import EvaluationError, PenstockError
from penstock.types.schema import Schema
from penstock.types.text import decimal_parts, fit_decimal, read_number
from penstock.types.timestamps import EARLIEST, EPOCH, LATEST, parse

_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")


def decode(row: Mapping[str, Any], schema: Schema) -> tuple[dict[str, Any], str | None]:
    """The row's values in canonical form (a timestamp is microseconds), or the row as it came and what is wrong."""
    values: dict[str, Any] = {}
    for column in schema.columns:
        value = row.get(column.name)
        try:
            values[column.name] = None if value is None else decode_value(value, column.type)
        except (ValueError, OverflowError) as error:
            return dict(row), f"column {column.name!r}: {error}"
    return values, None


def decode_value(value: Any, kind: str) -> Any:
    """A value that is not null, as a value of a type; ValueError where it is none."""
    if kind.startswith("decimal"):
        return _decimal(value, kind)
    return _DECODERS[kind](value)


def for_users(row: Mapping[str, Any], schema: Schema) -> dict[str, Any]:
    """The row as a user's function sees it: timestamps are aware datetimes in UTC."""
    stamps = {column.name for column in schema.columns if column.type == "timestamp"}
    return {
        name: EPOCH + timedelta(microseconds=value) if name in stamps and value is not None else value
        for name, value in row.items()
    }


def reason_of(error: Exception, secrets: Iterable[str] = ()) -> str:
    """Why a function failed on a row, in one short line that is the same whenever and wherever it fails so again."""
    if isinstance(error, (EvaluationError, UserError)):
        return str(error)
    try:
        text = f"{error.what}: {error.why}; {error.instead}" if isinstance(error, PenstockError) else str(error)
    except Exception:  # an error of the user's that cannot even say what it is
        text = ""
    for secret in secrets:
        text = text.replace(secret, "***")
    if not isinstance(error, Nonconforming):
        text = f"{type(error).__name__}: {text}"
    text = " ".join(text.encode(errors="replace").decode().split())
    return shortened(without_addresses(text))


def without_addresses(text: str) -> str:
    """A text without the addresses of objects, which no other process has."""
    return _ADDRESS.sub("", text)


def shortened(text: str, most: int = 300) -> str:
    """A reason that fits on a line, whatever the value was."""
    return text if len(text) <= most else f"{text[: most // 2]}…{text[-most // 4 :]}"


class Nonconforming(ValueError):
    """A function gave something that is not a row of its declared schema."""


class UserError(Nonconforming):
    """A user's function failed; the message is the whole reason."""


def conforming(row: Any, schema: Schema) -> dict[str, Any]:
    if not isinstance(row, dict):
        raise Nonconforming(f"map gave {row!r}, which is not a row")
    unknown = sorted(set(row) - set(schema.names))
    if unknown:
        raise Nonconforming(f"map gave the column {unknown[0]!r}, which its schema does not have")
    values, bad = decode(row, schema)
    if bad is not None:
        raise Nonconforming(f"map gave {bad}")
    return values


def _integer(bits: int) -> Callable[[Any], int]:
    def decode_integer(value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int):
            raise ValueError(f"{value!r} is not an integer")
        if not -(2**bits) <= value < 2**bits:
            raise ValueError(f"{value} does not fit into {bits + 1} bits")
        return int(value)

    return decode_integer


def _float(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ValueError(f"{value!r} is not a number")
    return float(value)


def _boolean(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"{value!r} is not a boolean")
    return value


def _string(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{value!r} is not text")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise ValueError("the text holds half of a surrogate pair") from None
    return value


def _binary(value: Any) -> bytes:
    if not isinstance(value, (bytes, bytearray)):
        raise ValueError(f"{value!r} is not bytes")
    return bytes(value)


def _date(value: Any) -> date:
    if isinstance(value, str):
        return date.fromisoformat(value)
    if not isinstance(value, date) or isinstance(value, datetime):
        raise ValueError(f"{value!r} is not a date")
    return value


def _timestamp(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, str, datetime)):
        raise ValueError(f"{value!r} is not a timestamp")
    instant = parse(value)
    if not EARLIEST <= instant <= LATEST:
        raise ValueError(f"the timestamp {value!r} is outside the years 1 to 9999")
    return instant


def _decimal(value: Any, kind: str) -> Decimal:
    if isinstance(value, (bool, float)) or not isinstance(value, (int, str, Decimal)):
        raise ValueError(f"{value!r} is not a decimal")
    number = read_number(value) if isinstance(value, str) else Decimal(value)
    if not number.is_finite():
        raise ValueError(f"{value!r} is not a finite decimal")
    return fit_decimal(number, *decimal_parts(kind))


_DECODERS: dict[str, Callable[[Any], Any]] = {
    "int": _integer(31),
    "long": _integer(63),
    "float": _float,
    "double": _float,
    "boolean": _boolean,
    "string": _string,
    "binary": _binary,
    "date": _date,
    "timestamp": _timestamp,
}
