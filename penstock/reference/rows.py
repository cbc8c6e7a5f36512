"""Rows before windows, one at a time: filter, project, map, stamp with event time, or quarantine with the reason."""

from __future__ import annotations

from collections.abc import Callable
from operator import add
from typing import Any, NamedTuple

from penstock.batch import Arrival
from penstock.decode import conforming, for_users, reason_of
from penstock.event_time import FromColumn, Punctuated
from penstock.expression import EvaluationError, Node
from penstock.instant import MIN_TIME, event_time_of, plus
from penstock.pane import Quarantined
from penstock.plan import Input, Plan
from penstock.reference.accumulate import Record
from penstock.reference.expression import evaluator
from penstock.row_steps import Map, MapBatches, Project, RowStep, Where
from penstock.schema import Schema
from penstock.window import Custom

Row = dict[str, Any]


class Stamped(NamedTuple):
    """What the watermark rule is told of an event: its time, and the watermark the source gave with it."""

    source: str
    partition: str
    time: int
    given: int


class Read(NamedTuple):
    """A batch's rows, sorted into those for the windows, those to quarantine, and what became of the rest."""

    records: list[Record]
    stamps: list[Stamped]
    quarantined: list[Quarantined]
    filtered: int
    added: int
    dropped: int


class _Travelling(NamedTuple):
    """A row on its way, with its origin."""

    arrival: Arrival
    row: Row
    time: int


def read(plan: Plan, arrivals: list[Arrival], now: int) -> Read:
    """All row steps of all inputs over a batch."""
    whole = Read([], [], [], 0, 0, 0)
    for one in plan.inputs:
        part = _Reader(plan, one, now).read([a for a in arrivals if a.source == one.source.name])
        whole = Read(*map(add, whole, part))
    return whole


class _Reader:
    """One input's rows in one batch."""

    def __init__(self, plan: Plan, one: Input, now: int) -> None:
        self.plan, self.input, self.now = plan, one, now
        self.bad: list[Quarantined] = []
        self.filtered = self.added = self.dropped = 0

    def read(self, arrivals: list[Arrival]) -> Read:
        rows = [_Travelling(a, dict(a.row), 0) for a in arrivals if self._decoded(a)]
        held = self.input.source.schema
        for step in self.input.before:
            rows, held = self._step(step, rows, held), step.output(held)
        stamps, rows = self._stamped(rows, held)
        for step in self.input.after:
            rows, held = self._step(step, rows, held), step.output(held)
        rows = self._countable(rows, held)
        records = [
            Record(row.time, f"{row.arrival.source}/{row.arrival.partition}", row.arrival.offset, row.row)
            for row in rows
        ]
        return Read(records, stamps, self.bad, self.filtered, self.added, self.dropped)

    def _decoded(self, arrival: Arrival) -> bool:
        if arrival.bad is not None:
            self._quarantine(arrival, "decode", arrival.bad)
        return arrival.bad is None

    def _quarantine(self, arrival: Arrival, step: str, reason: str) -> None:
        where = (arrival.source, arrival.partition, arrival.offset)
        self.bad.append(Quarantined(dict(arrival.row), *where, step, reason))

    def _stamped(self, rows: list[_Travelling], held: Schema) -> tuple[list[Stamped], list[_Travelling]]:
        time = self.input.time
        assert time is not None
        stamps, kept = [], []
        for row in rows:
            try:
                stamp = self.now if time.column is None else self._time(row.row, time.column, held)
                if time.watermark.max_skew is not None and stamp > plus(self.now, time.watermark.max_skew):
                    raise ValueError("event time is ahead of the processing clock by more than max_skew")
                given = self._given(row.row, stamp, held)
            except (ValueError, EvaluationError) as error:
                self._quarantine(row.arrival, "event_time", str(error))
                continue
            stamps.append(Stamped(row.arrival.source, row.arrival.partition, stamp, given))
            kept.append(row._replace(time=stamp))
        return stamps, kept

    def _time(self, row: Row, column: str, held: Schema) -> int:
        assert self.input.time is not None
        kind = held.type_of(column, "event_time")
        return event_time_of(row[column], "us" if kind == "timestamp" else self.input.time.unit)

    def _given(self, row: Row, stamp: int, held: Schema) -> int:
        """The watermark a row carries: in its column, or by being a mark."""
        assert self.input.time is not None
        match self.input.time.watermark:
            case FromColumn(column=column):
                return MIN_TIME if row[column] is None else self._mark(row, column, held)
            case Punctuated(mark=mark):
                return stamp if evaluator(mark, held)(row) is True else MIN_TIME
        return MIN_TIME

    def _mark(self, row: Row, column: str, held: Schema) -> int:
        """The watermark that a row's column says, which a bad clock must not set far ahead."""
        assert self.input.time is not None
        mark, skew = self._time(row, column, held), self.input.time.watermark.max_skew
        if skew is not None and mark > plus(self.now, skew):
            raise ValueError("the watermark it carries is ahead of the processing clock by more than max_skew")
        return mark

    def _step(self, step: RowStep, rows: list[_Travelling], held: Schema) -> list[_Travelling]:
        match step:
            case Where(predicate):
                test = evaluator(predicate, held) if isinstance(predicate, Node) else _for_users(predicate, held)
                kept = [(row, self._try(row, "where", lambda row: [bool(test(row.row))])) for row in rows]
                self.filtered += sum(1 for _, passed in kept if passed == [False])
                return [row for row, passed in kept if passed == [True]]
            case Project(columns, keep):
                made = [(name, evaluator(node, held)) for name, node in columns]
                return self._each(
                    rows, step.name, lambda row: {**(row if keep else {}), **{name: make(row) for name, make in made}}
                )
            case Map(function, output):
                return self._each(rows, "map", lambda row: conforming(function(for_users(row, held)), output))
            case MapBatches():
                return self._batches(step, rows, held)

    def _each(self, rows: list[_Travelling], name: str, function: Callable[[Row], Row]) -> list[_Travelling]:
        made = [(row, self._try(row, name, lambda row: [function(row.row)])) for row in rows]
        return [row._replace(row=new) for row, outcome in made for new in outcome]

    def _try(self, row: _Travelling, name: str, function: Callable[[_Travelling], list[Any]]) -> list[Any]:
        try:
            return function(row)
        except Exception as error:
            self._quarantine(row.arrival, name, reason_of(error))
            return []

    def _batches(self, step: MapBatches, rows: list[_Travelling], held: Schema) -> list[_Travelling]:
        from penstock.arrow import rows_through_arrow

        try:
            made = rows_through_arrow(step, [row.row for row in rows], held)
            if len(made) == len(rows):
                return [row._replace(row=new) for row, new in zip(rows, made, strict=True)]
        except Exception:
            pass  # the row-by-row run below finds and names the rows that throw
        left: list[_Travelling] = []
        for row in rows:
            bad = len(self.bad)
            made = self._try(row, "map_batches", lambda row: rows_through_arrow(step, [row.row], held))
            left += [row._replace(row=new) for new in made]
            if len(self.bad) == bad:
                self.added += max(len(made) - 1, 0)
                self.dropped += not made
        return left

    def _countable(self, rows: list[_Travelling], held: Schema) -> list[_Travelling]:
        """Quarantines rows on which an aggregate's `where` or a custom window fails, so that none is half taken."""
        tests = [evaluator(a.where, held) for _, a in self.plan.aggregates if a.where is not None]
        if tests:
            rows = [row for row in rows if self._try(row, "aggregate", lambda row: [[t(row.row) for t in tests]])]
        if isinstance(self.plan.window, Custom):
            assign = self.plan.window.assign
            rows = [row for row in rows if self._try(row, "window", lambda row: [assign(row.time)])]
        return rows


def _for_users(function: Callable[[Row], Any], held: Schema) -> Callable[[Row], Any]:
    return lambda row: function(for_users(row, held))
