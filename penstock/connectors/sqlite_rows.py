"""How Arrow columns become SQLite's: the type of each, what identifies a row, and the statements that write.

| column | in SQLite |
|---|---|
| long, int, boolean | INTEGER |
| double, float | REAL; NaN as the text NaN, because SQLite takes it for null; -0.0 becomes 0.0 there |
| string | TEXT |
| decimal | TEXT, all digits of its scale |
| date | TEXT, `2026-01-31` |
| timestamp | TEXT in UTC, `2026-01-31 12:00:00`, six digits of a second where there are any; sorts by time |
| binary | BLOB |
| list, struct | TEXT, JSON: times in ISO 8601 with Z, decimals as text, bytes in base64 |
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from penstock.connectors.latest_answers import near, net
from penstock.connectors.sql import list_of, quoted
from penstock.connectors.text_values import json_column, json_texts, stamps


def declared(kind: pa.DataType) -> str:
    """The type under which SQLite keeps a column."""
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind):
        return "INTEGER"
    if pa.types.is_floating(kind):
        return "REAL"
    return "BLOB" if pa.types.is_binary(kind) else "TEXT"


def identity(schema: pa.Schema, keys: Sequence[str]) -> str:
    """The expressions that tell rows apart; a null becomes a value of a type that the column never holds."""
    return ", ".join(f"ifnull({quoted(key)}, {_never(schema, key)})" for key in keys)


def append(connection: sqlite3.Connection, table: str, rows: pa.Table) -> None:
    """Add rows."""
    marks = ", ".join("?" * rows.num_columns)
    statement = f"INSERT INTO {quoted(table)} ({list_of(rows.column_names)}) VALUES ({marks})"
    connection.executemany(statement, zip(*_lists(rows), strict=True))


def upsert(connection: sqlite3.Connection, table: str, panes: pa.Table, keys: Sequence[str]) -> None:
    """Write the net of the panes over what is there."""
    upserts, deletes = net(panes, keys)
    if deletes.num_rows:
        same = " AND ".join(f"{identity(panes.schema, [key])} = ifnull(?, {_never(panes.schema, key)})" for key in keys)
        connection.executemany(f"DELETE FROM {quoted(table)} WHERE {same}", zip(*_lists(deletes), strict=True))
    if upserts.num_rows:
        names = upserts.column_names
        changed = ", ".join(f"{quoted(name)} = excluded.{quoted(name)}" for name in names if name not in keys)
        connection.executemany(
            f"INSERT INTO {quoted(table)} ({list_of(names)}) VALUES ({', '.join('?' * len(names))}) "
            f"ON CONFLICT ({identity(panes.schema, keys)}) DO UPDATE SET {changed}",
            zip(*_lists(near(upserts, keys)), strict=True),
        )


def _never(schema: pa.Schema, key: str) -> str:
    """A value that the column never holds: bytes among texts and numbers, a text among bytes."""
    return "''" if declared(schema.field(key).type) == "BLOB" else "x''"


def _lists(rows: pa.Table) -> list[list[Any]]:
    """The columns as Python lists of what SQLite takes."""
    return [_list(column.combine_chunks()) for column in rows.columns]


def _list(column: pa.Array) -> list[Any]:
    kind = column.type
    values: list[Any]
    if pa.types.is_timestamp(kind):
        # Panes of a batch share few windows: each different time is put into words once.
        seen = column.dictionary_encode()
        words = stamps(seen.dictionary)
        values = words.take(seen.indices).to_pylist()
    elif pa.types.is_nested(kind):
        values = json_texts(column).to_pylist()
    elif pa.types.is_decimal(kind):
        # Arrow's own words for small decimals have exponents: 1E-19.
        values = json_column(column)
    elif pa.types.is_date(kind):
        values = column.cast(pa.string()).to_pylist()
    elif pa.types.is_boolean(kind):
        values = column.cast(pa.int8()).to_pylist()
    else:
        values = column.to_pylist()
        if pa.types.is_floating(kind) and pc.any(pc.is_nan(column)).as_py():
            values = ["NaN" if value != value else value for value in values]
    return values
