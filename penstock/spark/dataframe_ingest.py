"""INGEST behind any DataFrame: Arrow batches of a task to chunks by partition, and on to the shards."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark import TaskContext

from penstock.connectors.source import MAX_BYTES, Chunk
from penstock.connectors.spark_dataframe import Frame
from penstock.coordinator.job import Job
from penstock.coordinator.messages import NOW, PACKETS, Packet, packet_batches
from penstock.coordinator.task_clock import TaskClock
from penstock.spark.ingest_task import ingested
from penstock.spark.task_clock import task_clock
from penstock.types.arrow import arrow_schema, one_batch
from penstock.types.schema import Schema
from penstock.types.timestamps import from_datetime

_NOW = "@penstock now"
_ROWS = 500_000
# Offsets of a DataFrame's rows: 2^27 batches (four years at one a second) of 4,096 tasks of 16 million rows.
_BATCH, _TASK = 36, 24


@dataclass(frozen=True, slots=True)
class FrameIngest:
    """The function that Spark calls in each task over a DataFrame's rows; a batch gives it the clock outright."""

    job: Job
    source: str
    schema: Schema
    partition: str | None
    clock: TaskClock | None = None

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        clock = self.clock or task_clock(self.job.lineage)
        rows = _large(batches)
        first = next(rows, None)
        if first is None:
            return
        # The batch's own timestamp is logged by Spark with the offsets: a batch that is run again has the same.
        now = clock.before if self.clock else max(clock.before, from_datetime(first.column(_NOW)[0].as_py()))
        task = TaskContext.get()
        base = (clock.batch << _BATCH) + ((task.partitionId() if task is not None else 0) << _TASK)
        yield from packet_batches(self._packets(first, rows, base, clock, now))

    def _packets(
        self, first: pa.Table, rest: Iterator[pa.Table], base: int, clock: TaskClock, now: int
    ) -> Iterator[Packet]:
        def chunks() -> Iterator[Chunk]:
            at = base
            for table in _chain(first, rest):
                yield from self._chunks(table, at)
                at += table.num_rows

        yield from ingested(self.job, self.source, chunks(), clock.watermarks, now, clock.batch, clock.newest)
        for shard in self.job.shards.ids:
            yield Packet(shard, NOW, json.dumps(now).encode())

    def _chunks(self, table: pa.Table, at: int) -> Iterator[Chunk]:
        """The rows of each partition, in their order."""
        offsets = np.arange(at, at + table.num_rows, dtype=np.int64)
        wanted = arrow_schema(self.schema)
        if self.partition is None:
            yield Chunk("0", offsets, one_batch(table.select(wanted.names).cast(wanted)))
            return
        names = table.column(self.partition).cast(pa.string())
        for name in sorted(pc.unique(names).to_pylist(), key=lambda one: (one is None, one or "")):
            mine = pc.is_null(names) if name is None else pc.equal(names, name)
            mask = pc.fill_null(mine, False).to_numpy()
            part = table.filter(pa.array(mask)).select(wanted.names).cast(wanted)
            yield Chunk("null" if name is None else name, offsets[mask], one_batch(part))


def with_now(frame: Any) -> Any:
    """A DataFrame with the time of its batch in a column of ours."""
    from pyspark.sql.functions import current_timestamp

    return frame.select("*", current_timestamp().alias(_NOW))


def packets_of(frame: Frame, ingest: Callable[..., Any]) -> Any:
    """A DataFrame's rows as packets for the shards."""
    return with_now(frame.frame).mapInArrow(ingest, PACKETS)


def _large(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Spark's small batches put together: combining before the shuffle pays with every row it sees at once."""
    held: list[pa.RecordBatch] = []
    rows, size = 0, 0
    for batch in batches:
        if not batch.num_rows:
            continue
        held.append(batch)
        rows, size = rows + batch.num_rows, size + batch.nbytes
        if rows >= _ROWS or size >= MAX_BYTES:
            yield pa.Table.from_batches(held)
            held, rows, size = [], 0, 0
    if held:
        yield pa.Table.from_batches(held)


def _chain(first: pa.Table, rest: Iterator[pa.Table]) -> Iterator[pa.Table]:
    yield first
    yield from rest
