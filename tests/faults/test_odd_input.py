"""Rows 6 and 26: nothing to read, a key that is null, times beyond all sense; and row 10, a disk that is full."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import penstock as ps
from penstock.api.pipeline import Pipeline, pipeline
from penstock.connectors.files.source import directory
from penstock.connectors.sqlite import sqlite
from penstock.errors import PenstockError
from tests.faults.small import every_pane, run, small


def by_team(folder: Path) -> Pipeline:
    """Scores from files, with what cannot be used beside them."""
    scores = directory(f"{folder}/in", schema="team string, points long, at timestamp")
    totals = (
        scores.event_time("at", watermark=ps.bounded("1 second")).key_by("team").window(ps.tumbling("1 minute"))
        .trigger(ps.at_watermark(early=ps.count(1))).accumulating().aggregate(points=ps.sum("points"))
    )  # fmt: skip
    return pipeline("odd", totals.write(sqlite(f"{folder}/a.db", table="totals")),
                    totals.quarantine.write(sqlite(f"{folder}/a.db", table="bad")), shards=2)  # fmt: skip


def drained(folder: Path) -> Any:
    """Run until the files are read; the last that was told."""
    seen: list[Any] = []
    by_team(folder).run(checkpoint=f"{folder}/checkpoint", batch_every="0", until="caught_up", on_progress=seen.append)
    return seen[-1]


def test_rows_6_and_26_nothing_and_nonsense(spark, tmp_path):
    """An empty source, then an empty file, then null keys, events of 2238, 1970 and the year 0, one without a time."""
    (tmp_path / "in").mkdir()
    assert drained(tmp_path).totals.read == 0
    (tmp_path / "in" / "0.json").write_text("")
    rows = [
        {"team": None, "points": 1, "at": "2026-01-01T00:00:10Z"},
        {"team": "red", "points": 2, "at": "2026-01-01T00:00:11Z"},
        {"team": "red", "points": 4, "at": "2238-01-01T00:00:00Z"},
        {"team": "red", "points": 8, "at": None},
        {"team": None, "points": 16, "at": "2026-01-01T00:00:12Z"},
        {"team": "", "points": 32, "at": "2026-01-01T00:00:13Z"},
        {"team": "epoch", "points": 64, "at": "1970-01-01T00:00:00Z"},
        {"team": "red", "points": 128, "at": "0000-01-01T00:00:00Z"},
    ]
    (tmp_path / "in" / "1.json").write_text("".join(json.dumps(row) + "\n" for row in rows))
    last = drained(tmp_path)
    assert (last.totals.read, last.totals.quarantined, last.totals.late) == (8, 3, 0)
    connection = sqlite3.connect(tmp_path / "a.db")
    found = dict(connection.execute("SELECT team, points FROM totals"))
    reasons = [reason for (reason,) in connection.execute('SELECT reason FROM bad ORDER BY "offset"')]
    connection.close()
    assert found == {None: 17, "red": 2, "": 32, "epoch": 64}
    assert len(reasons) == 3
    assert last.watermark < 1_800_000_000_000_000, "an event of 2238 moves no watermark"


@pytest.fixture
def tiny(tmp_path) -> Iterator[Path]:
    """A disk of four megabytes."""
    folder = tmp_path / "tiny"
    folder.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(folder)], capture_output=True).returncode:
        pytest.skip("no right to mount a small disk")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


@pytest.mark.parametrize("full", ["checkpoint", "sink"])
def test_row_10_a_full_disk_stops_it_and_it_goes_on(finished, tiny, tmp_path, full):
    """Full under the checkpoint, or under the sinks: a sentence, nothing half committed, and it goes on."""
    checkpoint = tiny / "checkpoint" if full == "checkpoint" else tmp_path / "checkpoint"
    outputs = tmp_path if full == "checkpoint" else tiny

    def fill(progress: Any) -> None:
        if progress.batch == 0:
            free = shutil.disk_usage(tiny).free
            with open(tiny / "filler", "wb") as file:
                file.write(b"\0" * (free - 4096))

    with pytest.raises(PenstockError, match=r"full|written") as raised:
        small(outputs).run(checkpoint=str(checkpoint), batch_every="0", until="caught_up", on_progress=fill)
    assert "free some space and start again" in str(raised.value)
    os.unlink(tiny / "filler")
    small(outputs).run(checkpoint=str(checkpoint), batch_every="0", until="caught_up")
    assert every_pane(outputs) == every_pane(finished)
    if full == "sink":
        run_again = small(outputs).run(checkpoint=str(checkpoint), batch_every="0", until="caught_up")
        assert "caught up" in str(run_again)


def test_a_run_goes_on_after_a_clean_end(held):
    """Nothing is read or written twice by a run that finds nothing new."""
    before = every_pane(held)
    run(held)
    assert every_pane(held) == before
