"""A shard's step in a task: packets in, words for the driver out, whether a stream or a batch runs it."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any, NamedTuple

import pyarrow as pa

from penstock.batch import Counts
from penstock.engine.outputs import shown_late, shown_panes
from penstock.engine.pack import read_blob
from penstock.engine.step import Memory, Stepped, step
from penstock.engine.windows import Clock
from penstock.engine.wire import packed, unpacked
from penstock.instant import MIN_TIME
from penstock.sinks.fingerprint import fingerprint
from penstock.spark.job import Job
from penstock.spark.packets import ARCHIVE, BAD, CELLS, COUNTS, LATE, NOW, PANES, REPORTS, TICK, Packet
from penstock.spark.property import WrongClock
from penstock.spark.staging import staged, written_by_task

_INLINE = 1 << 20


class Word(NamedTuple):
    """What a shard says to the driver."""

    shard: int
    kind: str
    head: str
    payload: bytes


def tick_of(shard: int, packets: Sequence[Packet], batch: int, before: int = MIN_TIME) -> dict[str, Any]:
    """The tick of a batch, with the latest time that any source has for it, never before that of the last batch."""
    tick = next((json.loads(bytes(one.payload)) for one in packets if one.kind == TICK), None)
    if tick is None:
        raise WrongClock(
            f"shard {shard} of batch {batch} got no tick",
            "the tick says what time it is, and every batch has one",
            "let Spark start the batch anew: stop the query and run the pipeline again",
        )
    times = [json.loads(bytes(one.payload)) for one in packets if one.kind == NOW]
    return {**tick, "now": max([before, tick["now"], *times])}


def arrivals_step(job: Job, memory: Memory, packets: Sequence[Packet], clock: Clock) -> Stepped:
    """One batch's arrivals through the engine."""
    compiled = job.compiled()
    blobs = [read_blob(compiled, one.payload) for one in packets if one.kind == CELLS]
    return step(compiled, memory, blobs, clock)


def words_of(job: Job, shard: int, batch: int, packets: Sequence[Packet], steps: Sequence[Stepped]) -> Iterator[Word]:
    """Panes, late rows, quarantine, reports and counts of a shard in a batch."""
    compiled = job.compiled()
    outputs = _Outputs(job, shard, batch)
    panes = [one.panes for one in steps if one.panes.num_rows]
    yield from outputs.of(PANES, panes if job.raw else [shown_panes(one) for one in panes])
    late = [one.late for one in steps if one.late.num_rows]
    given = [unpacked(one.payload)[1]["rows"] for one in packets if one.kind == LATE]
    yield from outputs.of(LATE, given + (late if job.raw else [shown_late(compiled, one) for one in late]))
    yield from outputs.of(BAD, [unpacked(one.payload)[1]["rows"] for one in packets if one.kind == BAD])
    for one in packets:
        if one.kind == REPORTS:
            yield Word(shard, REPORTS, "", bytes(one.payload))
        elif one.kind in (COUNTS, ARCHIVE):
            yield Word(shard, one.kind, bytes(one.payload).decode(), b"")
    counts = sum((one.counts for one in steps), Counts())
    yield Word(shard, COUNTS, json.dumps({"counts": asdict(counts)}), b"")


class _Outputs(NamedTuple):
    job: Job
    shard: int
    batch: int

    def of(self, kind: str, tables: Sequence[pa.Table]) -> Iterator[Word]:
        """A stream's rows of this shard: small ones in the word itself, large ones put aside."""
        if not tables:
            return
        table = pa.concat_tables(tables)
        head: dict[str, Any] = {"rows": table.num_rows, "fingerprint": 0 if self.job.raw else fingerprint(table)}
        tag = f"{self.batch:012d}-{self.shard}-{uuid.uuid4().hex[:12]}"
        if table.nbytes <= _INLINE or self.job.staging is None:
            head |= written_by_task(self.job, kind, tag, table)
            yield Word(self.shard, kind, json.dumps(head), packed({}, {"rows": table}))
            return
        yield Word(self.shard, kind, json.dumps(head | staged(self.job, kind, tag, table)), b"")
