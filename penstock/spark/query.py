"""From the stages to Spark's query: sources and tick, and for each stage a shuffle by shard and a stateful step."""

from __future__ import annotations

from typing import Any

from penstock.api.pipeline import Pipeline
from penstock.checkpoint.identity import Identity
from penstock.connectors.sink import Stages
from penstock.coordinator.job import Job
from penstock.coordinator.messages import WORDS, shard_ids
from penstock.coordinator.sink_targets import targets_of
from penstock.plan.stages import Input
from penstock.quarantine.replay import FOLDER, Inbox
from penstock.spark.dataframe_ingest import FrameIngest, packets_of
from penstock.spark.shard_processor import Shard
from penstock.spark.source import Readers, source_class


def job_of(
    pipeline: Pipeline,
    identity: Identity,
    token: str,
    staging: str | None,
    answers: str | None = None,
    raw: bool = False,
    observed: bool = False,
) -> Job:
    """What every task of a pipeline is told."""
    outputs = tuple(targets_of(pipeline))
    stagers = tuple(one for one in outputs if isinstance(one[1], Stages))
    streams = {target.stream for _, _, target in outputs}
    adopted = {target.stream for _, _, target in stagers} - {one[2].stream for one in outputs if one not in stagers}
    shards = shard_ids(identity.shards)
    told = tuple(
        (name, sink.bound(identity.lineage) if hasattr(sink, "bound") else sink, target)
        for name, sink, target in stagers
    )
    return Job(
        token,
        pipeline.name,
        identity.lineage,
        pipeline.flow.unread(),
        shards,
        staging,
        told,
        frozenset(adopted),
        raw,
        frozenset(streams),
        answers,
        observed,
    )


def reader_of(one: Input, checkpoint: str | None, run: str, *, again: bool = False) -> Any:
    """Who reads a source; a table that is read whole keeps what it read under the checkpoint."""
    reader = one.source.reader
    return reader.kept_under(checkpoint, run, again=again) if hasattr(reader, "kept_under") else reader


def cores_of(spark: Any) -> int:
    """How many tasks the cluster runs at a time, as far as it is known now."""
    return max(1, int(spark.sparkContext.defaultParallelism))


def built(
    spark: Any, pipeline: Pipeline, job: Job, pace: Any, throttle: str = "", checkpoint: str | None = None
) -> Any:
    """The streaming query of a pipeline, up to the words of its shards; a checkpoint on a disk here has an inbox."""
    readers: dict[str, Any] = {}
    frames: dict[str, Any] = {}
    sources = pipeline.flow.inputs
    for one in sources:
        reader = reader_of(one, checkpoint, job.token)
        (frames if hasattr(reader, "frame") else readers)[one.source.name] = reader
    name = f"penstock_{job.token}"
    inbox = Inbox() if checkpoint is None else Inbox(f"{checkpoint}/{FOLDER}")
    given = Readers(job, readers, pace, pipeline.batch_rows, throttle, inbox, cores_of(spark))
    spark.dataSource.register(source_class(name, given))
    packets = spark.readStream.format(name).load()
    for source, reader in frames.items():
        schema = next(one.source.schema for one in sources if one.source.name == source)
        packets = packets.unionAll(packets_of(reader, FrameIngest(job, source, schema, reader.partition)))
    for stage in job.placed:
        packets = packets.groupBy("shard").transformWithState(Shard(job, stage), WORDS, "Append", "None")
    return packets
