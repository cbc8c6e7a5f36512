"""How the tests speak to the broker: topics, messages, transactions, and reading a topic in batches."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from confluent_kafka import IsolationLevel, Producer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    ResourceType,
)

import penstock as ps
from penstock.testing.servers.kafka import Broker
from tests.unit.connectors.sources.reading import between, logged, reader_of

SET = AlterConfigOpType.SET
PASSWORD = "correct horse battery"
NOW = 1_800_000_000_000_000
SILENT = logging.getLogger("tests.integration.kafka")
SILENT.addHandler(logging.NullHandler())
SILENT.propagate = False


@dataclass
class Kafka:
    """A broker and the topics of one test."""

    broker: Broker
    prefix: str
    producers: list[Any] = field(default_factory=list)
    guarded: str = ""
    login: dict[str, str] = field(default_factory=dict)

    @property
    def settings(self) -> dict[str, Any]:
        return {"bootstrap.servers": self.broker.servers, "logger": SILENT, "error_cb": lambda error: None}

    @cached_property
    def admin(self) -> Any:
        return AdminClient(self.settings)

    def topic(self, name: str = "scores", partitions: int = 1, **config: str) -> str:
        """Make a topic; gives its full name."""
        full = f"{self.prefix}-{name}"
        made = self.admin.create_topics([NewTopic(full, partitions, 1, config=config)])
        made[full].result()
        return full

    def delete(self, topic: str) -> None:
        self.admin.delete_topics([topic])[topic].result()
        wait(lambda: topic not in self.admin.list_topics(timeout=5).topics)

    def grow(self, topic: str, partitions: int) -> None:
        self.admin.create_partitions([NewPartitions(topic, partitions)])[topic].result()

    def cut(self, topic: str, partition: int, offset: int) -> None:
        """Delete the messages before an offset, as retention does."""
        place = TopicPartition(topic, partition, offset)
        for future in self.admin.delete_records([place]).values():
            future.result()

    def configure(self, topic: str, **config: str) -> None:
        entries = [ConfigEntry(name, value, incremental_operation=SET) for name, value in config.items()]
        resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=entries)
        for future in self.admin.incremental_alter_configs([resource]).values():
            future.result()

    def producer(self, transactional: str | None = None, **more: Any) -> Any:
        known = {"transactional.id": f"{self.prefix}-{transactional}"} if transactional else {}
        made = Producer({**self.settings, "linger.ms": 5, "message.max.bytes": 90 << 20, **known, **more})
        if transactional:
            made.init_transactions(30)
        self.producers.append(made)
        return made

    def put(self, topic: str, values: Sequence[Any], partition: int = 0, producer: Any = None, **how: Any) -> None:
        """Write messages; anything that is not bytes or None as JSON."""
        one = producer or self.producer()
        for value in values:
            data = value if value is None or isinstance(value, bytes) else json.dumps(value).encode()
            one.produce(topic, data, partition=partition, **how)
            one.poll(0)
        assert one.flush(30) == 0

    def transaction(self, topic: str, values: Sequence[Any], commit: bool = True, partition: int = 0,
                    producer: Any = None) -> None:  # fmt: skip
        """Messages in a transaction that ends."""
        one = producer or self.producer("tx")
        one.begin_transaction()
        self.put(topic, values, partition, one)
        if commit:
            one.commit_transaction(30)
        else:
            one.abort_transaction(30)
        self.settled(topic, partition)

    def settled(self, topic: str, partition: int) -> None:
        """Wait until the end of a transaction is in the log: its producer hears of it before."""
        place = TopicPartition(topic, partition)

        def end(isolation: Any) -> int:
            (future,) = self.admin.list_offsets({place: OffsetSpec.latest()}, isolation_level=isolation).values()
            return int(future.result().offset)

        wait(lambda: end(IsolationLevel.READ_COMMITTED) == end(IsolationLevel.READ_UNCOMMITTED))

    def read(self, topics: Any, schema: str = "n long", **how: Any) -> ps.Stream:
        """The topics as a source."""
        return ps.kafka(topics, **{"servers": self.broker.servers, "schema": schema, "timeout": "20 seconds", **how})

    def close(self) -> None:
        """Let go of the producers; a transaction that is open is given up."""
        for one in self.producers:
            one.purge()
            one.flush(0)
        self.producers.clear()


@dataclass
class Log:
    """A reader and where it is."""

    stream: ps.Stream
    at: Any = None
    now: int = NOW

    def __post_init__(self) -> None:
        self.reader = reader_of(self.stream)
        self.at = logged(self.reader.start())

    def begin(self) -> Log:
        """The first batch, which has no rows."""
        assert self.batch() == []
        return self

    def batch(self, limit: int | None = None) -> list[Any]:
        """The chunks of the next batch, which are the same when they are read again."""
        since = self.at
        self.at = logged(self.reader.latest(since, self.now, limit))
        chunks = between(self.reader, since, self.at)
        again = between(self.reader, since, self.at)
        assert [shown(one) for one in again] == [shown(one) for one in chunks]
        return chunks

    def rows(self, limit: int | None = None) -> list[dict[str, Any]]:
        """The rows of the next batch."""
        return [row for chunk in self.batch(limit) for row in chunk.rows.to_pylist()]

    def numbers(self, limit: int | None = None) -> list[Any]:
        """The column n of the next batch."""
        return [row["n"] for row in self.rows(limit)]


def shown(chunk: Any) -> Any:
    return chunk.partition, chunk.offsets.tolist(), repr(chunk.rows.to_pylist()), chunk.undecoded


def count(first: int, end: int) -> list[dict[str, int]]:
    """Messages that count."""
    return [{"n": n} for n in range(first, end)]


def wait(holds: Callable[[], bool], seconds: float = 20.0) -> None:
    """Wait until it is so."""
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.05)
