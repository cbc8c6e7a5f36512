"""The command: on a stream, on a run with its pipeline, and on a record alone; for people and for machines."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from penstock.cli.loading import load
from penstock.cli.main import main
from penstock.instant import parse
from penstock.testing.recording import play

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
        "windows held",
        "2 s ",
        "  now",
        "recommended: ps.bounded(",
    ):
        assert part in out
    assert "a stream? Yes" in out


def test_on_a_run_and_on_its_record(advise: Any) -> None:
    exact = json.loads(advise("game.py", "checkpoint", "--json")[1])
    counted = json.loads(advise("checkpoint", "--json")[1])
    assert (exact["exact"], counted["exact"]) == (True, False)
    assert exact["events"] == counted["events"] == 15 * 300
    assert exact["lateness"] == counted["lateness"]
    most = {row["delay"]: row["late"] for row in counted["rows"]}
    assert all(row["late"] <= most[row["delay"]] for row in exact["rows"])
    _, out, _ = advise("checkpoint")
    assert "late at most" in out
    assert "name the pipeline's file too, and each delay is tried" in out


def test_what_may_be_late_is_asked(advise: Any) -> None:
    strict = json.loads(advise("game.py", "--json", "--rows", "3000", "--late", "0")[1])
    loose = json.loads(advise("game.py", "--json", "--rows", "3000", "--late", "0.5")[1])
    assert loose["recommended"]["delay"] == 0 < strict["recommended"]["delay"] + strict["recommended"]["lateness"]


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
