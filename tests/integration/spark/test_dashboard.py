"""The picture cannot lie: what the dashboard serves of a run is what the run has written to its sink."""

from __future__ import annotations

import json
import sqlite3
import time
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import penstock as ps
from penstock.dashboard.server import Dashboard
from penstock.types.timestamps import from_datetime
from tests.integration.spark.driving import caught_up
from tests.unit.dashboard.test_server import ask, news


@pytest.fixture(scope="module")
def game(spark, tmp_path_factory) -> tuple[Path, Dashboard]:
    """A game with stragglers and bad rows, of which every pane is few enough to be kept; and its dashboard."""
    folder = tmp_path_factory.mktemp("game")
    made = ps.game_scores(rate=500, keys=30, teams=3, partitions=2, events=4_000, realtime=False,
                          start="2026-05-01T12:00:00", faults=ps.Faults(stragglers=0.02, bad=0.01))  # fmt: skip
    timed = made.event_time("at", watermark=ps.bounded("1 second", idle=None))
    windows = timed.key_by("team").window(ps.tumbling("2 seconds")).trigger(ps.at_watermark(early=ps.count(1)))
    sums = windows.accumulating().aggregate(points=ps.sum("points"), plays=ps.rows())
    pipeline = ps.pipeline(
        "game", sums.write(ps.sqlite(str(folder / "game.db"), table="totals", history=True)),
        sums.late.write(ps.sqlite(str(folder / "late.db"), table="late")),
        sums.quarantine.write(ps.sqlite(str(folder / "bad.db"), table="bad")), batch_rows=500,
    )  # fmt: skip
    caught_up(pipeline, folder / "checkpoint")
    server = Dashboard(str(folder / "checkpoint")).start()
    yield folder, server
    server.stop()


def rows(path: Path, query: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(query).fetchall()


def served(server: Dashboard) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    deadline = time.monotonic() + 60
    while not server.followed.standing and time.monotonic() < deadline:
        time.sleep(0.05)
    last = server.followed.recent[-1].batch
    wanted = f'{{"batch":{last},"now"'.encode()
    told = news(server, lambda read: wanted in read.partition(b"event: batches")[2])
    standing = [data for kind, data, _ in told if kind == "standing"][-1]
    return standing, [one for kind, data, _ in told if kind == "batches" for one in data]


def test_every_pane_that_is_served_is_the_row_of_the_sink(game):
    folder, server = game
    _, batches = served(server)
    query = "SELECT team, window_start, window_end, pane_index, pane_timing, points, plays FROM totals_history"
    held = {(team, _at(start), _at(end), index): (timing, f"points {points}, plays {plays}")
            for team, start, end, index, timing, points, plays in rows(folder / "game.db", query)}  # fmt: skip
    shown = {(key, start, end, index): (timing, text)
             for one in batches for _, key, start, end, index, timing, _, _, text in one["panes"]}  # fmt: skip
    assert len(shown) > 10
    assert shown == held


def test_the_numbers_that_are_served_are_counts_of_the_sinks(game):
    folder, server = game
    standing, batches = served(server)
    late, bad = rows(folder / "late.db", "SELECT * FROM late"), rows(folder / "bad.db", "SELECT * FROM bad")
    panes = rows(folder / "game.db", "SELECT count(*) FROM totals_history")[0][0]
    seen = standing["overview"]
    assert (seen["late"], seen["quarantined"], seen["panes"]) == (len(late), len(bad), panes)
    assert len(late) > 0
    assert len(bad) > 0
    assert (standing["state"], standing["name"], seen["events"]) == ("stopped", "game", 4_000)
    assert sum(one["counts"]["read"] for one in batches) == 4_000
    ledger = dict(rows(folder / "game.db", "SELECT sink, batch FROM penstock_ledger"))
    assert ledger == {"game/panes/sqlite:totals": batches[-1]["sinks"]["game/panes/sqlite:totals"]}
    assert standing["committed"] == batches[-1]["batch"] == standing["batch"]


def test_the_watermark_that_is_served_is_the_clock_that_was_written(game):
    _, server = game
    standing, batches = served(server)
    assert standing["watermark"] == batches[-1]["watermark"]
    assert [one["watermarks"][0] for one in batches[1:]] == [one["watermark"] for one in batches[:-1]]


def test_the_plan_was_written_when_the_run_began(game):
    _, server = game
    graph = json.loads(ask(server, "/plan.json")[2])
    assert {one["kind"] for one in graph["nodes"]} == {"source", "stage", "output"}
    assert ["where", "tumbling windows of 2 seconds, no corrections after completion"] in graph["nodes"][1]["says"]
    assert ["source:scores", "stage:0", ""] in graph["edges"]


def _at(text: str) -> int:
    return from_datetime(datetime.fromisoformat(text).replace(tzinfo=UTC))
