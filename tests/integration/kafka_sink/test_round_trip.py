"""Avro over a real broker, there and back: what the sink writes the source reads, with a registry and without."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest
from confluent_kafka import Producer

import penstock as ps
from penstock.connectors.formats.message_bytes import bytes_of
from penstock.connectors.kafka.consumer import drop_all
from tests.integration.kafka.talking import Log
from tests.integration.kafka_sink.checker import QUIET, read
from tests.unit.connectors.sinks.outputs import give, pane, panes

LOGIN = "ann:p@ss word"


class Registry(BaseHTTPRequestHandler):
    """A stand-in that keeps schemas by number, as the real ones do, for whoever knows the password."""

    schemas: list[str]

    def do_POST(self) -> None:
        held = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["schema"]
        if held not in self.schemas:
            self.schemas.append(held)
        self._say(self.path.startswith("/subjects/"), {"id": self.schemas.index(held) + 1})

    def do_GET(self) -> None:
        number = int(self.path.rpartition("/")[2])
        known = self.path.startswith("/schemas/ids/") and 1 <= number <= len(self.schemas)
        self._say(known, {"schema": self.schemas[number - 1]} if known else {})

    def _say(self, known: bool, answer: dict[str, Any]) -> None:
        allowed = self.headers["Authorization"] == "Basic " + base64.b64encode(LOGIN.encode()).decode()
        body = json.dumps(answer if allowed and known else {}).encode()
        self.send_response(200 if allowed and known else 404 if allowed else 401)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: Any) -> None:
        """Quiet."""


@pytest.fixture
def registry() -> Iterator[str]:
    """Its address, with the user and the password as they stand in an address."""
    server = HTTPServer(("127.0.0.1", 0), type("Held", (Registry,), {"schemas": ['"string"']}))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://ann:p%40ss%20word@127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.mark.parametrize("with_registry", [True, False])
def test_4_what_the_sink_writes_the_source_reads_and_poison_is_kept_with_its_bytes(to, registry, with_registry):
    """Row 4 in Avro: torn, too long, empty, of an unknown schema, and none at all, among good ones."""
    schema = {"type": "record", "name": "Row", "fields": [
        {"name": "team", "type": ["null", "string"]}, {"name": "points", "type": "long"},
        {"name": "window_end", "type": ["null", {"type": "long", "logicalType": "timestamp-micros"}]}]}  # fmt: skip
    how = {"registry": registry} if with_registry else {"avro_schema": schema}
    sink = to(value="avro", partitions=1, **how)
    give(sink, panes(pane("red", 3), pane(None, 4)))
    good = read(sink.servers, sink.topic)[0].value
    assert good is not None
    assert (good[:5] == b"\0\0\0\0\x02") == with_registry
    poison = [good[:-1], good + b"\0", b"", b"\0\0\0\0\x09" + good[5:], None]
    producer = Producer({"bootstrap.servers": sink.servers, "log_level": 0, "logger": QUIET})
    for value in poison:
        producer.produce(sink.topic, value, partition=0)
    producer.flush(10)
    columns = "team string, points long, window_end timestamp"
    (chunk,) = Log(ps.kafka(sink.topic, servers=sink.servers, schema=columns, value="avro", **how)).begin().batch()
    drop_all()
    assert [(row["team"], row["points"]) for row in chunk.rows.to_pylist()] == [("red", 3), (None, 4)]
    assert chunk.partition == f"{sink.topic}/0"
    first = chunk.undecoded[0].offset
    assert first > int(chunk.offsets[-1])
    assert [bad.offset for bad in chunk.undecoded] == list(range(first, first + len(poison)))
    assert [bytes_of(bad.raw) for bad in chunk.undecoded[:4]] == poison[:4]
    assert "null" in chunk.undecoded[4].reason
    unknown = "the registry has no Avro schema 9" if with_registry else "not Avro of this schema"
    assert unknown in chunk.undecoded[3].reason
