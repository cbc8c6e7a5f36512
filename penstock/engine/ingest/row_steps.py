"""Rows before a stage, a batch at a time: filter, project, map, stamp with event time, or quarantine with the reason.

Steps run on whole columns. Where one throws, halving finds the rows that make it throw, and the rest goes on.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.diagnostics.user_functions import failure
from penstock.engine.expressions import evaluate, evaluator
from penstock.engine.ingest.event_time import Stamps, stamp
from penstock.engine.ingest.isolate_errors import failing_rows
from penstock.engine.windows.partials import take_column
from penstock.errors import EvaluationError
from penstock.expressions.builder import Node
from penstock.model.windows import Custom
from penstock.plan.graph import AnyStage
from penstock.plan.row_steps import Map, MapBatches, Project, RowStep, Where
from penstock.plan.stages import Input, Plan
from penstock.types.arrow import arrow_schema, conforming_batch, one_batch, to_arrow
from penstock.types.schema import Schema
from penstock.types.validate import conforming


@dataclass(frozen=True, slots=True)
class SourceBatch:
    """Rows read from one partition of one source, in order of their offsets."""

    source: str
    partition: str
    offsets: np.ndarray
    rows: pa.RecordBatch

    @property
    def origin(self) -> tuple[str, str, int]:
        """What tells this batch from every other: source, partition and first offset."""
        return self.source, self.partition, int(self.offsets[0]) if len(self.offsets) else -1


@dataclass(frozen=True, slots=True)
class Bad:
    """A row of the batch that could not be used: its place in the batch, the step and the reason."""

    row: int
    step: str
    reason: str


@dataclass
class Read:
    """Rows on their way: their columns, the place of each in the batch it came in, and its event time.

    `at` is None as long as every row is still in its place, `ops` where no row can be withdrawn.
    """

    batch: pa.RecordBatch
    times: np.ndarray
    at: np.ndarray | None = None
    stamps: Stamps | None = None
    bad: list[Bad] = field(default_factory=list)
    filtered: int = 0
    added: int = 0
    dropped: int = 0
    ops: np.ndarray | None = None

    def keep(self, rows: np.ndarray) -> None:
        """Only these rows go on."""
        self.at = self.places()[rows]
        self.batch = take_column(self.batch, rows)
        self.times = self.times[rows] if len(self.times) else self.times
        self.ops = None if self.ops is None else self.ops[rows]

    def places(self) -> np.ndarray:
        """The place of each row in the batch it came in."""
        return np.arange(self.batch.num_rows) if self.at is None else self.at

    def quarantine(self, rows: list[tuple[int, str]], step: str) -> None:
        """These rows, by place in the present batch, do not go on."""
        if rows:
            places = self.places()
            self.bad += [Bad(int(places[row]), step, reason) for row, reason in rows]
            good = np.ones(len(places), dtype=bool)
            good[[row for row, _ in rows]] = False
            self.keep(good)


def stamped_rows(one: Input, given: SourceBatch, now: int) -> Read:
    """The rows of a batch of a source up to their event time."""
    read = Read(given.rows, np.empty(0, np.int64))
    held = one.source.schema
    for step in one.before:
        held = _step(read, step, held)
    assert one.time is not None
    read.stamps = stamp(read.batch, held, one.time, now)
    read.times = read.stamps.times
    read.quarantine(read.stamps.bad, "event_time")
    return read


def prepared_rows(stage: AnyStage, one: Input, stamped: Read) -> Read:
    """Rows that have their event time, as they reach a stage; what they were before is left as it is."""
    read = Read(stamped.batch, stamped.times, stamped.at, ops=stamped.ops)
    held = one.stamped_schema
    for step in one.after:
        held = _step(read, step, held)
    if isinstance(stage, Plan):
        _countable(read, stage, held)
    return read


def _step(read: Read, step: RowStep, held: Schema) -> Schema:
    match step:
        case Where(predicate):
            _where(read, predicate, held)
        case Project(columns, keep):
            made = _evaluated(read, [node for _, node in columns], held, step.name)
            names = [name for name, _ in columns]
            old = {name: read.batch.column(name) for name in held.names} if keep else {}
            arrays = {**old, **dict(zip(names, made, strict=True))}
            output = step.output(held)
            read.batch = pa.RecordBatch.from_arrays(
                [arrays[name] for name in output.names], schema=arrow_schema(output)
            )
        case Map(function, output):
            _map(read, function, output)
        case MapBatches():
            _map_batches(read, step)
    return step.output(held)


def _where(read: Read, predicate: Node | Callable[..., bool], held: Schema) -> None:
    if isinstance(predicate, Node):
        mask = _evaluated(read, [predicate], held, "where")[0].fill_null(False).to_numpy(zero_copy_only=False)
    else:
        tested = _each(read, "where", predicate, bool)
        mask = np.array(tested, dtype=bool)
    read.filtered += int(len(mask) - mask.sum())
    if not mask.all():
        read.keep(mask)


def _evaluated(read: Read, nodes: list[Node], held: Schema, step: str) -> list[pa.Array]:
    """Expressions over the batch; rows on which one throws are quarantined first."""
    try:
        return [evaluate(node, read.batch, held) for node in nodes]
    except EvaluationError:
        failing: dict[int, str] = {}
        for node in nodes:
            for row, reason in failing_rows(read.batch, evaluator(node, held)):
                failing.setdefault(row, reason)
        read.quarantine(sorted(failing.items()), step)
        return [evaluate(node, read.batch, held) for node in nodes]


def _each(read: Read, step: str, function: Callable[..., Any], taken: Callable[[Any], Any]) -> list[Any]:
    """What is taken of a user's function of each row; rows on which it throws are quarantined."""
    made, bad = [], []
    for i, row in enumerate(read.batch.to_pylist()):
        try:
            made.append(taken(function(row)))
        except Exception as error:
            # The function may have changed its row before it failed.
            bad.append((i, failure(error, function, _row(read.batch, i))))
    read.quarantine(bad, step)
    return made


def _row(batch: pa.RecordBatch, place: int) -> dict[str, Any]:
    row: dict[str, Any] = batch.slice(place, 1).to_pylist()[0]
    return row


def _map(read: Read, function: Callable[..., Any], output: Schema) -> None:
    made = _each(read, "map", function, lambda given: conforming(given, output))
    read.batch = to_arrow(made, output)


def _map_batches(read: Read, step: MapBatches) -> None:
    try:
        made = conforming_batch(step.function(read.batch), step.schema)
        if made.num_rows == read.batch.num_rows:
            read.batch = made
            return
    except Exception:
        pass  # the row-by-row run below finds and names the rows that throw
    parts: list[pa.RecordBatch] = []
    bad: list[tuple[int, str]] = []
    origin: list[int] = []
    for i in range(read.batch.num_rows):
        try:
            part = conforming_batch(step.function(read.batch.slice(i, 1)), step.schema)
        except Exception as error:
            bad.append((i, failure(error, step.function, _row(read.batch, i))))
            continue
        parts.append(part)
        origin += [i] * part.num_rows
        read.added += max(part.num_rows - 1, 0)
        read.dropped += part.num_rows == 0
    places = read.places()
    read.bad += [Bad(int(places[row]), "map_batches", reason) for row, reason in bad]
    rows = np.array(origin, dtype=np.int64)
    read.at = places[rows]
    read.times = read.times[rows] if len(read.times) else read.times
    read.ops = None if read.ops is None else read.ops[rows]
    read.batch = one_batch(pa.Table.from_batches(parts, arrow_schema(step.schema)))


def _countable(read: Read, plan: Plan, held: Schema) -> None:
    """Quarantines rows on which an aggregate's `where` or a custom window fails, so that none is half taken."""
    wheres = [aggregate.where for _, aggregate in plan.aggregates if aggregate.where is not None]
    if wheres:
        _evaluated(read, wheres, held, "aggregate")
    if isinstance(plan.window, Custom):
        unassigned = {}
        for time in np.unique(read.times).tolist():
            try:
                plan.window.assign(time)
            except Exception as error:
                unassigned[time] = failure(error, plan.window.assigned, time)
        if unassigned:
            rows = np.flatnonzero(np.isin(read.times, list(unassigned)))
            read.quarantine([(int(row), unassigned[int(read.times[row])]) for row in rows], "window")
