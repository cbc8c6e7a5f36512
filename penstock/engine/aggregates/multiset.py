"""Least, greatest, first, last, best, different values and variance of records that may be withdrawn.

No one of these can be undone: the values themselves are kept, each with how often it is there, and the answer is that
of the values that are left. Of equal ranks the least value is first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from penstock.engine.aggregates.numeric import with_nulls
from penstock.engine.aggregates.protocol import Columns, Grouped
from penstock.engine.aggregates.retractable import signs_of
from penstock.engine.columns.arrays import interleaved
from penstock.engine.columns.keys import canonical
from penstock.engine.columns.lists import lists_of, parents_of
from penstock.engine.columns.sorting import groups_of, in_order, order_codes
from penstock.model.aggregates import LISTS, Aggregate
from penstock.types.arrow import arrow_type
from penstock.types.schema import Schema

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
