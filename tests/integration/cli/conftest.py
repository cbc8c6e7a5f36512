"""Pipelines in files, and the command as a function that gives exit code, stdout and stderr."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from penstock.cli.main import main

TOTALS = """
import penstock as ps

scores = ps.game_scores(rate=200, events=1_000, realtime=False, faults=ps.Faults(stragglers=0.02, bad=0.02))
timed = scores.event_time("at", watermark=ps.bounded("5 seconds"))
totals = timed.key_by("team").window(ps.tumbling("2 seconds")).aggregate(points=ps.sum("points"), plays=ps.rows())
"""
ONE = TOTALS + 'team_scores = ps.pipeline("team-scores", totals.write(ps.sqlite("scores.db", table="totals")))\n'
TWO = ONE + 'other = ps.pipeline("others", totals.write(ps.sqlite("others.db", table="totals")))\n'


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "spark: starts a JVM")


class Said(NamedTuple):
    """What a command said, and its exit code."""

    code: int
    out: str
    err: str


@pytest.fixture
def penstock(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Said]:
    """The command, called in an empty folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PENSTOCK_DEBUG", raising=False)
    monkeypatch.setenv("PYTHONPATH", "")

    def call(*arguments: str) -> Said:
        code = main(arguments)
        said = capsys.readouterr()
        return Said(code, said.out, said.err)

    return call
