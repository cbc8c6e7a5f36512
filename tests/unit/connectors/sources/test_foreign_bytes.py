"""What a message may be made of: whatever it is, it is a row or a reason, and its neighbours are rows."""

from __future__ import annotations

import io
import json
import time
from functools import partial

import fastavro
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

import penstock as ps
from penstock.connectors.formats import coerce
from penstock.connectors.formats.avro import AvroValues
from penstock.connectors.formats.json_messages import json_values
from penstock.connectors.formats.limits import DEFAULT, Limits
from penstock.connectors.formats.message_bytes import Values
from penstock.connectors.kafka import schema_registry
from penstock.connectors.kafka.consumer import Span
from penstock.connectors.kafka.decode import Rows, alone
from penstock.connectors.kafka.message_blocks import Block
from penstock.connectors.kafka.message_columns import shape
from penstock.connectors.kafka.schema_registry import Registry
from penstock.credentials import Secret
from penstock.types.arrow import arrow_type
from penstock.types.schema import schema
from tests.properties.profile import law
from tests.unit.connectors.sources.reading import reader_of, rows_by_offset


def read(pieces, count):
    """Rows and reasons by their places."""
    found = {}
    for piece in pieces:
        found |= dict(zip(piece.offsets.tolist(), piece.rows.to_pylist(), strict=True))
        found |= {bad.offset: bad.reason for bad in piece.undecoded}
    return [found[place] for place in range(count)]


def from_json(lines, columns, limits=DEFAULT):
    return read(json_values(Values.of(lines), schema(columns), limits), len(lines))


def of_kafka(values, columns, avro=None, limits=DEFAULT):
    decode = AvroValues(None if avro is None else json.dumps(avro), None, 1.0, limits)
    return read(decode(Values.of(values), schema(columns)), len(values))


HOSTILE = ["1e1000000000000000000", "-1e-1000000000000000000", "1e-999999999", "9" * 5_000, "1." + "0" * 100_000]


@pytest.mark.parametrize("kind", ["string", "long", "int", "double", "boolean", "date", "timestamp", "decimal(10,2)"])
@pytest.mark.parametrize("number", HOSTILE, ids=[number[:12] for number in HOSTILE])
def test_no_number_of_json_stops_its_neighbours(kind, number):
    good = [b'{"n": %d}' % n for n in range(20)]
    wanted = [{"n": n, "x": None} for n in range(20)]
    for beside in ([], [b'{"torn']):
        rows = from_json([*good, f'{{"n": 20, "other": {number}}}'.encode(), *beside], f"n long, x {kind}")
        assert rows[:21] == [*wanted, {"n": 20, "x": None}]
        rows = from_json([*good, f'{{"n": 20, "x": {number}}}'.encode(), *beside], f"n long, x {kind}")
        assert rows[:20] == wanted
        exact = {"1.": {"double": 1.0, "decimal(10,2)": 1}, "1e": {"double": 0.0}, "-1": {"double": 0.0}}
        value = exact.get(number[:2], {}).get(kind) if number != HOSTILE[0] else None
        assert rows[20] == {"n": 20, "x": value} if value is not None else "column 'x'" in rows[20]


def nested(depth):
    return b'{"n": 1, "other": ' + b"[" * (depth - 1) + b"1" + b"]" * (depth - 1) + b"}"


@pytest.mark.parametrize("beside", [[], [b'{"torn'], [b'{"n": 1}'] * 40])
def test_how_deep_a_line_may_be_does_not_depend_on_its_neighbours(beside):
    for limits, depth in ((Limits(), 100), (Limits(depth=1), 1), (Limits(depth=7), 7), (Limits(depth=500), 500)):
        row, bad = from_json([nested(depth), nested(depth + 1), *beside], "n long", limits)[:2]
        assert row == {"n": 1}
        assert bad == f"nested deeper than {depth}"
    assert from_json([nested(900_000), *beside], "n long")[0] == "nested deeper than 100"
    signs = b'{"n": 1, "s": "' + b'[{\\"' * 500 + b'"}'
    assert from_json([signs, *beside], "n long, s string")[0] == {"n": 1, "s": '[{"' * 500}
    wide = b'{"n": 1, "other": [' + b"[]," * 500 + b"[]]}"
    assert from_json([wide, *beside], "n long")[0] == {"n": 1}
    closed = b'{"n": 1, "other": ' + b'["]",' * 200 + b"1" + b"]" * 200 + b"}"
    assert from_json([closed, *beside], "n long")[0] == "nested deeper than 100"


@pytest.mark.parametrize("beside", [[], [b'{"torn'], [b'{"n": 1, "l": []}'] * 40])
def test_how_full_and_how_long_a_line_may_be_does_not_depend_on_its_neighbours(beside):
    few, full = (b'{"n": 1, "l": [%s]}' % b",".join([b"1"] * count) for count in (7, 8))
    row, bad = from_json([few, full, *beside], "n long", Limits(items=9))[:2]
    assert (row, bad) == ({"n": 1}, "more than 9 items")
    assert from_json([b'{"n": 1, "s": "%s"}' % (b"," * 50)], "n long", Limits(items=9)) == [{"n": 1}]
    assert from_json([b'{"a": 1, "b": 2, "n": 3}', *beside], "n long", Limits(items=2))[0] == "more than 2 items"
    row, bad = from_json([b'{"n": %s1}' % (b" " * k) for k in (9, 10)] + beside, "n long", Limits(size=17))[:2]
    assert (row, bad) == ({"n": 1}, "the value is longer than 17 bytes")


def test_many_values_on_a_line_are_no_row_before_they_take_memory():
    line = b'{"n": 1, "l": [' + b"[]," * 1_000_000 + b"[]]}"
    assert from_json([line, b'{"n": 2}'], "n long") == ["more than 1,000,000 items", {"n": 2}]


def test_an_object_of_many_keys_is_a_row_and_soon():
    line = b"{" + b",".join(b'"k%d": 1' % number for number in range(200_000)) + b', "n": 1}'
    began = time.process_time()
    assert from_json([line], "n long") == [{"n": 1}]
    assert time.process_time() - began < 2  # some tenths of a second


def test_limits_of_a_directory_and_of_a_table(tmp_path):
    (tmp_path / "a.json").write_bytes(nested(3) + b"\n" + nested(4) + b"\n")
    stream = ps.directory(tmp_path, schema="n long", limits=ps.Limits(depth=3))
    row, bad = rows_by_offset(stream, None).values()
    assert (row, bad.reason) == ({"n": 1}, "a.json: nested deeper than 3")
    assert reader_of(stream).start() == reader_of(ps.directory(tmp_path, schema="n long")).start()
    table = ps.table(str(tmp_path / "a.json"), schema="n long", limits=ps.Limits(depth=3))
    assert table.changes.source.reader.rows() == [{"n": 1}]
    assert reader_of(ps.kafka("t", servers="x:1", schema="n long", limits=ps.Limits(depth=3))).limits.depth == 3


@pytest.mark.parametrize(
    ("wrong", "what"),
    [
        (lambda: ps.Limits(depth=0), "depth is 0"),
        (lambda: ps.Limits(depth=501), "depth is 501"),
        (lambda: ps.Limits(items=True), "items is True"),
        (lambda: ps.Limits(size="16 MB"), "size is '16 MB'"),
        (lambda: ps.directory("x", schema="n long", limits=5), "limits is 5"),
        (lambda: ps.kafka("t", servers="x:1", schema="n long", limits={"depth": 5}), "limits is {'depth': 5}"),
    ],
)
def test_limits_that_are_none_are_refused_in_three_parts(wrong, what):
    with pytest.raises(ps.PlanError) as refusal:
        wrong()
    assert refusal.value.what == what
    assert all((refusal.value.why, "ps.Limits(" in refusal.value.instead))


def number(value):
    """A whole number as Avro writes it."""
    rest, made = (value << 1) ^ (value >> 63), b""
    while rest > 0x7F:
        made, rest = made + bytes([rest & 0x7F | 0x80]), rest >> 7
    return made + bytes([rest])


CHAIN = {"type": "record", "name": "Link", "namespace": "a.b", "fields": [
    {"name": "v", "type": "long"}, {"name": "next", "type": ["null", "Link"]}]}  # fmt: skip
FULL = {"type": "record", "name": "Full", "fields": [
    {"name": "v", "type": "long"}, {"name": "a", "type": {"type": "array", "items": "null"}},
    {"name": "m", "type": {"type": "map", "values": {"type": "array", "items": "null"}}},
    {"name": "s", "type": "string"}]}  # fmt: skip
ENDLESS = {"type": "record", "name": "Endless", "fields": [{"name": "v", "type": "Endless"}]}
NOTHING = {"type": "record", "name": "A", "fields": [{"name": "v", "type": {"type": "array", "items": {
    "type": "record", "name": "B", "fields": [{"name": name, "type": "null"} for name in "abcdefgh"]}}}]}  # fmt: skip
LARGE = {"type": "record", "name": "Large", "fields": [
    {"name": "v", "type": "long"},
    {"name": "f", "type": {"type": "fixed", "name": "F", "size": 2**31 - 1}}]}  # fmt: skip
CHOSEN = {"type": "record", "name": "Chosen", "fields": [
    {"name": "v", "type": {"type": "enum", "name": "E", "symbols": ["RED", "BLUE"]}},
    {"name": "u", "type": ["null", "long", "string"]}]}  # fmt: skip
ONE, NONE = number(1), number(0)
MESSAGES = [
    (CHAIN, (ONE + ONE) * 99 + ONE + NONE, {"v": 1}),
    (CHAIN, (ONE + ONE) * 100 + ONE + NONE, "nested deeper than 100"),
    (CHAIN, (ONE + ONE) * 5_000 + ONE + NONE, "nested deeper than 100"),
    (CHAIN, (ONE + ONE) * 200_000 + ONE + NONE, "nested deeper than 100"),
    (ENDLESS, b"", "the value is empty"),
    (ENDLESS, b"x", "nested deeper than 100"),
    (FULL, ONE + number(1_000) + NONE * 3, {"v": 1}),
    (FULL, ONE + number(2**40) + NONE * 3, "more than 1,000,000 items"),
    (FULL, ONE + number(-(2**40)) + number(8) + NONE * 3, "more than 1,000,000 items"),
    (FULL, ONE + number(-(2**63)) + number(8) + NONE * 3, "more than 1,000,000 items"),
    (FULL, ONE + number(600_000) * 2 + NONE * 3, "more than 1,000,000 items"),
    (FULL, ONE + NONE + number(1) + number(1) + b"k" + number(2**40) + NONE * 3, "more than 1,000,000 items"),
    (FULL, ONE + NONE * 2 + number(2**60) + b"a", "a length of 1152921504606846976 where 1 bytes are left"),
    (FULL, ONE + NONE * 2 + number(-1) + b"a", "a length of -1 where 1 bytes are left"),
    (FULL, ONE + NONE * 2 + number(1) + b"ab", "1 bytes are left over"),
    (FULL, b"\xff" * 40, "more than ten bytes"),
    (NOTHING, number(500_000) + NONE, "more than 1,000,000 items"),
    (LARGE, ONE + b"abc", "a length of 2147483647 where 3 bytes are left"),
    (CHOSEN, number(1) + number(0), {"v": "BLUE"}),
    (CHOSEN, number(-1) + number(0), "a symbol is number -1 of 2"),
    (CHOSEN, number(0) + number(-1) + number(1) + b"a", "a branch is number -1 of 3"),
]


@pytest.mark.parametrize(("avro", "value", "found"), MESSAGES, ids=range(len(MESSAGES)))
def test_no_avro_message_takes_more_than_it_brings(avro, value, found):
    kind = "string" if avro is CHOSEN else "long"
    (one,) = of_kafka([value], f"v {kind}", avro)
    assert one == found if isinstance(found, dict) else found in one
    assert of_kafka([value, value], f"v {kind}", avro) == [one, one]


def test_limits_of_avro():
    value = (ONE + ONE) * 5 + ONE + NONE
    assert of_kafka([value], "v long", CHAIN, Limits(depth=6)) == [{"v": 1}]
    assert "nested deeper than 5" in of_kafka([value], "v long", CHAIN, Limits(depth=5))[0]
    value = (ONE + ONE) * 499 + ONE + NONE
    assert of_kafka([value], "v long", CHAIN, Limits(depth=500)) == [{"v": 1}]
    value = ONE + number(50) + NONE * 3
    assert of_kafka([value], "v long", FULL, Limits(items=55)) == [{"v": 1}]
    assert "more than 54 items" in of_kafka([value], "v long", FULL, Limits(items=54))[0]
    flat = {"type": "record", "name": "R", "fields": [{"name": "v", "type": "long"}, {"name": "s", "type": "string"}]}
    values = [ONE + number(5) + b"abcde", ONE + number(6) + b"abcdef"]
    assert of_kafka(values, "v long", flat, Limits(size=7)) == [{"v": 1}, "the value is longer than 7 bytes"]
    assert "more than 2 items" in of_kafka(values, "v long", flat, Limits(items=2))[0]


DECIMALS = {"type": "record", "name": "R", "fields": [
    {"name": "d", "type": {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2}},
    {"name": "e", "type": {"type": "fixed", "name": "F", "size": 3, "logicalType": "decimal", "precision": 4}},
    {"name": "t", "type": {"type": "long", "logicalType": "timestamp-millis"}}]}  # fmt: skip


def test_a_decimal_of_avro_has_all_its_digits_or_is_none():
    def value(digits, size):
        return number(size) + digits.to_bytes(size, signed=True) + (7_654_321).to_bytes(3) + number(2**60)

    columns = "d decimal(38,10), e decimal(10,1)"  # t is beyond any year, and nobody asked for it
    (row,) = of_kafka([value(123_456_789, 8)], columns, DECIMALS)
    assert [str(row[name]) for name in "de"] == ["1234567.8900000000", "7654321.0"]
    (why,) = of_kafka([value(10**40, 20)], columns, DECIMALS)
    assert why.startswith("column 'd': ")
    (why,) = of_kafka([value(1, 100_000)], columns, DECIMALS)
    assert why.startswith("column 'd': ")
    (why,) = of_kafka([value(1, 1)], f"{columns}, t timestamp", DECIMALS)
    assert "OverflowError" in why


def record(kind):
    return json.dumps({"type": "record", "name": "R", "fields": [{"name": "v", "type": kind}]})


DEEP = "[" * 10_000 + "]" * 10_000
SCHEMAS = [
    "", "{", "5", '"string"', '["null", "long"]', DEEP, '{"type": "record", "name": "R", "fields": ' + DEEP + "}",
    '{"type":' * 500 + '"long"' + "}" * 500, record("nobody"), record({"type": "fixed", "name": "F", "size": -1}),
    record({"type": "fixed", "name": "F", "size": 10**30}), record({"type": "fixed", "name": "F", "size": "3"}),
    record({"type": "enum", "name": "E", "symbols": ["\ud800"]}), record({"type": "enum", "name": "E"}),
    record({"type": "enum", "name": "E", "symbols": 5}), record({"type": "array"}), record([]), record(None), record(5),
    record({"type": "bytes", "logicalType": "decimal", "precision": 10**9, "scale": 10**9}),
    record({"type": "bytes", "logicalType": "decimal", "precision": "4", "scale": 2}),
    record({"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": [2]}),
    record({"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": -2}),
    record({"type": "bytes", "logicalType": "decimal"}), '{"type": "record", "name": "R"}',
    '{"type": "record", "name": "1 R!", "fields": []}', '{"type": "record", "fields": [{"name": "v"}]}',
    '{"type": "record", "name": "R", "fields": [{"type": "long"}]}', '{"size": 1' + "0" * 5_000 + "}",
    '{"type": "record", "name": "R", "doc": "' + "x" * (1 << 20) + '", "fields": []}', "\0", "\ud800",
]  # fmt: skip


@pytest.mark.parametrize("text", SCHEMAS, ids=range(len(SCHEMAS)))
def test_no_schema_that_a_producer_registers_stops_the_run(text, monkeypatch):
    held = {1: record("long"), 2: text}
    monkeypatch.setattr(schema_registry, "_known", {})
    monkeypatch.setattr(schema_registry, "_answer", lambda given, wanted: {"schema": held[wanted]})
    decode = AvroValues(None, Registry("http://127.0.0.1:1", Secret("")), 0.1)
    values = [b"\0" + wanted.to_bytes(4) + number(3) for wanted in (1, 2, 1)]
    first, bad, last = read(decode(Values.of(values), schema("v long")), 3)
    assert first == last == {"v": -2} or first == last == {"v": 3}
    assert "Avro" in bad


def test_a_schema_that_refers_to_others_is_a_reason(monkeypatch):
    answer = {"schema": record("other.Name"), "references": [{"name": "other.Name", "subject": "o", "version": 1}]}
    monkeypatch.setattr(schema_registry, "_known", {})
    monkeypatch.setattr(schema_registry, "_answer", lambda given, wanted: answer)
    decode = AvroValues(None, Registry("http://127.0.0.1:1", Secret("")), 0.1)
    (why,) = read(decode(Values.of([b"\0\0\0\0\2x"]), schema("v long")), 1)
    assert why == "the Avro schema 2 of the registry refers to others, which is not supported"


def test_logical_types_that_are_none_are_the_plain_ones():
    for kind in (
        {"type": "long", "logicalType": ["x"]},
        {"type": "long", "logicalType": "moon"},
    ):
        avro = {"type": "record", "name": "R", "fields": [{"name": "v", "type": kind}]}
        assert of_kafka([number(5)], "v long", avro) == [{"v": 5}]


@law(100)
@given(st.data())
def test_any_bytes_are_a_row_or_a_reason_and_soon(data):
    """Values of schemas that are not flat, with bytes changed, cut, put in and doubled."""
    avro = data.draw(st.sampled_from([CHAIN, FULL, ENDLESS, NOTHING, CHOSEN, DECIMALS]))
    chosen = [value for one, value, found in MESSAGES if one is avro and isinstance(found, dict)] or [b"\2\2\2"]
    spoilt = bytearray(data.draw(st.sampled_from(chosen)))
    for _ in range(data.draw(st.integers(0, 4))):
        at = data.draw(st.integers(0, len(spoilt)))
        spoilt[at : at + data.draw(st.integers(0, 2))] = data.draw(st.binary(max_size=11))
    began = time.monotonic()
    (found,) = of_kafka([bytes(spoilt)], "v long, d decimal(10,2)", avro)
    assert isinstance(found, (dict, str))
    assert time.monotonic() - began < 10
    if isinstance(found, dict):
        again = fastavro.schemaless_reader(io.BytesIO(bytes(spoilt)), fastavro.parse_schema(avro))
        assert found["v"] == again.get("v")


def test_a_time_of_kafka_that_is_no_time_is_a_reason():
    rows = Rows(shape("text", None, ("kafka_time", "key"), "text", None, None), alone)
    values = Values.of([b"a", b"b", b"c", b"d"])
    beside = {"kafka_time": pa.array([0, 2**62, -1, 253402300799999]), "key": pa.array([b"k"] * 4)}
    block = Block(values, np.arange(4), beside)
    found = read(rows._decoded(block, Span("t", "id", 0, 0, 4, False)), 4)
    assert found[1] == "the time of the message is outside the years 1 to 9999"
    assert [row["kafka_time"] and row["kafka_time"].year for row in (found[0], found[2], found[3])] == [
        1970,
        None,
        9999,
    ]


TEXTS = st.sampled_from([
    "2026-01-31", "2026-01-31T12:30:00.123456+01:00", "2026-01-31 12:30:00Z", "0000-12-31T23:59:59-23:59",
    "0001-01-01T00:00:00+00:01", "9999-12-31T23:59:59.999999Z", "true", "FALSE", "1", "yes", "12345", "+1", "0x10",
    "-9223372036854775808", "0" * 60 + "1", "1.5e308", "NaN", "-inf", "1e400", ".5", "-.5", "5.", "-0.00", "1_0",
    "123456789012345678901234567890.12345678", "0.00000000000000000000000000000000000001",
])  # fmt: skip


@st.composite
def nearly(draw):
    """A text of some type with a few letters changed."""
    letters = list(draw(TEXTS))
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, len(letters)))
        letters[at : at + draw(st.integers(0, 1))] = draw(st.sampled_from(["", *"0123456789-+:TtZz ., eExX_infaNW"]))
    return "".join(letters)


@law(500)
@given(nearly())
def test_a_text_that_arrow_takes_is_taken_alone_for_the_same(text):
    """The whole column and the single value: whether a text is a value cannot depend on those beside it."""
    for kind in ("long", "int", "double", "boolean", "date", "timestamp", "decimal(10,2)", "decimal(38,18)"):
        try:
            whole = coerce._whole_text(kind, pa.array([text])).cast(arrow_type(kind))
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            continue
        judges = [coerce.csv_value(kind)]
        if kind in ("date", "timestamp") or kind.startswith("decimal"):
            judges.append(partial(coerce.value_of, kind))
        for judge in judges:
            assert pa.array([judge(text)], arrow_type(kind)).equals(whole)
