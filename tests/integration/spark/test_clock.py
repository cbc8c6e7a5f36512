"""Is the clock of a batch fixed before it runs, the same when it runs again, and moving when nothing comes?"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import penstock as ps
from penstock.coordinator.task_clock import TaskClock, WrongClock
from penstock.spark.errors import told
from penstock.spark.task_clock import NAME, task_clock, tell_tasks
from penstock.types.durations import HOUR, MINUTE
from penstock.types.timestamps import MIN_TIME, from_datetime
from tests.integration.spark.driving import caught_up, clock_files, clock_of, put, running, scores, seconds, totals


def at(second: int) -> int:
    """An instant of the first hour of 2026, in microseconds."""
    from datetime import UTC, datetime, timedelta

    return from_datetime(datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=second))


def moved(shift: Path, by: int) -> None:
    """Move the clock of what runs, by microseconds."""
    aside = shift.with_name("aside")
    aside.write_text(str(by))
    aside.rename(shift)


def last_with_rows(checkpoint: Path, batch: int) -> None:
    """Let the checkpoint be as if the run had been killed after the clock of the batch after this one was written."""
    for folder, least in (("offsets", batch + 1), ("commits", batch), ("penstock/clock", batch + 2)):
        for one in (checkpoint / folder).iterdir():
            name = one.name.removeprefix(".").removesuffix(".crc")
            if name.isdigit() and int(name) >= least:
                one.unlink()


def test_the_clock_is_written_before_the_batch_commits_and_is_the_same_on_replay(spark, tmp_path, shift):
    """Then an hour passes; that is no running time, so the slower partition is not taken for idle."""
    rows, checkpoint = tmp_path / "in", tmp_path / "checkpoint"
    put(rows, "p/a.json", ("red", 1, 25), ("red", 1, 26))
    put(rows, "q/a.json", ("red", 1, 3))
    early = (
        scores(rows, partition="directory").event_time("at", watermark=ps.ascending(idle="1 minute"))
        .key_by("team").window(ps.tumbling("10 seconds")).trigger(ps.at_watermark(early=ps.count(1))).accumulating()
        .aggregate(points=ps.sum("points"))
    )  # fmt: skip
    pipeline = ps.pipeline("replayed", early.write(ps.memory("panes")), delivery="at_least_once")
    seen: list[tuple[bool, bool]] = []

    def look(one: Any) -> None:
        written = checkpoint / "penstock/clock" / f"{one.batch + 1:012d}"
        seen.append((written.exists(), (checkpoint / "commits" / str(one.batch)).exists()))

    with running(pipeline, checkpoint) as run:
        fed = run.until(lambda one: one.events == 3)
    assert fed.watermark == at(3)
    panes = ps.memory("panes").rows
    files = clock_files(checkpoint)
    last_with_rows(checkpoint, fed.batch)
    kept = {batch: data for batch, data in files.items() if batch <= fed.batch + 1}
    moved(shift, HOUR)
    with running(pipeline, checkpoint, look=look) as run:
        run.batches(4)
    again = run.told
    assert (again[0].batch, again[0].now, again[0].watermark) == (fed.batch, fed.now, fed.watermark)
    assert {batch: clock_files(checkpoint)[batch] for batch in kept} == kept
    assert ps.memory("panes").rows == panes * 2
    assert all(written and not committed for written, committed in seen)
    # The hour lies between the batch that was run again and the next.
    assert again[1].now - again[0].now >= HOUR
    assert {one.watermark for one in again} == {at(3)}
    assert clock_of(checkpoint, again[-1].batch + 1)["state"]["now"] == again[-1].now


def test_a_task_with_the_wrong_clock_fails(spark):
    """One that finds none, that of another pipeline, or that of another batch."""

    def asked(batches: Iterator[Any]) -> Iterator[Any]:
        for batch in batches:
            task_clock("mine")
            yield batch

    context = spark.sparkContext
    frame = spark.range(1).mapInArrow(asked, "id long")

    def failure() -> BaseException:
        with pytest.raises(Exception, match="a task") as raised:
            frame.collect()
        return told(raised.value)

    try:
        context.setLocalProperty(NAME, None)
        assert "runs without a clock" in str(failure())
        tell_tasks(context, TaskClock("other", 7, (MIN_TIME,), 0))
        assert "found the clock of batch 7" in str(failure())
        tell_tasks(context, TaskClock("mine", 7, (MIN_TIME,), 0))
        context.setLocalProperty("streaming.sql.batchId", "6")
        found = failure()
        assert isinstance(found, WrongClock)
        assert "a task of batch 6 found the clock of batch 7" in str(found)
        context.setLocalProperty("streaming.sql.batchId", "7")
        assert frame.count() == 1
    finally:
        context.setLocalProperty("streaming.sql.batchId", None)
        context.setLocalProperty(NAME, None)


def test_time_moves_with_no_data_also_after_a_restart(spark, tmp_path, shift):
    """An early pane by the clock, with no row to wake it: the tick does."""
    rows = tmp_path / "in"
    put(rows, "a.json", ("red", 1, 1))
    early = (
        scores(rows).event_time("at", watermark=ps.ascending(idle=None)).key_by("team").window(ps.tumbling("1 hour"))
        .trigger(ps.at_watermark(early=ps.every("1 hour"))).accumulating().aggregate(points=ps.sum("points"))
    )  # fmt: skip
    pipeline = ps.pipeline("ticking", early.write(ps.memory("panes")))
    before = caught_up(pipeline, tmp_path / "checkpoint")
    assert before[-1].total_panes == 0
    with running(pipeline, tmp_path / "checkpoint") as run:
        run.batches(2)
        moved(shift, 2 * HOUR)
        pane = run.until(lambda one: one.panes == 1)
        assert (pane.events, pane.watermark) == (0, at(1))
        # Time does not go back, whatever the wall clock says.
        moved(shift, -HOUR)
        run.batches(2)
    times = [one.now for one in (*before, *run.told)]
    assert times == sorted(times)
    assert times[-1] == pane.now
    assert seconds(ps.memory("panes").rows, "points", "pane_timing") == [(0, 1, "early")]


def test_an_idle_partition_steps_aside_and_one_that_is_behind_does_not(spark, tmp_path, shift):
    """A clock that runs two minutes a batch, and a partition of which one file a batch is read."""
    rows = tmp_path / "in"
    put(rows, "p/a.json", ("red", 1, 25))
    for i in range(3):
        put(rows, f"q/{i}.json", ("blue", 1, 3 + i))
    pipeline = ps.pipeline(
        "idling", totals(scores(rows, partition="directory"), ps.ascending(idle="1 minute")).write(ps.memory("panes")),
        batch_rows=1,
    )  # fmt: skip
    hasty: list[Any] = []

    def hurried(one: Any) -> None:
        hasty.append(one)
        moved(shift, len(hasty) * 2 * MINUTE)

    pipeline.run(checkpoint=str(tmp_path / "checkpoint"), batch_every="0", until="caught_up", on_progress=hurried)
    behind = [one for one in hasty if one.events]
    assert len(behind) == 4
    assert all(one.watermark <= at(5) and one.late == 0 for one in behind)
    # An hour's outage is no running time: nobody is idle, and nothing is lost to it.
    moved(shift, HOUR)
    with running(pipeline, tmp_path / "checkpoint") as run:
        run.batches(2)
        put(rows, "q/9.json", ("blue", 1, 6))
        fed = run.until(lambda one: one.events == 1)
        assert {one.watermark for one in run.told} <= {at(5), at(6)}
        assert fed.late == 0
        # Now q is silent while p speaks: W goes on without it, and does not go back when it returns.
        put(rows, "p/b.json", ("red", 1, 27))
        run.until(lambda one: one.totals.read == 6)
        assert run.told[-1].laggard == "scores/q"
        moved(shift, HOUR + 2 * MINUTE)
        run.until(lambda one: one.watermark == at(27))
        put(rows, "q/a.json", ("blue", 1, 7))
        back = run.until(lambda one: one.late == 1)
        assert back.watermark == at(27)
    assert seconds(ps.memory("panes").rows, "team", "plays") == [(0, "blue", 4)]


def test_when_idle_advance_closes_the_last_window_of_a_silent_dataframe(spark, tmp_path, shift):
    """A file stream of Spark's that has nothing more to give, also after a restart."""
    rows = tmp_path / "in"
    put(rows, "a.json", ("red", 1, 1), ("red", 2, 12))
    frame = spark.readStream.schema("team string, points long, at timestamp").json(str(rows))
    rule = ps.ascending(idle="1 minute", when_idle="advance")
    pipeline = ps.pipeline("silent", totals(ps.stream(frame), rule).write(ps.memory("panes")))
    told = caught_up(pipeline, tmp_path / "checkpoint")
    assert (told[-1].watermark, told[-1].total_panes) == (at(12), 1)
    with running(pipeline, tmp_path / "checkpoint") as run:
        run.batches(2)
        moved(shift, 5 * MINUTE)
        run.until(lambda one: one.total_panes == 2)
    assert seconds(ps.memory("panes").rows, "points") == [(0, 1), (10, 2)]
