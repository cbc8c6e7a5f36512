"""A plan made ready for columns: its accumulators, its key types, and which way its windows are kept."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.engine.aggregates.numeric import Native
from penstock.engine.aggregates.protocol import Accumulator
from penstock.engine.aggregates.registry import accumulator_of, signed_accumulator
from penstock.engine.columns.arrays import plus
from penstock.engine.windows.partials import Held
from penstock.model.aggregates import LISTS, ZERO_WHEN_EMPTY, Aggregate
from penstock.model.triggers import When
from penstock.model.windows import Custom, EventPair, Session, Sliding
from penstock.plan.stages import Plan
from penstock.types.arrow import arrow_schema, arrow_type


@dataclass(frozen=True)
class Compiled:
    """What every step of the engine needs to know of the plan."""

    plan: Plan

    @cached_property
    def signed(self) -> bool:
        """Whether records may be withdrawn."""
        return self.plan.signed

    @cached_property
    def aggregates(self) -> tuple[tuple[str, Aggregate], ...]:
        """The aggregates, and where records may be withdrawn, last, how many of them are left."""
        return (*self.plan.aggregates, ("@left", Aggregate("rows"))) if self.signed else self.plan.aggregates

    @cached_property
    def accumulators(self) -> tuple[Accumulator, ...]:
        if self.signed:
            return tuple(signed_accumulator(name, one, self.plan) for name, one in self.aggregates)
        return tuple(accumulator_of(name, one, self.plan.schema) for name, one in self.plan.aggregates)

    @cached_property
    def numeric(self) -> bool:
        """Whether every accumulator is made of numbers, in which the order of records leaves no trace."""
        return all(isinstance(accumulator, Native) for accumulator in self.accumulators)

    @cached_property
    def key_types(self) -> tuple[pa.DataType, ...]:
        return tuple(arrow_type(column.type) for column in self.plan.key_schema.columns)

    @cached_property
    def row_schema(self) -> pa.Schema:
        return arrow_schema(self.plan.schema)

    @cached_property
    def result_types(self) -> tuple[pa.DataType, ...]:
        return tuple(arrow_type(column.type) for column in self.plan.result_schema.columns)

    @cached_property
    def pane_schema(self) -> pa.Schema:
        """The columns of a pane; the last three are instants as numbers, infinities and all."""
        instant = pa.timestamp("us", tz="UTC")
        return pa.schema(
            [
                *zip(self.plan.keys, self.key_types, strict=True),
                ("window_start", instant),
                ("window_end", instant),
                *zip(self.plan.result_schema.names, self.result_types, strict=True),
                ("pane_index", pa.int64()),
                ("pane_timing", pa.dictionary(pa.int8(), pa.string())),
                ("pane_final", pa.bool_()),
                ("op", pa.int8()),
                ("@event_time", pa.int64()),
                ("@start", pa.int64()),
                ("@end", pa.int64()),
            ]
        )

    @cached_property
    def late_schema(self) -> pa.Schema:
        """The row as it reached the window, then why it is late."""
        missed = pa.list_(pa.struct([("start", pa.int64()), ("end", pa.int64())]))
        return pa.schema(
            [
                *self.row_schema,
                ("@event_time", pa.int64()),
                ("@watermark", pa.int64()),
                ("@late_by", pa.int64()),
                ("@partition", pa.string()),
                ("@offset", pa.int64()),
                ("@windows", missed),
                *([("@op", pa.int8())] if self.signed else []),
            ]
        )

    @cached_property
    def merging(self) -> bool:
        """Whether windows of a key may become one another."""
        return self.plan.window.merging

    @cached_property
    def by_slices(self) -> bool:
        """Whether windows show one pane, when they expire: then slices are enough, and no window has a state.

        A `when` that cannot be computed stops the run, also where its answer would not matter: so it is looked at.
        """
        asked = any(isinstance(part, When) for part in self.plan.trigger.walk())
        made = isinstance(self.plan.window, (Session, EventPair)) or self.merging
        return self.plan.fires_once and not asked and not made

    @cached_property
    def overlapping(self) -> bool:
        """Whether windows share slices."""
        return isinstance(self.plan.window, Sliding) and self.plan.window.size != self.plan.window.slide

    @cached_property
    def suspects(self) -> bool:
        """Whether an event whose own window has expired may still find another, and so travels as a row."""
        return isinstance(self.plan.window, (Session, EventPair)) or (
            isinstance(self.plan.window, Custom) and self.merging
        )

    def complete_at(self, end: np.ndarray) -> np.ndarray:
        """The least W under which windows with these ends are complete."""
        return plus(end, 1) if self.plan.window.closed else end

    def expires_at(self, end: np.ndarray) -> np.ndarray:
        """The least W under which windows with these ends have expired."""
        return plus(self.complete_at(end), self.plan.lateness)

    def emptied(self, held: Held) -> np.ndarray:
        """Which windows have no record left, of those that may be withdrawn; a piece is what it is."""
        left: np.ndarray = held[-1][0]
        return np.zeros(len(left), dtype=bool) if self.plan.pieces else left <= 0

    def results(self, held: Held, records: np.ndarray) -> tuple[pa.Array, ...]:
        """The aggregates' columns; a pane of no records shows what an empty pane shows."""
        made = []
        empty = self.emptied(held) if self.signed else records == 0
        computed = zip(self.accumulators, held, strict=True)
        for (_, aggregate), kind, (a, columns) in zip(self.plan.aggregates, self.result_types, computed, strict=False):
            column = a.result(columns)
            if column.type != kind:
                column = column.cast(kind)
            if empty.any():
                blank: Any = 0 if aggregate.kind in ZERO_WHEN_EMPTY else [] if aggregate.kind in LISTS else None
                filled = pa.array([blank], kind)
                order = np.where(empty, len(column), np.arange(len(column)))
                column = pa.concat_arrays([column, filled]).take(pa.array(order))
            made.append(column)
        return tuple(made)
