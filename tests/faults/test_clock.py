"""Rows 7 and 8: the wall clock jumps, a partition is silent, a run is stopped for an hour; nothing is lost to it."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest

import penstock as ps
from penstock.api.pipeline import Pipeline, pipeline
from penstock.api.progress import Progress
from penstock.connectors.game_scores import Faults, game_scores
from penstock.connectors.sqlite import sqlite

HOUR = 3_600_000_000


@pytest.fixture
def shift(monkeypatch, tmp_path) -> Any:
    """Moves the wall clock of the runs to come, in microseconds."""
    file = tmp_path / "shift"
    monkeypatch.setenv("PENSTOCK_CLOCK_SHIFT", str(file))
    file.write_text("0")
    return lambda micros: file.write_text(str(micros))


def run(made: Pipeline, folder: Path) -> list[Progress]:
    """Run it until it has caught up; how each batch stood."""
    seen: list[Progress] = []
    made.run(checkpoint=f"{folder}/checkpoint", batch_every="0", until="caught_up", on_progress=seen.append)
    return seen


def counted(folder: Path) -> int:
    """How many rows the current answers are made of."""
    connection = sqlite3.connect(folder / "a.db")
    ((plays,),) = connection.execute("SELECT coalesce(sum(plays), 0) FROM totals").fetchall()
    connection.close()
    return int(plays)


def test_row_8_the_clock_jumps_back(spark, shift, tmp_path):
    """Processing time never goes back: early panes wait, and no row is lost or counted twice."""

    def made(events: int) -> Pipeline:
        scores = game_scores(rate=100, teams=4, disorder="0", realtime=False, events=events)
        totals = (
            scores.event_time("at", watermark=ps.bounded("1 second")).key_by("team")
            .window(ps.tumbling("1 hour")).trigger(ps.at_watermark(early=ps.every("1 millisecond")))
            .accumulating().aggregate(plays=ps.rows())
        )  # fmt: skip
        return pipeline("jumps", totals.write(sqlite(f"{tmp_path}/a.db", table="totals")), batch_rows=100, shards=2)

    shift(HOUR)
    before = run(made(200), tmp_path)
    shift(-HOUR)
    during = run(made(400), tmp_path)
    shift(2 * HOUR)
    after = run(made(500), tmp_path)
    clocks = [one.now for one in (*before, *during, *after)]
    assert clocks == sorted(clocks)
    assert len({one.now for one in during}) == 1, "the clock stands until the wall has come to it"
    assert counted(tmp_path) == 500
    assert after[-1].totals.read == 500


def test_row_7_stopped_for_an_hour_nothing_is_lost_to_idle(spark, shift, tmp_path):
    """A run that comes back an hour behind, over a partition that was silent for half of it: no row is late."""
    scores = game_scores(rate=20, teams=4, disorder="0", events=40_000,
                         faults=Faults(silent={1: ("10 seconds", "16 minutes")}))  # fmt: skip
    totals = (
        scores.event_time("at", watermark=ps.bounded("1 second", idle="10 seconds")).key_by("team")
        .window(ps.tumbling("1 minute")).trigger(ps.at_watermark(early=ps.count(1))).accumulating()
        .aggregate(plays=ps.rows())
    )  # fmt: skip
    made = pipeline("hour", totals.write(sqlite(f"{tmp_path}/a.db", table="totals")), batch_rows=10_000, shards=2)
    run(made, tmp_path)
    shift(HOUR)
    seen = run(made, tmp_path)
    assert seen[-1].totals.read == 40_000
    assert seen[-1].totals.late == 0
    assert counted(tmp_path) == 40_000
