"""Values of Parquet's types, and what each is as a declared column by docs/sources.md: from plain Python values."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from datetime import date, timedelta
from decimal import Decimal
from random import Random
from typing import Any

import pyarrow as pa

from tests.properties import values_by_python as by_python
from tests.properties.hostile_values import DECIMALS, moment
from tests.properties.values_by_python import EPOCH, NONE, Verdict, must

Draw = Callable[[Random], tuple[Any, Verdict]]


def whole(column: pa.DataType, kind: str) -> Draw:
    """Integers of a width."""
    bits, signed = column.bit_width, not str(column).startswith("u")
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)

    def draw(rng: Random) -> tuple[Any, Verdict]:
        edge = rng.choice(
            (low, high, 0, 2**31, 2**31 - 1, -(2**31), 2**53 + 1, 2**63 - 1, 2**63, rng.randint(low, high))
        )
        value = min(max(edge + rng.choice((0, 0, 1, -1)), low), high)
        if kind in ("int", "long"):
            return value, by_python.within(Decimal(value), 31 if kind == "int" else 63)
        if kind == "timestamp":
            value = min(
                max(rng.choice((value, by_python.FIRST - 1, by_python.FIRST, by_python.LAST, by_python.LAST + 1)), low),
                high,
            )
            return value, by_python.microseconds(value)
        if kind.startswith("decimal"):
            return value, by_python.scaled(str(value), kind)
        return value, must(float(value))

    return draw


def real(rng: Random) -> tuple[Any, Verdict]:
    """Doubles, also those that are no numbers."""
    (value,) = struct.unpack("<d", rng.randbytes(8))
    value = rng.choice((value, 0.0, -0.0, math.nan, math.inf, -math.inf, 5e-324, 0.1))
    return value, must(value)


def single(rng: Random) -> tuple[Any, Verdict]:
    """Floats of 32 bits."""
    (value,) = struct.unpack("<f", rng.randbytes(4))
    return value, must(value)


def truth(rng: Random) -> tuple[Any, Verdict]:
    """Either."""
    value = rng.random() < 0.5
    return value, must(value)


def text(rng: Random) -> tuple[Any, Verdict]:
    """Texts of any signs."""
    value = "".join(rng.choices("aZ ß\0\x85\u2028\U0001f600'\"", k=rng.choice((0, 1, 5, 50))))
    return value, must(value)


def some_bytes(kind: str) -> Draw:
    """Bytes, as bytes or as text."""

    def draw(rng: Random) -> tuple[Any, Verdict]:
        value = text(rng)[0].encode() + rng.choice((b"", b"", b"\xff", b"\xed\xa0\x80"))
        if kind == "binary":
            return value, must(value)
        try:
            return value, must(value.decode())
        except UnicodeDecodeError:
            return value, NONE

    return draw


def day(rng: Random) -> tuple[Any, Verdict]:
    """Days, by their number, also before the year 1 and after 9999."""
    number = rng.choice(
        (-719_162, -719_163, 2_932_896, 2_932_897, 0, -1, 2**31 - 1, -(2**31), rng.randint(-(10**6), 10**6))
    )
    good = -719_162 <= number <= 2_932_896
    return number, must(date(1970, 1, 1) + timedelta(days=number)) if good else NONE


def stamp(unit: str) -> Draw:
    """Moments, by their number."""
    per = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}[unit]

    def draw(rng: Random) -> tuple[Any, Verdict]:
        first, last = by_python.FIRST // 10**6, by_python.LAST // 10**6
        seconds = rng.choice((0, -1, first, last, last + 1, 1_767_225_600, rng.randint(-(10**11), 10**12)))
        number = seconds * per + rng.choice((0, 1, -1, rng.randrange(per)))
        number = min(max(number, -(2**63)), 2**63 - 1)
        return number, by_python.microseconds(number * 1_000_000 // per)

    return draw


def worded(kind: str) -> Draw:
    """Days and moments as text."""

    def draw(rng: Random) -> tuple[Any, Verdict]:
        value = moment(rng)
        return value, by_python.day(value) if kind == "date" else by_python.moment(value)

    return draw


def exact(column: pa.DataType, kind: str) -> Draw:
    """Decimals of a type as those of another."""
    precision, scale = column.precision, column.scale

    def draw(rng: Random) -> tuple[Any, Verdict]:
        digits = rng.choice((1, precision, precision, max(1, precision - 1)))
        number = rng.choice((10**digits - 1, rng.randrange(10**digits), 10 ** (digits - 1), 0))
        number = number // 10**scale * 10**scale if rng.random() < 0.4 and scale <= digits else number
        number *= rng.choice((1, -1))
        sign, figures = int(number < 0), tuple(map(int, str(abs(number))))
        return Decimal((sign, figures, -scale)), by_python.scaled(f"{number}e{-scale}", kind)

    return draw


def timely(rng: Random) -> tuple[Any, Verdict]:
    """Moments as Python has them."""
    micros = rng.choice((by_python.FIRST, by_python.LAST, 0, -1, rng.randint(by_python.FIRST, by_python.LAST)))
    return EPOCH + timedelta(microseconds=micros), must(micros)


INTEGERS = (pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64())
BIG = (pa.decimal128(5, 2), pa.decimal128(38, 10), pa.decimal128(38, 0), pa.decimal256(76, 38), pa.decimal128(38, 38))
STAMPS = [pa.timestamp(unit, zone) for unit in ("s", "ms", "us", "ns") for zone in (None, "UTC", "Europe/Berlin")]
PARQUET: tuple[tuple[str, pa.DataType, Draw], ...] = (
    *((kind, type_, whole(type_, kind)) for type_ in INTEGERS for kind in ("int", "long", "double", "decimal(10,2)")),
    *((kind, pa.int64(), whole(pa.int64(), kind)) for kind in ("decimal(38,18)", "timestamp")),
    *((kind, pa.float64(), real) for kind in ("double", "float")),
    *((kind, pa.float32(), single) for kind in ("double", "float")),
    ("boolean", pa.bool_(), truth),
    *(("string", type_, text) for type_ in (pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string()))),
    ("string", pa.binary(), some_bytes("string")),
    *(("binary", type_, some_bytes("binary")) for type_ in (pa.binary(), pa.large_binary())),
    ("date", pa.date32(), day),
    *((kind, pa.string(), worded(kind)) for kind in ("date", "timestamp")),
    *(("timestamp", type_, stamp(type_.unit)) for type_ in STAMPS),
    ("timestamp", pa.timestamp("us", "UTC"), timely),
    *((kind, type_, exact(type_, kind)) for kind in DECIMALS for type_ in BIG),
)
