"""Avro as its specification writes it, byte by byte, and what each value stands for: no library of Avro's is asked."""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from random import Random
from typing import Any
from uuid import UUID

from tests.properties import values_by_python as by_python
from tests.properties.values_by_python import NO_LINE, NONE, Verdict, may, must

TEXT = "aZ 5ß\0\x85\u2028\U0001f600"
EDGES = (0, 1, -1, 63, 64, -64, -65, 2**31 - 1, 2**31, -(2**31), -(2**31) - 1, 2**53, 2**62, 2**63 - 1, -(2**63))


@dataclass(frozen=True)
class Kind:
    """A type of Avro, the type of the column that it is read as, and how many digits a decimal has."""

    avro: Any
    column: str
    digits: tuple[int, int] = (0, 0)


def logical(plain: str, word: str, **more: Any) -> dict[str, Any]:
    """A logical type."""
    return {"type": plain, "logicalType": word, **more}


DECIMALS = (
    (1, 0, "decimal(5,2)"),
    (4, 2, "decimal(6,2)"),
    (4, 2, "decimal(38,0)"),
    (18, 0, "decimal(38,10)"),
    (38, 10, "decimal(38,10)"),
    (38, 38, "decimal(38,38)"),
    (60, 20, "decimal(38,18)"),
)
KINDS = (
    Kind("int", "int"),
    Kind("int", "long"),
    Kind("long", "long"),
    Kind("long", "int"),
    Kind("float", "double"),
    Kind("float", "float"),
    Kind("double", "double"),
    Kind("boolean", "boolean"),
    Kind("string", "string"),
    Kind("bytes", "binary"),
    Kind("bytes", "string"),
    Kind(logical("int", "date"), "date"),
    Kind(logical("long", "timestamp-millis"), "timestamp"),
    Kind(logical("long", "timestamp-micros"), "timestamp"),
    Kind(logical("long", "local-timestamp-millis"), "timestamp"),
    Kind(logical("long", "local-timestamp-micros"), "timestamp"),
    Kind(logical("string", "uuid"), "string"),
    Kind({"type": "enum", "name": "E", "symbols": ["RED", "BLUE"]}, "string"),
    Kind({"type": "fixed", "name": "F", "size": 3}, "binary"),
    *(Kind(logical("bytes", "decimal", precision=p, scale=s), column, (p, s)) for p, s, column in DECIMALS),
    *(
        Kind(logical("fixed", "decimal", name="D", size=16, precision=min(p, 38), scale=s), column, (min(p, 38), s))
        for p, s, column in DECIMALS
    ),
)


def broken(value: Any) -> Verdict:
    """What bytes that are no Avro may be read as, or else they are no record at all."""
    return Verdict(True, value, sure=False, field=False)


def zigzag(value: int) -> bytes:
    """A whole number in seven bits a byte, the sign in the lowest."""
    rest, out = value << 1 if value >= 0 else (-value << 1) - 1, bytearray()
    while rest > 127:
        out.append(rest & 127 | 128)
        rest >>= 7
    return bytes((*out, rest))


def sized(some: bytes) -> bytes:
    """Bytes behind their number."""
    return zigzag(len(some)) + some


def value(rng: Random, kind: Kind) -> tuple[bytes, Verdict]:
    """A value of a type, as bytes, and what it is in the column."""
    plain = kind.avro if isinstance(kind.avro, str) else kind.avro["type"]
    name = "" if isinstance(kind.avro, str) else kind.avro.get("logicalType", "")
    if name == "decimal":
        return _decimal(rng, kind, plain)
    if plain in ("int", "long"):
        number = rng.choice(EDGES) if rng.random() < 0.5 else _time(rng, name)
        if plain == "int" and rng.random() < 0.95:
            number = (number + 2**31) % 2**32 - 2**31
        return zigzag(number), _whole(number, kind, plain, name)
    if plain in ("float", "double"):
        data = rng.choice(
            (rng.randbytes(8), struct.pack("<d", rng.choice((0.0, -0.0, math.nan, math.inf, -math.inf, 0.1))))
        )
        if plain == "float":
            data = (
                data[:4]
                if rng.random() < 0.5
                else struct.pack("<f", rng.choice((0.1, -0.0, math.inf, math.nan, 1e-45)))
            )
        return data, must(struct.unpack("<f" if plain == "float" else "<d", data)[0])
    if plain == "boolean":
        number = rng.choice((0, 1, 0, 1, 0, 1, 2, 255))
        return bytes([number]), must(bool(number)) if number < 2 else broken(True)
    if plain == "enum":
        at = rng.choice((0, 1, 0, 1, 2, -1, 2**40))
        return zigzag(at), must(kind.avro["symbols"][at]) if at in (0, 1) else NO_LINE
    if plain == "fixed":
        data = rng.randbytes(kind.avro["size"])
        return data, must(data)
    return _text(rng, kind, plain, name)


def _text(rng: Random, kind: Kind, plain: str, name: str) -> tuple[bytes, Verdict]:
    if name == "uuid":
        data = rng.choice((b"12345678-1234-5678-1234-567812345678", b"not one", b"{12345678123456781234567812345678}"))
        if data[:1] == b"n":
            return sized(data), NO_LINE
        return sized(data), must(data.decode()) if data[8:9] == b"-" else broken(str(UUID(data.decode())))
    data = "".join(rng.choices(TEXT, k=rng.choice((0, 1, 3, 20, 200)))).encode()
    if rng.random() < 0.15:
        data += rng.choice((b"\xff", b"\xed\xa0\x80", b"\xc0\x80", b"\xf4\x90\x80\x80"))
    if kind.column == "binary":
        return sized(data), must(data)
    try:
        return sized(data), must(data.decode())
    except UnicodeDecodeError:
        return sized(data), NO_LINE if plain == "string" else NONE


def _time(rng: Random, name: str) -> int:
    if name == "date":
        return rng.choice((-719_162, -719_163, 2_932_896, 2_932_897, 0, -1, 20_000, rng.randint(-(10**6), 10**6)))
    scale = 1_000 if "millis" in name else 1
    edge = rng.choice((by_python.FIRST, by_python.LAST, 0, rng.randint(by_python.FIRST, by_python.LAST)))
    return edge // scale + rng.choice((0, 0, 0, 1, -1))


def _whole(number: int, kind: Kind, plain: str, name: str) -> Verdict:
    if plain == "int" and not -(2**31) <= number < 2**31:
        wider = _whole(number, kind, "long", name)
        return broken(wider.value) if wider.good else NO_LINE
    if name == "date":
        days = -719_162 <= number <= 2_932_896
        return must(date(1970, 1, 1) + timedelta(days=number)) if days else NO_LINE
    if name:
        found = by_python.microseconds(number * (1_000 if "millis" in name else 1))
        return found if found.good else NO_LINE
    return by_python.within(Decimal(number), 31 if kind.column == "int" else 63)


def _decimal(rng: Random, kind: Kind, plain: str) -> tuple[bytes, Verdict]:
    precision, scale = kind.digits
    digits = rng.choice((precision, precision, max(precision - 1, 1), precision + 1, precision + 3, 1))
    number = rng.choice((10**digits - 1, rng.randrange(10**digits), 0, 10 ** (digits - 1))) * rng.choice((1, -1))
    if rng.random() < 0.2:
        number = number // 10**scale * 10**scale
    size = kind.avro["size"] if plain == "fixed" else (number.bit_length() + 8) // 8 + rng.choice((0, 0, 0, 1, 30))
    if number.bit_length() >= size * 8:
        number = 0
    data = number.to_bytes(size, signed=True)
    if plain != "fixed":
        if not number and rng.random() < 0.3:
            data = b""
        data = sized(data)
    found = by_python.scaled(f"{number}e-{scale}", kind.column)
    if len(str(abs(number))) > precision:  # more digits than its own schema says: no decimal of that type
        return data, may(found.value) if found.good else NONE
    return data, found
