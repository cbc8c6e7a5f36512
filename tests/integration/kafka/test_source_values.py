"""What a message's value becomes: JSON as in a file of lines, Avro at once and one by one. No broker."""

from __future__ import annotations

import base64
import io
import json
import random
import threading
from datetime import UTC, date, datetime
from decimal import Decimal
from http.server import BaseHTTPRequestHandler, HTTPServer

import fastavro
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from penstock.connectors.formats.avro import AvroValues, Writer
from penstock.connectors.formats.avro_columnar import flat
from penstock.connectors.formats.json_messages import json_values
from penstock.connectors.formats.json_uniform import alike, columns
from penstock.connectors.formats.message_bytes import LONGEST, Values, bytes_of, kept
from penstock.connectors.kafka.errors import SourceError
from penstock.connectors.kafka.schema_registry import Registry
from penstock.credentials import Secret
from penstock.types.arrow import from_arrow
from penstock.types.schema import schema
from penstock.types.timestamps import from_datetime
from tests.unit.connectors.sources.test_text_files import BAD_JSON, EVERY, GOOD_JSON

EVERY_SCHEMA = schema(EVERY)


def rows_of(pieces, columns):
    """Rows and reasons by place; a place that comes twice or never is a failure."""
    found, raws = {}, {}
    for piece in pieces:
        rows = from_arrow(piece.rows, columns)
        for place, row in zip(piece.offsets.tolist(), rows, strict=True):
            assert place not in found
            found[place] = row
        for bad in piece.undecoded:
            assert bad.offset not in found
            found[bad.offset], raws[bad.offset] = bad.reason, bad.raw
    assert sorted(found) == list(range(len(found)))
    return [found[place] for place in sorted(found)], raws


@pytest.mark.parametrize("repeated", [1, 200])
def test_4_9_json_is_read_as_in_a_file_of_lines(repeated):
    """Rows 4 and 9: what is bad there is bad here, and its neighbours are not harmed."""
    texts = [text.encode("utf-8", "surrogatepass") for text, _ in [*GOOD_JSON, *BAD_JSON]] * repeated
    random.Random(7).shuffle(texts)
    rows, raws = rows_of(json_values(Values.of(texts), EVERY_SCHEMA), EVERY_SCHEMA)
    assert len(rows) == len(texts)
    plain = dict.fromkeys(EVERY_SCHEMA.names)
    good = {text.encode("utf-8", "surrogatepass"): {**plain, **row} for text, row in GOOD_JSON}
    bad = {text.encode("utf-8", "surrogatepass"): why for text, why in BAD_JSON}
    for place, text in enumerate(texts):
        if text in good:
            assert rows[place] == good[text]
        else:
            assert bad[text] in rows[place]
            assert bytes_of(raws[place]) == text


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (b"", "the value is empty"),
        (b"  \n ", "the value is empty"),
        (b"\xff\xfe", "not UTF-8"),
        (b'{"s": "\xed\xa0\x80"}', "not UTF-8"),
        (b'{"n": 1}\n{"n": 2}', "not JSON: Extra data"),
        (b'{"s": "a\nb"}', "not JSON: Invalid control character"),
        (b'{"x": 1e400}', "beyond a double"),
        (b'{"s": "' + b"x" * (50 << 20) + b'"}', "the value is longer than 16,777,216 bytes"),
    ],
    ids=lambda value: value[:12] if isinstance(value, bytes) else "",
)
def test_4_a_poison_value_is_a_reason_among_rows(value, why):
    """Row 4: including values that no file of lines could hold."""
    values = [b'{"n": 1}'] * 20 + [value] + [b'{"n": 2}'] * 20
    rows, raws = rows_of(json_values(Values.of(values), EVERY_SCHEMA), EVERY_SCHEMA)
    assert [row["n"] for row in rows[:20] + rows[21:]] == [1] * 20 + [2] * 20
    assert why in rows[20]
    if len(value) <= LONGEST:
        assert bytes_of(raws[20]) == value
    else:
        assert raws[20].endswith(f"({len(value):,} bytes in all)")


def test_a_value_over_several_lines_is_one_row():
    values = [b'{\n  "n": 1,\n  "s": "a"\n}', b'{"n": 2}', b'\n{"n": 3}\n'] * 50
    rows, _ = rows_of(json_values(Values.of(values), EVERY_SCHEMA), EVERY_SCHEMA)
    assert [row["n"] for row in rows] == [1, 2, 3] * 50


SIGNS = st.sampled_from(["", " "])
SCALARS = {
    "s": st.text(alphabet="aü {},:[]\u00a0") | st.sampled_from(["5", "null"]),
    "n": st.integers(-(10**20), 10**20) | st.sampled_from([0, -1, 2**63, 2**31]),
    "i": st.integers(-(2**31), 2**31 - 1),
    "x": st.floats(allow_nan=False, allow_infinity=False) | st.integers(-5, 5),
    "b": st.booleans(),
    "d": st.dates().map(str) | st.just("2026-13-01"),
    "t": st.datetimes().map(str) | st.just("soon"),
    "m": st.integers(-99, 99),
    "other": st.none() | st.booleans() | st.integers() | st.text(alphabet="ab"),
}


@st.composite
def objects(draw):
    """Values that one program has written, and perhaps one or another that it has not."""
    names = draw(st.lists(st.sampled_from(sorted(SCALARS)), min_size=1, unique=True))
    comma, colon = f"{draw(SIGNS)},{draw(SIGNS)}", f"{draw(SIGNS)}:{draw(SIGNS)}"
    row = st.fixed_dictionaries({name: SCALARS[name] for name in names})
    rows = draw(st.lists(row, min_size=1, max_size=6))
    made = [comma.join(f'"{name}"{colon}{json.dumps(one, ensure_ascii=False)}' for name, one in row.items())
            for row in rows]  # fmt: skip
    values = [f"{{{one}}}" for one in made]
    spoilt = st.sampled_from(["", "{}", "[]", '{"n": 1}', '{"n":01}', '{"n":+1}', '{"x":1.}', '{"x":.5}', '{"b":tru}',
                              '{"s":"\\u00e4"}', '{"s":"a\tb"}', '{"s":"a","s":"b"}', '{"n":1,}', '{"n" 1}', '"n"',
                              '{"s":"a"b"}', '{"n":1}}', '{"n":-}', '{"n":}', '{"x":1e400}',
                              '{"n":1}\n{"n":2}'])  # fmt: skip
    if draw(st.booleans()):
        values.insert(draw(st.integers(0, len(values))), draw(spoilt))
    if draw(st.booleans()):
        at = draw(st.integers(0, len(values) - 1))
        value = values[at]
        cut = draw(st.integers(0, len(value)))
        values[at] = (
            value[:cut] + draw(st.sampled_from(['"', ",", " ", "0", "-", "x", "}", "\u00a0", "\x01"])) + value[cut:]
        )
    return [value.encode() for value in values]


@settings(max_examples=300)
@given(objects())
def test_objects_that_are_alike_are_read_at_once_as_the_general_reader_reads_them(values):
    at_once, _ = rows_of(json_values(Values.of(values), EVERY_SCHEMA), EVERY_SCHEMA)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("penstock.connectors.formats.json_messages._alike", lambda *given: None)
        general, _ = rows_of(json_values(Values.of(values), EVERY_SCHEMA), EVERY_SCHEMA)
    assert repr(at_once) == repr(general)


def test_plain_objects_are_read_at_once():
    value = (
        b'{"s": "\xc3\xbc", "n": -12, "i": 0, "x": 1e3, "b": true, "d": "2026-01-31", "t": "2026-01-31T12:00Z", "o": 1}'
    )
    look = alike(value)
    assert look is not None
    values = [value, value.replace(b"-12", b"7").replace(b"true", b"false")]
    text = b"\n".join(values)
    starts = np.array([0, len(values[0]) + 1])
    made = columns(look, text, starts, starts + [len(one) for one in values], EVERY_SCHEMA)
    assert made is not None
    rows, bad = made
    assert bad == {}
    assert rows.column("n").to_pylist() == [-12, 7]
    assert rows.column("b").to_pylist() == [True, False]
    assert rows.column("m").to_pylist() == [None, None]


@pytest.mark.parametrize("data", [b"plain", "ü".encode(), b"\xff\0", b"a\0b", b"base64:aGk=", b""])
def test_25_what_is_kept_of_a_message_gives_its_bytes_back(data):
    assert bytes_of(kept(data)) == data
    assert "\0" not in kept(data)


def test_a_long_message_is_kept_in_part():
    text = kept(("ü" * LONGEST).encode())
    assert text.startswith("üü")
    assert text.endswith(f"({2 * LONGEST:,} bytes in all)")
    assert kept(b"\xff" * 100_000).startswith("base64:")
    with pytest.raises(ValueError, match="only the beginning"):
        bytes_of(text)
    assert kept(("x" + "ü" * LONGEST).encode()).startswith("xü")


FIELDS = {
    "s": ("string", st.text(), "string"),
    "b": ("bytes", st.binary(max_size=20), "binary"),
    "n": ("long", st.integers(-(2**63), 2**63 - 1), "long"),
    "i": ("int", st.integers(-(2**31), 2**31 - 1), "int"),
    "x": ("double", st.floats(allow_nan=False), "double"),
    "f": ("float", st.floats(width=32, allow_nan=False), "float"),
    "o": ("boolean", st.booleans(), "boolean"),
    "t": ({"type": "long", "logicalType": "timestamp-micros"}, st.integers(-(10**15), 10**15), "timestamp"),
    "m": ({"type": "long", "logicalType": "timestamp-millis"}, st.integers(-(10**12), 10**12), "timestamp"),
    "d": ({"type": "int", "logicalType": "date"}, st.integers(-1000, 100_000) | st.just(2**31 - 1), "date"),
    "e": ({"type": "enum", "name": "E", "symbols": ["RED", "BLUE"]}, st.sampled_from(["RED", "BLUE"]), "string"),
    "k": ({"type": "fixed", "name": "K", "size": 3}, st.binary(min_size=3, max_size=3), "binary"),
}


@st.composite
def records(draw):
    """A flat schema, rows of it, and the columns that are asked for."""
    names = draw(st.lists(st.sampled_from(sorted(FIELDS)), min_size=1, unique=True))
    nullable = {name: draw(st.sampled_from([None, 0, 1])) for name in names}
    fields = []
    for name in names:
        kind = FIELDS[name][0]
        union = {None: kind, 0: ["null", kind], 1: [kind, "null"]}[nullable[name]]
        fields.append({"name": name, "type": union})
    row = st.fixed_dictionaries(
        {name: FIELDS[name][1] if nullable[name] is None else st.none() | FIELDS[name][1] for name in names}
    )
    rows = draw(st.lists(row, max_size=8))
    asked = draw(st.permutations(names) | st.lists(st.sampled_from(names), min_size=1, unique=True))
    columns = schema(", ".join(f"{name} {FIELDS[name][2]}" for name in asked))
    return {"type": "record", "name": "R", "fields": fields}, rows, columns


def encoded(avro, row):
    out = io.BytesIO()
    fastavro.schemaless_writer(out, avro, row)
    return out.getvalue()


@settings(max_examples=150)
@given(records(), st.data())
def test_flat_avro_is_read_at_once_as_it_is_one_by_one(made, data):
    avro, rows, columns = made
    assert flat(avro) is not None
    parsed = fastavro.parse_schema(avro)
    values = [encoded(parsed, row) for row in rows]
    for value in list(values):  # torn, longer or changed ones among them
        spoilt = bytearray(value)
        if spoilt:
            spoilt[data.draw(st.integers(0, len(spoilt) - 1))] ^= 1 << data.draw(st.integers(0, 7))
        values.insert(data.draw(st.integers(0, len(values))), data.draw(st.sampled_from(
            [value[: len(value) // 2], value + b"\1", bytes(spoilt)])))  # fmt: skip
    at_once, _ = rows_of(AvroValues(json.dumps(avro), None, 1.0)(Values.of(values), columns), columns)
    writer = Writer.of(json.dumps(avro), None)
    alone, _ = rows_of([writer._one_by_one(Values.of(values), 0, range(len(values)), columns)], columns)
    for one, other in zip(at_once, alone, strict=True):
        if not isinstance(one, str) and isinstance(other, str) and len(columns.names) < len(avro["fields"]):
            continue  # a value that nobody asked for is not judged
        assert isinstance(one, str) == isinstance(other, str)
        assert isinstance(one, str) or repr(one) == repr(other)


SCORE = {
    "type": "record",
    "name": "Score",
    "fields": [
        {"name": "team", "type": "string"},
        {"name": "points", "type": ["null", "long"], "default": None},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
    ],
}
COLUMNS = schema("team string, points long, at timestamp")
NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)


def test_4_9_poison_in_avro_is_a_reason_among_rows():
    """Rows 4 and 9: torn, foreign, empty, half a surrogate pair, NUL; a field of another type; one that is missing."""
    good = encoded(fastavro.parse_schema(SCORE), {"team": "red", "points": None, "at": NOON})
    surrogate = good.replace(b"red", b"\xed\xa0\x80")
    nul = good.replace(b"red", b"r\0d")
    values = [good, b"", good[:-1], good + b"x", b'{"team": "red"}', surrogate, nul, good]
    rows, raws = rows_of(AvroValues(json.dumps(SCORE), None, 1.0)(Values.of(values), COLUMNS), COLUMNS)
    expected = {"team": "red", "points": None, "at": from_datetime(NOON)}
    assert rows[0] == rows[7] == expected
    assert rows[6] == {**expected, "team": "r\0d"}
    assert rows[1] == "the value is empty"
    assert "not Avro of this schema" in rows[2]
    assert "not Avro of this schema" in rows[3]
    assert isinstance(rows[4], str)
    assert isinstance(rows[5], str)
    assert all(bytes_of(raws[place]) == values[place] for place in raws)
    other = schema("team long, points long, missing double")
    rows, _ = rows_of(AvroValues(json.dumps(SCORE), None, 1.0)(Values.of([good]), other), other)
    assert "column 'team'" in rows[0]
    less = schema("points long, missing double")
    rows, _ = rows_of(AvroValues(json.dumps(SCORE), None, 1.0)(Values.of([good]), less), less)
    assert rows == [{"points": None, "missing": None}]


def test_avro_that_is_not_flat_is_read_too():
    avro = {
        "type": "record",
        "name": "R",
        "fields": [
            {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 6, "scale": 2}},
            {"name": "tags", "type": {"type": "array", "items": "string"}},
            {"name": "id", "type": {"type": "string", "logicalType": "uuid"}},
            {"name": "day", "type": {"type": "int", "logicalType": "date"}},
        ],
    }
    assert flat(avro) is None
    from uuid import UUID

    number = UUID(int=5)
    row = {"price": Decimal("12.50"), "tags": ["a"], "id": number, "day": date(2026, 1, 31)}
    columns = schema("price decimal(6,2), id string, day date")
    rows, _ = rows_of(
        AvroValues(json.dumps(avro), None, 1.0)(Values.of([encoded(fastavro.parse_schema(avro), row)]), columns),
        columns,
    )
    assert rows == [{"price": Decimal("12.50"), "id": str(number), "day": date(2026, 1, 31)}]


def test_an_enum_without_symbols_has_no_value_at_all():
    enum = {"name": "e", "type": ["null", {"type": "enum", "name": "E", "symbols": []}]}
    avro = {"type": "record", "name": "R", "fields": [{"name": "n", "type": "long"}, enum]}
    columns = schema("n long, e string")
    decode = AvroValues(json.dumps(avro), None, 1.0)
    rows, _ = rows_of(decode(Values.of([b"\2\0", b"\4\2\0", b"\6\0"]), columns), columns)
    assert [rows[0], rows[2]] == [{"n": 1, "e": None}, {"n": 3, "e": None}]
    assert "not Avro of this schema" in rows[1]


@pytest.fixture
def registry():
    """A registry with two schemas, that wants a password, and fails once."""
    older = {**SCORE, "fields": [SCORE["fields"][0], SCORE["fields"][2]]}
    held = {7: json.dumps(SCORE), 8: json.dumps(older)}
    asked = []

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self):
            number = int(self.path.rpartition("/")[2])
            asked.append((number, self.headers["Authorization"]))
            known = self.path.startswith("/r/schemas/ids/") and number in held
            code = 503 if len(asked) == 1 else 200 if known else 404
            body = json.dumps({"schema": held.get(number)} if code == 200 else {}).encode()
            self.send_response(code)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args):
            pass

    server = HTTPServer(("127.0.0.1", 0), Answer)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/r", asked
    server.shutdown()
    server.server_close()
    thread.join()


def test_a_registry_says_what_values_are_made_of(registry):
    url, asked = registry
    good = encoded(fastavro.parse_schema(SCORE), {"team": "red", "points": 5, "at": NOON})
    older = {**SCORE, "fields": [SCORE["fields"][0], SCORE["fields"][2]]}
    old = encoded(fastavro.parse_schema(older), {"team": "old", "at": NOON})
    heads = {number: b"\0" + number.to_bytes(4) for number in (7, 8, 9)}
    values = [heads[7] + good, heads[8] + old, heads[9] + good, good, b"", heads[7] + good[:3], heads[7] + good]
    for reader in (None, json.dumps(SCORE)):
        decode = AvroValues(reader, Registry(url, Secret("ann:word")), 5.0)
        rows, raws = rows_of(decode(Values.of(values), COLUMNS), COLUMNS)
        assert rows[0] == rows[6] == {"team": "red", "points": 5, "at": from_datetime(NOON)}
        assert rows[1] == {"team": "old", "points": None, "at": from_datetime(NOON)}
        assert rows[2] == "the registry has no Avro schema 9"
        assert "does not begin as a registry's do" in rows[3]
        assert rows[4] == "the value is empty"
        assert "not Avro" in rows[5]
        assert {place: bytes_of(raw) for place, raw in raws.items()} == {place: values[place] for place in (2, 3, 4, 5)}
    basic = f"Basic {base64.b64encode(b'ann:word').decode()}"
    assert asked == [(7, basic), (7, basic), (8, basic), (9, basic), (9, basic)]


def test_25_a_registry_that_is_away_stops_the_run_without_its_password():
    decode = AvroValues(None, Registry("http://127.0.0.1:1", Secret("ann:word")), 0.1)
    with pytest.raises(SourceError, match=r"schema registry at http://127.0.0.1:1 did not give the schema 3") as told:
        list(decode(Values.of([b"\0\0\0\0\3x"]), COLUMNS))
    assert "word" not in str(told.value)
