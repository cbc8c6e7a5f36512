"""Law: once the input has ended, what a join gave is what one query over the whole of both inputs gives."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given

from penstock.engine.operators.join import JoinOperator
from penstock.engine.operators.table_join import TableOperator
from penstock.engine.operators.temporal_join import TemporalOperator
from penstock.model.windows import Calendar
from penstock.plan.operators.join import Bound, Join, Together, Within
from penstock.reference.aggregates import Record
from penstock.reference.operators.join import JoinMachine
from penstock.reference.operators.protocol import Out
from penstock.reference.operators.table_join import TableMachine
from penstock.reference.operators.temporal_join import TemporalMachine
from penstock.types.durations import DAY, HOUR
from tests.properties.joining import LEFT, RIGHT, Both, Step, steps
from tests.properties.profile import law
from tests.properties.test_joins_agree import rules
from tests.properties.test_lookups_agree import tables, temporal

duckdb = pytest.importorskip("duckdb")
SIDES = (LEFT, RIGHT)


def table(connection: Any, name: str, records: list[Record], number: int) -> None:
    """A side's rows, all of them, with their event times and a number for each."""
    kinds = {"string": "varchar", "timestamp": "bigint", "long": "bigint", "double": "double", "boolean": "boolean"}
    held = SIDES[number].schema.columns
    columns = ", ".join(f'"{column.name}" {kinds[column.type]}' for column in held)
    connection.execute(f"create or replace table {name} (t bigint, place varchar, off bigint, {columns})")
    if records:
        marks = ", ".join("?" * (len(held) + 3))
        values = [[one.time, one.partition, one.offset, *one.row.values()] for one in records]
        connection.executemany(f"insert into {name} values ({marks})", values)


def limit(bound: Bound | None, unlimited: str) -> str:
    if bound is None:
        return unlimited
    return f"(l.{bound.column or 't'} + ({bound.shift}))"


def condition(rule: Join) -> str:
    """When two rows belong together, in SQL."""
    keys = " and ".join(f'l."{a}" = r."{b}"' for a, b in zip(LEFT.keys, RIGHT.keys, strict=True))
    if isinstance(rule.reach, Together):
        size, shift = sized(rule.reach)
        return f"{keys} and {window('l.t', size, shift)} = {window('r.t', size, shift)}"
    assert isinstance(rule.reach, Within)
    low, high = limit(rule.reach.low, "-(2**60)"), limit(rule.reach.high, "2**60")
    return f"{keys} and r.t between {low} and {high}"


def sized(reach: Together) -> tuple[int, int]:
    """How long windows are and where they begin; the days of the law are Tokyo's, whose clocks are never changed."""
    if isinstance(reach.window, Calendar):
        return DAY, -9 * HOUR
    return reach.window.size, reach.window.offset


def window(time: str, size: int, shift: int) -> str:
    return f"floor(({time} - {shift}) / {size}.0) * {size} + {shift}"


def query(rule: Join) -> str:
    """The whole join as one query."""
    windows = ""
    if isinstance(rule.reach, Together):
        size, shift = sized(rule.reach)
        start = window("l.t" if rule.once else "coalesce(l.t, r.t)", size, shift)
        windows = f", ({start})::bigint, ({start})::bigint + {size}"
    if rule.once:
        exists = "exists" if rule.how == "semi" else "not exists"
        return (
            f"select {mine('l')}{windows} from lefts l where {exists} (select 1 from rights r where {condition(rule)})"
        )
    keys = dict(zip(LEFT.keys, RIGHT.keys, strict=True))
    columns = [f'case when l.t is null then r."{keys[name]}" else l."{name}" end' if name in keys else f'l."{name}"'
               for name in LEFT.schema.names]  # fmt: skip
    columns += [f'r."{name}"' for name in RIGHT.schema.names if name not in RIGHT.keys]
    return f"select {', '.join(columns)}{windows} from lefts l {rule.how} join rights r on {condition(rule)}"


def mine(table: str) -> str:
    return ", ".join(f'{table}."{name}"' for name in LEFT.schema.names)


def plain(values: Any) -> str:
    """A row that sorts, with one NaN."""
    return repr(tuple("nan" if isinstance(value, float) and math.isnan(value) else value for value in values))


def same(outs: list[Out], connection: Any, sql: str) -> None:
    expected = connection.execute(sql).fetchall()
    assert sorted(plain(out.row.values()) for out in outs) == sorted(map(plain, expected))


@pytest.fixture(scope="module")
def connection() -> Any:
    return duckdb.connect(config={"threads": 1})


@law(150)
@given(rule=rules(), script=steps(patient=True, ended=True))
def test_a_join_is_the_query_over_the_whole_input(connection: Any, rule: Join, script: list[Step]) -> None:
    pair = Both(rule, SIDES, JoinMachine, JoinOperator)
    outs = [out for step in script for out in pair.play(step)]
    assert not pair.late
    for number, name in enumerate(("lefts", "rights")):
        table(connection, name, [record for step in script for record in step.arrivals[number]], number)
    same(outs, connection, query(rule))


@law(150)
@given(rule=temporal, script=steps(patient=True, ended=True))
def test_a_temporal_join_is_the_query_over_the_whole_input(connection: Any, rule: Any, script: list[Step]) -> None:
    pair = Both(rule, SIDES, TemporalMachine, TemporalOperator)
    outs = [out for step in script for out in pair.play(step)]
    assert not pair.late
    table(connection, "lefts", [record for step in script for record in step.arrivals[0]], 0)
    # The last to arrive of one instant is the version; DuckDB is told the order of arrival.
    arrived = [record for step in script for record in step.arrivals[1]]
    last = {(repr(one.row["key"]), repr(one.row["y"] if one.row["y"] != 0 else 0.0), one.time): one for one in arrived}
    table(connection, "rights", list(last.values()), 1)
    gone = "coalesce(r.gone, false)" if rule.deleted else "false"
    columns = [name for name in RIGHT.schema.names if name not in (*RIGHT.keys, rule.deleted)]
    theirs = ", ".join(f'case when {gone} then null else r."{name}" end' for name in columns)
    keys = " and ".join(f'l."{a}" = r."{b}"' for a, b in zip(LEFT.keys, RIGHT.keys, strict=True))
    found = f"from lefts l asof left join rights r on {keys} and l.t >= r.t"
    matched = f"r.t is not null and not {gone}"
    if rule.how == "left":
        same(outs, connection, f"select {mine('l')}, {theirs} {found}")
        return
    joined, alone = ([out for out in outs if out.output == name] for name in ("rows", "unmatched"))
    same(joined, connection, f"select {mine('l')}, {theirs} {found} where {matched}")
    same(alone, connection, f"select {mine('l')} {found} where not ({matched})")


@law(100)
@given(rule=tables, script=steps(patient=True))
def test_a_table_join_is_the_query_over_the_last_rows(connection: Any, rule: Any, script: list[Step]) -> None:
    pair = Both(rule, SIDES, TableMachine, TableOperator)
    for step in script:
        assert pair.play(Step(([], step.arrivals[1]), step.watermark)) == []
    rows = sorted((record for step in script for record in step.arrivals[0]), key=lambda one: one[1:3])
    outs = pair.play(Step((rows, []), 0))
    table(connection, "lefts", rows, 0)
    arrived = [record for step in script for record in step.arrivals[1]]
    table(connection, "rights", [one._replace(offset=at) for at, one in enumerate(arrived)], 1)
    gone = "coalesce(gone, false)" if rule.deleted else "false"
    last = 'qualify off = max(off) over (partition by "key", case when y = 0 then 0 else y end)'
    rights = f"(select * from (select * from rights {last}) where not {gone}) r"
    columns = [name for name in RIGHT.schema.names if name not in (*RIGHT.keys, rule.deleted)]
    theirs = ", ".join(f'r."{name}"' for name in columns)
    keys = " and ".join(f'l."{a}" = r."{b}"' for a, b in zip(LEFT.keys, RIGHT.keys, strict=True))
    joined = [out for out in outs if out.output == "rows"]
    same(joined, connection, f"select {mine('l')}, {theirs} from lefts l {rule.how} join {rights} on {keys}")
    alone = [out for out in outs if out.output == "unmatched"]
    if rule.how == "inner":
        same(
            alone, connection, f"select {mine('l')} from lefts l where not exists (select 1 from {rights} where {keys})"
        )
