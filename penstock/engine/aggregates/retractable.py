"""Counts, sums and means of records that may be withdrawn: a withdrawal is added with its sign turned.

Integers are exact. A sum of floats that takes a number back is as exact as the largest that it ever held lets it be;
infinities and NaN are counted beside it, so that one that is withdrawn leaves no trace.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from penstock.engine.aggregates.exact_sum import WholeSum
from penstock.engine.aggregates.numeric import add_runs, nulls_of, numbers_of, with_nulls
from penstock.engine.aggregates.protocol import Columns, Grouped
from penstock.engine.columns.constants import constant
from penstock.model.aggregates import Aggregate, overflow

_INT, _FLOAT = pa.int64(), pa.float64()


def signs_of(rows: Grouped) -> np.ndarray:
    """The sign of each row whose value counts, nothing where it is null."""
    signs = np.ones(len(rows.values), np.int64) if rows.ops is None else rows.ops.astype(np.int64)
    return np.where(nulls_of(rows.values), 0, signs)


@dataclass(frozen=True, slots=True)
class SignedCount:
    """How many are left."""

    def types(self) -> tuple[pa.DataType, ...]:
        return (_INT,)

    def zero(self, n: int) -> Columns:
        return (np.zeros(n, dtype=np.int64),)

    def partial(self, rows: Grouped) -> Columns:
        return (add_runs(signs_of(rows), rows.starts),)

    def grouped(self, held: Columns, starts: np.ndarray) -> Columns:
        return (add_runs(held[0], starts),)

    def pairwise(self, left: Columns, right: Columns) -> Columns:
        return (left[0] + right[0],)

    def result(self, held: Columns) -> pa.Array:
        return pa.array(held[0])


@dataclass(frozen=True, slots=True)
class SignedWhole:
    """A sum or mean of integers: how many are left, and their sum as `WholeSum` keeps it."""

    name: str
    aggregate: Aggregate
    pieces: bool

    @property
    def _sum(self) -> WholeSum:
        return WholeSum(self.name, self.aggregate, True)

    def types(self) -> tuple[pa.DataType, ...]:
        return self._sum.types()

    def zero(self, n: int) -> Columns:
        return self._sum.zero(n)

    def partial(self, rows: Grouped) -> Columns:
        """What came, and against it what was withdrawn: the least integer has no counterpart to be added instead."""
        came, gone = (self._sum.partial(_only(rows, sign)) for sign in (1, -1))
        return self.pairwise(came, _turned(gone))

    def grouped(self, held: Columns, starts: np.ndarray) -> Columns:
        return self._sum.grouped(held, starts)

    def pairwise(self, left: Columns, right: Columns) -> Columns:
        return self._sum.pairwise(left, right)

    def result(self, held: Columns) -> pa.Array:
        n, total, carry = held
        if self.aggregate.kind == "mean":
            return with_nulls((total + carry * 2.0**64) / np.where(n == 0, 1, n), n == 0)
        if carry.any():
            raise overflow(self.name, self.aggregate)
        return pa.array(total) if self.pieces else with_nulls(total, n == 0)


@dataclass(frozen=True, slots=True)
class SignedFloat:
    """A sum or mean of floats: how many are left, the sum of the finite ones, and how many are NaN, +inf and -inf."""

    aggregate: Aggregate
    pieces: bool

    def types(self) -> tuple[pa.DataType, ...]:
        return (_INT, _FLOAT, _INT, _INT, _INT)

    def zero(self, n: int) -> Columns:
        return tuple(np.zeros(n, dtype=np.int64 if kind == _INT else np.float64) for kind in self.types())

    def partial(self, rows: Grouped) -> Columns:
        signs, numbers = signs_of(rows), numbers_of(rows.values)
        finite = np.where(np.isfinite(numbers), numbers, 0.0) * signs
        odd = (np.isnan(numbers), np.isposinf(numbers), np.isneginf(numbers))
        return (add_runs(signs, rows.starts), add_runs(finite, rows.starts),
                *(add_runs(signs * one, rows.starts) for one in odd))  # fmt: skip

    def grouped(self, held: Columns, starts: np.ndarray) -> Columns:
        return tuple(add_runs(column, starts) for column in held)

    def pairwise(self, left: Columns, right: Columns) -> Columns:
        return tuple(a + b for a, b in zip(left, right, strict=True))

    def result(self, held: Columns) -> pa.Array:
        n, total, nan, up, down = held
        if self.pieces:
            return pa.array(np.where((nan != 0) | (up != 0) | (down != 0), np.nan, total + 0.0))
        whole = np.where(up > 0, np.inf, np.where(down > 0, -np.inf, total + 0.0))
        whole = np.where((nan > 0) | ((up > 0) & (down > 0)), np.nan, whole)
        if self.aggregate.kind == "mean":
            whole = whole / np.maximum(n, 1)
        return with_nulls(whole, n <= 0)


def _only(rows: Grouped, sign: int) -> Grouped:
    """The same groups, with the values of one sign."""
    other = signs_of(rows) != sign
    values = pa.array(numbers_of(rows.values), _INT, mask=other)
    return Grouped(rows.starts, values, None, rows.times, rows.partitions, rows.offsets)


def _turned(held: Columns) -> Columns:
    """The sums with their signs turned: the least integer goes round 64 bits and back to itself."""
    n, total, carry = held
    least = total == np.iinfo(np.int64).min
    turned = constant(0, len(n)) if not carry.any() and not least.any() else least - carry
    return -n, -total, turned
