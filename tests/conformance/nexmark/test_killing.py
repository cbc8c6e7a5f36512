"""Does the command that kills each query say what it found, and go on where it was stopped? Without Spark."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from examples.nexmark.queries import QUERIES
from tests.conformance.nexmark.killing import POINTS, Found, kill_of, main

RIGHT = Found("q5", "batch:end@3", 12, 40, 0, 0, 0, 0, ())


def kept(folder: Path, *all_found: Found) -> list[str]:
    """The words of a command that goes on after these were killed."""
    for one in all_found:
        (folder / one.query).mkdir(parents=True)
        (folder / one.query / "found.json").write_text(json.dumps(asdict(one)))
    return [*(one.query for one in all_found), "--resume", str(folder)]


def test_queries_that_were_killed_before_are_told_of(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(kept(tmp_path, RIGHT, replace(RIGHT, query="q7"))) == 0
    told = capsys.readouterr().out
    assert told.count("equal") == 2
    assert "2 queries killed: every answer is that of the reference" in told


@pytest.mark.parametrize("wrong", [{"lost": 1}, {"twice": 1}, {"torn": 1}, {"foreign": 1}, {"said": ("it hangs",)}])
def test_one_that_differs_is_named(wrong: dict[str, int], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(kept(tmp_path, replace(RIGHT, **wrong), replace(RIGHT, query="q7"))) == 1
    assert "NOT right: ['q5']" in capsys.readouterr().out


def test_every_point_has_its_turn() -> None:
    assert {kill_of(query).point for query in QUERIES} == {*POINTS}
    with pytest.raises(SystemExit):
        main(["q99"])
