"""How Arrow columns become DuckDB's: the type of each, and the statements that write a whole part at once.

| column | in DuckDB |
|---|---|
| long, int | BIGINT (`op` TINYINT) |
| boolean | BOOLEAN |
| double, float | DOUBLE, NaN among them |
| string | VARCHAR |
| decimal(p, s) | DECIMAL(p, s) |
| date | DATE |
| timestamp | TIMESTAMP WITH TIME ZONE |
| binary | BLOB |
| list, struct | native, such as BIGINT[] and STRUCT("start" TIMESTAMP WITH TIME ZONE, …) |
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from penstock.connectors.latest_answers import net
from penstock.connectors.sql import list_of, quoted
from penstock.errors import PlanError

_SIMPLE = {
    pa.int8(): "TINYINT",
    pa.int64(): "BIGINT",
    pa.bool_(): "BOOLEAN",
    pa.float64(): "DOUBLE",
    pa.string(): "VARCHAR",
    pa.date32(): "DATE",
    pa.binary(): "BLOB",
}


def declared(kind: pa.DataType) -> str:
    """The type under which DuckDB keeps a column."""
    if kind in _SIMPLE:
        return _SIMPLE[kind]
    if pa.types.is_timestamp(kind):
        return "TIMESTAMP WITH TIME ZONE" if kind.tz else "TIMESTAMP"
    if pa.types.is_decimal(kind) and kind.precision <= 38:
        return f"DECIMAL({kind.precision},{kind.scale})"
    if pa.types.is_list(kind):
        return f"{declared(kind.value_type)}[]"
    if pa.types.is_struct(kind):
        return f"STRUCT({', '.join(f'{quoted(field.name)} {declared(field.type)}' for field in kind)})"
    raise PlanError(
        f"a column of type {kind} cannot be written to DuckDB",
        "no type of DuckDB holds all of its values",
        "cast it before the window, such as to double or string",
    )


def found_columns(connection: Any, table: str) -> list[tuple[str, str]]:
    """The columns of a table that is there, with their types; none where it is not."""
    found = connection.execute(
        "SELECT column_name, data_type FROM information_schema.columns WHERE lower(table_name) = lower(?) "
        "AND table_schema = current_schema() AND table_catalog = current_catalog() ORDER BY ordinal_position",
        (table,),
    ).fetchall()
    return [(str(name), str(kind)) for name, kind in found]


def spelled(connection: Any, kind: str) -> str:
    """A type as this DuckDB spells it, so that it can be compared with what is there."""
    return str(connection.execute(f"SELECT typeof(CAST(NULL AS {kind}))").fetchone()[0])


def append(connection: Any, table: str, rows: pa.Table) -> None:
    """Add rows."""
    _run(connection, rows, f"INSERT INTO {quoted(table)} SELECT {list_of(rows.column_names)} FROM penstock_part")


def upsert(connection: Any, table: str, panes: pa.Table, keys: Sequence[str]) -> None:
    """Write the net of the panes over what is there: delete the keys and windows of the part, add the new answers."""
    upserts, deletes = net(panes, keys)
    touched = pa.concat_tables([upserts.select(list(keys)), deletes])
    if touched.num_rows:
        same = " AND ".join(f"had.{quoted(key)} IS NOT DISTINCT FROM part.{quoted(key)}" for key in keys)
        near = _near(touched, keys)
        _run(connection, touched, f"DELETE FROM {quoted(table)} AS had USING penstock_part AS part WHERE {same}{near}")
    if upserts.num_rows:
        append(connection, table, upserts)


def _near(touched: pa.Table, keys: Sequence[str]) -> str:
    """The span of the windows in question, so that DuckDB skips row groups of other times."""
    near = ""
    for bound in ("window_start", "window_end"):
        if bound in keys and not touched[bound].null_count:
            ends = pc.min_max(touched[bound].cast(pa.int64())).as_py()
            near += (
                f" AND had.{bound} BETWEEN make_timestamptz({ends['min']}::BIGINT) "
                f"AND make_timestamptz({ends['max']}::BIGINT)"
            )
    return near


def _run(connection: Any, rows: pa.Table, statement: str) -> None:
    connection.register("penstock_part", rows)
    try:
        connection.execute(statement)
    finally:
        connection.unregister("penstock_part")
