"""Answers and late rows from Spark to topics, over a restart, a lost last commit and a broker that dies."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import pytest

import penstock as ps
from tests.integration.kafka_sink.checker import Read, read
from tests.integration.spark.conftest import spark as spark
from tests.integration.spark.driving import put, running, scores, totals

pytestmark = pytest.mark.spark


def told(records: list[Read]) -> list[tuple[Any, ...]]:
    """Team, points and batch of each record, sorted."""
    rows = [(json.loads(one.value or b"{}"), one.headers) for one in records]
    return sorted((row["team"], row["points"], headers["penstock.timing"].decode()) for row, headers in rows)


def forget_last_commit(checkpoint: Path) -> None:
    """As if Spark had been killed between the sinks' commits and its own."""
    commits = checkpoint / "commits"
    last = max((one for one in commits.iterdir() if one.name.isdigit()), key=lambda one: int(one.name))
    for path in (last, commits / f".{last.name}.crc"):
        path.unlink(missing_ok=True)


def test_2_and_11_panes_and_late_rows_are_there_once(spark, tmp_path, to, broker):
    rows, checkpoint = tmp_path / "in", tmp_path / "checkpoint"
    answers, late = to(compacted=True), to()
    panes = totals(scores(rows))
    pipeline = ps.pipeline("to-kafka", panes.write(answers), panes.late.write(late))
    put(rows, "a.json", ("red", 1, 1), ("red", 2, 30))
    with running(pipeline, checkpoint) as run:
        run.until(lambda one: one.total_panes == 1)
        run.handle.stop()
    forget_last_commit(checkpoint)
    with running(pipeline, checkpoint) as run:
        put(rows, "b.json", ("blue", 9, 2), ("blue", 5, 31), ("blue", 2, 60))
        run.until(lambda one: one.total_panes == 3)
        broker.stop(signal.SIGKILL)
        put(rows, "c.json", ("red", 7, 61), ("red", 1, 90))
        waits = run.until(lambda one: one.waiting is not None)
        assert waits.waiting.startswith("kafka:")
        broker.start()
        run.until(lambda one: one.waiting is None and one.total_panes == 5)
        run.handle.stop()
    assert told(read(broker.servers, answers.topic)) == [
        ("blue", 2, "on_time"), ("blue", 5, "on_time"), ("red", 1, "on_time"), ("red", 2, "on_time"),
        ("red", 7, "on_time")]  # fmt: skip
    missed = [json.loads(one.value or b"{}") for one in read(broker.servers, late.topic)]
    assert [(row["team"], row["points"]) for row in missed] == [("blue", 9)]


def test_tasks_write_a_parallel_topic_and_a_batch_that_comes_back_is_there_once(spark, tmp_path, to, broker):
    rows, checkpoint = tmp_path / "in", tmp_path / "checkpoint"
    sink = to(parallel=True)
    panes = totals(scores(rows))
    pipeline = ps.pipeline("in-parallel", panes.write(sink), panes.write(ps.memory("beside")))
    teams = [f"team-{number}" for number in range(40)]
    put(rows, "a.json", *((team, 1, 1) for team in teams), ("last", 2, 30))
    with running(pipeline, checkpoint) as run:
        run.until(lambda one: one.total_panes == len(teams))
        run.handle.stop()
    forget_last_commit(checkpoint)
    put(rows, "b.json", ("last", 2, 60))
    with running(pipeline, checkpoint) as run:
        run.until(lambda one: one.total_panes == len(teams) + 1)
        run.handle.stop()
    found = [json.loads(one.value or b"{}")["team"] for one in read(broker.servers, sink.topic)]
    assert sorted(found) == sorted([*teams, "last"])
    ledgers = {
        one.key for one in read(broker.servers, sink.progress_topic) if one.key.startswith(f"{sink.topic}#".encode())
    }
    assert len(ledgers) > 1, "several shards have written"
    assert len(ps.memory("beside").rows) == len(teams) + 1
