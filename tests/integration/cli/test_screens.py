"""Does what is shown while a pipeline runs fit the screen, and say what the numbers are?"""

from __future__ import annotations

import io
import json
import logging
import os
import signal
import sqlite3
import sys
import time
from dataclasses import replace
from types import SimpleNamespace

import pytest
from rich.console import Console

from penstock.api.progress import Progress
from penstock.cli import run
from penstock.cli.demo.answers import Answer, current, story
from penstock.cli.demo.pipeline_file import PIPELINE, fresh
from penstock.cli.demo.view import changes, table
from penstock.cli.progress import JsonLines, Lines, Rate, farewell, line
from penstock.cli.progress_panel import LivePanel
from penstock.errors import PenstockError
from penstock.humanize import clock, many, span, stamp
from penstock.runtime.batch import Counts
from penstock.spark.handle import Ended
from penstock.types.timestamps import MAX_TIME, MIN_TIME, parse

NOON = parse("2026-01-01T12:00:00Z")
ONE = Progress(
    batch=7, now=NOON, watermark=NOON - 5_200_000, events=2_000, panes=4, late=1, quarantined=0, seconds=0.5,
    elapsed=0.5, totals=Counts(read=123_456, late=12, quarantined=3), total_panes=80, open_windows=24,
    laggard="scores/1", shares={"read": 0.2, "step": 0.3, "sinks": 0.25, "waiting": 0.25},
)  # fmt: skip


def test_times_are_short():
    assert [clock(at) for at in (NOON, MIN_TIME, MAX_TIME, None)] == [
        "2026-01-01 12:00:00", "none yet", "the end", "none yet",
    ]  # fmt: skip
    assert [stamp(at) for at in (NOON, MAX_TIME, None)] == ["2026-01-01T12:00:00Z", None, None]
    assert [span(1_000_000 * s) for s in (0.5, 5.24, 59, 90, 3600, 90_000)] == [
        "0.50 s", "5.2 s", "59 s", "1 min 30 s", "1 h", "1 d 1 h",
    ]  # fmt: skip
    assert [many(n, "row") for n in (0, 1, 1_000)] == ["0 rows", "1 row", "1,000 rows"]


def test_a_line_says_everything_that_is_asked_of_progress():
    assert line(ONE, 4_000) == (
        "batch 7: 123,456 events in, 4,000/s; W 2026-01-01 11:59:54, 5.2 s behind, slowest scores/1; 24 windows open; "
        "80 panes, 12 late, 3 quarantined; 0.50 s a batch: 20% read, 30% step, 25% sinks, 25% waiting"
    )
    assert "quarantined; lag 1,200; 0.50 s a batch" in line(replace(ONE, lag=1_200), 0)
    assert "W none yet; 24" in line(replace(ONE, watermark=MIN_TIME), 0)
    assert "; 24 windows open; " in line(replace(ONE, held={"1: windows": 24}), 0)
    assert "; 24 rows held; " in line(replace(ONE, held={"1: join": 20, "2: windows": 4}), 0)


def test_the_rate_is_that_of_the_last_seconds():
    rate = Rate()
    assert rate.with_batch(replace(ONE, events=100_000, elapsed=10.0)) == 10_000
    for _ in range(10):
        last = rate.with_batch(replace(ONE, events=1_000, elapsed=1.0))
    assert last == 1_000


def test_lines_are_no_more_than_one_in_two_seconds_and_the_last_is_told():
    out = io.StringIO()
    lines = Lines("scores", "checkpoints/scores", out, told_at=-10.0)
    lines.begin()
    for batch in range(5):
        lines.progress(replace(ONE, batch=batch))
    lines.stopping()
    lines.end(Ended("stopped", 5, ONE))
    said = out.getvalue().splitlines()
    assert [one.split(":")[0] for one in said] == ["scores", "batch 0", "scores", "batch 4", "scores"]
    assert said[-1].startswith("scores: stopped after batch 4, watermark 2026-01-01 11:59:54; nothing is half written")


def test_json_is_one_object_a_batch_and_one_at_the_end():
    out = io.StringIO()
    lines = JsonLines("scores", out)
    lines.progress(ONE)
    lines.end(Ended("ended", 8, replace(ONE, watermark=MAX_TIME)))
    batch, end = (json.loads(text) for text in out.getvalue().splitlines())
    assert (batch["type"], batch["batch"], batch["events_per_second"], batch["behind"]) == (
        "batch",
        7,
        4_000.0,
        5_200_000,
    )
    assert batch["watermark_at"] == "2026-01-01T11:59:54.800000Z"
    assert (end["type"], end["reason"], end["batch"], end["watermark_at"]) == ("ended", "ended", 7, None)


@pytest.mark.parametrize("reason", ["stopped", "caught up", "ended"])
def test_the_end_says_where(reason):
    assert farewell("scores", Ended(reason, 8, ONE)).startswith(f"scores: {reason} after batch 7, watermark ")
    assert farewell("scores", Ended(reason, 0, None)) == f"scores: {reason} before the first batch"


LATER = "2 files came to scores/ after its end, unread: a.json, b.json; go on without it"


def test_what_came_after_the_end_is_told_by_whoever_tells_the_end():
    ended = Ended("caught up", 8, ONE, (LATER,))
    first, second = farewell("scores", ended).splitlines()
    assert "everything up to the end is read; the same command goes on from there" in first
    assert second == f"scores: {LATER}"
    out = io.StringIO()
    JsonLines("scores", out).end(ended)
    assert json.loads(out.getvalue())["unread"] == [LATER]
    panel = LivePanel("scores", "checkpoints/scores", Console(width=120, file=io.StringIO()))
    panel.end(ended)
    assert f"scores: {LATER}" in panel.console.file.getvalue()
    assert str(ended).endswith(f"; {LATER}")
    assert "that was there is read" in farewell("scores", Ended("caught up", 8, ONE))


@pytest.mark.parametrize("width", [80, 120])
def test_the_panel_and_the_answers_fit_a_small_terminal(width):
    console = Console(width=width, height=24, file=io.StringIO(), force_terminal=True, color_system=None)
    panel = LivePanel("team-scores", "checkpoints/team-scores", console, below=table(ANSWERS))
    panel.progress(ONE)
    console.print(panel.shown())
    shown = console.file.getvalue().splitlines()
    assert len(shown) <= 22
    assert max(map(len, shown)) <= width
    text = "\n".join(shown)
    for said in ("123,456", "4,000 a second", "5.2 s behind the clock, slowest scores/1", "24 windows open", "80 panes",
                 "0.50 s", "41,234 corrected", "9,876 early", "on time", "Ctrl-C"):  # fmt: skip
        assert said in text


ANSWERS = [
    Answer(f"2026-01-01 12:00:{second}", team, points, timing, 2)
    for second, points, timing in (("00", 41_234, "late"), ("10", 40_000, "on_time"), ("20", 9_876, "early"))
    for team in ("amber", "azure", "coral", "ebony", "hazel")
]


def test_plain_lines_tell_what_is_new_complete_or_corrected_and_not_every_guess():
    early = Answer("2026-01-01 12:00:00", "amber", 10, "early", 0)
    assert changes({}, [early]) == ["window 12:00:00, early: amber 10"]
    before = {("2026-01-01 12:00:00", "amber"): early}
    assert changes(before, [replace(early, points=20, index=1)]) == []
    assert changes(before, [replace(early, points=30, timing="on_time", index=2)]) == [
        "window 12:00:00, on time: amber 30"
    ]
    late = replace(early, points=31, timing="late", index=3)
    assert changes({("2026-01-01 12:00:00", "amber"): late}, [replace(late, points=32, index=4)]) == [
        "window 12:00:00, corrected: amber 32"
    ]


def test_the_story_is_counted_from_the_history(tmp_path):
    database = tmp_path / "scores.db"
    assert current(database, 3) == []
    with sqlite3.connect(database) as connection:
        columns = "team, window_start, points, pane_timing, pane_index"
        connection.execute(f"CREATE TABLE team_scores ({columns})")
        connection.execute(f"CREATE TABLE team_scores_history ({columns})")
        rows = [("a", "12:00", 5, "early", 0), ("a", "12:00", 9, "on_time", 1), ("a", "12:00", 11, "late", 2),
                ("b", "12:00", 7, "early", 0)]  # fmt: skip
        connection.executemany("INSERT INTO team_scores_history VALUES (?, ?, ?, ?, ?)", rows)
        connection.executemany("INSERT INTO team_scores VALUES (?, ?, ?, ?, ?)", rows[2:])
    connection.close()
    assert [(one.team, one.points, one.timing) for one in current(database, 3)] == [
        ("a", 11, "late"),
        ("b", 7, "early"),
    ]
    told = story(database)
    assert (told.windows, told.early, told.early_panes, told.complete, told.corrected) == (2, 2, 2, 1, 1)
    assert told.largest is not None
    assert (told.largest.team, told.largest.before, told.largest.after, told.largest.times) == ("a", 9, 11, 1)


def test_the_demo_begins_anew_and_touches_nothing_but_a_demo(tmp_path):
    folder = tmp_path / "demo"
    file = fresh(folder)
    assert file.read_text() == PIPELINE.replace("@folder@", folder.as_posix())
    (folder / "late").mkdir()
    (folder / "late" / "rows").write_text("x")
    fresh(folder)
    assert not (folder / "late").exists()
    (folder / "thesis.txt").write_text("mine")
    with pytest.raises(PenstockError, match=r"thesis\.txt"):
        fresh(folder)
    assert (folder / "thesis.txt").exists()


def test_ctrl_c_before_the_first_batch_is_one_sentence(monkeypatch, capsys, caplog):
    """Interrupted while it talks to the JVM, py4j logs a traceback and raises the interrupt again."""

    def interrupted(*_):
        try:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(5)
        except KeyboardInterrupt:
            logging.exception("KeyboardInterrupt while sending command.")
            raise

    monkeypatch.setattr(run, "_ended", interrupted)
    assert run.watched(SimpleNamespace(name="scores"), Lines("scores", "checkpoint", sys.stdout)) is None
    assert capsys.readouterr().out.endswith("scores: stopped before the first batch\n")
    assert caplog.records == []
    assert logging.getLogger().isEnabledFor(logging.ERROR), "others are heard again"
