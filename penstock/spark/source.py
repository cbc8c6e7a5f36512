"""Our sources as one streaming source of Spark: its offset is every reader's position and the clock, the tick.

The offset always moves, so Spark always has a batch to run; it is logged, so a batch that is run again sees the same.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import astuple, dataclass, field
from typing import Any, Protocol

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition

from penstock.checkpoint.spark_logs import checked
from penstock.connectors.source import TASKS, LogReader, came_after, shared_among
from penstock.coordinator.job import Job
from penstock.coordinator.messages import PACKETS, REPORTS, TICK, Packet, packet_batches
from penstock.coordinator.rate_limit import allowed as throttled
from penstock.coordinator.task_clock import TaskClock
from penstock.quarantine.replay import Inbox
from penstock.runtime.failpoints import reached
from penstock.spark.task_clock import task_clock

TASKS_NAMED = "tasks"


class Pace(Protocol):
    """Says what time a batch has, or that there is none yet."""

    def now(self, batch: int, before: int) -> int | None:
        """The processing clock of the batch of that number, not before `before`; None to wait."""


@dataclass(frozen=True, slots=True)
class Wall:
    """The wall clock; waits once a file asks to. For tests a file may move it by microseconds, or hold the clock of
    each batch."""

    stop: str = ""
    shift: str = ""

    def now(self, batch: int, before: int) -> int | None:
        """The wall clock, which never goes back."""
        if self.stop and os.path.exists(self.stop):
            return None
        moved: int | list[int] = 0
        if self.shift and os.path.exists(self.shift):
            with open(self.shift) as file:
                moved = json.loads(file.read() or "0")
        if isinstance(moved, list):
            return max([before, *moved[batch : batch + 1]])
        return max(before, time.time_ns() // 1000 + moved)


@dataclass(frozen=True)
class Readers:
    """The readers of a pipeline by the names of their sources, how much a batch takes, and the pace.

    So many tasks read at a time as there are cores. The inbox has rows that were quarantined and repaired: one more
    partition, beside those of the sources.
    """

    job: Job
    readers: dict[str, LogReader]
    pace: Pace
    batch_rows: int | None = None
    throttle: str = ""
    inbox: Inbox = field(default_factory=Inbox)
    cores: int = TASKS

    @property
    def rows(self) -> int | None:
        """What a batch may take of each source."""
        allowed = [rows for rows in (self.batch_rows, throttled(self.throttle)) if rows is not None]
        return min(allowed, default=None)

    def among(self, tasks: int) -> dict[str, Any]:
        """The readers with their work cut for so many tasks."""
        return {name: shared_among(one, tasks) for name, one in self.readers.items()}


def source_class(name: str, readers: Readers) -> type[DataSource]:
    """The data source to register with Spark under a name."""

    class Fused(DataSource):
        @classmethod
        def name(cls) -> str:
            return name

        def schema(self) -> str:
            return PACKETS

        def streamReader(self, schema: Any) -> FusedReader:  # noqa: N802 - Spark's name
            return FusedReader(readers)

    return Fused


class FusedReader(DataSourceStreamReader):
    """Spark's questions, answered by the readers; ingest runs inside `read`."""

    def __init__(self, readers: Readers) -> None:
        self.given = readers

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        sources = {name: one.start() for name, one in self.given.readers.items()}
        return checked({"batch": 0, "now": 0, "sources": sources})

    def latestOffset(self, start: dict[str, Any], limit: Any) -> dict[str, Any]:  # noqa: N802
        now = self.given.pace.now(start["batch"], start["now"])
        if now is None:
            return start
        rows = self.given.rows
        readers = self.given.among(self.given.cores)
        sources = {name: one.latest(start["sources"][name], now, rows) for name, one in readers.items()}
        repaired = self.given.inbox.latest(start)
        # Written down, for a batch that is run again on more cores must be cut as it was.
        return checked(
            {"batch": start["batch"] + 1, "now": now, TASKS_NAMED: self.given.cores, "sources": sources, **repaired}
        )

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        if start == end:
            return []
        readers = self.given.among(end.get(TASKS_NAMED, TASKS))
        work = [
            {"source": name, "split": split}
            for name, one in readers.items()
            for split in one.splits(start["sources"][name], end["sources"][name])
        ]
        work += self.given.inbox.splits(start, end, [one.source.name for one in self.given.job.flow.inputs])
        tick = self._tick(end, readers)
        parts = [{"now": end["now"], "work": [one], "tick": None} for one in work] or [{"now": end["now"], "work": []}]
        parts[0]["tick"] = json.dumps(tick)
        return [InputPartition(json.dumps(part)) for part in parts]

    def _tick(self, end: dict[str, Any], sources: Mapping[str, Any]) -> dict[str, Any]:
        """What the shards and the driver are told of a batch: its clock, and how the sources stand after it."""
        at, now = end["sources"], end["now"]
        readers, waiting = sources.items(), self.given.inbox.behind(end)
        behind = {name: one.behind(at[name], now) for name, one in readers}
        # What a batch to come reads has not come after the end.
        after = [note for name, one in readers if not behind[name] for note in came_after(one, at[name], now)]
        return {
            "now": now,
            "partitions": [[name, one_of] for name, one in readers for one_of in one.partitions(at[name])],
            "behind": [*([name, one_of] for name, some in behind.items() for one_of in some), *waiting],
            "finished": not waiting and all(one.finished(at[name], now) for name, one in readers),
            "notes": [*(note for name, one in readers for note in notes_of(one, at[name], now)), *after],
            "lag": [[name, *astuple(lag)] for name, one in readers if hasattr(one, "lag") for lag in one.lag(at[name])],
        }

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        part = json.loads(partition.value)
        job = self.given.job
        clock = task_clock(job.lineage)
        return packet_batches(self._packets(part, clock))

    def _packets(self, part: dict[str, Any], clock: TaskClock) -> Iterator[Packet]:
        job, now = self.given.job, max(part["now"], clock.before)
        for one in part["work"]:
            yield from self._ingested(one, clock, now)
            reached("task:read", clock.batch)
        if part["tick"] is not None:
            for shard in job.shards.ids:
                yield Packet(shard, TICK, part["tick"].encode())

    def _ingested(self, one: dict[str, Any], clock: TaskClock, now: int) -> Iterator[Packet]:
        # Spark starts a process of its own to register a source, one to plan it and one to ask it: they read nothing.
        from penstock.spark.ingest_task import ingested

        job, name = self.given.job, one["source"]
        if "repaired" not in one:
            chunks = self.given.readers[name].read(one["split"])
            yield from ingested(job, name, chunks, clock.watermarks, now, clock.batch, clock.newest)
            return
        schema = next(held.source.schema for held in job.flow.inputs if held.source.name == name)
        chunks = self.given.inbox.read(one["repaired"], name, schema)
        # Repaired rows are old: they say nothing of how far the source has come, and the watermark does not hear them.
        packets = ingested(job, name, chunks, clock.watermarks, now, clock.batch)
        yield from (packet for packet in packets if packet.kind != REPORTS)

    def commit(self, end: dict[str, Any]) -> None:
        """A log keeps what it has; one that shows others how far its readers are is told."""
        tell_committed(self.given.readers, end["sources"])


def notes_of(reader: Any, at: dict[str, Any], now: int) -> list[str]:
    """What a log has to say of itself at a position: a partition that is held back, cores that idle."""
    held = reader.stuck(at, now) if hasattr(reader, "stuck") else []
    return [*held, *(reader.notes(at) if hasattr(reader, "notes") else [])]


def beyond_end(readers: Mapping[str, Any], at: Mapping[str, Any], now: int) -> tuple[str, ...]:
    """What came after the end of the logs that were read to it, in words; one that cannot be looked at says nothing."""
    found: list[str] = []
    for name, one in readers.items():
        if name in at:
            with suppress(Exception):
                found += came_after(one, at[name], now)
    return tuple(found)


def tell_committed(readers: Mapping[str, Any], at: Mapping[str, Any]) -> None:
    """Tell the logs that want to know how far they were read; nothing depends on it, so that it may fail."""
    for name, one in readers.items():
        if hasattr(one, "committed") and name in at:
            with suppress(Exception):
                one.committed(at[name])
