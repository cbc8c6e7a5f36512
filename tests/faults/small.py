"""A pipeline of three batches for tests that restart it, and how its outputs are read."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import penstock as ps
from penstock.api.pipeline import Pipeline, pipeline
from penstock.api.windowed import Panes
from penstock.connectors.files.sink import files, read_files
from penstock.connectors.game_scores import Faults, game_scores
from penstock.connectors.sqlite import sqlite

ROWS = 900
BATCH_ROWS = ROWS // 3


def panes() -> Panes:
    """Team scores; every pane by count or watermark, none by the wall clock."""
    scores = game_scores(rate=100, keys=20, teams=4, disorder="200 milliseconds", realtime=False, events=ROWS,
                         faults=Faults(stragglers=0.05, straggler_delay="3 seconds"))  # fmt: skip
    return (
        scores.event_time("at", watermark=ps.bounded("1 second"))
        .key_by("team")
        .window(ps.tumbling("2 seconds"), lateness="1 minute")
        .trigger(ps.at_watermark(early=ps.count(10), late=ps.count(1)))
        .accumulating()
        .aggregate(points=ps.sum("points"), plays=ps.rows())
    )  # fmt: skip


def small(folder: Path | str, name: str = "small", delivery: Any = "exactly_once") -> Pipeline:
    """The panes to SQLite with history and to files."""
    totals = panes()
    outputs = (
        totals.write(sqlite(f"{folder}/a.db", table="totals", history=True)),
        totals.write(files(f"{folder}/files")),
    )
    return pipeline(name, *outputs, delivery=delivery, shards=2, batch_rows=BATCH_ROWS)


def arriving(folder: Path | str) -> Pipeline:
    """The rows of files as they come to a directory, a file a batch."""
    scores = ps.directory(f"{folder}/in", schema="team string, points long, at timestamp", name="scores")
    timed = scores.event_time("at", watermark=ps.ascending(idle=None)).key_by("team")
    totals = timed.window(ps.tumbling("10 seconds")).aggregate(points=ps.sum("points"))
    return pipeline("arriving", totals.write(sqlite(f"{folder}/a.db", table="totals")), shards=2, batch_rows=1)


def caught(made: Pipeline, folder: Path | str) -> Any:
    """Run a pipeline until it has caught up."""
    return made.run(checkpoint=f"{folder}/checkpoint", batch_every="0", until="caught_up")


def run(folder: Path | str, **changed: Any) -> Any:
    """Run the small pipeline until it has caught up."""
    return caught(small(folder, **changed), folder)


def every_pane(folder: Path | str) -> list[tuple[Any, ...]]:
    """What SQLite has in its history; the files must hold the same."""
    connection = sqlite3.connect(f"{folder}/a.db")
    rows = connection.execute("SELECT team, points, plays, pane_index, pane_timing FROM totals_history").fetchall()
    connection.close()
    table = read_files(f"{folder}/files").to_pylist()
    names = ("team", "points", "plays", "pane_index", "pane_timing")
    assert sorted(rows) == sorted(tuple(row[name] for name in names) for row in table)
    return sorted(rows)


def last(folder: Path, kind: str) -> Path:
    """The last file of a folder of the checkpoint."""
    found = [one for one in (folder / "checkpoint" / kind).iterdir() if one.name.isdigit()]
    return max(found, key=lambda one: int(one.name))
