"""Counts, sums and means of records that may be withdrawn: a withdrawal is added with its sign turned.

Integers are exact. A sum of floats that takes a number back is as exact as the largest that it ever held lets it be;
infinities and NaN are counted beside it, so that one that is withdrawn leaves no trace.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from penstock.engine.aggregates.exact_sum import WholeSum
from penstock.engine.aggregates.numeric import add_runs, nulls_of, numbers_of, with_nulls
from penstock.engine.aggregates.protocol import Columns, Grouped
from penstock.engine.columns.arrays import interleaved, lists_of, parents_of
from penstock.engine.columns.constants import constant
from penstock.engine.columns.keys import canonical
from penstock.engine.columns.sorting import groups_of, in_order, order_codes
from penstock.model.aggregates import LISTS, Aggregate, overflow
from penstock.types.arrow import arrow_type
from penstock.types.schema import Schema

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
        return (
            add_runs(signs, rows.starts),
            add_runs(finite, rows.starts),
            *(add_runs(signs * one, rows.starts) for one in odd),
        )

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


_BY_TIME = ("first", "last", "collect")
_DESCENDING = ("max", "last", "arg_max", "top_k")


@dataclass(frozen=True, slots=True)
class Multiset:
    """One column of lists: the values of each window in order, each with what ranks it and how often it is there."""

    aggregate: Aggregate
    rank: pa.DataType
    value: pa.DataType

    @property
    def _item(self) -> pa.StructType:
        return pa.struct([("rank", self.rank), ("value", self.value), ("times", pa.int64())])

    def types(self) -> tuple[pa.DataType, ...]:
        """A list of items."""
        return (pa.list_(self._item),)

    def zero(self, n: int) -> Columns:
        """No values yet."""
        return (lists_of(pa.array([], self._item), np.zeros(n, np.int64)),)

    def partial(self, rows: Grouped) -> Columns:
        """The values of each group of rows; in a part there may be more withdrawals than came."""
        values, signs = canonical(rows.values), signs_of(rows)
        by = values if rows.by is None else canonical(rows.by)
        rank = pa.array(rows.times) if self.aggregate.kind in _BY_TIME else by
        counted = (signs != 0) & rank.is_valid().to_numpy(zero_copy_only=False)
        places = np.flatnonzero(counted)
        taken = pa.array(places)
        groups = groups_of(rows.starts, len(values))[places]
        return self._held(groups, (rank.take(taken), values.take(taken)), signs[places], len(rows.starts))

    def grouped(self, held: Columns, starts: np.ndarray) -> Columns:
        """The values of each group of lists."""
        if len(starts) == len(held[0]):
            return held
        groups = groups_of(starts, len(held[0]))[parents_of(held[0])]
        rank, value, times = self._items(held)
        return self._held(groups, (rank, value), times, len(starts))

    def pairwise(self, left: Columns, right: Columns) -> Columns:
        """The values of both, row by row."""
        return self.grouped(*interleaved(left, right))

    def result(self, held: Columns) -> pa.Array:
        """The answer over the values that are left."""
        n, groups = len(held[0]), parents_of(held[0])
        rank, value, times = self._items(held)
        if self.aggregate.kind == "distinct":
            return pa.array(np.bincount(groups[times > 0], minlength=n))
        if self.aggregate.kind == "variance":
            return _variance(groups, value.cast(pa.float64(), safe=False).to_numpy(), times, n)
        codes = order_codes(rank)
        order = in_order(groups, [~codes if self.aggregate.kind in _DESCENDING else codes, order_codes(value)])
        order = np.repeat(order, np.maximum(times[order], 0))
        if not len(order):
            return pa.nulls(n, self.value) if self.aggregate.kind not in LISTS else lists_of(value, np.zeros(n, int))
        sorted_groups = groups[order]
        place = np.arange(len(order)) - np.searchsorted(sorted_groups, sorted_groups)
        first = order[place < (self.aggregate.size or 1)]
        if self.aggregate.kind in LISTS:
            return lists_of(value.take(pa.array(first)), np.bincount(groups[first], minlength=n))
        places = np.full(n, -1)
        places[groups[first]] = first
        return value.take(pa.array(places, mask=places < 0))

    def _items(self, held: Columns) -> tuple[pa.Array, pa.Array, np.ndarray]:
        flat = held[0].flatten()
        return flat.field(0), flat.field(1), flat.field(2).to_numpy()

    def _held(self, groups: np.ndarray, columns: Sequence[pa.Array], times: np.ndarray, n: int) -> Columns:
        """Equal values of a group put together, in order; what came as often as it was withdrawn is gone."""
        codes = [order_codes(column) for column in columns]
        order = in_order(groups, codes)
        groups, codes = groups[order], [code[order] for code in codes]
        new = np.ones(len(order), bool)
        new[1:] = np.diff(groups) != 0
        for code in codes:
            new[1:] |= code[1:] != code[:-1]
        starts = np.flatnonzero(new)
        total = np.add.reduceat(times[order], starts) if len(starts) else times[:0]
        left = total != 0
        taken = pa.array(order[starts][left])
        arrays = [*(column.take(taken) for column in columns), pa.array(total[left], pa.int64())]
        flat = pa.StructArray.from_arrays(arrays, fields=list(self._item))
        return (lists_of(flat, np.bincount(groups[starts][left], minlength=n)),)


def multiset(name: str, aggregate: Aggregate, schema: Schema) -> Multiset:
    """The accumulator of an aggregate that keeps its values."""
    where = f"{name} = {aggregate.kind}"
    assert aggregate.column is not None
    value = arrow_type(schema.type_of(aggregate.column, where))
    if aggregate.kind in _BY_TIME:
        return Multiset(aggregate, pa.int64(), value)
    return Multiset(aggregate, arrow_type(schema.type_of(aggregate.by or aggregate.column, where)), value)


def _variance(groups: np.ndarray, values: np.ndarray, times: np.ndarray, n: int) -> pa.Array:
    """Squares of distances from the mean, each as often as its value is there."""
    times = np.maximum(times, 0)
    count = np.bincount(groups, weights=times, minlength=n)
    origin = np.zeros(n)
    origin[groups[::-1]] = values[::-1]
    near = values - origin[groups]
    mean = np.bincount(groups, weights=near * times, minlength=n) / np.maximum(count, 1)
    spread = np.bincount(groups, weights=times * (near - mean[groups]) ** 2, minlength=n)
    return with_nulls(spread / np.maximum(count - 1, 1), count < 2)
