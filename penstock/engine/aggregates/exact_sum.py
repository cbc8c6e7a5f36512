"""Sums of integers that are never wrong: 64 bits and a carry, judged when a pane would show them.

A sum stands for `total + carry * 2**64`. The carry is nothing almost always, and then costs nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.engine.aggregates.numeric import Native, add_runs, nulls_of, numbers_of, with_nulls
from penstock.engine.aggregates.protocol import Columns, Grouped
from penstock.engine.columns.constants import constant, is_nothing
from penstock.model.aggregates import overflow

_SAFE = 2**62
_LOW = np.int64(0xFFFFFFFF)
_HALF = np.int64(32)


@dataclass(frozen=True, slots=True)
class WholeSum(Native):
    """How many integers, what they add up to, and how often that went round 64 bits."""

    def types(self) -> tuple[pa.DataType, ...]:
        return (pa.int64(), pa.int64(), pa.int64())

    def zero(self, n: int) -> Columns:
        return np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64), constant(0, n)

    def safe(self, values: pa.Array) -> bool:
        bounds = pc.min_max(values)
        low, high = bounds["min"].as_py() or 0, bounds["max"].as_py() or 0
        return max(-low, high) * max(len(values), 1) < _SAFE

    def from_arrow(self, outputs: list[pa.Array]) -> Columns:
        n, total = (numbers_of(column) for column in outputs)
        return n, total, constant(0, len(n))

    def partial(self, rows: Grouped) -> Columns:
        n = add_runs((~nulls_of(rows.values)).astype(np.int64), rows.starts)
        numbers = numbers_of(rows.values)
        return n, *_added(numbers, constant(0, len(numbers)), rows.starts)

    def regroups(self, held: Columns) -> bool:
        return _nothing(held[2]) and _bounded(held[1])

    def grouped(self, held: Columns, starts: np.ndarray) -> Columns:
        return add_runs(held[0], starts), *_added(held[1], held[2], starts)

    def pairwise(self, left: Columns, right: Columns) -> Columns:
        n, total = left[0] + right[0], left[1] + right[1]
        round_ = ((left[1] ^ total) & (right[1] ^ total)) < 0
        if _nothing(left[2]) and _nothing(right[2]) and not round_.any():
            return n, total, constant(0, len(n))
        return n, total, left[2] + right[2] + np.where(round_, np.where(left[1] < 0, -1, 1), 0)

    def result(self, held: Columns) -> pa.Array:
        if not _nothing(held[2]):
            raise overflow(self.name, self.aggregate)
        return with_nulls(held[1], held[0] == 0)


def _added(totals: np.ndarray, carries: np.ndarray, starts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The sums of runs and their carries: in halves of 32 bits where 64 might not do."""
    carried = constant(0, len(starts)) if _nothing(carries) else add_runs(carries, starts)
    if _bounded(totals):
        return add_runs(totals, starts), carried
    low, high = add_runs(totals & _LOW, starts), add_runs(totals >> _HALF, starts)
    high += low >> _HALF
    return (high << _HALF) | (low & _LOW), carried + ((high + np.int64(2**31)) >> _HALF)


def _nothing(carries: np.ndarray) -> bool:
    return is_nothing(carries) or not carries.any()


def _bounded(values: np.ndarray) -> bool:
    """Whether no sum over these values can leave 64 bits."""
    return len(values) == 0 or max(-int(values.min()), int(values.max())) * len(values) < _SAFE
