"""A stage of every kind, killed while each remembers something: every result is there once, and is the reference's."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing

import pytest

from penstock.testing.crash.kill_schedule import STAGE_POINT
from penstock.testing.crash.process import Kill, died
from tests.faults.campaign import every_stage, main
from tests.faults.reference_check import Expected, ReferenceChecker, expected
from tests.faults.scenarios import stages


@pytest.fixture(scope="module")
def right() -> Expected:
    """What the reference gives."""
    return expected(stages.made)


def test_rows_1_and_2_a_stage_of_every_kind_survives_being_killed(spark, right, tmp_path):
    """When half of the stages have kept a batch and the others have not, when all have, and in the midst of the sinks.

    The last is between the commit of some of the sinks and Spark's: what these hold must come again as it was.
    """
    folder, subject, checker = tmp_path / "life", every_stage(), ReferenceChecker(stages.made, right)
    half, midst = len(subject.points) // 2, next(one for one in subject.sinks if one.endswith(":unmatched"))
    kills = (Kill(STAGE_POINT.format(half), 3), Kill("batch:collected", 4), Kill(f"sink:commit:after#{midst}", 5))
    assert {kill.batch for kill in kills} <= {*right.full}
    for number, kill in enumerate(kills):
        log = folder / f"log-{number}"
        death = died(subject.command(str(folder)), folder / "checkpoint", kill, log)
        assert death.killed, f"{kill} was not reached\n{death.said}"
        assert death.batches == kill.batch, f"{kill} is before Spark's commit"
        before = [json.loads(line) for line in log.read_text().splitlines() if line.startswith('{"batch"')][-1]
        assert before["batch"] == kill.batch - 1
        assert len(before["held"]) == len(subject.points)
        assert all(before["held"].values()), f"every stage remembers something: {before['held']}"
        verdict = checker.check(str(folder), ended=False)
        assert verdict.good, f"after {kill}: {verdict}"
    stages.main(str(folder))
    verdict = checker.check(str(folder), ended=True)
    assert verdict.good, verdict
    with closing(sqlite3.connect(folder / "answers.db")) as connection, connection:
        connection.execute("DELETE FROM met WHERE rowid = 1")
        connection.execute("INSERT INTO paired SELECT * FROM paired LIMIT 1")
    verdict = checker.check(str(folder), ended=True)
    assert (verdict.lost, verdict.duplicated) == (1, 1), "or its zeros would mean nothing"


def test_every_output_of_the_pipeline_gives_something(right):
    """What gives nothing cannot be lost."""
    for output in right.outputs:
        assert output.rows > 0, output.name


def test_the_outputs_that_are_killed_are_given_rows_in_every_batch_of_input(right):
    """A kill that waits for a sink that is given nothing is a run for nothing."""
    killed = [one for one in right.outputs if one.name in stages.killed()]
    assert len(killed) == len(stages.KILLED)
    for output in killed:
        assert all(output.every.batches[stages.SHOWS : stages.EVENTS // stages.BATCH_ROWS]), output.name


def test_one_pipeline_is_killed_at_a_time(capsys):
    with pytest.raises(SystemExit):
        main(["--stages", "--servers"])
    assert "not allowed with" in capsys.readouterr().err
