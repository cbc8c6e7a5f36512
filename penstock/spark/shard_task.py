"""A shard's step in a task: packets in, words for the driver out, whether a stream or a batch runs it."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from penstock.checkpoint.enrichment_log import WrittenDown
from penstock.connectors.fingerprint import fingerprint_of
from penstock.coordinator.job import Job
from penstock.coordinator.messages import (
    ARCHIVE,
    BAD,
    CELLS,
    COUNTS,
    NOW,
    PANES,
    REPORTS,
    SEEN,
    TICK,
    Packet,
    at,
    in_pieces,
    late_of,
    rows_of,
)
from penstock.coordinator.staging import staged, written_by_task
from penstock.coordinator.task_clock import WrongClock
from penstock.engine.ingest.row_steps import Read, SourceBatch
from penstock.engine.outputs import shown_late, shown_panes
from penstock.engine.shuffle.codec import packed, unpacked
from penstock.engine.stage import StageStepped, unusable_table
from penstock.engine.windows.lifecycle import Clock
from penstock.runtime.batch import Counts
from penstock.spark.ingest_task import Sending
from penstock.types.timestamps import MIN_TIME

_INLINE = 1 << 20
_BATCH = 32  # bits for the rows that a shard gives in a batch


class Word(NamedTuple):
    """What a shard says to the driver."""

    shard: int
    kind: str
    head: str
    payload: bytes


def tick_of(
    shard: int, packets: Sequence[Packet], batch: int, before: int = MIN_TIME, stage: int = 0
) -> dict[str, Any]:
    """The tick of a batch, with the latest time that any source has for it, never before that of the last batch."""
    tick = next((json.loads(bytes(one.payload)) for one in packets if one.kind == at(stage, TICK)), None)
    if tick is None:
        raise WrongClock(
            f"shard {shard} of batch {batch} got no tick",
            "the tick says what time it is, and every batch has one",
            "let Spark start the batch anew: stop the query and run the pipeline again",
        )
    times = [json.loads(bytes(one.payload)) for one in packets if one.kind == NOW]
    return {**tick, "now": max([before, tick["now"], *times])}


def arrivals_step(
    job: Job, stage: int, memory: Any, packets: Sequence[Packet], clock: Clock, batch: int, shard: int
) -> StageStepped:
    """One batch's arrivals through the engine; what it asks of the outside is written down before it is given on."""
    engine = job.engine(stage)
    if job.answers is not None:
        engine = engine.answered_by(partial(WrittenDown, job.answers, batch, stage, shard))
    blobs = [engine.read(one.payload) for one in packets if one.kind == at(stage, CELLS)]
    return engine.step(memory, blobs, clock)


def words_of(
    job: Job,
    stage: int,
    shard: int,
    batch: int,
    packets: Sequence[Packet],
    steps: Sequence[StageStepped],
    watermarks: Sequence[int] = (),
) -> Iterator[Word]:
    """What a shard says of a batch: results, late rows, quarantine, reports and counts; and rows for other stages."""
    outputs, plan = _Outputs(job, shard, batch, stage), job.flow.stages[stage]
    sending = _passed_on(job, stage, shard, batch, steps, watermarks)
    for stream, tables in _streams(job, stage, steps).items():
        yield from outputs.of(stream, tables)
    along = {number: blobs for number, blobs in sending.blobs.items() if number not in job.placed}
    for number, blobs in along.items():
        del sending.blobs[number]
        engine = job.engine(number)
        given_on = engine.step(engine.start(), blobs, Clock(watermarks[number], MIN_TIME))
        sending.counts += given_on.counts
        for stream, tables in _streams(job, number, [given_on]).items():
            yield from outputs._replace(stage=number).of(stream, tables)
    for entry in range(len(plan.entries)):
        stream = at(stage, late_of(entry))
        given = [unpacked(one.payload)[1]["rows"] for one in packets if one.kind == stream]
        made = [one.late[entry] for one in steps if entry in one.late]
        yield from outputs.of(stream, given + (made if job.raw else [shown_late(plan, entry, one) for one in made]))
    bad = [unpacked(one.payload)[1]["rows"] for one in packets if one.kind == BAD]
    bad += [unusable_table(one.bad) for one in steps if one.bad]
    yield from outputs.of(BAD, bad + sending.bad)
    for one in packets:
        if one.kind == REPORTS:
            yield Word(shard, REPORTS, "", bytes(one.payload))
        elif one.kind in (COUNTS, ARCHIVE, SEEN):
            yield Word(shard, one.kind, bytes(one.payload).decode(), b"")
    counts = sum((one.counts for one in steps), sending.counts)
    yield Word(shard, COUNTS, json.dumps({"counts": asdict(counts)}), b"")
    for packet in (*sending.to_shards(), *sending.too_late(shard)):
        for piece in in_pieces(packet):
            yield Word(piece.shard, piece.kind, "", piece.payload)


def _passed_on(
    job: Job, stage: int, shard: int, batch: int, steps: Sequence[StageStepped], watermarks: Sequence[int]
) -> Sending:
    """What a stage gives, on its way to those that read it; told apart by the shard and the batch it comes from."""
    sending, label = Sending(job, watermarks), job.flow.stages[stage].label
    partition, first = str(job.shards.ids.index(shard)), batch << _BATCH
    for one in steps:
        for output, rows in one.outputs.items():
            feeds = job.flow.fed_from(stage, output)
            if feeds:
                offsets = first + np.arange(len(rows.times))
                given = SourceBatch(f"{label}.{output}", partition, offsets, rows.batch)
                sending.add(given, Read(rows.batch, rows.times, ops=rows.ops), feeds)
                sending.counts += Counts(given=len(feeds) * len(offsets))
            first += len(rows.times)
    return sending


def _streams(job: Job, stage: int, steps: Sequence[StageStepped]) -> dict[str, list[pa.Table]]:
    """What a stage gives to those who look at it: panes, or rows by the name of their output."""
    found: dict[str, list[pa.Table]] = {}
    for one in steps:
        if one.panes is not None and one.panes.num_rows:
            found.setdefault(at(stage, PANES), []).append(one.panes if job.raw else shown_panes(one.panes))
            continue
        for name, rows in one.outputs.items():
            table = pa.Table.from_batches([rows.batch])
            if job.raw:
                ops = np.ones(len(rows.times), np.int8) if rows.ops is None else rows.ops
                table = table.append_column("@event_time", pa.array(rows.times)).append_column("@op", pa.array(ops))
            elif rows.ops is not None:
                table = table.append_column("op", pa.array(rows.ops))
            found.setdefault(at(stage, rows_of(name)), []).append(table)
    return {stream: tables for stream, tables in found.items() if job.raw or stream in job.written}


class _Outputs(NamedTuple):
    job: Job
    shard: int
    batch: int
    stage: int = 0

    def of(self, kind: str, tables: Sequence[pa.Table]) -> Iterator[Word]:
        """A stream's rows of this shard: small ones in the word itself, large ones put aside."""
        if not tables:
            return
        table = pa.concat_tables(tables)
        head: dict[str, Any] = {
            "rows": table.num_rows,
            "fingerprint": 0 if self.job.raw else fingerprint_of(kind, table),
        }
        # Bad rows of every stage are one stream, to which a shard may so give more than once in a batch.
        whose = f"{self.shard}.{self.stage}" if kind == BAD and self.stage else str(self.shard)
        tag = f"{self.batch:012d}-{whose}-{uuid.uuid4().hex[:12]}"
        if table.nbytes <= _INLINE or self.job.staging is None:
            head |= written_by_task(self.job, kind, tag, table)
            yield Word(self.shard, kind, json.dumps(head), packed({}, {"rows": table}))
            return
        yield Word(self.shard, kind, json.dumps(head | staged(self.job, kind, tag, table)), b"")
