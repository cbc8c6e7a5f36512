"""The command: on a stream, on a run with its pipeline, and on a record alone; for people and for machines."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from penstock.api.loader import load
from penstock.cli.main import main
from penstock.testing.recording import play
from penstock.types.timestamps import parse

PIPELINE = """
import penstock as ps

scores = ps.game_scores(rate=300, teams=3, keys=10, realtime=False, start="2026-05-01T12:00:00Z",
                        faults=ps.Faults(stragglers=0.02), name="scores")
timed = scores.event_time("at", watermark=ps.bounded("2 seconds", max_skew=None))
totals = timed.key_by("team").window(ps.tumbling("5 seconds")).aggregate(points=ps.sum("points"))
game = ps.pipeline("game", totals.write(ps.memory("advised")))
"""


@pytest.fixture
def advise(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    monkeypatch.chdir(tmp_path)
    Path("game.py").write_text(PIPELINE)
    begin = parse("2026-05-01T12:00:00Z")
    play(load("game.py"), "checkpoint", [begin + n * 1_000_000 for n in range(15)], batch_rows=300)

    def call(*words: str) -> tuple[int, str, str]:
        code = main(["advise", *words])
        said = capsys.readouterr()
        return code, said.out, said.err

    return call


def test_on_a_stream(advise: Any) -> None:
    code, out, _ = advise("game.py", "--rows", "3000")
    assert code == 0
    assert "game: tried on 3,0" in out
    for part in (
        "p99.9",
        "delay",
        "late",
        "answers after",
        "complete",
        "9 in 10",
        "held",
        "2 s ",
        " now",
        "not enough to tell how complete on-time panes are",
    ):
        assert part in out
    assert "a stream? Yes" in out


def test_on_a_run_and_on_its_record(advise: Any) -> None:
    exact = json.loads(advise("game.py", "checkpoint", "--json")[1])
    counted = json.loads(advise("checkpoint", "--json")[1])
    assert (exact["exact"], counted["exact"]) == (True, False)
    assert exact["events"] == counted["events"] == 15 * 300
    assert exact["lateness"] == counted["lateness"]
    # What was counted is the least that is complete, and the most that is late, with the same delay or a shorter one.
    for row in exact["rows"]:
        shorter = [one for one in counted["rows"] if one["delay"] <= row["delay"]][-1]
        assert row["late"] <= shorter["late"]
        assert row["complete"] is None or row["complete"] >= shorter["complete"]
    _, out, _ = advise("checkpoint")
    assert "late at most" in out
    assert "name the pipeline's file too, and each delay is tried" in out


SHORT = PIPELINE.replace("faults=", "disorder='1 second', faults=").replace("0.02", "0.02, straggler_delay='4 seconds'")


def test_goals_are_asked(advise: Any) -> None:
    Path("game.py").write_text(SHORT)
    asked = json.loads(advise("game.py", "--json", "--rows", "12000", "--late", "0.5", "--complete", "0.9")[1])
    assert asked["goals"] == {"complete": 0.9, "late": 0.5, "latency": None}
    assert asked["recommended"]["complete"] >= 0.9
    assert asked["recommended"]["unmet"] == []
    soon = ("--complete", "0.99", "--latency", "1 second")
    _, out, _ = advise("game.py", "--rows", "12000", *soon)
    assert "cannot be had together: 99.00 % complete takes ps.bounded(" in out
    assert "within 1 s it is " in out
    assert " of their window's rows, and come " in out
    assert " counted; left out: " in out


def test_machines_have_what_they_had_and_more(advise: Any) -> None:
    told = json.loads(advise("game.py", "checkpoint", "--json")[1])
    assert {"name", "exact", "events", "span", "current", "follows", "lateness", "partitions", "rows", "recommended",
            "verdict"} < set(told)  # fmt: skip
    assert {"delay", "late", "share", "after_end", "held", "now"} < set(told["rows"][0])
    told = json.loads(advise("checkpoint", "--json")[1])
    assert {"delay", "share", "lateness", "tail", "whole"} < set(told["recommended"])


@pytest.mark.parametrize(("goal", "parts"), [
    (("--complete", "99"), ("--complete is '99', which is not a share",
                            "the share of its rows that an on-time pane holds, from 0 to 1", "write --complete 0.99")),
    (("--complete", "99.5%"), ("is not a share", "from 0 to 1", "write --complete 0.995")),
    (("--complete", "-0.1"), ("--complete is '-0.1'", "from 0 to 1", "write --complete 0.99")),
    (("--complete", "most"), ("--complete is 'most'", "from 0 to 1", "write --complete 0.99")),
    (("--late", "2"), ("--late is '2', which is not a share", "the events that may be late, from 0 to 1",
                       "write --late 0.02")),
    (("--late", "nan"), ("--late is 'nan', which is not a share", "from 0 to 1", "write --late 0.001")),
    (("--latency", "5 lightyears"), ("--latency '5 lightyears' has the unknown unit 'lightyears'",
                                     "a number and a unit, from microseconds to weeks", "known: ")),
    (("--latency", "-5 seconds"), ("--latency is '-5 seconds', which is negative", "no time shorter than nothing",
                                   'write --latency="0" or a positive duration')),
    (("--latency", "5"), ("--latency '5' cannot be read", "a number and a unit", 'write it as in "5 minutes"')),
])  # fmt: skip
def test_goals_that_cannot_be_asked(advise: Any, goal: tuple[str, str], parts: tuple[str, str, str]) -> None:
    code, _, err = advise("game.py", *goal)
    said = " ".join(err.split())
    assert code == 1
    assert [part for part in parts if part not in said] == []


def test_a_hostile_name_does_nothing_to_a_terminal(advise: Any) -> None:
    hostile = "\\x1b[2J\\x07"
    Path("game.py").write_text(PIPELINE.replace('name="scores"', f'name="{hostile}"'))
    code, out, _ = advise("game.py", "--rows", "500")
    assert code == 0
    assert "\\x1b[2J\\x07/" in out
    assert not {"\x1b", "\x07"} & set(out)


@pytest.mark.parametrize(("words", "said"), [
    (("nowhere.py",), "there is no file nowhere.py"),
    ((".",), "is not a checkpoint of a pipeline"),
    (("a", "b", "c"), "3 places were named"),
    (("handed.py",), "the source 'events' is handed in"),
    (("empty.py",), "the sources have no events"),
])  # fmt: skip
def test_honest_errors(advise: Any, words: tuple[str, ...], said: str) -> None:
    Path("nothing").mkdir()
    handed = PIPELINE.replace("ps.game_scores(", 'ps.events("team string, points long, at timestamp")\nmade = dict(')
    Path("handed.py").write_text(handed.replace("ps.Faults(stragglers=0.02)", "None"))
    Path("empty.py").write_text(handed.replace("ps.events(", 'ps.directory("nothing", schema=', 1))
    code, _, err = advise(*words)
    assert code == 1
    assert said in err


def test_a_run_that_was_not_observed(advise: Any) -> None:
    for file in Path("checkpoint/penstock/monitor").iterdir():
        file.unlink()
    assert "nothing was counted of how late events come" in advise("checkpoint")[2]
    assert json.loads(advise("game.py", "checkpoint", "--json")[1])["events"] == 15 * 300
