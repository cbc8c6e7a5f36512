"""What is in the sink after a real SIGKILL at each point of a delivery, and after a run was stopped and woken."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from penstock.connectors.sink_errors import ForeignLineage
from tests.unit.connectors.sinks.child import expected_answers, expected_panes, main
from tests.unit.connectors.sinks.outputs import answers, every, sinks

ROOT = Path(__file__).parents[4]
ONE_OF_A_KIND = ("sqlite history", "parquet")
LASTING = ("sqlite history", "duckdb history", "parquet", "json")
POINTS = ("sink:begin", "sink:write", "sink:commit:before", "sink:commit:after")
BATCHES = 4
KILLED = 2


def run(name: str, folder: Path, delivery: str = "exactly_once", *numbers: int, kill: str = "") -> int:
    """Run the child in a process group of its own; its exit code."""
    arguments = [str(number) for number in (BATCHES, *numbers)]
    command = [sys.executable, "-m", "tests.unit.connectors.sinks.child", name, str(folder), delivery, *arguments]
    environment = {**os.environ, "PENSTOCK_KILL_AT": kill}
    done = subprocess.run(command, cwd=ROOT, env=environment, start_new_session=True, capture_output=True, check=False)
    if done.returncode > 0:
        raise AssertionError(done.stderr.decode())
    return done.returncode


def killed_and_restarted(name: str, folder: Path, delivery: str, point: str) -> Any:
    """A run killed at a point of batch 2, and the run after it, which plays batch 2 again."""
    assert run(name, folder, delivery, kill=f"{point}@{KILLED}") == -signal.SIGKILL
    main(name, str(folder), delivery, BATCHES, KILLED, 2)
    return sinks(folder)[name]


@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("name", LASTING)
def test_exactly_once_loses_nothing_and_doubles_nothing(name, point, tmp_path):
    sink = killed_and_restarted(name, tmp_path, "exactly_once", point)
    assert every(sink) == expected_panes([0, 1, 2, 3])
    assert answers(sink) == expected_answers(BATCHES)


@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("name", ONE_OF_A_KIND)
def test_at_least_once_loses_nothing(name, point, tmp_path):
    sink = killed_and_restarted(name, tmp_path, "at_least_once", point)
    twice = [2] if point == "sink:commit:after" else []
    assert every(sink) == expected_panes([0, 1, 2, *twice, 3])


@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("name", ONE_OF_A_KIND)
def test_at_most_once_doubles_nothing(name, point, tmp_path):
    sink = killed_and_restarted(name, tmp_path, "at_most_once", point)
    marked_only = point in ("sink:write", "sink:commit:before")
    assert every(sink) == expected_panes([0, 1, 3] if marked_only else [0, 1, 2, 3])


@pytest.mark.parametrize("name", ["parquet", "json"])
def test_leftovers_of_a_dead_attempt_are_no_data_and_are_removed(name, tmp_path):
    assert run(name, tmp_path, kill=f"sink:commit:before@{KILLED}") == -signal.SIGKILL
    data = tmp_path / name / "data"
    before = len(list(data.iterdir()))
    assert every(sinks(tmp_path)[name]) == expected_panes([0, 1])
    main(name, str(tmp_path), "exactly_once", KILLED + 1, KILLED, 2)
    assert before == len(list(data.iterdir())), "as many files as before: those of the dead attempt are gone"
    assert every(sinks(tmp_path)[name]) == expected_panes([0, 1, 2])


@pytest.mark.parametrize("name", LASTING)
def test_a_run_that_was_stopped_and_woken_writes_nothing(name, tmp_path):
    """SIGSTOP, another run with a newer epoch, SIGCONT: the first one is fenced."""
    command = [sys.executable, "-m", "tests.unit.connectors.sinks.child", name, str(tmp_path), "exactly_once", "1000"]
    process = subprocess.Popen(
        command, cwd=ROOT, start_new_session=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    try:
        assert process.stdout is not None
        while int(process.stdout.readline()) < 3:
            pass
        stopped_between_transactions(name, tmp_path, process)
        sink = sinks(tmp_path)[name]
        reached = len({row for row in every(sink) if row[0] == "team-0"})
        main(name, str(tmp_path), "exactly_once", reached + 3, reached, 2)
        process.send_signal(signal.SIGCONT)
        _, said = process.communicate(timeout=60)
        # A file that it was staging may be gone: the newer run has swept it.
        assert process.returncode != 0
        assert "Fenced" in said.decode() or "No such file" in said.decode()
        assert every(sink) == expected_panes(list(range(reached + 3)))
    finally:
        if process.poll() is None:
            process.kill()
            process.communicate()


def stopped_between_transactions(name: str, folder: Path, process: subprocess.Popen[bytes]) -> None:
    """Stop the process; where it holds the file's lock, as it may, let it go on a little and try again."""
    import sqlite3

    import duckdb as package

    for _ in range(500):
        process.send_signal(signal.SIGSTOP)
        try:
            if name.startswith("sqlite"):
                other = sqlite3.connect(folder / "h.db", timeout=0)
                other.execute("BEGIN IMMEDIATE")
                other.close()
            elif name.startswith("duckdb"):
                package.connect(str(folder / "h.duckdb")).close()
            return
        except (sqlite3.OperationalError, package.IOException):
            process.send_signal(signal.SIGCONT)
            time.sleep(0.003)
    raise AssertionError("it held the lock all the time")


@pytest.mark.parametrize("name", LASTING)
def test_a_deleted_ledger_is_noticed(name, tmp_path):
    main(name, str(tmp_path), "exactly_once", 2)
    sink = sinks(tmp_path)[name]
    if hasattr(sink, "format"):
        shutil.rmtree(tmp_path / name / "_penstock")
    else:
        forget_ledger(sink)
    with pytest.raises(ForeignLineage, match="no ledger tells which"):
        main(name, str(tmp_path), "exactly_once", 3, 2, 2)


def forget_ledger(sink: Any) -> None:
    import sqlite3

    import duckdb as package

    connection: Any = sqlite3.connect(sink.path) if type(sink).__name__ == "Sqlite" else package.connect(sink.path)
    connection.execute("DROP TABLE penstock_ledger")
    connection.commit()
    connection.close()


def test_readers_of_sqlite_see_whole_batches_only(tmp_path):
    import sqlite3

    command = [sys.executable, "-m", "tests.unit.connectors.sinks.child", "sqlite", str(tmp_path), "exactly_once", "60"]
    process = subprocess.Popen(command, cwd=ROOT, start_new_session=True, stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    reader = sqlite3.connect(tmp_path / "a.db")
    seen = 0
    while process.poll() is None:
        found = {points - int(team[5:]) for team, points in reader.execute("SELECT team, points FROM scores WHERE team "
                                                                           "IS NOT NULL")}  # fmt: skip
        assert len(found) == 1
        seen += 1
    process.communicate()
    reader.close()
    assert seen > 1
