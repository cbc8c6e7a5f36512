"""Rows 11 and 12 of the faults: a sink that does not answer is waited for, and a slow one slows the source."""

import sqlite3
import time

import penstock as ps
from penstock.checkpoint.status import standing
from tests.integration.spark.driving import put, running, scores, totals


def locked(path):
    """A connection of another program's that holds the file."""
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    return other


def answers(path):
    with sqlite3.connect(path) as connection:
        return connection.execute("SELECT team, points FROM totals ORDER BY team, points").fetchall()


def test_11_a_sink_that_does_not_answer_is_waited_for_and_nothing_is_lost(spark, tmp_path, monkeypatch):
    """It goes on by itself; `penstock status` says for what it waits; a stop that is asked for meanwhile is heard."""
    monkeypatch.setattr("penstock.connectors.sqlite.BUSY_SECONDS", 0.2)
    rows, db, checkpoint = tmp_path / "in", tmp_path / "a.db", tmp_path / "checkpoint"
    put(rows, "a.json", ("red", 1, 1), ("red", 2, 30))
    pipeline = ps.pipeline("waiting", totals(scores(rows)).write(ps.sqlite(db, table="totals")))
    with running(pipeline, checkpoint) as run:
        run.until(lambda one: one.total_panes == 1)
        other = locked(db)
        put(rows, "b.json", ("blue", 5, 31), ("blue", 2, 60))
        waits = run.until(lambda one: one.waiting is not None)
        assert "locked by another process" in waits.waiting
        assert standing(str(checkpoint)).waiting.what == waits.waiting
        time.sleep(1)
        assert run.told[-1].waiting is not None
        other.rollback()
        after = run.until(lambda one: one.waiting is None and one.total_panes == 3)
        assert after.batch > waits.batch
        assert standing(str(checkpoint)).waiting is None
        other.execute("BEGIN EXCLUSIVE")
        put(rows, "c.json", ("red", 4, 61), ("red", 1, 90))
        run.until(lambda one: one.waiting is not None and one.batch >= after.batch)
        begun = time.monotonic()
        ended = run.handle.stop()
        assert time.monotonic() - begun < 20
        assert ended.reason == "stopped"
    other.close()
    assert answers(db) == [("blue", 5), ("red", 1), ("red", 2)]
    pipeline.run(checkpoint=str(checkpoint), until="caught_up", spark=spark)
    assert answers(db) == [("blue", 2), ("blue", 5), ("red", 1), ("red", 2), ("red", 4)]


def test_12_a_slow_sink_slows_the_source_and_shows_its_share(spark, tmp_path):
    """Two milliseconds a row, two seconds a batch: the source learns to take about a thousand rows."""
    taken = []

    def slowly(frame, batch):
        rows = frame.count()
        taken.append(rows)
        time.sleep(rows / 500)

    source = ps.game_scores(events=40_000, rate=1_000_000, keys=40_000, disorder="0")
    each = (
        source.event_time("at", watermark=ps.bounded("0 seconds")).key_by("user").window(ps.tumbling("1 second"))
        .trigger(ps.at_watermark(early=ps.count(1))).discarding().aggregate(points=ps.sum("points"))
    )  # fmt: skip
    pipeline = ps.pipeline("slow", each.write(ps.foreach_batch(slowly)), batch_target="2 seconds", batch_rows=5_000,
                           delivery="at_least_once")  # fmt: skip
    with running(pipeline, tmp_path / "checkpoint", batch_every="0") as run:
        run.until(lambda one: one.totals.read >= 14_000)
        fed = [one for one in run.told if one.events]
        run.handle.stop()
    assert fed[0].events > 2_000
    assert fed[-1].events < 2_000
    assert fed[-1].seconds < 4
    assert fed[-1].shares["sinks"] > 0.5
    assert abs(sum(fed[-1].shares.values()) - 1) < 1e-6
