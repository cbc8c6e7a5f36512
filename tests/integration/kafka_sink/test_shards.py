"""What tasks write themselves: each shard of a batch once, whatever is played again."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from penstock.connectors.delivery import deliver
from penstock.connectors.sink import Stages
from penstock.connectors.sink_errors import Fenced, OutOfStep, ReplayDiverged
from penstock.coordinator.messages import BAD
from penstock.errors import PenstockError
from penstock.plan.output_schemas import quarantine_schema
from penstock.spark.shard_task import _Outputs
from tests.integration.kafka_sink.checker import Verdict, judged
from tests.integration.kafka_sink.child import batch_table, ids
from tests.unit.connectors.sinks.outputs import PANES, batch_of

CLEAN = Verdict(0, 0, 0, 0)
ROWS, SHARDS = 40, 4
ROOT = Path(__file__).parents[3]
# A task that has sent its rows, says so, and takes a while before it commits them.
TASK = """
import pickle, sys, time
import penstock.connectors.kafka.sharded_sink as shards
from tests.integration.kafka_sink.test_shards import staged

def reached(point, batch):
    if point == "task:sent":
        print(point, flush=True)
        time.sleep(1)

shards.reached = reached
staged(pickle.load(sys.stdin.buffer), 0, shards=[1])
"""


@pytest.fixture
def run(to: Any) -> Any:
    """A parallel sink, begun by a driver."""
    sink = to(parallel=True)
    writer = sink.open(PANES)
    writer.begin("L1", 1)
    yield sink, {PANES.sink: writer}
    writer.close()


def staged(sink: Any, number: int, shards: Any = range(SHARDS), lineage: str = "L1") -> list[dict[str, Any]]:
    """What the tasks of a batch do, one after the other."""
    table, each = batch_table(number, ROWS), ROWS // SHARDS
    return [sink.bound(lineage).stage(PANES, f"{number:012d}-{shard}-abc", table.slice(shard * each, each))
            for shard in shards]  # fmt: skip


def closed(sink: Any, writers: Any, number: int, receipts: Any, epoch: int = 1) -> bool:
    """What the driver does with the receipts."""
    return deliver(sink, PANES, writers, batch_of(number, batch_table(number, ROWS), epoch=epoch), [],
                   receipts=receipts)  # fmt: skip


def test_each_shard_is_written_once_and_the_driver_closes_the_batch(run):
    sink, writers = run
    assert isinstance(sink, Stages)
    for number in range(2):
        receipts = staged(sink, number)
        assert all(one["written"] for one in receipts)
        assert closed(sink, writers, number, receipts)
    assert judged(sink.servers, sink.topic, {0: ids(0, ROWS), 1: ids(1, ROWS)}) == CLEAN


def test_a_batch_that_died_among_its_shards_is_completed_and_not_repeated(run):
    sink, writers = run
    staged(sink, 0, shards=[0, 2])
    receipts = staged(sink, 0)
    assert [one["written"] for one in receipts] == [False, True, False, True]
    assert closed(sink, writers, 0, receipts)
    assert not closed(sink, writers, 0, staged(sink, 0)), "it is played again after the driver closed it"
    assert judged(sink.servers, sink.topic, {0: ids(0, ROWS)}) == CLEAN


def test_two_attempts_of_a_task_at_once_write_one(run):
    sink, _ = run
    found: list[bool] = []

    def attempt() -> None:
        found.extend(one["written"] for one in staged(sink, 0, shards=[1]))

    both = [threading.Thread(target=attempt) for _ in range(2)]
    for thread in both:
        thread.start()
        time.sleep(0.01)
    for thread in both:
        thread.join()
    assert sorted(found) == [False, True]


def test_row_14_a_task_of_a_zombie_never_gets_a_row_in(run):
    """SIGSTOP inside the transaction of a shard; the successor plays the batch and one more; SIGCONT."""
    sink, writers = run
    task = subprocess.Popen([sys.executable, "-c", TASK], cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)},
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)  # fmt: skip
    try:
        assert task.stdin is not None
        assert task.stdout is not None
        pickle.dump(sink, task.stdin)
        task.stdin.flush()
        assert task.stdout.readline() == b"task:sent\n"
        task.send_signal(signal.SIGSTOP)
        for number in range(2):
            receipts = staged(sink, number)
            assert all(one["written"] for one in receipts)
            assert closed(sink, writers, number, receipts)
        task.send_signal(signal.SIGCONT)
        _, said = task.communicate(timeout=60)
        assert task.returncode != 0
        assert "OutOfStep" in said.decode()
        assert judged(sink.servers, sink.topic, {0: ids(0, ROWS), 1: ids(1, ROWS)}) == CLEAN
    finally:
        if task.poll() is None:
            task.kill()
            task.communicate()


def test_bad_rows_of_several_stages_are_several_shards():
    """Every stage of a shard may have some, and all go to one quarantine: the second must not pass for the first."""
    tags: list[str] = []
    stager = SimpleNamespace(stages_all=True, stage=lambda target, tag, table: tags.append(tag) or {})
    job: Any = SimpleNamespace(raw=False, staging=None, stagers=[("bad", stager, SimpleNamespace(stream=BAD))])
    row = {"source": "in", "partition": "0", "offset": 1, "step": "where", "reason": "no number", "raw": "{}"}
    bad = pa.Table.from_pylist([row], quarantine_schema())
    for stage in range(3):
        list(_Outputs(job, 7, 4, stage).of(BAD, [bad]))
    assert [tag.split("-")[:2] for tag in tags] == [["000000000004", shard] for shard in ("7", "7.1", "7.2")]


def test_a_shard_with_other_rows_or_beyond_the_batch_is_refused(run):
    sink, _ = run
    staged(sink, 5, shards=[0])
    other = batch_table(6, ROWS).slice(0, 3)
    with pytest.raises(ReplayDiverged):
        sink.bound("L1").stage(PANES, f"{5:012d}-0-abc", other)
    with pytest.raises(OutOfStep):
        staged(sink, 4, shards=[0])


def test_a_task_of_another_lineage_writes_nothing(run):
    sink, _ = run
    with pytest.raises(Fenced, match="belongs to lineage L1, not to lineage L2"):
        staged(sink, 0, lineage="L2")
    with pytest.raises(PenstockError, match="in whose name"):
        sink.stage(PANES, "000000000000-0-abc", batch_table(0, 1))
