"""Does any DataFrame do as a source: its types, its partitions, its bad rows, streaming or static?"""

from __future__ import annotations

import datetime
import json
import math
import os
import struct
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import penstock as ps
from penstock.errors import PlanError, TooManyBadRows
from tests.integration.spark.driving import ROWS, caught_up, clock, put, put_text, running, scores, seconds, totals
from tests.properties import values_by_python as by_python

NOON = datetime.datetime(2026, 1, 1, 12, tzinfo=datetime.UTC)
# A value of each type by Spark SQL, and what a sink is given.
TYPES: dict[str, tuple[str, Any]] = {
    "decimal": ("cast(1.5 as decimal(10,2))", Decimal("1.50")),
    "date": ("date'2026-01-02'", datetime.date(2026, 1, 2)),
    "timestamp": ("timestamp'2026-01-01 12:00:00Z'", NOON),
    "timestamp_ntz": ("timestamp_ntz'2026-01-01 12:00:00'", NOON),
    "binary": ("X'00FF'", b"\x00\xff"),
    "boolean": ("true", True),
    "byte": ("cast(-7 as tinyint)", -7),
    "short": ("cast(300 as smallint)", 300),
    "int": ("70000", 70000),
    "long": ("5000000000L", 5_000_000_000),
    "float": ("cast(0.5 as float)", 0.5),
    "double": ("cast(0.1 as double)", 0.1),
    "string": ("'größe'", "größe"),
    "varchar": ("cast('x' as varchar(5))", "x"),
}
REFUSED = {
    "struct": "named_struct('a', 1)",
    "array": "array(1)",
    "map": "map('a', 1)",
    "interval": "interval '1' day",
    "variant": "parse_json('{}')",
}


@pytest.fixture
def berlin(spark) -> Any:
    """A session of the user's own, with settings that are not ours."""
    own = spark.newSession()
    for name, value in OWN.items():
        own.conf.set(name, value)
    return own


OWN = {
    "spark.sql.session.timeZone": "Europe/Berlin",
    "spark.sql.shuffle.partitions": "7",
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "2",
    "spark.sql.streaming.stateStore.providerClass":
        "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider",
}  # fmt: skip


def test_every_plain_type_as_a_key_and_null_is_a_key(spark, berlin, tmp_path):
    """On a static DataFrame, in a session of another time zone: what went in comes out, instants and all."""
    values = ", ".join(f"{sql} as `{name}`" for name, (sql, _) in TYPES.items())
    nulls = ", ".join(f"if(false, {sql}, null) as `{name}`" for name, (sql, _) in TYPES.items())
    when = "timestamp'2026-01-01 00:30:00Z' as at"
    frame = berlin.sql(f"select {values}, {when} union all select {nulls}, {when} union all select {nulls}, {when}")
    counted = (
        ps.stream(frame).event_time("at", watermark=ps.ascending()).key_by(*TYPES).window(ps.tumbling("1 hour"))
        .aggregate(n=ps.rows())
    )  # fmt: skip
    pipeline = ps.pipeline("types", counted.write(ps.memory("panes")))
    ended = pipeline.run(checkpoint=str(tmp_path / "checkpoint"), spark=berlin)
    assert (ended.reason, ended.progress.events) == ("ended", 3)
    found, null = sorted(ps.memory("panes").rows, key=lambda row: row["n"])
    assert {name: found[name] for name in TYPES} == {name: value for name, (_, value) in TYPES.items()}
    assert found["window_start"] == datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
    assert [null[name] for name in TYPES] == [None] * len(TYPES)
    assert (found["n"], null["n"]) == (1, 2)


# Values at the ends of their types by Spark SQL, and what Python says they are.
ENDS: list[tuple[str, str, Any]] = [
    ("long", "-9223372036854775808L", -(2**63)),
    ("long", "9223372036854775807L", 2**63 - 1),
    ("double", "double('NaN')", math.nan),
    ("double", "double('-Infinity')", -math.inf),
    ("double", "4.9E-324D", 5e-324),
    ("double", "1.7976931348623157E308D", 1.7976931348623157e308),
    ("float", "cast(0.1 as float)", struct.unpack("<f", struct.pack("<f", 0.1))[0]),
    ("cents", f"cast('{'9' * 36}.99' as decimal(38,2))", Decimal("9" * 36 + ".99")),
    ("parts", f"cast('-0.{'0' * 37}1' as decimal(38,38))", Decimal("-1E-38")),
    ("stamp", "timestamp'0001-01-01 00:00:00Z'", datetime.datetime(1, 1, 1, tzinfo=datetime.UTC)),
    ("stamp", "timestamp'9999-12-31 23:59:59.999999Z'", datetime.datetime.max.replace(tzinfo=datetime.UTC)),
    ("day", "date'0001-01-01'", datetime.date.min),
    ("day", "date'9999-12-31'", datetime.date.max),
    ("text", "''", ""),
    ("text", "concat('a', char(0), 'ü')", "a\0ü"),
    ("raw", "X''", b""),
    ("raw", "X'00FF00'", b"\0\xff\0"),
]


def test_values_at_the_ends_of_their_types(spark, berlin, tmp_path):
    """Each is what Python says it is, through a DataFrame, keys and panes."""
    kinds = {kind: sql for kind, sql, _ in ENDS}
    rows = []
    for number, (kind, sql, _) in enumerate(ENDS):
        cells = [f"{sql if one == kind else f'if(false, {some}, null)'} as {one}" for one, some in kinds.items()]
        rows.append(", ".join([f"{number} as id", *cells, "timestamp'2026-01-01 00:30:00Z' as at"]))
    frame = berlin.sql(" union all ".join(f"select {row}" for row in rows))
    timed = ps.stream(frame).event_time("at", watermark=ps.ascending()).key_by("id", *kinds)
    counted = timed.window(ps.tumbling("1 hour")).aggregate(n=ps.rows())
    ps.pipeline("ends", counted.write(ps.memory("ends"))).run(checkpoint=str(tmp_path / "checkpoint"), spark=berlin)
    found = {row["id"]: row for row in ps.memory("ends").rows}
    assert len(found) == len(ENDS)
    for number, (kind, sql, value) in enumerate(ENDS):
        assert by_python.same(found[number][kind], value), (sql, found[number][kind])
        assert all(found[number][other] is None for other in kinds if other != kind)


@pytest.mark.parametrize("kind", REFUSED)
def test_a_nested_type_is_refused_by_name(spark, kind):
    with pytest.raises(PlanError, match=f"the column 'odd' is of type {kind}") as raised:
        ps.stream(spark.sql(f"select {REFUSED[kind]} as odd, current_timestamp() as at"))
    assert "instead:" in str(raised.value)


@pytest.mark.parametrize("ansi", ["true", "false"])
def test_static_is_a_stream_that_ends(spark, berlin, tmp_path, ansi):
    """The same pipeline on the same files: Spark's stream one file at a time, Spark's table, and our own reader."""
    berlin.conf.set("spark.sql.ansi.enabled", ansi)
    rows = tmp_path / "in"
    put(rows, "a.json", ("red", 1, 1), ("red", 2, 4), (None, 3, 61))
    put(rows, "b.json", ("red", 4, 6), ("blue", 5, 3), (None, 6, 60))
    put(rows, "c.json", ("red", 7, 30), (None, None, 62))
    sources = {
        "stream": ps.stream(berlin.readStream.schema(ROWS).option("maxFilesPerTrigger", 1).json(str(rows))),
        "static": ps.stream(berlin.read.schema(ROWS).json(str(rows))),
    }
    if ansi == "true":
        sources["own"] = scores(rows, end=True)
    answers = {}
    for name, source in sources.items():
        sessions = source.event_time("at", watermark=ps.ascending()).key_by("team").window(ps.session("3 seconds"))
        results = sessions.aggregate(points=ps.sum("points"), n=ps.rows(), first=ps.min("at"))
        pipeline = ps.pipeline(name, results.write(ps.memory(name)))
        ended = pipeline.run(checkpoint=str(tmp_path / name), batch_every="0", until="end", spark=berlin)
        assert ended.reason == "ended"
        answers[name] = sorted(map(str, ps.memory(name).current()))
    assert answers["static"] == answers["stream"] == answers.get("own", answers["static"])
    assert len(answers["static"]) == 4
    # The user's settings are as they were.
    assert {name: berlin.conf.get(name) for name in OWN} == OWN


@pytest.mark.parametrize("until", ["caught_up", "end"])
def test_a_batch_of_which_no_row_came_through_is_not_the_last(spark, tmp_path, until):
    """Spark's stream one file at a time, filtered by Spark: a file of which nothing is left is not the end."""
    rows = tmp_path / "in"
    for number, team in enumerate(["none", "red", "none", "none", "red", "blue"]):
        put(rows, f"{number}.json", (team, 1, number))
        os.utime(rows / f"{number}.json", (1_700_000_000 + number,) * 2)
    frame = spark.readStream.schema(ROWS).option("maxFilesPerTrigger", 1).json(str(rows)).where("team <> 'none'")
    pipeline = ps.pipeline("filtered", totals(ps.stream(frame)).write(ps.memory("panes")))
    told = caught_up(pipeline, tmp_path / "checkpoint", until=until)
    assert (told[-1].totals.read, told[-1].totals.late) == (3, 0)
    if until == "end":
        assert seconds(ps.memory("panes").rows, "team", "plays") == [(0, "blue", 1), (0, "red", 2)]


def test_each_partition_of_a_dataframe_has_its_watermark(spark, tmp_path):
    """The fast one does not make the slow one's rows late; with an own source beside it, W is the least of all."""
    files = {
        "a.json": [("fast", 25), ("slow", 3), (None, 40)],
        "b.json": [("slow", 4), ("fast", 26)],
    }
    rows, own = tmp_path / "in", tmp_path / "own"
    put(own, "a.json", ("own", 1, 50))
    rows.mkdir()
    frame = spark.readStream.schema(f"{ROWS}, p string").json(str(rows))
    joined = ps.stream(frame, partition="p", name="frame").select("team", "points", "at").union(scores(own))
    pipeline = ps.pipeline("partitioned", totals(joined, ps.ascending(idle=None)).write(ps.memory("panes")))
    with running(pipeline, tmp_path / "checkpoint") as run:
        for i, (name, some) in enumerate(files.items()):
            lines = [json.dumps({"team": "x", "points": 1, "at": clock(at), "p": p}) for p, at in some]
            put_text(rows, name, "\n".join(lines))
            told = run.until(lambda one, i=i: one.totals.read == (4, 6)[i])
            assert (told.laggard, told.totals.late) == ("frame/slow", 0)
            assert str(told.watermark).endswith(("3000000", "4000000")[i])
    assert run.handle.status.totals.read == 6


def test_a_source_of_sparks_own_that_never_ends(spark, tmp_path):
    """Batch by batch as Spark makes them; stopped after one of them."""
    frame = (
        spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 10).option("advanceMillisPerBatch", 1000)
        .option("startTimestamp", 1_767_225_600_000).load()
    )  # fmt: skip
    sums = (
        ps.stream(frame).event_time("timestamp", watermark=ps.ascending()).window(ps.tumbling("1 second"))
        .aggregate(n=ps.rows(), total=ps.sum("value"))
    )  # fmt: skip
    with running(ps.pipeline("rated", sums.write(ps.memory("panes"))), tmp_path / "checkpoint") as run:
        run.until(lambda one: one.total_panes >= 3)
        ended = run.handle.stop()
    assert ended.reason == "stopped"
    found = seconds(ps.memory("panes").rows, "n", "total")
    assert found == [(i, 10, sum(range(10 * i, 10 * i + 10))) for i in range(len(found))]


def test_too_many_bad_rows_of_a_dataframe(spark, tmp_path):
    """Rows without a time are quarantined; more than max_bad of them stop the run."""
    rows = tmp_path / "in"
    put_text(rows, "a.json", '{"team": "red", "points": 1}\n{"team": "blue", "points": 2}\n')
    frame = spark.readStream.schema(ROWS).json(str(rows))
    pipeline = ps.pipeline("bad", totals(ps.stream(frame, max_bad=1)).write(ps.memory("panes")))
    with pytest.raises(TooManyBadRows, match="2 of 2 rows of events were quarantined"):
        caught_up(pipeline, tmp_path / "checkpoint")


def test_a_table_and_a_stream_do_not_mix(spark, tmp_path):
    rows = tmp_path / "in"
    put(rows, "a.json", ("red", 1, 1))
    static = ps.stream(spark.read.schema(ROWS).json(str(rows)), name="table")
    pipeline = ps.pipeline("mixed", totals(static.union(scores(rows))).write(ps.memory("panes")))
    with pytest.raises(PlanError, match="a static DataFrame and a stream stand in one plan"):
        pipeline.run(checkpoint=str(tmp_path / "checkpoint"))
    assert not Path(tmp_path / "checkpoint").exists()
