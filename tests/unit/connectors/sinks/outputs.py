"""Outputs for the tests of sinks: schemas of panes, late rows and quarantine, and rows with all types in them."""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa

from penstock.connectors.delivery import deliver
from penstock.connectors.duckdb import duckdb
from penstock.connectors.files.sink import files, read_files
from penstock.connectors.fingerprint import fingerprint, shown
from penstock.connectors.memory import memory
from penstock.connectors.postgres.sink import postgres
from penstock.connectors.sink import Batch, Sink
from penstock.connectors.sqlite import sqlite
from penstock.plan.output_schemas import Target

STAMP = pa.timestamp("us", tz="UTC")
NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)
PANE = [("pane_index", pa.int64()), ("pane_timing", pa.string()), ("pane_final", pa.bool_()), ("op", pa.int8())]
BOUNDS = [("window_start", STAMP), ("window_end", STAMP)]
SCORES = pa.schema([("team", pa.string()), *BOUNDS, ("points", pa.int64()), *PANE])
ALL_TYPES = pa.schema([
    ("k_text", pa.string()), ("k_long", pa.int64()), ("k_double", pa.float64()), ("k_bool", pa.bool_()),
    ("k_date", pa.date32()), ("k_stamp", STAMP), ("k_decimal", pa.decimal128(10, 2)), ("k_binary", pa.binary()),
    *BOUNDS,
    ("text", pa.string()), ("number", pa.int64()), ("real", pa.float64()), ("yes", pa.bool_()), ("day", pa.date32()),
    ("stamp", STAMP), ("price", pa.decimal128(12, 3)), ("raw", pa.binary()), ("items", pa.list_(pa.float64())),
    ("words", pa.list_(pa.string())), ("times", pa.list_(STAMP)), ("prices", pa.list_(pa.decimal128(5, 2))),
    *PANE,
])  # fmt: skip
LATE = pa.schema([
    ("team", pa.string()), ("late_event_time", STAMP), ("late_watermark", STAMP), ("late_by", pa.int64()),
    ("late_partition", pa.string()), ("late_offset", pa.int64()),
    ("late_windows", pa.list_(pa.struct([("start", STAMP), ("end", STAMP)]))),
])  # fmt: skip
QUARANTINE = pa.schema([("source", pa.string()), ("partition", pa.string()), ("offset", pa.int64()),
                        ("step", pa.string()), ("reason", pa.string()), ("raw", pa.string())])  # fmt: skip

PANES = Target("scores/panes/0", "panes", SCORES, ("team", "window_start", "window_end"), refires=True, withdraws=True)
TYPED = replace(PANES, schema=ALL_TYPES, keys=(*ALL_TYPES.names[:8], "window_start", "window_end"))
LATES = Target("scores/late/0", "late", LATE)
ROWS = Target("scores/rows/0", "rows", pa.schema([("team", pa.string()), ("points", pa.int64())]))
BAD = Target("scores/quarantine/0", "quarantine", QUARANTINE)


def pane(team: str | None, points: int | None, minute: int | None = 0, index: int = 0, op: int = 1, length: int = 5):
    """A pane of a team in the window that starts so many minutes after noon; None is the global window."""
    start = None if minute is None else NOON + timedelta(minutes=minute)
    end = None if start is None else start + timedelta(minutes=length)
    return {"team": team, "window_start": start, "window_end": end, "points": points, "pane_index": index,
            "pane_timing": "early", "pane_final": False, "op": op}  # fmt: skip


def panes(*rows: dict[str, Any]) -> pa.Table:
    """Panes of scores as a table."""
    return pa.Table.from_pylist(list(rows), schema=SCORES)


def all_types() -> pa.Table:
    """Rows that hold every type, among them nulls, odd floats, quotes and a time with microseconds."""
    key = {"k_text": "a'b\"c\n\x00é", "k_long": -(2**63), "k_double": 0.1, "k_bool": True,
           "k_date": date(2026, 1, 31), "k_stamp": NOON + timedelta(microseconds=1), "k_decimal": Decimal("-12.50"),
           "k_binary": b"\x00\xff"}  # fmt: skip
    full = {**key, **pane("", 0), "text": "x" * 2000, "number": 2**63 - 1, "real": math.inf, "yes": False,
            "day": date(1969, 12, 31), "stamp": NOON, "price": Decimal("1.500"), "raw": b"", "words": ["a", None, "]"],
            "items": [1.5, math.nan, -math.inf, None], "times": [NOON, None], "prices": [Decimal("1.20")]}  # fmt: skip
    empty = {**dict.fromkeys(ALL_TYPES.names), **{name: value for name, value in pane("", 0).items() if name != "team"}}
    rows = [full, empty, {**empty, "k_double": math.nan, "real": math.nan, "items": []}, {**empty, "k_text": ""},
            {**empty, "k_binary": b""}, {**empty, "k_long": 0}, {**empty, "k_bool": False}]  # fmt: skip
    return pa.Table.from_pylist([{name: row[name] for name in ALL_TYPES.names} for row in rows], schema=ALL_TYPES)


def late_rows() -> pa.Table:
    """A late row with the windows that it missed."""
    row = {"team": None, "late_event_time": NOON, "late_watermark": NOON + timedelta(minutes=9), "late_by": 540_000_000,
           "late_partition": "web/0", "late_offset": 7, "late_windows": [{"start": NOON, "end": None}]}  # fmt: skip
    return pa.Table.from_pylist([row], schema=LATE)


def batch_of(number: int, table: pa.Table, lineage: str = "L1", epoch: int = 1) -> Batch:
    """The batch that a table is."""
    return Batch(lineage, number, epoch, table.num_rows, shown(fingerprint(table)))


def give(sink: Sink, table: pa.Table, number: int = 0, target: Target = PANES, **more: Any) -> bool:
    """Deliver a table as a batch, through a writer of its own."""
    writers: dict[str, Any] = {}
    batch = batch_of(number, table, more.pop("lineage", "L1"), more.pop("epoch", 1))
    try:
        return deliver(sink, target, writers, batch, more.pop("parts", [table]), **more)
    finally:
        for writer in writers.values():
            writer.close()


def sinks(folder: Path) -> dict[str, Sink]:
    """Every sink with a ledger, in a folder of its own; PostgreSQL where a file in it says which server and schema."""
    memory("exam").clear()
    server = folder / "postgres"
    url, schema = server.read_text().split() if server.exists() else ("", "")
    return {
        **(
            {
                "postgres": postgres(url, table=f"{schema}.scores"),
                "postgres history": postgres(url, table=f"{schema}_h.scores", history=True),
            }
            if url
            else {}
        ),
        "sqlite": sqlite(folder / "a.db", table="scores"),
        "sqlite history": sqlite(folder / "h.db", table="scores", history=True),
        "duckdb": duckdb(folder / "a.duckdb", table="scores"),
        "duckdb history": duckdb(folder / "h.duckdb", table="scores", history=True),
        "parquet": files(folder / "parquet", format="parquet"),
        "json": files(folder / "json", format="json"),
        "memory": memory("exam"),
    }


def answers(sink: Any) -> list[tuple[Any, ...]]:
    """The current answer that a sink of scores shows, as (team, minute, points), sorted."""
    if hasattr(sink, "current"):
        rows: Iterable[dict[str, Any]] = sink.current()
    elif hasattr(sink, "format"):
        rows = read_files(sink.path, current=True).to_pylist()
    else:
        rows = stored(sink, sink.table)
    return sorted(((row["team"], _minute(row["window_start"]), row["points"]) for row in rows), key=repr)


def every(sink: Any) -> list[tuple[Any, ...]]:
    """Every pane that a sink kept, as (team, points, op), sorted."""
    if hasattr(sink, "current"):
        rows: Iterable[dict[str, Any]] = sink.rows
    elif hasattr(sink, "format"):
        rows = read_files(sink.path).to_pylist()
    else:
        rows = stored(sink, f"{sink.table}_history")
    return sorted(((row["team"], row["points"], row["op"]) for row in rows), key=repr)


def stored(sink: Any, table: str) -> list[dict[str, Any]]:
    """The rows of a table in SQLite, DuckDB or PostgreSQL, as dictionaries."""
    connection = connected(sink)
    try:
        found = connection.execute(f'SELECT * FROM "{table}"' if hasattr(sink, "path") else selection(table))
        names = [one[0] for one in found.description]
        return [dict(zip(names, row, strict=True)) for row in found.fetchall()]
    finally:
        connection.close()


def connected(sink: Any) -> Any:
    """A connection of a reader."""
    import duckdb as package
    import psycopg

    if not hasattr(sink, "path"):
        return psycopg.connect(**sink.connection())
    return sqlite3.connect(sink.path) if type(sink).__name__ == "Sqlite" else package.connect(sink.path)


def selection(table: str) -> bytes:
    """All rows of a table of PostgreSQL, which may be in a schema."""
    from psycopg import sql

    return sql.SQL("SELECT * FROM {}").format(sql.Identifier(*table.split(".", 1))).as_bytes()


def _minute(start: Any) -> int | None:
    if start is None:
        return None
    moment = datetime.fromisoformat(start).replace(tzinfo=UTC) if isinstance(start, str) else start
    return int((moment - NOON) / timedelta(minutes=1))
