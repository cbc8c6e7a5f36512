"""Rows before a stage, one at a time: filter, project, map, stamp with event time, or quarantine with the reason."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from penstock.diagnostics.user_functions import user_error
from penstock.errors import EvaluationError
from penstock.expressions.builder import Node
from penstock.model.panes import Quarantined
from penstock.model.watermarks import FromColumn, Punctuated, TimeBase
from penstock.model.windows import Custom
from penstock.plan.graph import AnyStage
from penstock.plan.row_steps import Map, MapBatches, Project, RowStep, Where
from penstock.plan.stages import Input, Plan
from penstock.reference.aggregates import Record
from penstock.reference.expressions import evaluator
from penstock.runtime.batch import Arrival
from penstock.types.schema import Schema
from penstock.types.timestamps import MIN_TIME, event_time_of, plus
from penstock.types.validate import conforming, for_users, reason_of

Row = dict[str, Any]


class Stamped(NamedTuple):
    """What the watermark rule is told of an event: its time, and the watermark the source gave with it."""

    source: str
    partition: str
    time: int
    given: int


class Travelling(NamedTuple):
    """A row on its way, with its origin, and whether it comes (+1) or is withdrawn (-1)."""

    arrival: Arrival
    row: Row
    time: int
    op: int = 1


@dataclass
class Reading:
    """A batch on its way to the stages: what could not be used, and what row steps left out, added and dropped."""

    now: int
    bad: list[Quarantined] = field(default_factory=list)
    filtered: int = 0
    added: int = 0
    dropped: int = 0

    def stamped(self, one: Input, arrivals: list[Arrival]) -> tuple[list[Stamped], list[Travelling]]:
        """The rows of a source up to its event time."""
        rows = [Travelling(a, dict(a.row), 0) for a in arrivals if self._decoded(a)]
        held = one.source.schema
        for step in one.before:
            rows, held = self._step(step, rows, held), step.output(held)
        return self._stamped(one, rows, held)

    def prepared(self, stage: AnyStage, one: Input, rows: list[Travelling]) -> list[Record]:
        """Rows that have their event time, as they reach a stage."""
        held = one.stamped_schema
        for step in one.after:
            rows, held = self._step(step, rows, held), step.output(held)
        if isinstance(stage, Plan):
            rows = self._countable(stage, rows, held)
        return [
            Record(row.time, f"{row.arrival.source}/{row.arrival.partition}", row.arrival.offset, row.row, row.op)
            for row in rows
        ]

    def _decoded(self, arrival: Arrival) -> bool:
        if arrival.bad is not None:
            self._quarantine(arrival, "decode", arrival.bad)
        return arrival.bad is None

    def _quarantine(self, arrival: Arrival, step: str, reason: str) -> None:
        where = (arrival.source, arrival.partition, arrival.offset)
        self.bad.append(Quarantined(dict(arrival.row), *where, step, reason))

    def _stamped(self, one: Input, rows: list[Travelling], held: Schema) -> tuple[list[Stamped], list[Travelling]]:
        assert one.time is not None
        time = one.time
        stamps, kept = [], []
        for row in rows:
            try:
                stamp = self.now if time.column is None else _time(time, row.row, time.column, held)
                if time.watermark.max_skew is not None and stamp > plus(self.now, time.watermark.max_skew):
                    raise ValueError("event time is ahead of the processing clock by more than max_skew")
                given = self._given(time, row.row, stamp, held)
            except (ValueError, EvaluationError) as error:
                self._quarantine(row.arrival, "event_time", str(error))
                continue
            stamps.append(Stamped(row.arrival.source, row.arrival.partition, stamp, given))
            kept.append(row._replace(time=stamp))
        return stamps, kept

    def _given(self, time: TimeBase, row: Row, stamp: int, held: Schema) -> int:
        """The watermark a row carries: in its column, or by being a mark."""
        match time.watermark:
            case FromColumn(column=column):
                return MIN_TIME if row[column] is None else self._mark(time, row, column, held)
            case Punctuated(mark=mark):
                return stamp if evaluator(mark, held)(row) is True else MIN_TIME
        return MIN_TIME

    def _mark(self, time: TimeBase, row: Row, column: str, held: Schema) -> int:
        """The watermark that a row's column says, which a bad clock must not set far ahead."""
        mark, skew = _time(time, row, column, held), time.watermark.max_skew
        if skew is not None and mark > plus(self.now, skew):
            raise ValueError("the watermark it carries is ahead of the processing clock by more than max_skew")
        return mark

    def _step(self, step: RowStep, rows: list[Travelling], held: Schema) -> list[Travelling]:
        match step:
            case Where(predicate):
                test = evaluator(predicate, held) if isinstance(predicate, Node) else _called(predicate, bool, held)
                kept = [(row, self._try(row, "where", lambda row: [test(row.row) is True])) for row in rows]
                self.filtered += sum(1 for _, passed in kept if passed == [False])
                return [row for row, passed in kept if passed == [True]]
            case Project(columns, keep):
                made = [(name, evaluator(node, held)) for name, node in columns]
                return self._each(
                    rows, step.name, lambda row: {**(row if keep else {}), **{name: make(row) for name, make in made}}
                )
            case Map(function, output):
                return self._each(rows, "map", _called(function, lambda given: conforming(given, output), held))
            case MapBatches():
                return self._batches(step, rows, held)

    def _each(self, rows: list[Travelling], name: str, function: Callable[[Row], Row]) -> list[Travelling]:
        made = [(row, self._try(row, name, lambda row: [function(row.row)])) for row in rows]
        return [row._replace(row=new) for row, outcome in made for new in outcome]

    def _try(self, row: Travelling, name: str, function: Callable[[Travelling], list[Any]]) -> list[Any]:
        try:
            return function(row)
        except Exception as error:
            self._quarantine(row.arrival, name, reason_of(error))
            return []

    def _batches(self, step: MapBatches, rows: list[Travelling], held: Schema) -> list[Travelling]:

        try:
            made = rows_through_arrow(step, [row.row for row in rows], held)
            if len(made) == len(rows):
                return [row._replace(row=new) for row, new in zip(rows, made, strict=True)]
        except Exception:
            pass  # the row-by-row run below finds and names the rows that throw
        left: list[Travelling] = []
        one = _guarded(
            step.function, lambda row: rows_through_arrow(step, [row.row], held), lambda row: for_users(row.row, held)
        )
        for row in rows:
            bad = len(self.bad)
            made = self._try(row, "map_batches", one)
            left += [row._replace(row=new) for new in made]
            if len(self.bad) == bad:
                self.added += max(len(made) - 1, 0)
                self.dropped += not made
        return left

    def _countable(self, plan: Plan, rows: list[Travelling], held: Schema) -> list[Travelling]:
        """Quarantines rows on which an aggregate's `where` or a custom window fails, so that none is half taken."""
        tests = [evaluator(a.where, held) for _, a in plan.aggregates if a.where is not None]
        if tests:
            rows = [row for row in rows if self._try(row, "aggregate", lambda row: [[t(row.row) for t in tests]])]
        if isinstance(plan.window, Custom):
            rule = plan.window
            one = _guarded(rule.assigned, lambda row: [rule.assign(row.time)], lambda row: row.time)
            rows = [row for row in rows if self._try(row, "window", one)]
        return rows


def _time(time: TimeBase, row: Row, column: str, held: Schema) -> int:
    kind = held.type_of(column, "event_time")
    return event_time_of(row[column], "us" if kind == "timestamp" else time.unit)


def _called(function: Callable[[Row], Any], taken: Callable[[Any], Any], held: Schema) -> Callable[[Row], Any]:
    """A user's function of a row, and what is taken of its answer."""
    return _guarded(function, lambda row: taken(function(for_users(row, held))), lambda row: for_users(row, held))


def _guarded(function: Any, call: Callable[[Any], Any], value: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A call of a user's function, whose errors say where it failed and on what value."""

    def called(row: Any) -> Any:
        try:
            return call(row)
        except Exception as error:
            raise user_error(error, function, value(row)) from error

    return called


def rows_through_arrow(step: MapBatches, rows: Sequence[dict[str, Any]], schema: Schema) -> list[dict[str, Any]]:
    """Rows through a user's function of an Arrow batch; ValueError where it gives another schema than it declared."""
    from penstock.types.arrow import conforming_batch, from_arrow, to_arrow

    made = conforming_batch(step.function(to_arrow(rows, schema)), step.schema)
    return from_arrow(made, step.schema)
