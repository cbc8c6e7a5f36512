"""What does a sink hold: every row in the order it was written, and the current answers, where it keeps them?"""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
import time
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from penstock.connectors.duckdb import Duckdb
from penstock.connectors.files.sink import Files
from penstock.connectors.kafka.sharded_sink import ParallelKafka
from penstock.connectors.kafka.sink import Kafka
from penstock.connectors.postgres.sink import Postgres
from penstock.connectors.sqlite import Sqlite
from penstock.testing.crash.verdict import Rows

PATIENCE = 30.0


@dataclass(frozen=True, slots=True)
class Held:
    """The rows that were added one after the other, and the table of current answers, where there is either.

    `batches` says of each added row in which batch it was, where the sink tells.
    """

    every: Rows | None = None
    current: Rows | None = None
    batches: list[int] | None = None


def held_by(sink: Any, target: Any) -> Held:
    """Look into a sink; a file is read from a copy, so that nobody recovers it for the run that was killed."""
    read = READERS[type(sink)]
    if not hasattr(sink, "path"):
        return read(sink, target)
    place = Path(sink.path)
    if not place.exists():
        return read(sink, target)
    with tempfile.TemporaryDirectory(prefix="penstock-look-") as aside:
        copy = Path(aside) / "copy"
        shutil.copytree(place.parent, copy)
        return read(replace(sink, path=str(copy / place.name)), target)


def forget(sink: Any, target: Any) -> None:
    """Remove what a life has left in a server; what lies in files goes with its folder."""
    if type(sink) in FORGETTERS:
        FORGETTERS[type(sink)](sink, target)


def readable(sink: Any) -> bool:
    """Whether it is known how to look into it."""
    return type(sink) in READERS


def _sqlite(sink: Any, target: Any) -> Held:
    if not Path(sink.path).exists():
        return _nothing(sink.tables(target))
    with closing(sqlite3.connect(sink.path)) as connection:
        there = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}

        def rows(table: str) -> Rows:
            return connection.execute(f"SELECT * FROM {_quoted(table)} ORDER BY rowid").fetchall()

        return _of_tables(sink.tables(target), there, rows)


def _duckdb(sink: Any, target: Any) -> Held:
    import duckdb

    if not Path(sink.path).exists():
        return _nothing(sink.tables(target))
    with duckdb.connect(sink.path) as connection:
        there = {name for (name,) in connection.execute("SELECT table_name FROM duckdb_tables()").fetchall()}

        def rows(table: str) -> Rows:
            # As text, for times with a zone need a package of their own to become Python's.
            asked = f"SELECT CAST(COLUMNS(*) AS VARCHAR) FROM {_quoted(table)} ORDER BY rowid"
            found: Rows = connection.execute(asked).fetchall()
            return found

        return _of_tables(sink.tables(target), there, rows)


def _files(sink: Any, target: Any) -> Held:
    from penstock.connectors.files.sink import read_files

    if not (Path(sink.path) / "_penstock").exists():
        return Held([])
    rows = [tuple(map(_frozen, row.values())) for row in read_files(sink.path).to_pylist()]
    return Held(rows, batches=[row[-1] for row in rows] if target.kind == "archive" else None)


def _postgres(sink: Any, target: Any) -> Held:
    with _connected(sink) as connection:
        asked = "SELECT tablename FROM pg_tables WHERE schemaname = %s"
        there = {name for (name,) in connection.execute(asked, (sink.schema,)).fetchall()}
        names = ", ".join(f"{_quoted(name)}::text" for name in target.schema.names)

        def rows(table: str) -> Rows:
            shown = names if table != sink.tables(target).current else names.replace(', "op"::text', "")
            found: Rows = connection.execute(f"SELECT {shown} FROM {_quoted(table)} ORDER BY ctid").fetchall()
            return found

        return _of_tables(sink.tables(target), there, rows)


def _forget_postgres(sink: Any, target: Any) -> None:
    with _connected(sink) as connection:
        for table in sink.tables(target).names:
            connection.execute(f"DROP TABLE IF EXISTS {_quoted(table)}")
        connection.execute("DELETE FROM penstock_ledger WHERE sink = %s", (target.sink,))


def _connected(sink: Any) -> Any:
    import psycopg

    connection = psycopg.connect("", autocommit=True, **sink.connection())
    connection.execute(f"SET search_path = {_quoted(sink.schema)}")
    return connection


def _kafka(sink: Any, target: Any) -> Held:
    """All committed records of the topic, which has one partition; each says in a header of which batch it is."""
    from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, TopicPartition

    from penstock.connectors.kafka.producer import Heard, options
    from penstock.connectors.kafka.records import BATCH

    consumer = Consumer(
        options(
            sink,
            Heard(),
            **{
                "group.id": "penstock-prove",
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
                "enable.partition.eof": True,
                "auto.offset.reset": "error",
                "allow.auto.create.topics": False,
            },
        )
    )
    rows: Rows = []
    batches: list[int] = []
    try:
        if sink.topic not in consumer.list_topics(timeout=PATIENCE).topics:
            return Held([], batches=[])
        consumer.assign([TopicPartition(sink.topic, 0, OFFSET_BEGINNING)])
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until:
            message = consumer.poll(0.2)
            if message is None:
                continue
            if message.error() is not None:
                if message.error().code() == KafkaError._PARTITION_EOF:
                    return Held(rows, batches=batches)
                raise AssertionError(f"{sink.place}: {message.error().str()}")
            rows.append((message.key(), message.value()))
            batches.append(int(dict(message.headers())[BATCH].rpartition(b"/")[2]))
    finally:
        consumer.close()
    raise AssertionError(f"{sink.place} does not come to an end")


def _forget_kafka(sink: Any, target: Any) -> None:
    from confluent_kafka import KafkaException
    from confluent_kafka.admin import AdminClient

    from penstock.connectors.kafka.producer import Heard, options

    admin = AdminClient(options(sink, Heard()))
    for done in admin.delete_topics([sink.topic, sink.progress_topic]).values():
        with suppress(KafkaException):  # outputs of one broker share the progress topic
            done.result()


def _of_tables(tables: Any, there: set[str], rows: Callable[[str], Rows]) -> Held:
    def of(name: str | None) -> Rows | None:
        return None if name is None else rows(name) if name in there else []

    return Held(of(tables.every), of(tables.current))


def _nothing(tables: Any) -> Held:
    return Held(None if tables.every is None else [], None if tables.current is None else [])


def _frozen(value: Any) -> Any:
    """A value that can be compared and counted."""
    if isinstance(value, dict):
        return tuple((name, _frozen(one)) for name, one in value.items())
    if isinstance(value, list):
        return tuple(map(_frozen, value))
    return "nan" if isinstance(value, float) and value != value else value


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


READERS: dict[type, Callable[[Any, Any], Held]] = {
    Sqlite: _sqlite,
    Duckdb: _duckdb,
    Files: _files,
    Postgres: _postgres,
    Kafka: _kafka,
    ParallelKafka: _kafka,
}
FORGETTERS: dict[type, Callable[[Any, Any], None]] = {
    Postgres: _forget_postgres,
    Kafka: _forget_kafka,
    ParallelKafka: _forget_kafka,
}
