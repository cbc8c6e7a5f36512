"""The command: with a pipeline's file and without, for people and for machines, and what it cannot say."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

import penstock as ps
from penstock.api.loader import load
from penstock.checkpoint.clock import FOLDER
from penstock.cli.main import main
from penstock.observability.journal import FOLDER as MONITOR
from penstock.testing.recording import play
from penstock.types.timestamps import parse

NOON = parse("2026-05-01T12:00:00Z")
SECOND = 1_000_000
HOSTILE = "red\x1b[2J\x1b]0;gone\x07\u202e"
PIPELINE = """
import penstock as ps

scores = ps.directory("scores", schema="team string, points long, at timestamp", name="scores")
timed = scores.event_time("at", watermark=ps.bounded("20 seconds"))
totals = timed.key_by("team").window(ps.tumbling("1 minute"), lateness="1 minute").accumulating().aggregate(
    points=ps.sum("points"))
team_scores = ps.pipeline("team-scores", totals.write(ps.memory("totals")), totals.late.write(ps.memory("late")))
"""


@dataclass
class Game:
    """A folder in which a pipeline was played, and the command in it."""

    folder: Path
    capsys: pytest.CaptureFixture[str]

    def file(self, name: str, *rows: tuple[str, int, str]) -> None:
        lines = [json.dumps({"team": team, "points": points, "at": at}) for team, points, at in rows]
        Path("scores").mkdir(exist_ok=True)
        Path("scores", name).write_text("\n".join(lines) + "\n")

    def played(self) -> None:
        recording: Any = None
        batches = (
            [("red", 3, "2026-05-01T12:00:10Z"), (HOSTILE, 1, "2026-05-01T12:00:20Z")],
            [("red", 4, "2026-05-01T12:01:30Z")],
            [("red", 5, "2026-05-01T12:00:40Z")],
            [("red", 1, "2026-05-01T12:03:00Z")],
            [("red", 9, "2026-05-01T12:00:30Z")],
        )
        for number, rows in enumerate(batches):
            self.file(f"{number}.json", *rows)
        recording = play(load("team_scores.py"), "checkpoint", [NOON + 100 * SECOND + n * SECOND for n in range(5)],
                         batch_rows=1)  # fmt: skip
        assert recording.batches == 5

    def why(self, *words: str) -> tuple[int, str, str]:
        code = main(["why", *words])
        said = self.capsys.readouterr()
        return code, said.out, said.err


@pytest.fixture
def game(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Game:
    monkeypatch.chdir(tmp_path)
    Path("team_scores.py").write_text(PIPELINE)
    made = Game(tmp_path, capsys)
    made.played()
    return made


WHOLE = ("team_scores.py", "checkpoint", "--key", "red")


def test_the_panes_of_a_window_in_words(game: Game) -> None:
    code, out, _ = game.why(*WHOLE, "--window", "2026-05-01 12:00:00")
    assert code == 0
    assert out.splitlines()[:9] == [
        "key red, window 2026-05-01 12:00:00 to 2026-05-01 12:01:00: complete when W is 2026-05-01 12:01:00, takes "
        "corrections until W is 2026-05-01 12:02:00",
        "pane 0, on time: points 8",
        "  batch 2, now 2026-05-01 12:01:42; W was 2026-05-01 12:01:10, and 2026-05-01 12:01:10 after it",
        "  on time: W had reached the end of the window, 2026-05-01 12:01:00",
        "  new in it: 2 events, of 2 in the window",
        "    scores/0 offset 0, at 2026-05-01 12:00:10: 3",
        "    scores/0 offset 137438953472, at 2026-05-01 12:00:40: 5",
        "late: 1 event came when it took no more; ask --event about one of them",
        f"    scores/0 offset {4 * 2**36}, at 2026-05-01 12:00:30: 9",
    ]


def test_the_same_for_machines(game: Game) -> None:
    _, out, _ = game.why(*WHOLE, "--window", "2026-05-01 12:00:00", "--json")
    told = json.loads(out)
    assert told["exact"] is True
    windows = json.loads(game.why(*WHOLE, "--window", "2026-05-01 12:03:00", "--json")[1])
    assert (windows["open_records"], windows["panes"], windows["unshown"][0]["offset"]) == (1, [], 3 * 2**36)
    assert [event["offset"] for event in told["panes"][0]["new"]] == [0, 2 * 2**36]
    first = json.loads(game.why("team_scores.py", "checkpoint", "--event", "0/0", "--json")[1])
    assert (first["watermark"], first["fate"]) == ("-inf", "taken")
    assert told["panes"][0]["because"] == [
        {"kind": "watermark", "part": "on time", "new": 2,
         "rule": "when the watermark passes the end, after that whenever something is new"},
    ]  # fmt: skip
    _, out, _ = game.why("team_scores.py", "checkpoint", "--event", f"scores/0/{4 * 2**36}", "--json")
    told = json.loads(out)
    assert (told["fate"], told["batch"], told["driver"]["kind"]) == ("late", 4, "ahead")
    assert told["saves"] == {"lateness": 100 * SECOND, "delay": 60 * SECOND, "knob": "delay", "idle": None}


def test_which_windows_there_are(game: Game) -> None:
    _, out, _ = game.why(*WHOLE)
    assert "--window '2026-05-01 12:01:00 to 2026-05-01 12:02:00'  1 pane" in out


def test_a_hostile_key_does_nothing_to_a_terminal(game: Game) -> None:
    for places in (["team_scores.py", "checkpoint"], ["checkpoint"]):
        code, out, _ = game.why(*places, "--key", HOSTILE, "--window", "2026-05-01 12:00:00")
        assert code == 0
        assert "key red\\x1b[2J\\x1b]0;gone\\x07\\u202e, window" in out
        assert not set("\x1b\x07\u202e") & set(out)
        _, _, err = game.why(*places, "--key", f"{HOSTILE}?")
        assert "\\x1b" in err
        assert not set("\x1b\x07\u202e") & set(err)
    _, _, err = game.why("team_scores.py", "checkpoint", "--key", "nothing like it")
    assert "such keys are there: red, red\\x1b[2J" in err
    assert not set("\x1b\x07\u202e") & set(err)


def test_without_the_file_it_is_a_sample_and_says_so(game: Game) -> None:
    code, out, _ = game.why("checkpoint", "--key", "red", "--window", "2026-05-01 12:00:00")
    assert code == 0
    assert "a sample" in out
    assert "pane 0, on time: 8" in out
    assert "Name the pipeline's file too" in out
    told = json.loads(game.why("checkpoint", "--key", "red", "--json")[1])
    assert told["exact"] is False
    late = game.why("checkpoint", "--event", "0/-1")[1]
    assert "late: 2 minutes 10 seconds behind W" in late
    assert "missed 2026-05-01 12:00:00 to 2026-05-01 12:01:00" in late
    assert "before that batch scores/0: newest event 2026-05-01 12:03:00" in late


@pytest.mark.parametrize(("words", "said"), [
    ((*WHOLE[:2], "--key", "rad"), "did you mean 'red'?"),
    ((*WHOLE[:2],), "the windows are keyed by team"),
    ((*WHOLE, "--window", "2026-05-01 13:00:00"), "there was no window from 2026-05-01 13:00:00"),
    ((*WHOLE, "--window", "noon"), "'noon' is not a window"),
    (("checkpoint", "--key", "rad"), "did you mean 'red'?"),
    (("checkpoint", "--event", "0/77"), "no event at 0/77 was kept"),
    (("nowhere", "--key", "red"), "there is no checkpoint"),
    (("a", "b", "c"), "3 places were named"),
])  # fmt: skip
def test_honest_errors(game: Game, words: tuple[str, ...], said: str) -> None:
    code, _, err = game.why(*words)
    assert code == 1
    assert said in err


def test_batches_that_are_not_kept_any_more(game: Game) -> None:
    for folder, oldest in (("offsets", "1"), (FOLDER, f"{1:012d}"), (FOLDER, f"{2:012d}")):
        Path("checkpoint", folder, oldest).unlink()
    for file in Path("checkpoint", MONITOR).iterdir():
        file.unlink()
    code, _, err = game.why(*WHOLE, "--window", "2026-05-01 12:00:00")
    assert code == 1
    assert "the window 2026-05-01 12:00:00 is older than what is kept" in err
    assert "the batches 3 to 4 can be played again, and events up to 2026-05-01 12:01:30 had come before them" in err
    code, out, _ = game.why(*WHOLE, "--window", "2026-05-01 12:03:00")
    assert code == 0
    assert "still held: 1 event, 1 of them in no pane yet" in out
    assert "nothing was observed of this run" in game.why("checkpoint", "--key", "red")[2]


def test_files_that_are_gone_cannot_be_read_again(game: Game) -> None:
    Path("scores/2.json").unlink()
    code, _, err = game.why(*WHOLE, "--window", "2026-05-01 12:00:00")
    assert code == 1
    assert "the events of batch 2 cannot be read again from 'scores'" in err
    assert "penstock why CHECKPOINT says what the record alone has" in err


def test_another_plan_is_refused(game: Game) -> None:
    Path("team_scores.py").write_text(PIPELINE.replace("1 minute", "2 minutes"))
    assert "the plan does not fit the checkpoint" in game.why(*WHOLE)[2]


def test_sources_that_cannot_be_read_twice(game: Game, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("team_scores.py").write_text(PIPELINE.replace('ps.directory("scores", schema=', "ps.events("))
    # That the sources differ is not asked here.
    monkeypatch.setattr("penstock.observability.why.replay.refuse_foreign", lambda *arguments: None)
    assert "the source 'scores' is handed in" in game.why(*WHOLE)[2]


def test_windows_after_other_stages(tmp_path: Path) -> None:
    from penstock.observability.why.panes import WindowWhy, why_window
    from penstock.observability.why.replay import replay_of
    from penstock.storage.local import LocalStore
    from penstock.testing.recording import recorded_script

    stream = ps.events("id string, at timestamp").event_time("at", watermark=ps.bounded("0"))
    once = stream.dedup("id", within="1 hour")
    script, pipeline = recorded_script(once.window(ps.tumbling("1 minute")).aggregate(n=ps.rows()), str(tmp_path))
    script.batch([{"id": "x", "at": "12:00"}, {"id": "x", "at": "12:00"}, {"id": "y", "at": "12:00:01"}])
    script.batch([{"id": "z", "at": "12:02"}])
    script.batch()
    script.batch()
    replay = replay_of(pipeline, LocalStore(str(tmp_path)))
    told = why_window(replay, (), "12:00")
    assert isinstance(told, WindowWhy)
    assert [len(pane.new) for pane in told.panes] == [2] == [pane.values["n"] for pane in script.panes]
    assert replace(told.panes[0], new=()).timing == "on_time"
