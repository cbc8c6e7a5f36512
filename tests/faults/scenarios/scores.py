"""The pipeline that is killed: game scores with stragglers and bad rows, to every sink at once.

`python -m tests.faults.scenarios.scores FOLDER` runs it there, from wherever it was killed, until all is written. No
pane depends on the wall clock: whatever dies, it must write what it writes undisturbed.
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import penstock as ps
from penstock.api.pipeline import Pipeline, pipeline
from penstock.api.stream import Stream
from penstock.api.windowed import Panes
from penstock.connectors.duckdb import duckdb
from penstock.connectors.files.sink import files
from penstock.connectors.foreach_batch import foreach_batch
from penstock.connectors.game_scores import Faults, game_scores
from penstock.connectors.sqlite import sqlite
from penstock.testing.crash.running import run_out

NAME = "scores"
BATCH_ROWS = 1_000
BATCHES = 10
WINDOW, DELAY, LATENESS = "2 seconds", "1 second", "2 seconds"
SINKS = tuple(f"{NAME}/{one}" for one in (
    "panes/sqlite:totals", "panes/duckdb:totals", "panes/files:parquet", "panes/files:json", "panes/foreachbatch",
    "late/files:late", "quarantine/sqlite:quarantined",
))  # fmt: skip


@dataclass(frozen=True, slots=True)
class Append:
    """The user's own function: a file for each batch, which is not written a second time."""

    folder: str

    def __call__(self, rows: Any, batch: Any) -> None:
        path = Path(self.folder) / f"{batch.batch:06d}.json"
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            aside = path.with_suffix(".aside")
            # As numbers, for a Row would tell a time in the zone of this machine.
            held = rows.selectExpr("* except (window_start, window_end)", "unix_micros(window_start) as window_start",
                                   "unix_micros(window_end) as window_end")  # fmt: skip
            aside.write_text(json.dumps([row.asDict() for row in held.collect()]))
            os.rename(aside, path)


def scores() -> Stream:
    """The source, the same whenever it is read."""
    wrong = Faults(stragglers=0.05, straggler_delay="5 seconds", bad=0.01)
    return game_scores(rate=1_000, keys=60, teams=6, disorder="300 milliseconds", faults=wrong, realtime=False,
                       events=BATCH_ROWS * BATCHES)  # fmt: skip


def totals() -> Panes:
    """Early panes by count, on time, and one for each late row."""
    return (
        scores().event_time("at", watermark=ps.bounded(DELAY))
        .key_by("team")
        .window(ps.tumbling(WINDOW), lateness=LATENESS)
        .trigger(ps.at_watermark(early=ps.count(40), late=ps.count(1)))
        .accumulating()
        .aggregate(points=ps.sum("points"), plays=ps.rows())
    )  # fmt: skip


def made(folder: str, delivery: Any = "exactly_once") -> Pipeline:
    """The pipeline that writes all of it below a folder."""
    results = totals()
    return pipeline(
        NAME,
        results.write(sqlite(f"{folder}/a.db", table="totals", history=True)),
        results.write(duckdb(f"{folder}/a.duckdb", table="totals", history=True)),
        results.write(files(f"{folder}/parquet")),
        results.write(files(f"{folder}/json", format="json")),
        results.write(foreach_batch(Append(f"{folder}/function"))),
        results.late.write(files(f"{folder}/late")),
        results.quarantine.write(sqlite(f"{folder}/a.db", table="quarantined")),
        delivery=delivery, shards=2, batch_rows=BATCH_ROWS,
    )  # fmt: skip


def main(folder: str, delivery: str = "exactly_once") -> None:
    """Run until all is written."""
    run_out(made(folder, delivery), folder)


if __name__ == "__main__":
    main(*sys.argv[1:])
