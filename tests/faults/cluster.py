"""Pipelines on several executors, one of which dies: python -m tests.faults.cluster FOLDER, on local-cluster[2,1,1024].

`both` makes the two pipelines; the test runs them undisturbed in its own process and compares.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import penstock as ps
from penstock.api.pipeline import Pipeline, pipeline
from penstock.connectors.game_scores import Faults, game_scores
from penstock.connectors.sqlite import sqlite

ROWS = 600


@dataclass(frozen=True, slots=True)
class Trap:
    """Lets every row pass; the worker that finds the trap's file dies of it, once."""

    path: str

    def __call__(self, row: Mapping[str, Any]) -> bool:
        if os.path.exists(self.path):
            with suppress(FileNotFoundError):
                os.unlink(self.path)
                os.kill(os.getpid(), signal.SIGKILL)
        return True


def both(folder: str) -> list[Pipeline]:
    """Windows with early and late panes, and sessions that merge."""
    scores = game_scores(rate=100, keys=12, teams=4, disorder="200 milliseconds", realtime=False, events=ROWS,
                         faults=Faults(stragglers=0.05, straggler_delay="3 seconds"))  # fmt: skip
    keyed = (
        scores.event_time("at", watermark=ps.bounded("1 second", max_skew=None))
        .where(Trap(f"{folder}/trap"))
        .key_by("user")
    )
    trigger = ps.at_watermark(early=ps.count(5), late=ps.count(1))
    made = []
    for name, window in (("windows", ps.tumbling("2 seconds")), ("sessions", ps.session("500 milliseconds"))):
        results = (
            keyed.window(window, lateness="1 minute").trigger(trigger).accumulating()
            .aggregate(points=ps.sum("points"), plays=ps.rows())
        )  # fmt: skip
        made.append(pipeline(name, results.write(sqlite(f"{folder}/a.db", table=name, history=True)), shards=2,
                             batch_rows=ROWS // 3))  # fmt: skip
    return made


def run(one: Pipeline, folder: str, spark: Any = None, **changed: Any) -> Any:
    """Run one of them until it has caught up."""
    return one.run(checkpoint=f"{folder}/{one.name}", batch_every="0", until="caught_up", spark=spark, **changed)


def main(folder: str) -> None:
    """The first with a worker and then an executor killed in the middle, the second stopped in the middle."""
    spark = _session()
    windows, sessions = both(folder)
    before = executors()
    assert len(before) == 2, before

    def disturb(progress: Any) -> None:
        if progress.batch == 0:
            Path(f"{folder}/trap").touch()
        if progress.batch == 1:
            os.kill(before[0], signal.SIGKILL)

    print(run(windows, folder, spark, on_progress=disturb))
    assert not os.path.exists(f"{folder}/trap"), "no worker fell into the trap"
    assert before[0] not in executors()
    handle = sessions.start(checkpoint=f"{folder}/sessions", batch_every="0", spark=spark)
    while handle.status is None:
        assert handle.running, handle.wait()
        time.sleep(0.01)
    print(handle.stop())
    print(run(sessions, folder, spark))


def executors() -> list[int]:
    """The executor processes of this session of the system."""
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit() and int(name) != os.getpid():
            with suppress(OSError):
                command = Path(f"/proc/{name}/cmdline").read_bytes()
                if b"CoarseGrainedExecutorBackend" in command and os.getsid(int(name)) == os.getsid(0):
                    found.append(int(name))
    return sorted(found)


def _session() -> Any:
    from pyspark.sql import SparkSession

    from penstock.spark.session import SESSION_SETTINGS

    builder = SparkSession.builder.master("local-cluster[2,1,1024]").config("spark.executor.memory", "1g")
    for name, value in {**SESSION_SETTINGS, "spark.python.worker.reuse": "false"}.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


if __name__ == "__main__":
    main(sys.argv[1])
