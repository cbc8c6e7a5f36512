"""Stages of every kind on Spark: as the reference has it, through restarts, as a stream and as a batch."""

from __future__ import annotations

import random
import sqlite3
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import penstock as ps
from penstock.reference.engine import ReferenceRun
from penstock.runtime.batch import Arrival, Tick
from penstock.testing import Script
from penstock.types.timestamps import MAX_TIME
from tests.faults.scenarios.stages import made as pipeline, stages
from tests.properties.test_stages_agree import FLOWS, same_stages

EVENTS = 2_000
Whole = dict[str, Counter[tuple[tuple[str, Any], ...]]]


CORRECTED = (
    "corrections, values that are kept", "corrections, corrections, windows", "sessions, windows", "corrections, join",
    "corrections, top", "least of windows, windows", "corrections as they are",
)  # fmt: skip


@pytest.mark.parametrize("name", CORRECTED)
def test_spark_agrees_with_the_reference_where_rows_are_withdrawn(name: str) -> None:
    reference, spark = (Script(FLOWS[name](), engine) for engine in ("reference", "spark"))
    several, chosen = len(reference.flow.inputs) > 1, random.Random(name)
    for batch in range(4):
        rows = [{"k": chosen.choice("abc"), "v": chosen.randint(-3, 9), "x": chosen.choice([None, 0.5, 1.5, 2.0]),
                 "@partition": chosen.choice("012"), "at": 9 * batch + chosen.randint(0, 9)}
                for _ in range(6)]  # fmt: skip
        for row in rows[::2] if several else ():
            row |= {"@source": "two", "then": row.pop("at")}
        if batch == 2:
            spark.restart()
        same_stages(reference.batch(rows, now=1000 + 5 * batch), spark.batch(rows, now=1000 + 5 * batch))
    for _ in reference.flow.stages:
        same_stages(*(script.batch((), watermark="+inf") for script in (reference, spark)))
    assert reference.run.open_windows() == spark.run.open_windows() == 0


def held(folder: Path) -> Whole:
    """What the tables have: rows of columns and values."""
    found = {}
    with sqlite3.connect(folder / "answers.db") as connection:
        for name in stages(1):
            asked = connection.execute(f'SELECT * FROM "{name}"')
            names = [column for column, *_ in asked.description]
            found[name] = Counter(tuple(zip(names, row, strict=True)) for row in asked.fetchall())
    return found


@pytest.fixture(scope="module")
def whole(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Whole:
    """What a run to the end writes."""
    folder = tmp_path_factory.mktemp("whole")
    pipeline(folder, EVENTS).run(checkpoint=str(folder / "checkpoint"), batch_every="0", until="end", spark=spark)
    return held(folder)


def test_every_stage_gives_something(whole: Whole) -> None:
    assert all(whole.values()), {name: len(rows) for name, rows in whole.items()}


def test_a_run_that_was_stopped_and_goes_on_gives_the_same(spark: Any, tmp_path: Path, whole: Any) -> None:
    made = pipeline(tmp_path, EVENTS)
    handle = made.start(checkpoint=str(tmp_path / "checkpoint"), batch_every="0", until="end", spark=spark)
    while handle.status is None:
        time.sleep(0.05)
    handle.stop()
    made.run(checkpoint=str(tmp_path / "checkpoint"), batch_every="0", until="end", spark=spark)
    assert held(tmp_path) == whole


@pytest.mark.parametrize("name", [
    "latest", "streaks", "greeted", "met", "paired", "starred", "unstarred", "lows", "ever", "rated", "unmatched",
    "named", "drops", "timeouts", "ranked", "leading",
])  # fmt: skip
def test_what_spark_writes_is_what_the_reference_gives(name: str, whole: Any) -> None:
    """All at once, under W that is held until the end: the same rows."""
    asked = stages(EVENTS)[name]
    assert isinstance(asked, ps.Rows)
    stage = asked.stage
    run = ReferenceRun(stage)
    reader = run.flow.inputs[0].source.reader
    arrivals, at = [], reader.start()
    while not reader.finished(at, 0):
        upto = reader.latest(at, 0, None)
        for split in reader.splits(at, upto):
            for chunk in reader.read(split):
                rows = chunk.rows.to_pylist()
                arrivals += [_arrival(chunk.partition, offset, row)
                             for offset, row in zip(chunk.offsets.tolist(), rows, strict=True)]  # fmt: skip
        at = upto
    begun = 4_102_444_800_000_000  # the year 2100: nothing is ahead of it
    later = begun + 1_000_000  # what waits for the processing clock is told before the end
    outcomes = [run.batch(arrivals, Tick(now=begun)), run.batch([], Tick(now=later))]
    outcomes += [run.batch([], Tick(now=later, watermark=MAX_TIME)) for _ in run.flow.stages]
    told = stage.outputs[asked.name].columns
    names = [column.name for column in told if column.type in ("string", "long")]
    given = [row.row for outcome in outcomes for row in outcome.rows if row.output == asked.name]
    wanted = Counter(tuple(row[name] for name in names) for row in given)
    written = Counter(tuple(dict(row)[name] for name in names) for row in whole[name].elements())
    assert written == wanted


def _arrival(partition: str, offset: int, row: dict[str, Any]) -> Arrival:
    from penstock.types.timestamps import from_datetime

    return Arrival("scores", partition, offset, {**row, "at": None if row["at"] is None else from_datetime(row["at"])})


def test_the_plan_says_what_each_stage_keeps() -> None:
    said = pipeline("unused", EVENTS).explain()
    assert said.count("stage ") >= 8
    assert said.count("keeps:") >= 6


def test_a_batch_is_a_stream_that_ends(spark: Any, tmp_path: Path) -> None:
    rows = [(f"u{i % 5}", i % 7, f"2026-05-01T12:00:{i % 60:02d}") for i in range(200)]
    frame = spark.createDataFrame(rows, "user string, points long, at string")

    def made(folder: str, given: Any) -> ps.Pipeline:
        events = ps.stream(given).event_time("at", watermark=ps.bounded("1 minute"))
        once = events.dedup("user", "points", within="1 second")
        panes = once.key_by("user").window(ps.tumbling("10 seconds")).aggregate(n=ps.rows())
        return ps.pipeline("batch", once.write(ps.memory(f"{folder}-once")), panes.write(ps.memory(folder)))

    made("all", frame).run(checkpoint=str(tmp_path / "all"), spark=spark)
    frame.write.mode("overwrite").json(str(tmp_path / "rows"))
    streamed = spark.readStream.schema(frame.schema).json(str(tmp_path / "rows"))
    made("stream", streamed).run(checkpoint=str(tmp_path / "stream"), until="end", spark=spark)
    for name in ("", "-once"):
        one, two = (sorted(map(str, ps.memory(f"{which}{name}").rows)) for which in ("all", "stream"))
        assert one
        assert one == two


def test_wide_rows_travel_between_stages_and_what_is_only_written_goes_along(spark: Any, tmp_path: Path) -> None:
    """A megabyte and more for a shard in one batch; `select` and `write` after the last stage need no shuffle."""
    rows = [(f"u{i % 50}", i % 7, f"2026-05-01T12:00:{i % 60:02d}", f"{i:06d}" * 500) for i in range(1_500)]
    frame = spark.createDataFrame(rows, "user string, points long, at string, said string").repartition(2)
    frame.write.json(str(tmp_path / "rows"))
    streamed = spark.readStream.schema(frame.schema).json(str(tmp_path / "rows"))
    events = ps.stream(streamed).event_time("at", watermark=ps.bounded("1 minute"))
    best = events.dedup("user", "said", within="1 minute").key_by("user").top(1, by="said")
    shown = best.select("user", "points", first="said")
    pipeline = ps.pipeline("wide", shown.write(ps.memory("wide")), shards=2)
    pipeline.run(checkpoint=str(tmp_path / "checkpoint"), until="end", spark=spark)
    state = {int(path.name) for path in (tmp_path / "checkpoint" / "state").iterdir() if path.name.isdigit()}
    assert state == {0, 1}, "dedup and top have a place in the query, the rows that are written have none"
    wanted = {f"u{i % 50}": f"{i:06d}" * 500 for i in range(1_500)}
    stands: Counter[tuple[str, str]] = Counter()
    for row in ps.memory("wide").rows:
        stands[row["user"], row["first"]] += row["op"]
    assert dict(one for one, number in stands.items() if number) == wanted
