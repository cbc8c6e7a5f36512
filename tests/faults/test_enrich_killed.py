"""Killed after a service has answered that answers otherwise each time: a batch that is played again hears the same."""

from __future__ import annotations

import shutil
import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from penstock.checkpoint.enrichment_log import FOLDER, _unsealed
from penstock.connectors.sink_errors import ReplayDiverged
from penstock.testing.crash.process import Kill, died, python
from tests.integration.spark.fickle import ROWS, run, said

ROOT = Path(__file__).parents[2]
COMMAND = ("-c", "import sys; from tests.integration.spark.fickle import run; run(sys.argv[1])")


def killed(folder: Path, kill: Kill) -> None:
    death = died(python(*COMMAND, str(folder)), folder / "checkpoint", kill, folder / f"log-{kill.batch}",
                 environment={"PYTHONPATH": str(ROOT)})  # fmt: skip
    assert death.killed, death.said


def written_down(folder: Path, batch: int) -> dict[str, str]:
    """What a batch was answered, by user, as it lies beside the checkpoint."""
    found = {}
    for file in (folder / "checkpoint" / FOLDER).glob(f"*/{batch:012d}-*"):
        asked, answers = _unsealed(file.read_bytes(), str(file))
        found |= dict(zip(asked.column(0).to_pylist(), answers.batch.column(0).to_pylist(), strict=True))
    return found


def told(folder: Path) -> Counter[tuple[Any, ...]]:
    """The user and the answer of each row in the table."""
    with closing(sqlite3.connect(f"{folder}/a.db")) as connection:
        return Counter(connection.execute('SELECT "user", answer FROM said').fetchall())


def test_an_answer_that_was_written_down_is_the_answer_whatever_dies(spark: Any, tmp_path: Path) -> None:
    life = tmp_path / "life"
    life.mkdir()
    killed(life, Kill("task:answered", 1))
    first = written_down(life, 1)
    assert first
    killed(life, Kill("sink:commit:after", 2))
    # Batch 2 is in the table, and Spark does not know: it is played again, and must not differ.
    second = written_down(life, 2)
    before = told(life)
    assert {user for user, answer in before if (user, answer) in second.items()} == second.keys()
    forgetful = tmp_path / "forgetful"
    shutil.copytree(life, forgetful)
    killed(life, Kill("batch:end", 3))
    third = written_down(life, 3)
    run(life)
    after = told(life)
    assert after.total() == ROWS
    assert not before - after, "what was shown stays"
    for written in (first, second, third):
        assert written.items() <= after.keys()
    assert {answer for _, answer in after} <= set(said(life))
    # Without what was written down the same start is found out: the service says something else.
    shutil.rmtree(forgetful / "checkpoint" / FOLDER)
    with pytest.raises(ReplayDiverged):
        run(forgetful)
