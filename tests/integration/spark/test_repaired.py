"""Do repaired rows go through the pipeline exactly once, without moving its watermark?"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

import penstock as ps
from penstock.quarantine.read import quarantined
from penstock.quarantine.replay import Repaired, put as put_back
from penstock.storage.local import LocalStore
from tests.integration.spark.driving import caught_up, clock, put, put_text, running, scores

pytestmark = pytest.mark.spark
BROKEN = '{"team": "red", "points": "many", "at": "2026-01-01T00:00:02Z"}'


def of(folder: Path) -> ps.Pipeline:
    """Points by team in windows of ten seconds, which take corrections for a minute."""
    timed = scores(folder / "in").event_time("at", watermark=ps.ascending(idle=None)).key_by("team")
    windows = timed.window(ps.tumbling("10 seconds"), lateness="1 minute").trigger(ps.at_watermark(late=ps.count(1)))
    totals = windows.accumulating().aggregate(points=ps.sum("points"))
    return ps.pipeline("mended", totals.write(ps.sqlite(folder / "a.db", table="totals", history=True)),
                       totals.late.write(ps.files(folder / "late")))  # fmt: skip


def history(folder: Path) -> list[tuple[str, int]]:
    """Every pane in the order it was shown."""
    with closing(sqlite3.connect(folder / "a.db")) as connection:
        return connection.execute("SELECT team, points FROM totals_history ORDER BY rowid").fetchall()


def test_repaired_rows_enter_once_and_move_no_watermark(spark, tmp_path):
    checkpoint = tmp_path / "checkpoint"
    store = LocalStore(str(checkpoint))
    put_text(tmp_path / "in", "a.json", f"{BROKEN}\nno JSON\n")
    put(tmp_path / "in", "b.json", ("red", 1, 1), ("blue", 2, 12))
    told = caught_up(of(tmp_path), checkpoint)
    assert told[-1].totals.quarantined == 2
    before = told[-1].watermark
    broken, worse = quarantined(store, None)
    assert (broken.partition, worse.raw) == ("0", "no JSON")
    new = put_back(store, [Repaired(broken.place, {"team": "red", "points": 4, "at": clock(2)})])
    assert len(new) == 1
    told = caught_up(of(tmp_path), checkpoint)
    assert told[-1].watermark == before
    assert told[-1].totals.read == 5
    assert history(tmp_path) == [("red", 1), ("red", 5)], "a correction of a window that was shown"
    _replay_last(checkpoint)
    told = caught_up(of(tmp_path), checkpoint)
    assert history(tmp_path) == [("red", 1), ("red", 5)]
    assert told[-1].totals.read == 5, "a batch that is run again reads the same, and counts once"
    # While it runs, too: the second row comes when the watermark has passed what its window takes.
    with running(of(tmp_path), checkpoint) as run:
        run.batches(1)
        put(tmp_path / "in", "c.json", ("blue", 2, 200))
        run.until(lambda one: one.watermark > before)
        put_back(store, [Repaired(worse.place, {"team": "red", "points": 8, "at": clock(3)})])
        run.until(lambda one: one.totals.late == 1)
    (late,) = ps.read_files(tmp_path / "late").to_pylist()
    assert (late["points"], late["late_partition"]) == (8, "scores/repaired")


def _replay_last(checkpoint: Path) -> None:
    """Let Spark forget the empty batch at the end, and that the one before it, with the repaired row, was committed."""
    last = max(int(one.name) for one in (checkpoint / "commits").iterdir() if one.name.isdigit())
    for name in (f"offsets/{last}", f"commits/{last}", f"commits/{last - 1}", f"penstock/clock/{last + 1:012d}"):
        (checkpoint / name).unlink()
