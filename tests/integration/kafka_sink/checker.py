"""What a reader finds in a topic, and what is wrong with it: lost, doubled, torn, or read though it was aborted."""

from __future__ import annotations

import io
import json
import logging
from collections import Counter
from collections.abc import Iterable
from typing import Any, NamedTuple

import pyarrow as pa
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, TopicPartition

from penstock.connectors.kafka.avro_encoding import avro_schema
from penstock.connectors.text_values import from_json

QUIET = logging.getLogger("tests.integration.kafka_sink")
QUIET.addHandler(logging.NullHandler())
QUIET.propagate = False


class Read(NamedTuple):
    """A record as a reader gets it."""

    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: dict[str, bytes]


class Verdict(NamedTuple):
    """Counts of what must not be."""

    lost: int
    doubled: int
    torn: int
    aborted: int


def read(servers: str, topic: str, isolation: str = "read_committed") -> list[Read]:
    """All records of a topic, each partition to its end."""
    consumer = Consumer({"bootstrap.servers": servers, "group.id": "checker", "isolation.level": isolation,
                         "enable.partition.eof": True, "enable.auto.commit": False, "fetch.wait.max.ms": 10,
                         "log_level": 0, "logger": QUIET})  # fmt: skip
    try:
        found: list[Read] = []
        known = consumer.list_topics(topic, timeout=10).topics[topic]
        left = set(known.partitions) if known.error is None else set()
        consumer.assign([TopicPartition(topic, number, OFFSET_BEGINNING) for number in left])
        while left:
            message = consumer.poll(10)
            assert message is not None, "the topic cannot be read to its end"
            if message.error() is not None:
                assert message.error().code() == KafkaError._PARTITION_EOF, message.error()
                left.discard(message.partition())
                continue
            found.append(Read(message.partition(), message.offset(), message.key(), message.value(),
                              dict(message.headers() or [])))  # fmt: skip
        return found
    finally:
        consumer.close()


def judged(servers: str, topic: str, sent: dict[int, list[str]]) -> Verdict:
    """The verdict on a topic of rows with unique ids in `team`; `sent` are the ids of each batch that must be there."""
    records = read(servers, topic)
    ids = Counter(json.loads(record.value or b"{}")["team"] for record in records)
    wanted = {one: batch for batch, rows in sent.items() for one in rows}
    whole = Counter(int(record.headers["penstock.batch"].rpartition(b"/")[2]) for record in records)
    return Verdict(
        lost=sum(one not in ids for one in wanted),
        doubled=sum(count - 1 for count in ids.values()),
        torn=sum(count not in (0, len(sent.get(batch, ()))) for batch, count in whole.items()),
        aborted=sum(one not in wanted for one in ids),
    )


def rows(sink: Any, schema: pa.Schema) -> list[dict[str, Any]]:
    """The rows of a topic that is only added to, with the types of the columns."""
    values = [record.value or b"" for record in read(sink.servers, sink.topic)]
    return _typed(sink, values, schema)


def latest(sink: Any, schema: pa.Schema) -> list[dict[str, Any]]:
    """The answer that compaction would leave: the last record of each key, without tombstones."""
    last: dict[bytes | None, bytes | None] = {}
    for record in read(sink.servers, sink.topic):
        last[record.key] = record.value
    return _typed(sink, [value for value in last.values() if value is not None],
                  schema.remove(schema.get_field_index("op")))  # fmt: skip


def _typed(sink: Any, values: Iterable[bytes], schema: pa.Schema) -> list[dict[str, Any]]:
    if sink.value == "avro":
        import fastavro

        parsed = fastavro.parse_schema(avro_schema(sink.topic, schema))
        return [fastavro.schemaless_reader(io.BytesIO(value), parsed, None) for value in values]  # type: ignore[misc]
    plain = [json.loads(value) for value in values]
    table = pa.table([from_json([row[one.name] for row in plain], one.type) for one in schema], schema=schema)
    found: list[dict[str, Any]] = table.to_pylist()
    return found
