"""Rows 1, 2, 14: SIGKILL to all of a run at every named point, started again, and every sink compared."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest

from penstock.connectors.files.sink import read_files
from penstock.testing.crash.kill_schedule import each_point_once
from penstock.testing.crash.process import Kill, died, python
from tests.faults.campaign import scenario
from tests.faults.scenarios import scores
from tests.faults.scenarios.scores import ScoresChecker
from tests.faults.small import arriving, caught, run
from tests.integration.spark.driving import put

ROOT = Path(__file__).parents[2]
SMALL = ("-c", "import sys; from tests.faults.small import run; run(sys.argv[1], delivery=sys.argv[2])")


@pytest.fixture(scope="module")
def checker(spark, tmp_path_factory) -> ScoresChecker:
    """What the pipeline writes when nothing disturbs it."""
    folder = tmp_path_factory.mktemp("undisturbed")
    said: list[str] = []
    for until in ("caught_up", "end"):
        scores.made(str(folder)).run(checkpoint=f"{folder}/checkpoint", batch_every="0", until=until,
                                     on_progress=lambda one: said.append(json.dumps(one.plain())))  # fmt: skip
    made = ScoresChecker.of(str(folder), "\n".join(said))
    verdict = made.check(str(folder), ended=True)
    assert verdict.good, verdict
    timings = Counter(row[6] for rows in made.undisturbed["sqlite"].batches for row in rows)
    assert min(timings[timing] for timing in ("early", "on_time", "late")) > 5
    return made


def test_rows_1_and_2_a_dozen_kills_change_nothing(checker, tmp_path):
    """One life, killed at each named point: no row lost, doubled or torn, and panes equal to the undisturbed run.

    Exactly once: `sink:commit:after` and `batch:end` kill between the sink's commit and Spark's.
    """
    for number, kill in enumerate(each_point_once(scores.SINKS)):
        death = died(scenario("scores", str(tmp_path)), tmp_path / "checkpoint", kill, tmp_path / f"log-{number}")
        assert death.killed, f"{kill} was not reached\n{death.said}"
        verdict = checker.check(str(tmp_path), ended=False)
        assert verdict.good, f"after {kill}: {verdict}"
    scores.main(str(tmp_path))
    verdict = checker.check(str(tmp_path), ended=True)
    assert verdict.good, verdict


def test_at_least_once_loses_nothing_and_may_double(finished, tmp_path):
    """Killed after the files were published: the batch comes back, and is written again."""
    wanted, found = _killed(tmp_path, finished, "at_least_once", Kill("sink:commit:after#small/panes/files:files", 1))
    assert not wanted - found, "nothing is lost"
    assert found - wanted, "the batch that came back is there twice"


def test_at_most_once_doubles_nothing_and_may_lose(finished, tmp_path):
    """Killed after the batch was marked and before it was written: it comes back, and is not written."""
    wanted, found = _killed(tmp_path, finished, "at_most_once", Kill("sink:commit:before#small/panes/files:files", 1))
    assert not found - wanted, "nothing is there twice"
    assert wanted - found, "the batch in flight is lost"


def _killed(folder: Path, finished: Path, delivery: str, kill: Kill) -> tuple[Counter, Counter]:
    """The panes of an undisturbed run, and those in the files after a kill and a restart."""
    death = died(python(*SMALL, str(folder), delivery), folder / "checkpoint", kill, folder / "log",
                 environment={"PYTHONPATH": str(ROOT)})  # fmt: skip
    assert death.killed, death.said
    run(folder, delivery=delivery)
    rows = [read_files(f"{one}/files").to_pylist() for one in (finished, folder)]
    undisturbed, found = (Counter(tuple(row.items()) for row in table) for table in rows)
    return undisturbed, found


@pytest.mark.parametrize("point", ["sink:commit:after#arriving/panes/sqlite:totals", "batch:end"])
def test_what_came_while_a_run_was_dead_is_read_before_it_says_caught_up(spark, tmp_path, point):
    """Killed in the batch that found nothing left, between the sink and Spark's commit; then more files came."""
    put(tmp_path / "in", "a.json", ("red", 1, 1), ("red", 2, 12))
    code = "import sys; from tests.faults.small import arriving, caught; caught(arriving(sys.argv[1]), sys.argv[1])"
    death = died(python("-c", code, str(tmp_path)), tmp_path / "checkpoint", Kill(point, 1), tmp_path / "log",
                 environment={"PYTHONPATH": str(ROOT)})  # fmt: skip
    assert death.killed, death.said
    for second in (13, 14, 25):
        put(tmp_path / "in", f"b{second}.json", ("red", 4, second))
    ended = caught(arriving(tmp_path), tmp_path)
    assert (ended.reason, ended.progress.totals.read) == ("caught up", 5)
    with closing(sqlite3.connect(tmp_path / "a.db")) as connection:
        assert connection.execute("SELECT points FROM totals ORDER BY window_start").fetchall() == [(1,), (10,)]


def test_the_harness_finds_what_is_wrong(checker):
    """A row lost, a row twice, half a batch and a row of nowhere are each counted, so that zeros mean something."""
    written = checker.undisturbed["sqlite"]
    rows = [row for batch in written.batches[:5] for row in batch]
    assert written.judge(rows, ended=False).good
    assert written.judge(rows[1:], ended=False).lost == 1
    assert written.judge([*rows, rows[0]], ended=False).duplicated == 1
    assert written.judge(rows[:-1], ended=False).torn == 1
    assert written.judge([*rows, ("nobody", *rows[0][1:])], ended=False).foreign == 1
    assert written.judge(rows, ended=True).lost > 0
