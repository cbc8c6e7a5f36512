"""Several executors, cold workers, a worker and an executor that die: the same panes, and the same bytes of state."""

from __future__ import annotations

import os
import sqlite3
import sys
from pathlib import Path
from typing import Any

import pyspark

from penstock.spark.session import QUERY_SETTINGS
from penstock.testing.crash.process import died, python
from tests.faults.cluster import both, run

ROOT = Path(__file__).parents[2]


def held(folder: Path, table: str) -> list[Any]:
    """Every pane in order, and what the ledger says of the last batch."""
    connection = sqlite3.connect(folder / "a.db")
    rows = connection.execute(f"SELECT * FROM {table}_history ORDER BY rowid").fetchall()
    rows += connection.execute(f"SELECT * FROM {table}").fetchall()
    rows += connection.execute('SELECT batch, "rows", fingerprint FROM penstock_ledger WHERE table_name = ?',
                               (table,)).fetchall()  # fmt: skip
    connection.close()
    return rows


def state(spark: Any, checkpoint: Path) -> dict[int, bytes]:
    """What each shard remembers: its head, which names every part by the hash of its bytes."""
    reader = spark.newSession()
    for name, value in QUERY_SETTINGS.items():
        reader.conf.set(name, value)
    frame = reader.read.format("statestore").option("stateVarName", "parts").load(str(checkpoint))
    held = frame.where("user_map_key.part = 'head'").collect()
    return {row.key[0]: bytes(row.user_map_value.data) for row in held}


def test_an_executor_and_a_worker_that_die_change_nothing(spark, tmp_path, monkeypatch):
    """The wall clock stands still in 1970, so that both runs have the same: the memory of a shard has times of it."""
    (tmp_path / "shift").write_text(str(-(10**17)))
    monkeypatch.setenv("PENSTOCK_CLOCK_SHIFT", str(tmp_path / "shift"))
    alone, cluster = tmp_path / "alone", tmp_path / "cluster"
    for folder in (alone, cluster):
        folder.mkdir()
    environment = {"PYTHONPATH": str(ROOT), "SPARK_HOME": os.path.dirname(pyspark.__file__),
                   "PYSPARK_PYTHON": sys.executable}  # fmt: skip
    death = died(python("-m", "tests.faults.cluster", str(cluster)), cluster / "windows", None, tmp_path / "log",
                 environment=environment)  # fmt: skip
    assert death.code == 0, death.said
    for one in both(str(alone)):
        run(one, str(alone), spark)
        assert held(cluster, one.name) == held(alone, one.name)
        assert state(spark, cluster / one.name) == state(spark, alone / one.name)
