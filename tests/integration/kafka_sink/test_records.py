"""What a record looks like, and what is refused before Spark starts: no broker is needed."""

from __future__ import annotations

import base64
import io
import json
import math
import pickle
import threading
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pytest

import penstock as ps
from penstock.connectors.files.sink import files, published
from penstock.connectors.kafka.producer import Heard, hidden, options
from penstock.connectors.sink_errors import SinkDown, SinkError
from penstock.credentials import Secret
from penstock.errors import PlanError
from tests.unit.connectors.sinks.outputs import (
    BAD,
    LATES,
    PANES,
    SCORES,
    TYPED,
    all_types,
    give,
    late_rows,
    pane,
    panes,
)


def sink(topic: Any = "scores", **more: Any) -> Any:
    return ps.to_kafka(topic, **{"servers": "localhost:9092", **more})


def records(table: pa.Table, target: Any = PANES, **more: Any) -> list[Any]:
    return list(sink(**more).encoder(target).records(table, "L1/7"))


def test_an_answer_is_keyed_by_key_and_window_and_carries_its_pane():
    (record,) = records(panes(pane("red", 3, index=2)))
    bounds = '"window_start":"2026-01-31T12:00:00Z","window_end":"2026-01-31T12:05:00Z"'
    assert record.key.decode() == '{"team":"red",' + bounds + "}"
    assert record.value.decode() == (
        '{"team":"red",' + bounds + ',"points":3,"pane_index":2,"pane_timing":"early","pane_final":false}'
    )
    assert dict(record.headers) == {
        "penstock.timing": b"early", "penstock.index": b"2", "penstock.batch": b"L1/7",
    }  # fmt: skip


def test_a_withdrawn_answer_is_a_tombstone_and_a_retraction_before_its_pane_an_update():
    rows = records(panes(pane("red", 1, op=-1), pane("red", 2, index=1), pane("blue", 9, op=-1)))
    assert [(json.loads(row.key)["team"], row.value is None) for row in rows] == [("red", False), ("blue", True)]
    assert dict(rows[1].headers) == {"penstock.batch": b"L1/7"}


def test_row_26_null_is_an_ordinary_key_and_the_global_window_has_no_bounds():
    (record,) = records(panes(pane(None, 1, None)))
    assert json.loads(record.key) == {"team": None, "window_start": None, "window_end": None}


def test_appended_panes_go_by_their_key_alone_and_keep_their_op():
    (record,) = records(panes(pane("red", 1, op=-1)), compacted=False)
    assert record.key == b'{"team":"red"}'
    assert json.loads(record.value)["op"] == -1


def test_a_single_column_is_a_key_as_it_is_and_several_are_an_object():
    table = panes(pane("é", 1), pane(None, 2))
    assert [one.key for one in records(table, compacted=False, key="team")] == ["é".encode(), None]
    assert [one.key for one in records(table, compacted=False, key="points")] == [b"1", b"2"]
    assert records(table, compacted=False, key=["points", "team"])[1].key == b'{"points":2,"team":null}'


def test_equal_keys_have_equal_bytes():
    schema = pa.schema([("x", pa.float64()), *((one.name, one.type) for one in list(SCORES)[1:])])
    rows = [{**pane("", number), "x": x} for number, x in enumerate([0.0, -0.0, math.nan])]
    table = pa.Table.from_pylist([{name: row[name] for name in schema.names} for row in rows], schema=schema)
    target = replace(PANES, schema=schema, keys=("x", "window_start", "window_end"))
    found = records(table, target)
    assert [json.loads(one.key)["x"] for one in found] == [0.0, "NaN"]
    assert found[0].key.startswith(b'{"x":0.0,')


def test_late_rows_and_quarantine_have_no_key():
    (record,) = records(late_rows(), LATES)
    assert (record.key, dict(record.headers)) == (None, {"penstock.batch": b"L1/7"})
    assert json.loads(record.value)["late_windows"] == [{"start": "2026-01-31T12:00:00Z", "end": None}]
    sink().refuse(BAD)


def test_json_is_what_files_write(tmp_path):
    table = all_types()
    give(files(tmp_path / "json", format="json"), table, target=TYPED)
    (path,) = published(tmp_path / "json")
    lines = [json.loads(line) for line in Path(path).read_bytes().splitlines()]
    assert [json.loads(one.value) for one in records(table, TYPED, compacted=False)] == lines


def test_names_of_columns_may_hold_anything_in_json():
    names = ['te"am %s' if one == "team" else one for one in SCORES.names]
    table = panes(pane("100%", 1)).rename_columns(names)
    target = replace(PANES, schema=table.schema, keys=('te"am %s', "window_start", "window_end"))
    (record,) = records(table, target)
    assert json.loads(record.value)['te"am %s'] == "100%"


def test_avro_by_a_schema_of_your_own_takes_the_fields_it_has():
    own = {"type": "record", "name": "Score", "fields": [
        {"name": "points", "type": "long"}, {"name": "team", "type": ["null", "string"]},
        {"name": "game", "type": "string", "default": "chess"}]}  # fmt: skip
    for schema in (own, json.dumps(own)):
        (record,) = records(panes(pane("red", 3)), value="avro", avro_schema=schema)
        found = fastavro.schemaless_reader(io.BytesIO(record.value), fastavro.parse_schema(own), None)
        assert found == {"points": 3, "team": "red", "game": "chess"}


def test_a_value_that_does_not_fit_the_schema_is_named():
    own = {"type": "record", "name": "Score", "fields": [{"name": "points", "type": "long"}]}
    with pytest.raises(SinkError, match="cannot be written to kafka:localhost:9092#scores as Avro"):
        records(panes(pane("red", None)), value="avro", avro_schema=own)


@pytest.fixture
def registry() -> Any:
    """A registry that knows one subject, and what it was asked."""
    asked: list[tuple[str, str, Any]] = []

    class Answer(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            asked.append((self.path, self.headers["Authorization"], json.loads(body["schema"])))
            code = {"scores": 200, "busy": 503}.get(self.path.split("/")[2].removesuffix("-value"), 409)
            said = json.dumps({"id": 258} if code == 200 else {"message": "incompatible"}).encode()
            self.send_response(code)
            self.send_header("Content-Length", str(len(said)))
            self.end_headers()
            self.wfile.write(said)

        def log_message(self, *args: Any) -> None:
            """Say nothing."""

    with HTTPServer(("127.0.0.1", 0), Answer) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://ann:hunter%202@127.0.0.1:{server.server_port}/", asked
        server.shutdown()
        thread.join()


def test_a_registry_is_told_the_schema_once_and_its_number_comes_before_each_value(registry):
    url, asked = registry
    found = records(panes(pane("red", 3), pane("blue", 4)), value="avro", registry=url)
    assert [one.value[:5] for one in found] == [b"\0\0\0\x01\x02"] * 2
    ((path, login, schema),) = asked
    assert path == "/subjects/scores-value/versions"
    assert login == "Basic " + base64.b64encode(b"ann:hunter 2").decode()
    read = fastavro.schemaless_reader(io.BytesIO(found[0].value[5:]), fastavro.parse_schema(schema), None)
    assert (read["team"], read["points"]) == ("red", 3)
    assert "hunter" not in repr(sink(value="avro", registry=url))


def test_a_registry_that_refuses_stops_and_one_that_is_away_is_waited_for(registry):
    url, _ = registry
    with pytest.raises(SinkError, match="refuses the schema of other-value: 409") as caught:
        records(panes(pane("red", 3)), topic="other", value="avro", registry=url)
    assert not isinstance(caught.value, SinkDown)
    assert "hunter" not in str(caught.value)
    for topic, where in (("busy", url), ("scores", "http://127.0.0.1:1")):
        with pytest.raises(SinkDown, match="does not answer"):
            records(panes(pane("red", 3)), topic=topic, value="avro", registry=where)


@pytest.mark.parametrize(("more", "said"), [
    ({"value": "avro", "avro_schema": "{"}, "is not JSON"),
    ({"value": "avro", "avro_schema": '{"type": "nonsense"}'}, "cannot be read|'fields'"),
    ({"value": "avro", "avro_schema": '"string"'}, "the field 'fields'"),
    ({"value": "avro", "avro_schema": {"type": "record", "name": "X", "fields": [{"name": "gone", "type": "int"}]}},
     "the field 'gone', which is no column"),
    ({"avro_schema": "{}"}, 'avro_schema without value="avro"'),
    ({"registry": "http://localhost:8081"}, 'registry without value="avro"'),
    ({"value": "avro", "registry": "localhost"}, "registry is not an address"),
    ({"value": "xml"}, "asked for the value 'xml'"),
    ({"servers": ""}, "was given servers=''"),
    ({"servers": None}, "was given servers=None"),
    ({"progress_topic": "scores"}, "both the rows and the ledger"),
    ({"settings": {"transactional.id": "x"}}, "settings may not hold 'transactional.id'"),
    ({"settings": {"linger.ms": None}}, "the setting 'linger.ms' is not a word or a number"),
    ({"transaction_timeout": "10 milliseconds"}, "transaction_timeout is 10 milliseconds"),
    ({"transaction_timeout": "0"}, "not longer than nothing"),
    ({"partitions": 3}, "partitions=3 without create=True"),
    ({"create": True, "replication": 0}, "replication is 0"),
    ({"key": "team"}, "an answer is known by team, window_start, window_end"),
    ({"key": "taem", "compacted": False}, "the column 'taem', which the panes do not have"),
])  # fmt: skip
def test_what_cannot_be_right_is_refused_before_anything_starts(more, said):
    with pytest.raises(PlanError, match=said):
        sink(**more).refuse(PANES)


@pytest.mark.parametrize("name", ["", ".", "..", "a b", "a/b", "a;b", "a\nb", "é", "x" * 250, "__consumer_offsets",
                                  None, 'a"; DROP', "a\x00"])  # fmt: skip
def test_row_25_names_that_are_no_topics_are_refused(name):
    for made in (sink(name), sink(progress_topic=name)):
        with pytest.raises(PlanError, match="a topic cannot be called"):
            made.refuse(PANES)


def test_discarding_panes_are_only_appended():
    discarding = replace(PANES, mode="discarding")
    with pytest.raises(PlanError, match="say compacted=False"):
        sink().refuse(discarding)
    sink(compacted=False).refuse(discarding)


def test_a_column_that_avro_has_no_name_for_is_refused():
    table = panes().rename_columns(["te am", *SCORES.names[1:]])
    target = replace(PANES, schema=table.schema, keys=("te am", "window_start", "window_end"))
    with pytest.raises(PlanError, match="'te am' cannot be a field of Avro"):
        sink(value="avro").refuse(target)
    sink().refuse(target)


def test_a_time_out_too_short_for_the_cadence_is_refused():
    made = sink(transaction_timeout="60 seconds")
    made.refuse_cadence(30_000_000)
    with pytest.raises(PlanError, match="transaction_timeout is 1 minute, with a batch every 31 seconds"):
        made.refuse_cadence(31_000_000)


def test_row_25_a_secret_is_in_no_text_and_reaches_the_client():
    given = {"sasl.username": "me", "sasl.password": "hunter2", "ssl.key.pem": "-----KEY", "ssl.ca.location": "ca.pem",
             "sasl.oauthbearer.client.secret": Secret("swordfish")}  # fmt: skip
    made = sink(settings=given)
    for text in (repr(made), str(made), made.describe(), made.place):
        assert not any(secret in text for secret in ("hunter2", "swordfish", "-----KEY"))
    assert hidden(made, "bad password hunter2") == "bad password ***"
    told = options(made, Heard())
    assert (told["sasl.password"], told["sasl.oauthbearer.client.secret"]) == ("hunter2", "swordfish")
    assert pickle.loads(pickle.dumps(made)) == made
    hash(made)


def test_the_place_does_not_depend_on_the_order_of_the_servers():
    assert sink(servers="b:1, a:1").place == sink(servers="a:1,b:1").place == "kafka:a:1,b:1#scores"
