"""A pipeline on Spark: built as one streaming query, started, watched, and stopped between two batches."""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import threading
import uuid
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from penstock.api.pipeline import Pipeline
from penstock.api.progress import Progress
from penstock.checkpoint.clock import Clocks, latest_clock, read_clock
from penstock.checkpoint.enrichment_log import answers_place
from penstock.checkpoint.identity import Identity, identity_of, read_identity, refuse_foreign
from penstock.checkpoint.lease import Lease, take_lease
from penstock.checkpoint.spark_logs import drop_orphans, positions, refuse_changed_offsets, refuse_damaged_logs
from penstock.checkpoint.status import note_waiting, waiting_is_over
from penstock.connectors.sink_errors import SinkDown
from penstock.connectors.spark_dataframe import Frame
from penstock.coordinator.commit import Commit
from penstock.coordinator.observer import Observer
from penstock.coordinator.rate_limit import MOST_ROWS, Throttle
from penstock.coordinator.sink_retry import Waiting, say_waiting
from penstock.coordinator.sink_router import KEPT_BYTES, Outlets, refuse_exchanged, refuse_moved
from penstock.coordinator.unusable_input import Unusable
from penstock.errors import PlanError, did_you_mean
from penstock.observability.journal import Recorder
from penstock.observability.run_metadata import keep_plan, settings_of
from penstock.spark.bounded_run import Places, batch_input, run_batch
from penstock.spark.errors import told
from penstock.spark.hadoop_store import store_of
from penstock.spark.handle import Ended, Handle
from penstock.spark.query import built, cores_of, job_of
from penstock.spark.session import apply_settings, restore_settings, session
from penstock.spark.source import Wall
from penstock.spark.task_clock import tell_tasks
from penstock.storage.local import CheckpointError, LocalStore, Store, local_path
from penstock.types.durations import Duration, not_negative

UNTIL = ("caught_up", "end")


def run(
    pipeline: Pipeline,
    *,
    checkpoint: str,
    batch_every: Duration,
    until: str | None,
    spark: Any,
    on_progress: Callable[[Progress], None] | None,
    observe: bool = True,
) -> Ended:
    """Run a pipeline to its end; Ctrl-C and SIGTERM end it after the batch that runs."""
    if batch_input(pipeline):
        return run_once(pipeline, checkpoint=checkpoint, spark=spark, on_progress=on_progress)
    signals: list[int] = []
    handle = start(
        pipeline,
        checkpoint=checkpoint,
        batch_every=batch_every,
        until=until,
        spark=spark,
        on_progress=on_progress,
        observe=observe,
    )

    def stop(number: int, _: Any) -> None:
        signals.append(number)
        handle.ask_to_stop()

    before = {}
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGINT, signal.SIGTERM):
            before[number] = signal.signal(number, stop)
    try:
        ended = handle.wait()
        if signals:
            print(f"{pipeline.name}: {ended}; run again, it goes on from there", file=sys.stderr, flush=True)
        elif ended.unread:
            print(f"{pipeline.name}: {ended}", file=sys.stderr, flush=True)
        return ended
    finally:
        for number, old in before.items():
            signal.signal(number, old)


def start(
    pipeline: Pipeline,
    *,
    checkpoint: str,
    batch_every: Duration,
    until: str | None,
    spark: Any,
    on_progress: Callable[[Progress], None] | None,
    kit: Kit | None = None,
    observe: bool = True,
) -> Handle:
    """Start a pipeline in the background."""
    every = not_negative(batch_every, "batch_every")
    if until is not None and until not in UNTIL:
        raise PlanError(
            f"until is {until!r}",
            '"caught_up" stops when the source is drained, "end" when the input has ended; without it, it runs on',
            did_you_mean(str(until), UNTIL),
        )
    _refuse_unreadable(pipeline, until)
    for output in pipeline.outputs:
        if hasattr(output.sink, "refuse_cadence"):
            output.sink.refuse_cadence(every)
    answers = answers_place(pipeline.flow, checkpoint, pipeline.staging)
    spark, store, identity, lease = _claimed(pipeline, checkpoint, spark)
    scratch = tempfile.TemporaryDirectory(prefix="penstock-")
    stop_file = os.path.join(scratch.name, "stop")
    try:
        return _start(
            pipeline,
            _Start(
                spark,
                store,
                identity,
                lease,
                scratch,
                stop_file,
                checkpoint,
                every,
                until,
                on_progress,
                kit,
                _of_lineage(answers, identity),
                observe and kit is None,
            ),
        )
    except BaseException:
        lease.release()
        scratch.cleanup()
        raise


def run_once(
    pipeline: Pipeline, *, checkpoint: str, spark: Any, on_progress: Callable[[Progress], None] | None
) -> Ended:
    """Run a pipeline whose input ends as one batch."""
    answers = answers_place(pipeline.flow, checkpoint, pipeline.staging)
    spark, store, identity, lease = _claimed(pipeline, checkpoint, spark)
    seen: list[Progress] = []

    def progressed(progress: Progress) -> None:
        seen.append(progress)
        if on_progress is not None:
            on_progress(progress)

    try:
        staging = _staging(pipeline, checkpoint)
        places = Places(staging, _of_lineage(answers, identity), local_path(checkpoint))
        unusable = Unusable(pipeline, checkpoint, staging, Clocks())
        run_batch(pipeline, identity, store, lease, places, spark, progressed, unusable)
        ended = Ended("ended", 1, seen[-1])
        refusal = unusable.refusal(str(ended))
        if refusal is not None:
            raise refusal
    except Exception as error:
        raise told(error) from error
    finally:
        lease.release()
    return ended


def _claimed(pipeline: Pipeline, checkpoint: str, spark: Any) -> tuple[Any, Store, Identity, Lease]:
    """A session, the checkpoint's files, whose they are, and the right to write them; or a refusal."""
    local = local_path(checkpoint)
    if local is not None:
        _refuse_early(LocalStore(local), pipeline)
    spark = session(spark)
    store = store_of(spark, checkpoint)
    identity = identity_of(store, pipeline.name, pipeline.flow, pipeline.shards, default_shards(spark))
    _refuse_unusable(store, identity, pipeline)
    lease = take_lease(store)
    if local is not None:
        drop_orphans(local)
    return spark, store, identity, lease


def _staging(pipeline: Pipeline, checkpoint: str) -> str | None:
    """Where tasks put large outputs aside: where the pipeline says, or beside a checkpoint on a local disk."""
    local = local_path(checkpoint)
    return pipeline.staging or (Path(local, "penstock/staging").as_uri() if local is not None else None)


def _of_lineage(answers: str | None, identity: Identity) -> str | None:
    """Where this lineage writes down what it is answered from outside."""
    return None if answers is None else f"{answers}/{identity.lineage}"


@dataclass(frozen=True, slots=True)
class Kit:
    """How the test kit drives a query: its pace, its own commit, and what is done before the first batch."""

    pace: Any
    commit: type[Commit]
    first: Callable[[Any], None]


@dataclass(frozen=True, slots=True)
class _Start:
    spark: Any
    store: Store
    identity: Identity
    lease: Lease
    scratch: Any
    stop_file: str
    checkpoint: str
    every: int
    until: str | None
    on_progress: Callable[[Progress], None] | None
    kit: Kit | None
    answers: str | None
    observe: bool

    def waits(self, batch: int, error: SinkDown) -> None:
        """Tell that a sink is waited for before the first batch."""
        say_waiting(error)
        note_waiting(self.store, self.lease.epoch, batch, error.what)


def _start(pipeline: Pipeline, given: _Start) -> Handle:
    identity, spark = given.identity, given.spark
    local = local_path(given.checkpoint)
    place = f"file://{local}" if local is not None else given.checkpoint
    staging = _staging(pipeline, given.checkpoint)
    framed = any(isinstance(one.source.reader, Frame) for one in pipeline.flow.inputs)
    token = uuid.uuid4().hex
    kit = given.kit
    pace = kit.pace if kit else Wall("" if framed else given.stop_file, os.environ.get("PENSTOCK_CLOCK_SHIFT", ""))
    job = job_of(
        pipeline, identity, token, None if kit else staging, given.answers, raw=kit is not None, observed=given.observe
    )
    throttle = (
        None
        if kit
        else Throttle(
            os.path.join(given.scratch.name, "rows"), pipeline.batch_target / 1e6, pipeline.batch_rows or MOST_ROWS
        )
    )
    try:
        words = built(spark, pipeline, job, pace, throttle.path if throttle else "", None if kit else local)
    except Exception as error:
        raise told(error) from error
    batch = _next_batch(given.store)
    resumed = Waiting(threading.Event(), partial(given.waits, batch)) if batch else None
    outlets = Outlets.opened(pipeline, identity, given.lease.epoch, given.store, staging, spark, resumed)
    if resumed is not None and resumed.seconds:
        waiting_is_over(given.store)
    settings = settings_of(pipeline, identity.shards, given.every, given.until, KEPT_BYTES)
    observer = Observer(pipeline.flow, Recorder(given.store), settings) if given.observe else None
    handle: Handle | None = None

    def progressed(progress: Progress) -> None:
        if handle is not None:
            handle.status = progress
        if given.on_progress is not None:
            given.on_progress(progress)

    clocks = read_clock(given.store, identity.lineage, batch)
    commit = (kit.commit if kit else Commit)(
        pipeline,
        identity.lineage,
        given.store,
        given.lease,
        outlets,
        given.until,
        partial(tell_tasks, spark.sparkContext),
        told,
        progressed,
        clocks,
        replaying=batch if _logged(given.store, batch) else None,
        throttle=throttle,
        answers=given.answers,
        observer=observer,
        unusable=None if kit else Unusable(pipeline, given.checkpoint, staging, clocks),
    )
    if given.observe:
        keep_plan(given.store, pipeline, given.lease.epoch)
    if kit:
        kit.first(commit)
    before = apply_settings(spark, identity.shards, local is not None)
    try:
        tell_tasks(spark.sparkContext, commit.task_clock())
        query = (
            words.writeStream.queryName(f"{pipeline.name}-{token[:8]}")
            .outputMode("append")
            .foreachBatch(commit)
            .trigger(processingTime=f"{given.every // 1000} milliseconds")
            .option("checkpointLocation", place)
            .start()
        )
    except BaseException:
        outlets.close()
        raise
    finally:
        restore_settings(spark, before)
    handle = Handle(query, commit, given.lease, None if framed else given.stop_file, given.scratch)
    if given.until is not None:
        handle.end_by_itself()
    return handle


def default_shards(spark: Any) -> int:
    """As many shards as the cluster has cores when the checkpoint is made, at most 64."""
    return min(cores_of(spark), 64)


def _refuse_unreadable(pipeline: Pipeline, until: str | None) -> None:
    """Refuse sources that nobody reads, and to wait for the end of one that has none."""
    for one in pipeline.flow.inputs:
        if one.source.reader is None:
            raise PlanError(
                f"nobody reads the source {one.source.name!r}",
                "ps.events says what rows look like, not where they come from",
                "begin with ps.directory(...), ps.game_scores(...) or ps.stream(df)",
            )
        if until == "end" and not one.source.bounded and not isinstance(one.source.reader, Frame):
            raise PlanError(
                f"the source {one.source.name!r} does not end",
                'until="end" closes every window when the input has ended, and this source may always have more',
                'give it an end: ps.directory(..., end=True), ps.game_scores(events=...); or say until="caught_up"',
            )


def _refuse_early(store: Store, pipeline: Pipeline) -> None:
    """Refuse before Spark starts what can be refused by reading a few files."""
    held = read_identity(store)
    if held is not None:
        refuse_foreign(store.root, held, pipeline.name, pipeline.flow, pipeline.shards)
        _refuse_unusable(store, held, pipeline)


def _refuse_unusable(store: Store, identity: Identity, pipeline: Pipeline) -> None:
    """Refuse a checkpoint that is damaged, that has come to its end, or of which an output has moved."""
    refuse_damaged_logs(store)
    clocks = latest_clock(store, identity.lineage)
    refuse_exchanged(pipeline, clocks.given)
    refuse_moved(pipeline, clocks.given)
    if clocks.batch:
        refuse_changed_offsets(store, clocks.batch - 1, clocks.offsets)
    if clocks.finished:
        raise _finished(store, clocks.batch - 1, pipeline)


def _finished(store: Store, batch: int, pipeline: Pipeline) -> CheckpointError:
    """That a checkpoint has come to its end, and what has come since."""
    at = positions(store, batch)
    since: list[str] = []
    for one in pipeline.flow.inputs:
        if one.source.name in at and hasattr(one.source.reader, "beyond"):
            with suppress(Exception):
                since += one.source.reader.beyond(at[one.source.name])
    closed = 'it was run until="end": every window was closed, and it takes no more data'
    return CheckpointError(
        f"the checkpoint {store.root} is finished",
        "; ".join((closed, *since)),
        "start a new checkpoint (and a new table) for new data",
    )


def _logged(store: Store, batch: int) -> bool:
    """Whether the offsets of a batch were written down, so that it is run again and not for the first time."""
    return str(batch) in store.names("offsets")


def _next_batch(store: Store) -> int:
    """The batch that Spark will run first: the one after the last that was committed."""
    committed = [int(name) for name in store.names("commits") if name.isdigit()]
    return max(committed, default=-1) + 1
