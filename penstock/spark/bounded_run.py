"""Batch is a stream that ends: the same ingest, the same shards, one batch under W = −∞ and then +∞."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from penstock.api.pipeline import Pipeline
from penstock.api.progress import Progress
from penstock.checkpoint.checksummed_json import sealed, unsealed
from penstock.checkpoint.clock import Clocks, write_clock
from penstock.checkpoint.enrichment_log import forget_answers
from penstock.checkpoint.identity import Identity
from penstock.checkpoint.lease import Lease
from penstock.connectors.source import LogReader, shared_among
from penstock.connectors.spark_dataframe import Frame
from penstock.connectors.table import WholeTable
from penstock.coordinator.batch_result import gathered
from penstock.coordinator.job import Job
from penstock.coordinator.messages import PACKETS, TICK, WORDS, Packet, at, packet_batches, put_together, stage_of
from penstock.coordinator.sink_retry import Waiting, say_waiting
from penstock.coordinator.sink_router import Outlets
from penstock.coordinator.task_clock import TaskClock
from penstock.coordinator.unusable_input import Unusable
from penstock.engine.watermarks import ClockState
from penstock.engine.windows.lifecycle import Clock
from penstock.errors import PlanError
from penstock.runtime.bad_row_limit import refuse_counts
from penstock.spark.dataframe_ingest import FrameIngest, packets_of
from penstock.spark.ingest_task import ingested
from penstock.spark.query import cores_of, job_of, reader_of
from penstock.spark.shard_task import Word, arrivals_step, tick_of, words_of
from penstock.storage.local import Store
from penstock.types.timestamps import MAX_TIME, MIN_TIME

_WORD_SCHEMA = pa.schema(
    [("shard", pa.int32()), ("kind", pa.string()), ("head", pa.string()), ("payload", pa.binary())]
)


def whole_shard(job: Job, stage: int = 0) -> Callable[[pa.Table], pa.Table]:
    """All of a shard's packets at once: its memory is filled, then the end of the input empties it."""
    beginning = (MIN_TIME,) * len(job.flow.stages)

    def apply(table: pa.Table) -> pa.Table:
        came, words = [], []
        for row in table.to_pylist():
            if stage_of(row["kind"]) == stage:
                came.append(Packet(row["shard"], row["kind"], row["payload"]))
            else:
                words.append(Word(row["shard"], row["kind"], row.get("head", ""), row["payload"]))
        packets = put_together(came)
        shard = packets[0].shard
        tick = tick_of(shard, packets, 0, stage=stage)
        filled = arrivals_step(job, stage, job.engine(stage).start(), packets, Clock(MIN_TIME, tick["now"]), 0, shard)
        closed = arrivals_step(job, stage, filled.memory, [], Clock(MAX_TIME, tick["now"]), 0, shard)
        words += words_of(job, stage, shard, 0, packets, [filled, closed], beginning)
        if stage == 0:
            words.append(Word(shard, TICK, json.dumps(tick), b""))
        if (after := job.after(stage)) is not None:
            words.append(Word(shard, at(after, TICK), "", json.dumps(tick).encode()))
        columns = zip(zip(*words, strict=True), _WORD_SCHEMA.types, strict=True)
        return pa.Table.from_arrays([pa.array(column, kind) for column, kind in columns], schema=_WORD_SCHEMA)

    return apply


@dataclass(frozen=True, slots=True)
class SplitIngest:
    """Pieces of work of our own readers, read and ingested in a task."""

    job: Job
    readers: dict[str, LogReader]
    now: int

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        beginning = (MIN_TIME,) * len(self.job.flow.stages)
        for batch in batches:
            for said in batch.column(0).to_pylist():
                one = json.loads(said)
                chunks = self.readers[one["source"]].read(one["split"])
                yield from packet_batches(ingested(self.job, one["source"], chunks, beginning, self.now))


@dataclass(frozen=True, slots=True)
class Places:
    """Where a run puts things aside: large outputs, answers from outside, and its folder if that is on a disk here."""

    staging: str | None
    answers: str | None = None
    checkpoint: str | None = None


def run_batch(
    pipeline: Pipeline,
    identity: Identity,
    store: Store,
    lease: Lease,
    places: Places,
    spark: Any,
    on_progress: Callable[[Progress], None] | None,
    unusable: Unusable,
) -> Clocks:
    """Run a pipeline over input that ends, in one batch."""
    begun = time.monotonic()
    now = _now(store)
    job = job_of(pipeline, identity, f"batch-{identity.lineage}", places.staging, places.answers)
    outlets = Outlets.opened(pipeline, identity, lease.epoch, store, places.staging, spark)
    try:
        readers = {
            one.source.name: reader_of(one, places.checkpoint, job.token, again=True) for one in pipeline.flow.inputs
        }
        words = _packets(spark, pipeline, job, now, readers)
        for stage in job.placed:
            words = words.groupBy("shard").applyInArrow(whole_shard(job, stage), WORDS)
        heard = gathered(words.collect())
        bad = refuse_counts(pipeline.flow, {}, heard.read)
        unusable.batch(heard)
        lease.refuse_if_lost()
        given = outlets.write(heard, 0, {}, Waiting(threading.Event(), say_waiting))
    finally:
        outlets.close()
    clocks = Clocks(1, ClockState(MAX_TIME, now, 1), heard.counts, bad, heard.results, True, True, given)
    write_clock(store, identity.lineage, clocks)
    if places.answers is not None:
        forget_answers(places.answers, clocks.batch)
    if on_progress is not None:
        seconds = time.monotonic() - begun
        on_progress(
            Progress(
                batch=0,
                now=now,
                watermark=MAX_TIME,
                events=heard.counts.read,
                panes=heard.results,
                late=heard.all_rows("late"),
                quarantined=heard.rows("quarantine"),
                seconds=seconds,
                elapsed=seconds,
                totals=heard.counts,
                total_panes=heard.results,
                open_windows=0,
                laggard=None,
                shares={},
                rows=heard.sizes,
            )
        )
    return clocks


def _packets(spark: Any, pipeline: Pipeline, job: Job, now: int, readers: dict[str, Any]) -> Any:
    tick = json.dumps({"now": now, "partitions": [], "behind": [], "finished": True}).encode()
    packets = spark.createDataFrame([(shard, TICK, bytearray(tick)) for shard in job.shards.ids], PACKETS)
    sources = pipeline.flow.inputs
    own = {name: reader for name, reader in readers.items() if not isinstance(reader, Frame)}
    clock = TaskClock(job.lineage, 0, (MIN_TIME,) * len(job.flow.stages), now)
    for one in sources:
        reader = readers[one.source.name]
        if isinstance(reader, Frame):
            ingest = FrameIngest(job, one.source.name, one.source.schema, reader.partition, clock)
            packets = packets.unionAll(packets_of(reader, ingest))
    work = [(json.dumps(one),) for one in _work(own, now, cores_of(spark))]
    if work:
        splits = spark.createDataFrame(work, "split string").repartition(min(len(work), len(job.shards) * 4))
        packets = packets.unionAll(splits.mapInArrow(SplitIngest(job, own, now), PACKETS))
    return packets


def _work(readers: dict[str, LogReader], now: int, cores: int) -> Iterator[dict[str, Any]]:
    """All the pieces of work of readers that end."""
    for name, given in readers.items():
        reader = shared_among(given, cores)
        at = reader.start()
        while not reader.finished(at, now):
            upto = reader.latest(at, now, None)
            if upto == at:
                raise PlanError(
                    f"the source {name!r} does not end",
                    "a batch reads all of its input, and this source may always have more",
                    "run it as a stream, or give it an end: ps.directory(..., end=True), ps.game_scores(events=...)",
                )
            yield from ({"source": name, "split": split} for split in reader.splits(at, upto))
            at = upto


def _now(store: Store) -> int:
    """The time of the batch, written once: a batch that is run again has the same."""
    wall = time.time_ns() // 1000
    if store.create("penstock/now", sealed({"now": wall})):
        return wall
    data = store.read("penstock/now")
    assert data is not None
    return int(unsealed(data, f"{store.root}/penstock/now")["now"])


def batch_input(pipeline: Pipeline) -> bool:
    """Whether every source is a static DataFrame, so that the pipeline is run as a batch; tables fit both."""
    frames = [one.source.reader for one in pipeline.flow.inputs if not isinstance(one.source.reader, WholeTable)]
    static = [isinstance(one, Frame) and not one.frame.isStreaming for one in frames]
    if any(static) and not all(static):
        raise PlanError(
            "a static DataFrame and a stream stand in one plan",
            "a batch ends and a stream does not: nobody can say when the static rows are to be read",
            "read both as streams (spark.readStream), or both as static DataFrames",
        )
    return all(static)
