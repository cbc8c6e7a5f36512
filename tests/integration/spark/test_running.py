"""Does a pipeline start, stop, end and go on as it says, in whose session it may be?"""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

import penstock as ps
from penstock.checkpoint.status import standing
from penstock.errors import DataError, PlanError
from penstock.storage.local import CheckpointError
from penstock.types.timestamps import MAX_TIME, MIN_TIME, from_datetime
from tests.integration.spark.driving import (
    ROWS,
    Unspoken,
    caught_up,
    lose_last_commit,
    put,
    put_text,
    running,
    scores,
    seconds,
    totals,
)

ROOT = Path(__file__).parents[3]
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT)}


def test_caught_up_stops_when_drained_and_goes_on_with_more_files(spark, tmp_path):
    rows = tmp_path / "in"
    pipeline = ps.pipeline("drained", totals(scores(rows)).write(ps.memory("panes")))
    put(rows, "a.json", ("red", 1, 1), ("red", 2, 12), ("blue", 3, 13))
    first = caught_up(pipeline, tmp_path / "checkpoint")
    panes = ps.memory("panes")
    assert seconds(panes.rows, "team", "points") == [(0, "red", 1)]
    # W is where the rows have brought it: the open windows wait for more.
    assert standing(str(tmp_path / "checkpoint")).watermark == first[-1].watermark < MAX_TIME
    put(rows, "b.json", ("red", 10, 14), ("blue", 4, 25))
    again = caught_up(pipeline, tmp_path / "checkpoint")
    assert seconds(panes.rows, "team", "points") == [(0, "red", 1), (10, "blue", 3), (10, "red", 12)]
    assert again[0].batch == first[-1].batch + 1
    assert again[-1].totals.read == 5


@pytest.mark.parametrize("clock_too", [False, True])
def test_a_last_batch_that_is_run_again_is_not_all_there_is(spark, tmp_path, clock_too):
    """Killed between the sink and Spark's commit, the batch that had found nothing left comes back; what has come
    meanwhile is read, of every source, in as many batches as that takes. A file of bad rows alone is read too."""
    one, two = tmp_path / "one", tmp_path / "two"
    made = ps.game_scores(rate=10, events=40, realtime=False, name="made").select("team", "points", "at")
    joined = scores(one, name="one", max_bad=None).union(scores(two, name="two"), made)
    results = totals(joined)
    panes = results.write(ps.memory("panes"))
    pipeline = ps.pipeline("again", panes, results.quarantine.write(ps.memory("bad")), batch_rows=1)
    put(one, "a.json", ("red", 1, 1))
    put(two, "a.json", ("red", 2, 2))
    assert caught_up(pipeline, tmp_path / "checkpoint")[-1].totals.read == 42
    last = lose_last_commit(tmp_path / "checkpoint", clock_too=clock_too)
    put(one, "b.json", ("red", 4, 3))
    put(two, "b.json", ("red", 8, 3))
    put_text(two, "c.json", "no JSON\n")
    put_text(two, "d.json", "")
    put(two, "e.json", ("red", 16, 3))
    told = caught_up(pipeline, tmp_path / "checkpoint")
    assert told[0].batch == last
    assert (told[-1].totals.read, told[-1].totals.quarantined) == (46, 1)
    assert told[-1].events == 0


def test_what_comes_after_the_end_of_a_directory_is_told(spark, tmp_path, capsys):
    """By a note of the batch, by what `run` gives and prints, by the next start, and by a checkpoint that is done."""
    rows, checkpoint = tmp_path / "in", tmp_path / "checkpoint"

    def later(number: int) -> None:
        put(rows, f"late-{number}.json", ("blue", 8, 3))
        os.utime(rows / f"late-{number}.json", (2_000_000_000, 2_000_000_000 + number))

    put(rows, "a.json", ("red", 1, 1))
    bounded = ps.pipeline("bounded", totals(scores(rows, end=True)).write(ps.memory("panes")))
    told: list[ps.Progress] = []

    def heard(progress: ps.Progress) -> None:
        if progress.events:
            later(1)
        told.append(progress)

    ended = bounded.run(checkpoint=str(checkpoint), batch_every="0", until="caught_up", on_progress=heard)
    said = f"1 file came to {rows} after its end, unread: late-1.json; end= holds from the checkpoint's first batch on"
    assert told[0].notes == ()
    assert told[-1].notes == ended.unread
    assert ended.unread[0].startswith(said)
    assert str(ended).endswith(f"; {ended.unread[0]}")
    assert f"bounded: caught up after batch {told[-1].batch}" in capsys.readouterr().err
    later(2)
    again = caught_up(bounded, checkpoint)
    assert again[0].notes[0].startswith(f"2 files came to {rows} after its end, unread: late-1.json, late-2.json; ")
    assert again[-1].totals.read == 1
    # The end taken away, the same checkpoint goes on with them.
    endless = ps.pipeline("bounded", totals(scores(rows)).write(ps.memory("panes")))
    told = caught_up(endless, checkpoint)
    assert (told[-1].totals.read, told[-1].notes) == (3, ())
    # With an end again, that of this start holds.
    later(3)
    told = caught_up(bounded, checkpoint, until="end")
    assert (told[-1].totals.read, told[-1].notes) == (4, ())
    later(4)
    with pytest.raises(CheckpointError, match="is finished") as raised:
        bounded.run(checkpoint=str(checkpoint), spark=Unspoken())
    assert f"takes no more data; 1 file came to {rows} after its end, unread: late-4.json" in str(raised.value)


def test_until_end_holds_the_watermark_then_closes_every_window(spark, tmp_path):
    rows = tmp_path / "in"
    put(rows, "a.json", ("red", 1, 1), ("red", 2, 42))
    put(rows, "b.json", ("red", 4, 2), ("blue", 8, 3))
    pipeline = ps.pipeline("ended", totals(scores(rows, end=True)).write(ps.memory("panes")), batch_rows=1)
    told = caught_up(pipeline, tmp_path / "checkpoint", until="end")
    assert {one.watermark for one in told} == {MIN_TIME, MAX_TIME}
    assert [one.watermark for one in told] == sorted(one.watermark for one in told)
    assert sum(one.events > 0 for one in told) == 2
    panes = ps.memory("panes").rows
    assert seconds(panes, "team", "points") == [(0, "blue", 8), (0, "red", 5), (40, "red", 2)]
    assert told[-1].late == 0
    with pytest.raises(CheckpointError, match="is finished") as raised:
        pipeline.run(checkpoint=str(tmp_path / "checkpoint"))
    assert "takes no more data" in str(raised.value)


def test_until_end_of_a_source_that_does_not_end_is_refused(tmp_path):
    pipeline = ps.pipeline("endless", totals(scores(tmp_path / "in")).write(ps.memory("panes")))
    with pytest.raises(PlanError, match="the source 'scores' does not end") as raised:
        pipeline.run(checkpoint=str(tmp_path / "checkpoint"), until="end", spark=Unspoken())
    assert "end=True" in str(raised.value)
    assert not (tmp_path / "checkpoint").exists()


def test_a_source_that_nobody_reads_is_refused(tmp_path):
    pipeline = ps.pipeline("unread", totals(ps.events(ROWS)).write(ps.memory("panes")))
    with pytest.raises(PlanError, match="nobody reads the source 'events'"):
        pipeline.run(checkpoint=str(tmp_path / "checkpoint"), spark=Unspoken())
    assert not (tmp_path / "checkpoint").exists()


def test_processing_time_catches_up_too(spark, tmp_path):
    """W moves with every batch; the source is drained all the same."""
    rows = tmp_path / "in"
    put(rows, "a.json", ("red", 1, 1))
    by_clock = scores(rows).processing_time().key_by("team").window(ps.tumbling("1 hour")).aggregate(n=ps.rows())
    pipeline = ps.pipeline("clocked", by_clock.write(ps.memory("panes")))
    with running(pipeline, tmp_path / "checkpoint", until="caught_up") as run:
        assert run.handle.wait(60).reason == "caught up"


def test_start_status_wait_and_stop(spark, tmp_path):
    rows = tmp_path / "in"
    pipeline = ps.pipeline("handled", totals(scores(rows)).write(ps.memory("panes")))
    began = time.time_ns() // 1000
    with running(pipeline, tmp_path / "checkpoint", batch_every="100 milliseconds") as run:
        handle = run.handle
        run.batches(1)
        with pytest.raises(TimeoutError, match=r"still runs after 0\.1 s"):
            handle.wait(0.1)
        put(rows, "a.json", ("red", 1, 1), ("red", 2, 12), (None, 3, 13))
        told = run.until(lambda one: one.total_panes == 1)
        assert handle.running
        assert handle.query.isActive
        assert handle.status is not None
        assert handle.status.batch >= told.batch
        ended = handle.stop()
    assert not handle.running
    assert ended.reason == "stopped"
    assert ended.batches == run.told[-1].batch + 1
    assert str(ended) == f"stopped after batch {ended.batches - 1}, watermark 2026-01-01 00:00:13"
    assert handle.wait() == ended
    assert handle.stop() == ended
    assert standing(str(tmp_path / "checkpoint")).running is False
    # What is told of each batch.
    assert [one.batch for one in run.told] == list(range(len(run.told)))
    assert [one.now for one in run.told] == sorted(one.now for one in run.told)
    assert began <= run.told[0].now <= time.time_ns() // 1000
    fed = next(one for one in run.told if one.events)
    assert (fed.events, fed.totals.read, fed.late, fed.quarantined) == (3, 3, 0, 0)
    assert fed.laggard == "scores/0"
    assert fed.watermark == from_datetime(ps.memory("panes").rows[0]["window_start"]) + 13_000_000
    assert fed.seconds > 0
    assert 0 <= fed.shares["sinks"] <= 1


def test_a_run_that_ends_by_itself_needs_nobody_to_wait(spark, tmp_path):
    rows = tmp_path / "in"
    put(rows, "a.json", ("red", 1, 1))
    pipeline = ps.pipeline("alone", totals(scores(rows)).write(ps.memory("panes")))
    with running(pipeline, tmp_path / "checkpoint", until="caught_up") as run:
        deadline = time.monotonic() + 60
        while run.handle.running and time.monotonic() < deadline:
            time.sleep(0.02)
        assert not run.handle.running
        assert run.handle.wait().reason == "caught up"


def test_two_pipelines_in_one_session(spark, tmp_path):
    """Each has its own clock, shards and checkpoint; the second stops first."""
    made = []
    for name in ("one", "two"):
        put(tmp_path / name, "a.json", (name, 1, 1), (name, 2, 12))
        made.append(ps.pipeline(name, totals(scores(tmp_path / name)).write(ps.memory(name)), shards=len(made) + 1))
    one, two = made
    with running(one, tmp_path / "c1") as first, running(two, tmp_path / "c2") as second:
        for run in (first, second):
            run.until(lambda told: told.total_panes == 1)
        second.handle.stop()
        assert first.handle.running
        put(tmp_path / "one", "b.json", ("one", 4, 23))
        first.until(lambda told: told.total_panes == 2)
    assert seconds(ps.memory("one").rows, "team", "points") == [(0, "one", 1), (10, "one", 2)]
    assert seconds(ps.memory("two").rows, "team", "points") == [(0, "two", 1)]


def test_a_second_start_in_this_process_is_refused_while_the_first_runs(spark, tmp_path):
    """As in a notebook whose cell is run twice; the first goes on, and once it is stopped the second may."""
    rows = tmp_path / "in"
    pipeline = ps.pipeline("twice", totals(scores(rows)).write(ps.memory("panes")))
    with running(pipeline, tmp_path / "checkpoint") as first:
        first.batches(1)
        with pytest.raises(CheckpointError, match="is in use") as raised:
            pipeline.start(checkpoint=str(tmp_path / "checkpoint"))
        assert "by its handle" in str(raised.value)
        put(rows, "a.json", ("red", 1, 1), ("red", 2, 12))
        first.until(lambda told: told.total_panes == 1)
    put(rows, "b.json", ("red", 4, 23))
    caught_up(pipeline, tmp_path / "checkpoint")
    assert seconds(ps.memory("panes").rows, "team", "points") == [(0, "red", 1), (10, "red", 2)]


def test_a_task_that_fails_is_told_in_three_parts(spark, tmp_path):
    rows = tmp_path / "in"
    put(rows, "a.json", ("red", 0, 1))
    counted = (
        scores(rows).event_time("at", watermark=ps.ascending()).key_by("team").window(ps.tumbling("10 seconds"))
        .trigger(ps.when("plays / points > 1")).accumulating().aggregate(points=ps.sum("points"), plays=ps.rows())
    )  # fmt: skip
    pipeline = ps.pipeline("failing", counted.write(ps.memory("panes")))
    with running(pipeline, tmp_path / "checkpoint") as run:
        for _ in range(2):
            with pytest.raises(DataError, match="predicate cannot be computed") as raised:
                run.handle.wait(60)
            assert "instead: guard it" in str(raised.value)
        assert not run.handle.running
    assert standing(str(tmp_path / "checkpoint")).running is False


def test_a_function_of_batches_that_fails_is_the_cause_of_what_is_raised(spark, tmp_path):
    rows = tmp_path / "in"
    put(rows, "a.json", ("red", 1, 1), ("red", 1, 11))

    def write(frame, batch):
        raise LookupError("no such table")

    pipeline = ps.pipeline("failing", totals(scores(rows)).write(ps.foreach_batch(write)))
    with pytest.raises(ps.SinkError, match="LookupError: no such table") as raised:
        pipeline.run(checkpoint=str(tmp_path / "checkpoint"), batch_every="0")
    assert isinstance(raised.value.__cause__, LookupError)


SCRIPT = """
import sys
import penstock as ps
scores = ps.game_scores(rate=200)
totals = scores.event_time("at", watermark=ps.bounded("1 second")).key_by("team").window(ps.tumbling("1 second"))
totals = totals.aggregate(points=ps.sum("points"), plays=ps.rows())
pipeline = ps.pipeline("signalled", totals.write(ps.sqlite("a.db", table="totals")))
pipeline.run(checkpoint="checkpoint", batch_every="200 milliseconds",
             on_progress=lambda one: print(one.batch, flush=True))
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_lets_the_batch_finish(tmp_path, number):
    """SIGTERM comes to the process alone, Ctrl-C to all that the terminal started: workers and JVM too."""
    (tmp_path / "pipeline.py").write_text(SCRIPT)
    with subprocess.Popen([sys.executable, "pipeline.py"], cwd=tmp_path, env=ENVIRONMENT, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, start_new_session=True) as process:  # fmt: skip
        assert process.stdout is not None
        for line in process.stdout:
            if line.strip() == "2":
                break
        if number == signal.SIGINT:
            os.killpg(process.pid, number)
        else:
            process.send_signal(number)
        out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    last = max((int(line) for line in out.split()), default=2)
    assert f"signalled: stopped after batch {last}, watermark 20" in err
    commits = [int(one.name) for one in (tmp_path / "checkpoint" / "commits").iterdir() if one.name.isdigit()]
    assert max(commits) == last
    assert standing(str(tmp_path / "checkpoint")).running is False


def test_spark_submit_runs_a_pipeline_file(tmp_path):
    put(tmp_path / "in", "a.json", ("red", 1, 1), ("red", 2, 12))
    (tmp_path / "pipeline.py").write_text(
        "import penstock as ps\n"
        'rows = ps.directory("in", schema="team string, points long, at timestamp", end=True)\n'
        'timed = rows.event_time("at", watermark=ps.ascending()).key_by("team").window(ps.tumbling("10 seconds"))\n'
        'answers = timed.aggregate(points=ps.sum("points")).write(ps.sqlite("a.db", table="totals"))\n'
        'print(ps.pipeline("submitted", answers).run(checkpoint="checkpoint", batch_every="0", until="end"))\n'
    )
    submit = Path(sys.executable).parent / "spark-submit"
    command = [str(submit), "--master", "local[2]", "pipeline.py"]
    environment = {**ENVIRONMENT, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300,
                          check=False)  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    assert "ended after batch" in done.stdout
    with closing(sqlite3.connect(tmp_path / "a.db")) as connection:
        assert connection.execute("SELECT sum(points) FROM totals").fetchall() == [(3,)]
