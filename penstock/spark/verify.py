"""Is the stream's answer that of a batch: a pipeline run over the same bounded input in several ways, and compared."""

from __future__ import annotations

import math
import tempfile
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from penstock.api.pipeline import Output, Pipeline
from penstock.connectors.memory import memory
from penstock.connectors.spark_dataframe import Frame
from penstock.errors import PlanError
from penstock.plan.stages import ALL, Input, Plan
from penstock.reference.engine import ReferenceRun
from penstock.runtime.batch import Arrival, Tick
from penstock.spark.log_slice import Slice, sliced
from penstock.spark.run import run, run_once
from penstock.spark.session import session
from penstock.spark.sql_translation import Unsaid, said_in_sql
from penstock.spark.static_log import held
from penstock.types.arrow import from_arrow
from penstock.types.timestamps import MAX_TIME, from_datetime

Answers = dict[tuple[Any, ...], tuple[Any, ...]]
SHOWN = 5


@dataclass(frozen=True, slots=True)
class Difference:
    """One key and window of which two ways say different things; None where one says nothing."""

    key: tuple[Any, ...]
    stream: tuple[Any, ...] | None
    other: tuple[Any, ...] | None


@dataclass(frozen=True, slots=True)
class Comparison:
    """The stream against another way: how many answers, how many differ, the first of those, or why it was left out."""

    other: str
    answers: int
    different: int
    first: tuple[Difference, ...]
    seconds: float
    skipped: str | None = None


@dataclass(frozen=True, slots=True)
class Verified:
    """What was compared."""

    rows: int
    columns: tuple[str, ...]
    seconds: float
    comparisons: tuple[Comparison, ...]

    @property
    def equal(self) -> bool:
        """Whether all ways that were gone gave the same answers."""
        return all(one.different == 0 for one in self.comparisons)


def verify(pipeline: Pipeline, *, rows: int = 50_000, spark: Any = None) -> Verified:
    """Run a pipeline's plan as a stream until its end and in other ways over the same rows, and compare the answers."""
    plan = _verifiable(pipeline.plan)
    spark = session(spark)
    inputs = tuple(_cut(one, rows) for one in plan.inputs)
    plan = replace(plan, inputs=inputs, mode=None if plan.mode is None else "accumulating")
    began = time.monotonic()
    streamed = on_spark(plan, pipeline, spark, run)
    seconds = time.monotonic() - began
    ways: dict[str, Callable[[], Answers]] = {
        "batch on Spark": lambda: on_spark(plan, pipeline, spark, run_once),
        "batch in the reference": lambda: as_batch(plan),
        "Spark SQL": lambda: said_in_sql(plan, _tables(plan), spark),
    }
    compared = tuple(_compared(streamed, name, way) for name, way in ways.items())
    read = sum(len(chunk.offsets) + len(chunk.undecoded) for one in inputs for chunk in one.source.reader.chunks())
    return Verified(read, (*plan.keys, "window_start", "window_end", *plan.result_schema.names), seconds, compared)


def on_spark(plan: Plan, pipeline: Pipeline, spark: Any, how: Callable[..., Any]) -> Answers:
    """The last pane of each key and window, run in micro-batches until the end or as one batch."""
    sink = memory(f"verify-{uuid.uuid4().hex}")
    one = Pipeline(pipeline.name, (Output(plan, "panes", sink),), shards=pipeline.shards)
    streaming = {"batch_every": "0", "until": "end"} if how is run else {}
    try:
        with tempfile.TemporaryDirectory(prefix="penstock-verify-") as folder:
            how(one, checkpoint=f"{folder}/checkpoint", spark=spark, on_progress=None, **streaming)
            return {_key(plan, row): tuple(row[name] for name in plan.result_schema.names) for row in sink.current()}
    finally:
        sink.clear()


def as_batch(plan: Plan) -> Answers:
    """The last pane of each key and window where all rows are there at once and then the input ends."""
    run = ReferenceRun(plan)
    arrivals = [arrival for one in plan.inputs for arrival in _arrivals(one)]
    now = max(one.source.reader.now for one in plan.inputs)
    answers: Answers = {}
    for batch, tick in ((arrivals, Tick(now)), ([], Tick(now, MAX_TIME))):
        for pane in run.batch(batch, tick).panes:
            key = (*pane.key, *pane.window)
            if pane.op > 0:
                answers[key] = tuple(_plain(pane.values[name]) for name in plan.result_schema.names)
            else:
                answers.pop(key, None)
    return answers


def _verifiable(plan: Plan) -> Plan:
    for one in plan.inputs:
        reader = one.source.reader
        static = isinstance(reader, Frame) and not reader.frame.isStreaming
        if not static and not hasattr(reader, "latest"):
            raise PlanError(
                f"the source {one.source.name!r} cannot be read twice",
                "rows are read as a stream and all at once, so it takes a log or a static DataFrame",
                "write the rows to files, and read those with ps.directory(...)",
            )
        if one.time is not None and one.time.basis == "processing":
            raise PlanError(
                f"the rows of {one.source.name!r} are put into windows by the processing clock",
                "at another time the same rows fall into other windows, so there is nothing to compare",
                'use event time: .event_time("at", watermark=...)',
            )
    return plan


def _cut(one: Input, rows: int) -> Input:
    reader, bounded = one.source.reader, one.source.bounded
    if isinstance(reader, Frame):
        reader, bounded = held(reader.frame, one.source.schema, rows), True
    reader = sliced(reader, bounded, rows, time.time_ns() // 1000)
    return replace(one, source=replace(one.source, reader=reader, bounded=True, max_bad=ALL))


def _arrivals(one: Input) -> list[Arrival]:
    found = []
    for chunk in one.source.reader.chunks():
        rows = from_arrow(chunk.rows, one.source.schema)
        where = (one.source.name, chunk.partition)
        found += [Arrival(*where, int(offset), row) for offset, row in zip(chunk.offsets, rows, strict=True)]
        found += [Arrival(*where, bad.offset, {}, bad.reason) for bad in chunk.undecoded]
    return found


def _tables(plan: Plan) -> list[Any]:
    """The good rows of each source as an Arrow table."""
    import pyarrow as pa

    from penstock.types.arrow import arrow_schema

    tables = []
    for one in plan.inputs:
        reader: Slice = one.source.reader
        tables.append(pa.Table.from_batches([c.rows for c in reader.chunks()], schema=arrow_schema(one.source.schema)))
    return tables


def _key(plan: Plan, row: dict[str, Any]) -> tuple[Any, ...]:
    ends = (row["window_start"], row["window_end"])
    infinite = (-(2**63), MAX_TIME)
    window = [infinite[i] if end is None else from_datetime(end) for i, end in enumerate(ends)]
    return (*(row[name] for name in plan.keys), *window)


def _compared(stream: Answers, name: str, way: Callable[[], Answers]) -> Comparison:
    began = time.monotonic()
    try:
        other = way()
    except Unsaid as error:
        return Comparison(name, 0, 0, (), 0.0, str(error))
    keys = sorted({*stream, *other}, key=repr)
    differ = [key for key in keys if not _same(stream.get(key), other.get(key))]
    first = tuple(Difference(key, stream.get(key), other.get(key)) for key in differ[:SHOWN])
    return Comparison(name, len(keys), len(differ), first, time.monotonic() - began)


def _same(one: tuple[Any, ...] | None, other: tuple[Any, ...] | None) -> bool:
    """Whether two answers are equal; floating sums may differ in the last digits, for their order is not fixed."""
    if one is None or other is None:
        return one is other
    return all(
        a == b or (isinstance(a, float) and isinstance(b, float) and (math.isclose(a, b, rel_tol=1e-9) or a != a != b))
        for a, b in zip(map(_plain, one), map(_plain, other), strict=True)
    )


def _plain(value: Any) -> Any:
    return from_datetime(value) if hasattr(value, "tzinfo") and hasattr(value, "year") else value
