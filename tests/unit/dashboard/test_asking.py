"""Does the dashboard say why as `penstock why` does, and what its answer is made from?"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from urllib.parse import urlencode

import pytest

from penstock.api.loader import load
from penstock.cli.main import main
from penstock.cli.ui import pipeline_of
from penstock.dashboard.summary import KEPT, PLAYED, asked_why
from penstock.errors import PenstockError
from penstock.storage.local import LocalStore
from penstock.testing.recording import play
from penstock.types.timestamps import parse

PIPELINE = """
import penstock as ps

scores = ps.directory("scores", schema="team string, game long, points long, at timestamp", name="scores")
timed = scores.event_time("at", watermark=ps.bounded("20 seconds"))
windows = timed.key_by("team", "game").window(ps.tumbling("1 minute"), lateness="1 minute")
totals = windows.accumulating().aggregate(points=ps.sum("points"))
team_scores = ps.pipeline("team-scores", totals.write(ps.memory("totals")))
"""
START, END = parse("2026-05-01T12:00:00Z"), parse("2026-05-01T12:01:00Z")
PANE = {"stage": 0, "key": "red · 7", "start": START, "end": END}


@pytest.fixture
def game(tmp_path, monkeypatch):
    """A run that was played in this folder: its third event is in time, its fifth is late."""
    monkeypatch.chdir(tmp_path)
    Path("team_scores.py").write_text(PIPELINE)
    Path("scores").mkdir()
    plays = [(3, "12:00:10"), (4, "12:01:30"), (5, "12:00:40"), (1, "12:03:00"), (9, "12:00:30")]
    for number, (points, at) in enumerate(plays):
        row = {"team": "red", "game": 7, "points": points, "at": f"2026-05-01T{at}Z"}
        Path(f"scores/{number}.json").write_text(json.dumps(row) + "\n")
    begin = parse("2026-05-01T12:03:00Z")
    play(load("team_scores.py"), "checkpoint", [begin + second * 1_000_000 for second in range(5)], batch_rows=1)
    return LocalStore("checkpoint")


def why(store, pipeline=None, **asked):
    return asked_why(store, f"/why.json?{urlencode(asked)}", pipeline)


def said(capsys, *arguments: str) -> list[str]:
    assert main(["why", *arguments]) == 0
    return capsys.readouterr().out.splitlines()


def test_with_the_pipeline_it_says_what_the_command_says(game, capsys):
    pipeline, _ = pipeline_of(["team_scores.py", "checkpoint"])
    window = ["--key", "red", "--key", "7", "--window", "2026-05-01 12:00:00 to 2026-05-01 12:01:00"]
    told = why(game, pipeline, **PANE)
    assert told == {"made_of": PLAYED, "lines": said(capsys, "team_scores.py", "checkpoint", *window)}
    assert any("on time: W had reached the end" in line for line in told["lines"])
    late = f"scores/0/{4 << 36}"
    told = why(game, pipeline, event=late)
    assert told == {"made_of": PLAYED, "lines": said(capsys, "team_scores.py", "checkpoint", "--event", late)}
    assert any("what would have saved it" in line for line in told["lines"])


def test_without_it_a_sample_is_told_and_called_one(game, capsys):
    told = why(game, **PANE)
    window = ["--key", "red", "--key", "7", "--window", "2026-05-01 12:00:00"]
    assert told == {"made_of": KEPT, "lines": said(capsys, "checkpoint", *window)}


def test_what_cannot_be_read_again_is_told_from_the_sample_with_the_reason(game):
    shutil.rmtree("scores")
    told = why(game, load("team_scores.py"), **PANE)
    assert told["made_of"].startswith(
        "From what was kept while it ran, which is a sample: the events of batch 0 cannot"
    )
    assert told["lines"] == why(game, **PANE)["lines"]


@pytest.mark.parametrize("stage", ["7", "x", "-1"])
def test_a_stage_that_is_not_there_is_told_in_three_parts(game, stage):
    told = why(game, load("team_scores.py"), **{**PANE, "stage": stage, "key": "blue"})
    assert set(told["error"]) == {"what", "why", "instead"}


def test_a_file_of_another_pipeline_is_refused_before_anything_is_served(game):
    Path("other.py").write_text(PIPELINE.replace('"team-scores"', '"others"'))
    with pytest.raises(PenstockError):
        pipeline_of(["other.py", "checkpoint"])
    with pytest.raises(PenstockError, match="3 places"):
        pipeline_of(["team_scores.py", "checkpoint", "more"])
    assert pipeline_of(["checkpoint"]) == (None, "checkpoint")
