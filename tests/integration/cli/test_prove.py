"""Does `penstock prove` play the same to every life, write nowhere else, find what is wrong, and say so?"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, get_args

import pytest

import penstock as ps
from penstock.api.loader import load
from penstock.api.pipeline import Delivery
from penstock.connectors.files.sink import Files
from penstock.connectors.sqlite import Sqlite
from penstock.errors import PenstockError
from penstock.testing.crash.campaign import Row
from penstock.testing.crash.compare_outputs import Undisturbed
from penstock.testing.crash.input_tape import Tape, recorded
from penstock.testing.crash.prove import Proof, kept_promise, lines_of
from penstock.testing.crash.redirect import kept, life_of
from penstock.testing.crash.sink_rows import Held
from penstock.testing.crash.verdict import Verdict, in_batches
from penstock.testing.pytest_plugin import prove as prove  # the fixture

GAME = """
import penstock as ps

scores = ps.game_scores(rate=200, events=900, realtime=False, faults=ps.Faults(stragglers=0.05, bad=0.02))
totals = (
    scores.event_time("at", watermark=ps.bounded("1 second"))
    .key_by("team")
    .window(ps.tumbling("1 second"), lateness="1 second")
    .trigger(ps.at_watermark(early=ps.every("1 second") | ps.count(20), late=ps.count(1)))
    .accumulating()
    .aggregate(points=ps.sum("points"), plays=ps.rows())
)
game = ps.pipeline(
    "game",
    totals.write(ps.sqlite("answers.db", table="totals")),
    totals.write(ps.console()),
    totals.late.write(ps.files("late", format="json")),
    totals.quarantine.write(ps.sqlite("answers.db", table="bad")),
    batch_rows=150,
)
"""
POINT = "sink:write#game/panes/postgres:public.t"
FUNCTION = GAME.replace("ps.console()", "ps.foreach_batch(print)")


@pytest.fixture
def game(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The pipeline in a file of an empty folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", "")
    Path("game.py").write_text(GAME)
    Path("function.py").write_text(FUNCTION)
    return load("game.py")


def played(reader: Any) -> list[tuple[str, int]]:
    """Every row that a reader gives from its start to its end, by partition and offset."""
    found, at = [], reader.start()
    while not reader.finished(at, 0):
        upto = reader.latest(at, 0, None)
        for split in reader.splits(at, upto):
            for chunk in reader.read(split):
                found += [(chunk.partition, int(offset)) for offset in chunk.offsets]
        at = upto
    return found


def test_a_tape_has_the_batches_of_a_source_that_ends(game):
    tape = recorded(game, 12, 150)
    assert (len(tape.clocks), tape.rows, tape.whole) == (6, 900, True)
    tape.save(Path("tape.json"))
    assert Tape.load(Path("tape.json")) == tape
    (one,) = tape.played(game.flow).inputs
    assert one.source.bounded
    assert one.time.watermark.idle is None
    rows = played(one.source.reader)
    assert len(set(rows)) == len(rows) > 850


def test_a_tape_of_a_source_that_does_not_end_stops_at_the_number_of_batches(tmp_path):
    endless = ps.game_scores(rate=10_000).event_time("at", watermark=ps.bounded("1 second")).window(ps.global_window())
    totals = endless.trigger(ps.repeat(ps.count(5))).accumulating().aggregate(n=ps.rows())
    tape = recorded(ps.pipeline("endless", totals.write(ps.memory("x"))), 3, 500)
    assert (len(tape.clocks), tape.whole) == (3, False)
    assert list(tape.clocks) == sorted(tape.clocks)


def test_a_tape_of_files_does_not_hear_of_those_that_come_later(tmp_path):
    def put(name: str, row: int) -> None:
        (tmp_path / "in").mkdir(exist_ok=True)
        (tmp_path / "in" / name).write_text(json.dumps({"n": row, "at": "2026-01-01T00:00:00Z"}) + "\n")

    put("a.json", 1)
    put("b.json", 2)
    rows = ps.directory(tmp_path / "in", schema="n long, at timestamp")
    counted = rows.event_time("at", watermark=ps.bounded("1 second")).window(ps.tumbling("1 second"))
    pipeline = ps.pipeline("files", counted.aggregate(n=ps.rows()).write(ps.sqlite(tmp_path / "a.db", table="t")))
    tape = recorded(pipeline, 12, 1)
    assert (tape.rows, tape.whole) == (2, True)
    put("c.json", 3)
    assert len(played(tape.played(pipeline.flow).inputs[0].source.reader)) == 2


def test_sources_without_rows_or_of_spark_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("penstock.testing.crash.input_tape.PATIENCE", 0.1)
    (tmp_path / "in").mkdir()
    empty = ps.directory(tmp_path / "in", schema="n long, at timestamp")
    for source, said in ((empty, "have no rows"), (ps.events("n long, at timestamp"), "read by nobody")):
        counted = source.event_time("at", watermark=ps.bounded("1 second")).window(ps.tumbling("1 second"))
        pipeline = ps.pipeline("none", counted.aggregate(n=ps.rows()).write(ps.memory("x")))
        with pytest.raises(PenstockError, match=said):
            recorded(pipeline, 3, 10)


def test_a_life_writes_below_its_folder_and_nowhere_else(game, tmp_path):
    chosen = kept(game)
    assert [name for name, _ in chosen.outputs] == ["panes/sqlite:totals", "late/files:late", "quarantine/sqlite:bad"]
    assert chosen.left_out == {"panes/console": "it keeps nothing that could be compared"}
    life = life_of(game, recorded(game, 12, 150), tmp_path / "life-000", chosen, "t")
    panes, late, bad = (output.sink for output in life.outputs)
    assert isinstance(panes, Sqlite)
    assert panes.history
    assert panes.path == bad.path == str(tmp_path / "life-000/sinks/0/answers.db")
    assert isinstance(late, Files)
    assert late.path == str(tmp_path / "life-000/sinks/1/late")


def test_a_function_is_refused_until_it_is_left_out(game, penstock):
    Path("function.py").write_text(FUNCTION)
    said = penstock("prove", "function.py")
    assert said.code == 1
    assert "error: the output panes/foreachbatch cannot be proven" in said.err
    assert "--without panes/foreachbatch" in said.err
    said = penstock("prove", "function.py", "--without", "panes/foreachbtach")
    assert "did you mean 'panes/foreachbatch'?" in said.err
    assert "panes/foreachbatch" in kept(load("function.py"), ["panes/foreachbatch"]).left_out


def test_what_is_lost_doubled_torn_or_different_is_counted():
    rows = [("red", 1), ("red", 2), ("blue", 1), ("blue", 1)]
    undisturbed = Undisturbed("panes", in_batches("panes", rows, [2, 0, 2]), [("red", 2), ("blue", 1)])
    good = Held(list(rows), [("blue", 1), ("red", 2)])
    assert undisturbed.judge(good, ended=True).good
    assert undisturbed.judge(Held(rows[:2], []), ended=False).good
    assert undisturbed.judge(Held(rows[:1], []), ended=False).torn == 1
    by_tasks = in_batches("panes", rows, [2, 0, 2], at_once=False)
    assert by_tasks.judge(rows[:1], ended=False).good, "it is not seen at one moment"
    assert by_tasks.judge([rows[0], rows[2]], ended=False).lost == 1
    assert by_tasks.judge(rows[:3], ended=True).torn == 1
    assert undisturbed.judge(Held(rows[1:], good.current), ended=True).lost == 1
    assert undisturbed.judge(Held([*rows, rows[2]], good.current), ended=True).duplicated == 1
    assert undisturbed.judge(Held([*rows, ("green", 1)], good.current), ended=True).foreign == 1
    assert undisturbed.judge(Held(list(rows), [("red", 2)]), ended=True).lost == 1


def test_equal_rows_of_several_batches_are_told_apart_by_how_many_there_are():
    rows = [("ann", 3), ("bob", 3), ("ann", 3), ("cid", 3), ("ann", 3)]
    written = in_batches("rows", rows, [2, 2, 1])
    assert written.judge(rows[:2], ended=False).good
    assert written.judge(rows[:4], ended=False).good
    assert written.judge(rows, ended=True).good
    assert written.judge(rows[:3], ended=False).torn == 1
    assert written.judge([*rows, ("ann", 3)], ended=True).duplicated == 1
    assert written.judge(rows[1:], ended=True).lost == 1


def test_the_table_and_the_summary_say_which_points_were_tried():
    rows = (
        Row(1, 0, "sink:write#game/panes/postgres:public.t_prove_a1b2_life000@3", 3, 0, Verdict()),
        Row(2, 0, "lease +120 ms", 3, 1, Verdict(lost=2, said=("panes: lacks ('red', 1)",))),
        Row(None, 0, "ended", 14, 2, Verdict()),
    )
    proof = Proof("game", 7, 900, True, ("panes: every row",), {}, rows)
    assert (proof.good, proof.kills, proof.lives, proof.points) == (False, 2, 1, {"a moment": 1, POINT: 1})
    assert lines_of(rows[1])[0].endswith("DIFFERENT")
    assert "2 kills in 1 life: lost 2, doubled 0, torn 0; NOT equal" in str(proof)
    assert f"points tried: {POINT} (1)" in str(proof)
    assert (proof.plain()["lost"], proof.plain()["good"]) == (2, False)


def test_a_delivery_that_may_double_is_no_fault():
    wrong = (Verdict(duplicated=1), Verdict(lost=1, said=("panes: lacks ('red', 1)",)))
    rows = [
        *(Row(1, 0, "batch:end@2", 3, 0, one) for one in wrong),
        Row(None, 0, "it failed, exit code 1", 3, 0, Verdict()),
    ]
    found = [[kept_promise(row, delivery) for row in rows] for delivery in get_args(Delivery)]
    assert found == [[False, False, False], [True, False, False], [False, True, False]]


@pytest.mark.spark
def test_a_pipeline_is_killed_and_found_right(game, prove, penstock, tmp_path):
    """Two kills on Spark by the fixture; the command then goes on from there, and has nothing left to do."""
    found = prove(tmp_path / "game.py", kills=2, seed=13)
    assert (found.kills, found.read, found.whole, found.counted("lost")) == (2, 900, True, 0)
    assert found.lives >= 1
    assert [name for name in found.points if name != "a moment"]
    assert not (tmp_path / "answers.db").exists()
    assert not (tmp_path / "late").exists()
    told = penstock("prove", str(tmp_path / "game.py"), "--kills", "2", "--seed", "13",
                    "--resume", str(tmp_path / "prove.json"))  # fmt: skip
    assert told.code == 0, told.err
    assert "2 kills in" in told.out
    assert "lost 0, doubled 0, torn 0; every output equals the undisturbed run" in told.out
    assert "points tried: " in told.out
    told = penstock("prove", str(tmp_path / "game.py"), "--kills", "5", "--seed", "6",
                    "--resume", str(tmp_path / "prove.json"))  # fmt: skip
    assert told.code == 1
    assert "kills of seed 13" in told.err
