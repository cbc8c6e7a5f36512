"""Does the harness kill what it says, find what is wrong, and go on where it was stopped? Without Spark, in seconds."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from penstock.checkpoint.spark_logs import checked, drop_orphans, refuse_damaged_logs
from penstock.storage.local import CheckpointError, LocalStore
from penstock.testing.crash.campaign import Campaign, Row, Subject
from penstock.testing.crash.kill_schedule import (
    BATCH_POINTS,
    SHARD_POINTS,
    SINK_POINTS,
    Pace,
    each_point_once,
    kill_of,
    points,
)
from penstock.testing.crash.process import python
from penstock.testing.crash.verdict import Verdict, Written
from tests.faults.campaign import line, summary
from tests.faults.toy import BATCHES, ROWS

SINKS = ("scores/panes/0", "scores/late/1")
WRITTEN = Written("toy", tuple([(batch, row) for row in range(ROWS)] for batch in range(BATCHES)))


@dataclass(frozen=True)
class ToyChecker:
    """Compares the lines that are there with those that should be."""

    def check(self, folder: str, ended: bool) -> Verdict:
        files = sorted((Path(folder) / "out").glob("*"))
        rows = [tuple(map(int, text.split())) for file in files for text in file.read_text().splitlines()]
        return WRITTEN.judge(rows, ended)


def campaign(file: Path, kind: str) -> Campaign:
    """Kills of the toy."""
    script = str(Path(__file__).with_name("toy.py"))
    subject = Subject(lambda folder: python(script, folder, kind), lambda folder, log: ToyChecker(), ())
    return Campaign.resumed(subject, file, seed=3)


def test_a_run_that_looks_before_it_writes_is_found_right(tmp_path):
    rows = list(campaign(tmp_path / "kills.json", "careful").run(8))
    assert sum(row.kill is not None for row in rows) == 8
    assert rows[-1].at == "ended"
    assert summary(rows).startswith("8 kills")
    assert summary(rows).endswith("lost 0, duplicated 0, torn 0, panes equal to the undisturbed run")


def test_a_run_that_does_not_look_is_found_wrong(tmp_path):
    rows = list(campaign(tmp_path / "kills.json", "careless").run(16))
    assert sum(row.verdict.duplicated for row in rows) > 0
    assert any("DIFFER" in line(row) for row in rows)


def test_it_goes_on_where_it_was_stopped(tmp_path):
    file = tmp_path / "kills.json"
    first = []
    for row in campaign(file, "careful").run(6):
        first.append(row)
        if len(first) == 3:
            break
    again = campaign(file, "careful")
    assert again.rows == first
    rest = list(again.run(6))
    assert [row.kill for row in (*first, *rest) if row.kill is not None] == [1, 2, 3, 4, 5, 6]
    with pytest.raises(SystemExit, match="seed 3"):
        Campaign.resumed(again.subject, file, seed=4)


def test_every_point_has_its_turn():
    asked = {kill_of(number, 7, SINKS, 0, Pace()).point for number in range(1, 200)}
    assert {*BATCH_POINTS, *SINK_POINTS, "start", "lease", "commit"} <= asked
    assert set(points(SINKS)) <= asked
    assert not {*SHARD_POINTS} & asked
    more = {kill_of(number, 7, SINKS, 0, Pace(), more=SHARD_POINTS).point for number in range(1, 200)}
    assert more >= {*SHARD_POINTS}
    assert kill_of(11, 7, SINKS, 3, Pace()) == kill_of(11, 7, SINKS, 3, Pace())
    dozen = list(each_point_once(SINKS))
    assert len(dozen) == 12
    assert {kill.point.partition("#")[0] for kill in dozen} >= {*BATCH_POINTS[:-1], *SINK_POINTS}


def test_no_kill_waits_for_a_sink_that_is_given_nothing_yet(tmp_path):
    """A run that ends before it is killed is a run for nothing."""
    one = campaign(tmp_path / "kills.json", "careful")
    one.subject = replace(one.subject, sinks=SINKS, points=SHARD_POINTS, shows=3)
    given, others = set(), set()
    for number in range(200):
        one.rows = [Row(number, 0, "", 0, 0, Verdict())] * number
        kill = one._next()
        (given if kill.point.startswith((*SINK_POINTS, *SHARD_POINTS)) else others).add(kill.batch)
    assert given == {3}
    assert min(others) == 0


def test_logs_of_spark_are_looked_at(tmp_path):
    offsets = tmp_path / "offsets"
    offsets.mkdir()
    good = 'v1\n{"batchTimestampMs":1}\n' + str(checked({"batch": 1, "now": 5, "sources": {}})).replace("'", '"')
    (offsets / "0").write_text(good)
    refuse_damaged_logs(LocalStore(str(tmp_path)))
    for wrong in (good.replace('"now": 5', '"now": 7'), good[:-9], "", "v1", good.replace("v1", "w1", 1)):
        (offsets / "0").write_text(wrong)
        with pytest.raises(CheckpointError, match="offsets/0 is damaged"):
            refuse_damaged_logs(LocalStore(str(tmp_path)))


def test_checksums_of_deleted_files_are_dropped(tmp_path):
    commits = tmp_path / "commits"
    commits.mkdir()
    for name in ("0", ".0.crc", ".1.crc"):
        (commits / name).touch()
    drop_orphans(str(tmp_path))
    assert sorted(one.name for one in commits.iterdir()) == [".0.crc", "0"]
