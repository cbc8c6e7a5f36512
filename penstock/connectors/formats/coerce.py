"""Does a column hold values of its declared type: whole columns at once, and one by one only where that fails."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as types

from penstock.types import text as text_cast
from penstock.types.arrow import arrow_type
from penstock.types.durations import DAY
from penstock.types.schema import Schema
from penstock.types.text import read_iso_day, read_iso_time
from penstock.types.timestamps import EARLIEST, LATEST
from penstock.types.validate import decode_value, shortened

Fast = Callable[[pa.Array], pa.Array]
One = Callable[[Any], Any]
Bad = dict[int, str]

FEW = 32  # values that are not worth another try with the whole column
DIGITS = 38  # and the point: a number that is no longer is exact as WIDEST, whatever it is
WIDEST = pa.decimal256(76, 38)
FIRST_DAY = -719_162  # 0001-01-01
_MICROS = {"s": 1_000_000, "ms": 1_000, "us": 1}


def conformed(column: pa.Array, kind: str) -> tuple[pa.Array, Bad]:
    """A column of a file as its declared type, and the rows whose values are none of it."""
    if types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if types.is_timestamp(column.type) and kind == "timestamp":
        column = _micros(column)
    if types.is_null(column.type):
        return pa.nulls(len(column), arrow_type(kind)), {}
    return piecewise(column, kind, partial(_whole, kind), partial(value_of, kind))


def from_text(column: pa.Array, kind: str, one: One) -> tuple[pa.Array, Bad]:
    """A column of texts as its declared type; `one` judges what Arrow does not take."""
    return piecewise(column, kind, partial(_whole_text, kind), one)


def csv_value(kind: str) -> One:
    """The strict reader of one text of a CSV file."""
    if kind == "string":
        return str
    if kind == "boolean":
        return _boolean
    if kind in ("timestamp", "date"):
        return partial(value_of, kind)
    return text_cast.by_value("string", kind)


def piecewise(column: pa.Array, kind: str, fast: Fast, one: One) -> tuple[pa.Array, Bad]:
    """A column through a fast function; where that throws, halving finds the values that `one` has to judge."""
    try:
        return fast(column), {}
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        if len(column) > FEW and not isinstance(error, pa.ArrowNotImplementedError):
            middle = len(column) // 2
            left, bad = piecewise(column.slice(0, middle), kind, fast, one)
            right, others = piecewise(column.slice(middle), kind, fast, one)
            return pa.concat_arrays([left, right]), bad | {middle + row: why for row, why in others.items()}
    return _each(column, kind, one)


def _each(column: pa.Array, kind: str, one: One) -> tuple[pa.Array, Bad]:
    values: list[Any] = []
    bad: Bad = {}
    for row, scalar in enumerate(column):
        value = None
        try:
            value = None if not scalar.is_valid else one(scalar.as_py())
        except Exception as error:  # whatever a foreign value makes Arrow or Python stumble over
            bad[row] = shortened(str(error))
        values.append(value)
    return pa.array(values, arrow_type(kind)), bad


def row_of(found: Mapping[str, Any], schema: Schema, judge: Callable[[str, Any], Any]) -> tuple[dict[str, Any], str]:
    """The row of values by name, each judged by its type, or why there is none."""
    row: dict[str, Any] = {}
    for column in schema.columns:
        value = found.get(column.name)
        try:
            row[column.name] = None if value is None else judge(column.type, value)
        except Exception as error:  # whatever makes a foreign value impossible
            return {}, f"column {column.name!r}: {shortened(str(error))}"
    return row, ""


def doubtful(why: str) -> Exception:
    """Arrow would take what the strict reader of single values has to judge."""
    error: Exception = pa.ArrowInvalid(why)
    return error


def _whole(kind: str, column: pa.Array) -> pa.Array:
    """A column of the types that can stand for a kind; ArrowNotImplementedError for the others."""
    given, wanted = column.type, arrow_type(kind)
    if kind in ("int", "long") and types.is_integer(given):
        return _narrow(column.cast(wanted), 31 if kind == "int" else 63)
    if kind in ("float", "double") and (types.is_integer(given) or types.is_floating(given)):
        return column.cast(wanted, safe=False)
    if kind == "timestamp" and types.is_int64(given):
        return _between(column, EARLIEST, LATEST).cast(wanted)
    if kind in ("timestamp", "date") and _is_text(given):
        return _whole_text(kind, column)
    if kind == "string" and (_is_text(given) or _is_bytes(given)):
        made = column.cast(wanted)
        if _is_text(given):  # the cast of bytes has looked already whether they are text
            made.validate(full=True)
        return made
    if kind == "date" and types.is_date(given):
        return _between(column.cast(wanted).view(pa.int32()), FIRST_DAY, 2_932_896).view(wanted)
    if kind == "binary" and _is_bytes(given):
        return column.cast(wanted)
    if kind.startswith("decimal") and (types.is_decimal(given) or types.is_integer(given)):
        return _decimals(column, wanted)
    if given == wanted:
        return column
    raise pa.ArrowNotImplementedError(f"{given} is no {kind}")


def _whole_text(kind: str, column: pa.Array) -> pa.Array:
    if kind in ("int", "long"):
        if pc.any(pc.match_substring(column, "x", ignore_case=True)).as_py():
            raise doubtful("Arrow reads 0x10 as a number")
        return _narrow(column.cast(pa.int64()), 31 if kind == "int" else 63)
    if kind in ("float", "double"):
        made = column.cast(pa.float64())
        if not pc.all(pc.is_finite(made)).as_py() and len(made) > made.null_count:
            raise doubtful("NaN, an infinity, or a number beyond a double")
        return made
    if kind == "timestamp":
        # A day more: 0000-12-31T23:00-05:00 is of the year 1, but Python has no word for it.
        return _between(_stamps(column).cast(pa.int64()), EARLIEST + DAY, LATEST).cast(arrow_type(kind))
    if kind == "date":
        return _between(column.cast(pa.date32()).view(pa.int32()), FIRST_DAY, 2_932_896).view(pa.date32())
    if kind.startswith("decimal"):
        return _plain_decimals(column, arrow_type(kind))
    return column.cast(arrow_type(kind))


def _plain_decimals(column: pa.Array, wanted: pa.DataType) -> pa.Array:
    """Texts of so few digits that Arrow reads all of them, for it checks no others; the second cast loses none."""
    longest = pc.max(pc.binary_length(column)).as_py() or 0
    plain = pc.match_substring_regex(column, "^[+-]?[0-9]+([.][0-9]+)?$")
    if longest > DIGITS or pc.all(plain).as_py() is False:
        raise doubtful("many digits, an exponent, or no digit beside the point")
    return column.cast(wanted) if longest + wanted.scale <= DIGITS else column.cast(WIDEST).cast(wanted)


def _stamps(column: pa.Array) -> pa.Array:
    """Texts that all have a zone, or all have none and are UTC, as the first one shows."""
    first = pc.first(column, skip_nulls=True).as_py() or ""
    zoned = any(sign in first[10:] for sign in "Z+-")
    return column.cast(pa.timestamp("us", tz="UTC" if zoned else None))


def _micros(column: pa.Array) -> pa.Array:
    """Timestamps of any unit and zone as microseconds; nanoseconds are cut down to the one before."""
    unit = column.type.unit
    if unit == "us":
        return column.view(pa.int64())
    ticks = column.view(pa.int64()).fill_null(0).to_numpy()
    if unit == "ns":
        ticks = ticks // 1_000
    else:
        most = 2**62 // _MICROS[unit]
        ticks = np.clip(ticks, -most, most) * _MICROS[unit]
    missing = column.is_null().to_numpy(zero_copy_only=False) if column.null_count else None
    return pa.array(ticks, mask=missing)


def _decimals(column: pa.Array, wanted: pa.DataType) -> pa.Array:
    if types.is_integer(column.type):
        column = column.cast(pa.decimal128(20, 0))
    return column.cast(pa.decimal256(76, max(wanted.scale, column.type.scale))).cast(wanted)


def _narrow(column: pa.Array, bits: int) -> pa.Array:
    return _between(column, -(2**bits), 2**bits - 1) if bits < 63 else column


def _between(column: pa.Array, lowest: int, highest: int) -> pa.Array:
    ends = pc.min_max(column).as_py()
    if ends["min"] is not None and not lowest <= ends["min"] <= ends["max"] <= highest:
        raise doubtful(f"a value is not between {lowest} and {highest}")
    return column


def value_of(kind: str, value: Any) -> Any:
    """One value of a file or a message, as a value of a type; ValueError where it is none."""
    if kind == "string" and isinstance(value, bytes):
        return value.decode()
    if isinstance(value, str) and kind in ("timestamp", "date"):
        return read_iso_time(value) if kind == "timestamp" else read_iso_day(value)
    return decode_value(value, kind)


def _boolean(text: str) -> bool:
    word = text.lower()
    if word not in ("true", "false", "1", "0"):
        raise ValueError(f"{text!r} is not a boolean")
    return word in ("true", "1")


def _is_text(given: pa.DataType) -> bool:
    return any(test(given) for test in (types.is_string, types.is_large_string, types.is_string_view))


def _is_bytes(given: pa.DataType) -> bool:
    return any(
        test(given)
        for test in (types.is_binary, types.is_large_binary, types.is_fixed_size_binary, types.is_binary_view)
    )
