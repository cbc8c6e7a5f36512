"""What quarantined rows does a sink hold: read back from where they were written, for people who mend them."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from penstock.connectors.duckdb import Duckdb
from penstock.connectors.files.sink import Files
from penstock.connectors.kafka.sharded_sink import ParallelKafka
from penstock.connectors.kafka.sink import Kafka
from penstock.connectors.postgres.sink import Postgres
from penstock.connectors.sink_errors import SinkError, down
from penstock.connectors.sql import list_of, quoted
from penstock.connectors.sqlite import Sqlite
from penstock.errors import PenstockError

NAMES = ("source", "partition", "offset", "step", "reason", "raw")
ANSWER_SECONDS = 30.0

Row = tuple[Any, ...]


def reader_of(sink: Any) -> Callable[[Any], Iterator[Row]] | None:
    """Who reads the rows of a sink, in the order of `NAMES`; None where nobody can."""
    if getattr(sink, "value", "json") != "json":
        return None
    return READERS.get(type(sink))


def keeps_all(sink: Any) -> bool:
    """Whether every row that was written can be found again: of a topic, retention may have taken some."""
    return reader_of(sink) is not None and not hasattr(sink, "topic")


def _sqlite(sink: Any) -> Iterator[Row]:
    if not Path(sink.path).exists():
        return
    with closing(sqlite3.connect(f"file:{Path(sink.path).absolute()}?mode=ro", uri=True)) as connection:
        asked = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?"
        if connection.execute(asked, (sink.table,)).fetchone():
            yield from connection.execute(f"{_asked(sink.table)} ORDER BY rowid")


def _duckdb(sink: Any) -> Iterator[Row]:
    import duckdb

    if not Path(sink.path).exists():
        return
    with duckdb.connect(sink.path, read_only=True) as connection:
        if connection.execute("SELECT 1 FROM duckdb_tables() WHERE table_name = ?", [sink.table]).fetchone():
            yield from connection.execute(f"{_asked(sink.table)} ORDER BY rowid").fetchall()


def _files(sink: Any) -> Iterator[Row]:
    from penstock.connectors.files.sink import read_files

    try:
        table = read_files(sink.path)
    except PenstockError as error:
        if "nothing was ever published" in error.what:
            return
        raise
    yield from (tuple(row[name] for name in NAMES) for row in table.to_pylist())


def _postgres(sink: Any) -> Iterator[Row]:
    import psycopg

    from penstock.connectors.postgres.errors import explained

    given = sink.connection()
    secrets = [value for name, value in given.items() if "password" in name]
    with explained(sink.place, secrets), psycopg.connect("", autocommit=True, **given) as connection:
        asked = "SELECT 1 FROM pg_tables WHERE schemaname = %s AND tablename = %s"
        there = connection.execute(asked, (sink.schema, sink.name)).fetchone()
        where = f"{quoted(sink.schema)}.{quoted(sink.name)}"
        wanted = f"SELECT {list_of(NAMES)} FROM {where} ORDER BY {list_of(NAMES[:3])}"
        rows = connection.execute(wanted.encode()).fetchall() if there else []
    yield from rows


def _kafka(sink: Any) -> Iterator[Row]:
    """The committed records of a topic, a partition after the other as they come."""
    from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, TopicPartition

    from penstock.connectors.kafka.producer import Heard, explained, options, said

    heard = Heard()
    with explained(sink, heard):
        consumer = Consumer(
            options(
                sink,
                heard,
                **{
                    "group.id": "penstock-quarantine",
                    "enable.auto.commit": False,
                    "isolation.level": "read_committed",
                    "enable.partition.eof": True,
                    "auto.offset.reset": "error",
                    "allow.auto.create.topics": False,
                },
            )
        )
    try:
        with explained(sink, heard):
            held = consumer.list_topics(timeout=ANSWER_SECONDS).topics.get(sink.topic)
        left = set() if held is None else set(held.partitions)
        consumer.assign([TopicPartition(sink.topic, number, OFFSET_BEGINNING) for number in left])
        until = time.monotonic() + ANSWER_SECONDS
        while left:
            message = consumer.poll(0.2)
            if message is None:
                if time.monotonic() > until:
                    raise down(sink.place, f"it could not be read to its end in {ANSWER_SECONDS:.0f} seconds")
                continue
            until = time.monotonic() + ANSWER_SECONDS
            error = message.error()
            if error is None:
                yield _of_record(sink, message)
            elif error.code() == KafkaError._PARTITION_EOF:
                left.discard(message.partition())
            else:
                raise said(sink, error, heard)
    finally:
        consumer.close()


def _of_record(sink: Any, message: Any) -> Row:
    try:
        row = json.loads(message.value() or b"")
        return tuple(row[name] for name in NAMES)
    except (ValueError, KeyError, TypeError):
        raise SinkError(
            f"{sink.place} has a record that is no quarantined row: partition {message.partition()}, offset "
            f"{message.offset()}",
            f"such a row is JSON with {', '.join(NAMES)}",
            "let nobody else write to the topic of the quarantine",
        ) from None


def _asked(table: str) -> str:
    return f"SELECT {list_of(NAMES)} FROM {quoted(table)}"


READERS: dict[type, Callable[[Any], Iterator[Row]]] = {
    Sqlite: _sqlite,
    Duckdb: _duckdb,
    Files: _files,
    Postgres: _postgres,
    Kafka: _kafka,
    ParallelKafka: _kafka,
}
