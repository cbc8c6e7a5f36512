"""Messages that break decoders, each of a seed alone: bytes flipped, cut, nested and repeated, and odd schemas."""

from __future__ import annotations

import json
from dataclasses import dataclass
from random import Random
from typing import Any

from tests.properties.avro_by_hand import logical, sized, zigzag
from tests.properties.hostile_values import json_line, number

FORMS = ("json", "lines", "csv", "flat avro", "avro", "registry", "registry read as", "text")
DEPTHS = (2, 50, 99, 101, 499, 501, 1_000, 1_001, 5_000, 50_000)
HUGE = (2**15, 2**20, 2**31 - 1, 2**31, 2**40, 2**62, 2**63 - 1, -1, -2, -(2**31), -(2**40), -(2**63))
FLAT = {
    "type": "record",
    "name": "Flat",
    "fields": [
        {"name": "v", "type": "long"},
        {"name": "s", "type": "string"},
        {"name": "b", "type": ["null", "bytes"]},
        {"name": "e", "type": {"type": "enum", "name": "E", "symbols": ["RED", "BLUE"]}},
        {"name": "f", "type": {"type": "fixed", "name": "F", "size": 4}},
        {"name": "x", "type": ["double", "null"]},
        {"name": "t", "type": logical("long", "timestamp-millis")},
        {"name": "d", "type": logical("int", "date")},
    ],
}
DEEP = {
    "type": "record",
    "name": "Deep",
    "fields": [
        {"name": "v", "type": "long"},
        {"name": "next", "type": ["null", "Deep"]},
        {"name": "all", "type": {"type": "array", "items": "Deep"}},
        {"name": "none", "type": {"type": "array", "items": "null"}},
        {"name": "map", "type": {"type": "map", "values": ["null", "long"]}},
        {"name": "m", "type": ["null", logical("bytes", "decimal", precision=10, scale=2)]},
    ],
}
GOOD = {
    "json": b'{"v": 7, "s": "good"}',
    "lines": b'{"v": 7, "s": "good"}',
    "csv": b"7,good",
    "text": b"7",
    "flat avro": zigzag(7) + sized(b"good") + b"\0" + zigzag(1) + b"1234" + b"\2" + zigzag(10**12) + zigzag(20_000),
    "avro": zigzag(7) + b"\0\0\0\0\0",
    "registry": b"\0\0\0\0\1" + zigzag(7) + b"\0\0\0\0\0",
    "registry read as": b"\0\0\0\0\1" + zigzag(7) + b"\0\0\0\0\0",
}


NO_SCHEMAS = ('"long"', "[]", "{}", "null", "", "{", '"no such type"', '["null", "null"]', "[[]]", "7", '{"type": {}}')
NO_SCHEMAS += ("[" * 5_000 + "]" * 5_000, '{"type":' * 5_000 + '"long"' + "}" * 5_000)
UNITS = (f"{word}-{unit}" for word in ("time", "timestamp", "local-timestamp") for unit in ("millis", "nanos"))
LOGICAL = ("date", "uuid", "decimal", "duration", "no such type", *UNITS)


def _record(*fields: dict[str, Any]) -> dict[str, Any]:
    return {"type": "record", "name": "Self", "fields": list(fields)}


NO_RECORDS = (
    {"type": "record", "fields": []},
    {"type": "record", "name": "R"},
    {"type": "record", "name": "R", "fields": [{"type": "long"}]},
    _record(),
    _record({"name": "v", "type": "long"}, {"name": "v", "type": "string"}),
    {"type": "record", "name": "R", "fields": {"v": "long"}},
    {"type": "array", "items": "long"},
    {"type": "map", "values": "long"},
    {"type": "record", "name": 5, "fields": []},
)


@dataclass(frozen=True)
class Block:
    """A block of messages of a form, which of them are good, and the schemas that its registry knows."""

    form: str
    messages: list[bytes]
    good: frozenset[int]
    schemas: dict[int, str]


def block(seed: int) -> Block:
    """The block of a seed: twenty good messages, and some that are hostile."""
    rng = Random(seed)
    form = FORMS[seed % len(FORMS)]
    schemas = {1: json.dumps(DEEP)} | {number: schema(rng) for number in range(2, 6)}
    hostile = [message(rng, form, schemas) for _ in range(rng.choice((1, 1, 5)))]
    pairs = [(one, False) for one in hostile] + [(GOOD[form], True)] * 20
    rng.shuffle(pairs)
    return Block(form, [one for one, _ in pairs], frozenset(at for at, (_, good) in enumerate(pairs) if good), schemas)


def message(rng: Random, form: str, schemas: dict[int, str]) -> bytes:
    """One message that is not good, or hardly."""
    if form in ("json", "lines"):
        made = jsonlike(rng)
    elif form == "csv":
        made = csvlike(rng)
    elif form == "text":
        made = rng.randbytes(rng.choice((0, 1, 5, 1_000)))
    elif form == "flat avro":
        made = GOOD[form] if rng.random() < 0.5 else avrolike(rng, json.dumps(FLAT))
    elif form == "avro":
        made = GOOD[form] if rng.random() < 0.1 else avrolike(rng, json.dumps(DEEP))
    else:
        known = rng.choice([*schemas, 1, 7, 0, 2**31, 2**32 - 1])
        made = (
            bytes([rng.choice((0, 0, 0, 0, 0, 0, 1, 255))])
            + known.to_bytes(4)
            + avrolike(rng, schemas.get(known, schemas[1]))
        )
    return spoilt(rng, made) if rng.random() < 0.6 else made


def spoilt(rng: Random, data: bytes) -> bytes:
    """The bytes after one to three accidents."""
    for _ in range(rng.randint(1, 3)):
        at, upto = sorted((rng.randint(0, len(data)), rng.randint(0, len(data))))
        way = rng.randrange(6)
        if way == 0 and data:
            at = rng.randrange(len(data))
            data = data[:at] + bytes([data[at] ^ 1 << rng.randrange(8)]) + data[at + 1 :]
        elif way == 1:
            data = data[:at]
        elif way == 2:
            data = (
                data[:upto]
                + data[at:upto] * min(rng.choice((1, 2, 100, 5_000)), 200_000 // (upto - at + 1))
                + data[upto:]
            )
        elif way == 3:
            data = data[:at] + rng.randbytes(rng.choice((1, 2, 8, 100))) + data[at:]
        elif way == 4:
            data = data[:at] + zigzag(rng.choice(HUGE)) + data[at:]
        else:
            data = data[at:upto] + data
    return data


def jsonlike(rng: Random) -> bytes:
    """JSON that is deep, wide, long, or of numbers without end."""
    way = rng.randrange(9)
    depth = rng.choice(DEPTHS)
    if way == 0:
        return b'{"v": 1, "deep": ' + b"[" * depth + b"]" * rng.choice((depth, depth, depth - 1, 0)) + b"}"
    if way == 1:
        return b'{"a":' * depth + b"1" + b"}" * rng.choice((depth, depth, depth - 1, 0))
    if way == 2:
        digits = str(rng.randint(1, 9)) * rng.choice((19, 400, 4_300, 4_301, 5_000, 100_000))
        return f'{{"{rng.choice("vmxz")}": {rng.choice(("", "-", "0."))}{digits}}}'.encode()
    if way == 3:
        power = rng.choice((400, -400, 10**9 - 1, 1 - 10**9, 10**18, 10**21, -(10**21), 10**400))
        return f'{{"{rng.choice("vmxz")}": {rng.choice((0, 1, -1, "1.5"))}e{power}}}'.encode()
    if way == 4:
        return b"{" + b",".join(b'"k%d":%d' % (n % 1_000, n) for n in range(rng.choice((10, 1_000, 20_000)))) + b"}"
    if way == 5:
        return b'{"v": 1, "many": [' + b"1," * rng.choice((10, 50_000)) + b"1]}"
    if way == 6:
        return b'{"s": "' + rng.choice((b"x", b"\\u0000", b"\\ud800", b"\\\\", b'\\"', b"\xc3\xbc")) * 30_000 + b'"}'
    if way == 7:
        return f'{{"v": {number(rng, "decimal(38,18)")}, "m": {number(rng, "decimal(38,18)")}}}'.encode()
    return json_line(rng, rng.choice(("long", "decimal(38,10)", "timestamp", "string"))).data


def csvlike(rng: Random) -> bytes:
    """A record with hostile fields."""
    fields = [number(rng, "decimal(38,10)").encode() for _ in range(rng.choice((1, 2, 2, 2, 3, 500)))]
    if rng.random() < 0.2:
        fields[0] = rng.choice((b'"', b'"a""b"', b'"x" y', b"\0", b"\xff", b"9" * 100_000, b"\xef\xbb\xbf"))
    return b",".join(fields)


def avrolike(rng: Random, text: str) -> bytes:
    """Bytes that begin as a record of the schema does, and then go on deeper, or for longer, than one should."""
    way = rng.randrange(7)
    if way == 0:
        return zigzag(1) + b"\2" * rng.choice(DEPTHS) + rng.choice((b"", b"\0" * 5, b"\0" * 100_000))
    if way == 1:
        return (zigzag(1) + b"\2") * rng.choice(DEPTHS) + b"\0" * rng.choice((0, 5, 100_000))
    if way == 2:
        return zigzag(1) + b"\0\0" + zigzag(rng.choice(HUGE)) + rng.choice((b"", b"\0", zigzag(rng.choice(HUGE))))
    if way == 3:
        return zigzag(1) + (b"\0" + zigzag(1) + zigzag(1)) * rng.choice(DEPTHS) + b"\0" * 20
    if way == 4:
        return b"".join(zigzag(rng.choice((*HUGE, 0, 1, 1, 1, 2))) for _ in range(rng.choice((1, 3, 10, 1_000))))
    if way == 5:
        return zigzag(rng.choice(HUGE)) + rng.randbytes(rng.choice((0, 10, 1_000)))
    return b"\x80" * rng.choice((1, 9, 10, 11, 1_000)) + zigzag(len(text))


def schema(rng: Random) -> str:
    """A schema that somebody may register: odd, huge, deep, recursive, or none at all."""
    way = rng.randrange(14)
    if way == 0:
        return rng.choice(NO_SCHEMAS)
    if way == 1:
        inner: Any = "long"
        for level in range(rng.choice((10, 120, 400, 2_000)) if rng.random() < 0.5 else 90):
            inner = {"type": "record", "name": f"R{level}", "fields": [{"name": "v", "type": inner}]}
        return _dumped(inner)
    if way == 2:
        return json.dumps(_record(*({"type": "long", "name": f"f{n}"} for n in range(rng.choice((100, 3_000))))))
    if way == 3:
        inner = rng.choice(
            ("null", "long", {"type": "fixed", "name": "Z", "size": 0}, {"type": "record", "name": "E", "fields": []})
        )
        for _ in range(rng.choice((1, 2, 3, 20))):
            inner = {"type": "array", "items": inner} if rng.random() < 0.7 else {"type": "map", "values": inner}
        return json.dumps(_record({"name": "v", "type": inner}, {"name": "s", "type": inner}))
    if way == 4:
        return json.dumps(_record({"name": "v", "type": {"type": "fixed", "name": "F", "size": rng.choice(HUGE)}}))
    if way == 5:
        precision, scale = (
            rng.choice((-1, 0, 1, 10, 10**6, 10**18, "5", None)),
            rng.choice((-1, 0, 5, 38, 10**6, 10**18, "2", None)),
        )
        odd = logical(rng.choice(("bytes", "string", "long")), "decimal", precision=precision, scale=scale)
        return json.dumps(_record({"name": "v", "type": odd}, {"name": "m", "type": odd}))
    if way == 6:
        plain = rng.choice(("string", "long", "int", "bytes", "double", "boolean", "null"))
        odd = logical(plain, rng.choice(LOGICAL))
        return json.dumps(_record({"name": "v", "type": odd}, {"name": "s", "type": plain}))
    if way == 7:
        symbols = rng.choice(([], ["A", "A"], ["A"] * 3, ["ü"], [1], "A", None, [f"S{n}" for n in range(5_000)]))
        return json.dumps(_record({"name": "v", "type": {"type": "enum", "name": "E", "symbols": symbols}}))
    if way == 8:
        branches = [{"type": "record", "name": f"B{n}", "fields": []} for n in range(rng.choice((2, 300)))]
        return json.dumps(_record({"name": "v", "type": ["null", *branches, "Self"]}))
    if way == 9:
        return json.dumps(
            {
                "type": "record",
                "name": "T",
                "fields": [{"name": "v", "type": "T"}, {"name": "l", "type": {"type": "array", "items": "T"}}],
            }
        )
    if way == 10:
        return json.dumps(rng.choice(NO_RECORDS))
    if way == 11:
        return json.dumps(FLAT)
    if way == 12:
        return spoilt(rng, json.dumps(DEEP).encode()).decode(errors="replace")
    default = rng.choice((None, 5, "x", [], {}, 10**400))
    return json.dumps(
        _record({"name": "v", "type": "long"}, {"name": "s", "type": ["null", "string"], "default": default})
    )


def _dumped(nested: Any) -> str:
    """JSON of something that is nested deeper than Python's own writer goes."""
    head = tail = ""
    while isinstance(nested, dict):
        (only,) = nested["fields"]
        head += f'{{"type": "record", "name": "{nested["name"]}", "fields": [{{"name": "v", "type": '
        tail = "}]}" + tail
        nested = only["type"]
    return f"{head}{json.dumps(nested)}{tail}"
