"""The values that come first in an order: first, last, arg_min, arg_max, top_k and collect, by one sort."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from penstock.engine.aggregates.protocol import Columns, Grouped
from penstock.engine.columns.arrays import interleaved, lists_of, parents_of
from penstock.engine.columns.keys import canonical
from penstock.engine.columns.sorting import groups_of, leading
from penstock.model.aggregates import LISTS, Aggregate
from penstock.types.arrow import arrow_type
from penstock.types.schema import Schema

_BY_TIME = ("first", "last", "collect")
_DESCENDING = ("last", "arg_max", "top_k")
_FIELDS = ("rank", "partition", "offset", "value")


@dataclass(frozen=True, slots=True)
class Items:
    """Values with what orders them, flat: the group of each, and the columns rank, partition, offset and value."""

    groups: np.ndarray
    columns: Columns

    def take(self, rows: np.ndarray) -> Items:
        """These rows of them."""
        indices = pa.array(rows)
        return Items(self.groups[rows], tuple(column.take(indices) for column in self.columns))


@dataclass(frozen=True, slots=True)
class Ordered:
    """The first items of each window: four columns where one is kept, one column of lists where several are."""

    aggregate: Aggregate
    rank: pa.DataType
    value: pa.DataType

    def types(self) -> tuple[pa.DataType, ...]:
        """Rank, partition, offset and value, or lists of those."""
        kinds = (self.rank, pa.string(), pa.int64(), self.value)
        if self.aggregate.kind not in LISTS:
            return kinds
        return (pa.list_(pa.struct(list(zip(_FIELDS, kinds, strict=True)))),)

    def zero(self, n: int) -> Columns:
        """No items yet."""
        if self.aggregate.kind not in LISTS:
            return tuple(pa.nulls(n, kind) for kind in self.types())
        return (lists_of(pa.array([], self.types()[0].value_type), np.zeros(n, np.int64)),)

    def partial(self, rows: Grouped) -> Columns:
        """The first items of each group of rows, which lie in order of partition and offset already."""
        values = canonical(rows.values)
        by = values if rows.by is None else canonical(rows.by)
        rank = pa.array(rows.times) if self.aggregate.kind in _BY_TIME else by
        columns = (rank, rows.partitions, pa.array(rows.offsets), values)
        items = _counted(Items(groups_of(rows.starts, len(values)), columns))
        return self._held(self._first(items, ties=0), len(rows.starts))

    def grouped(self, held: Columns, starts: np.ndarray) -> Columns:
        """The first items of each group of accumulators."""
        if len(starts) == len(held[0]):
            return held
        items = self._items(held)
        items = Items(groups_of(starts, len(held[0]))[items.groups], items.columns)
        return self._held(self._first(items, ties=2), len(starts))

    def pairwise(self, left: Columns, right: Columns) -> Columns:
        """The first items of both, row by row."""
        return self.grouped(*interleaved(left, right))

    def result(self, held: Columns) -> pa.Array:
        """The value or null; the list of values or an empty one."""
        if self.aggregate.kind not in LISTS:
            return held[3]
        return lists_of(held[0].flatten().field(3), held[0].value_lengths().to_numpy(zero_copy_only=False))

    def _first(self, items: Items, ties: int) -> Items:
        keys, descending = items.columns[: 1 + ties], self.aggregate.kind in _DESCENDING
        return items.take(leading(items.groups, keys, descending, self.aggregate.size or 1))

    def _items(self, held: Columns) -> Items:
        if self.aggregate.kind not in LISTS:
            return _counted(Items(np.arange(len(held[0])), held))
        flat = held[0].flatten()
        return Items(parents_of(held[0]), tuple(flat.field(field) for field in range(len(_FIELDS))))

    def _held(self, items: Items, n: int) -> Columns:
        if self.aggregate.kind in LISTS:
            flat = pa.StructArray.from_arrays(list(items.columns), fields=list(self.types()[0].value_type))
            return (lists_of(flat, np.bincount(items.groups, minlength=n)),)
        if len(items.groups) == n:
            return items.columns
        places = np.full(n, -1)
        places[items.groups] = np.arange(len(items.groups))
        indices = pa.array(places, mask=places < 0)
        return tuple(column.take(indices) for column in items.columns)


def ordered(name: str, aggregate: Aggregate, schema: Schema) -> Ordered:
    """The accumulator of an aggregate that keeps the first in an order."""
    where = f"{name} = {aggregate.kind}"
    assert aggregate.column is not None
    value = arrow_type(schema.type_of(aggregate.column, where))
    if aggregate.kind in _BY_TIME:
        return Ordered(aggregate, pa.int64(), value)
    return Ordered(aggregate, arrow_type(schema.type_of(aggregate.by or aggregate.column, where)), value)


def _counted(items: Items) -> Items:
    rank, _, _, value = items.columns
    if not rank.null_count and not value.null_count:
        return items
    counted = rank.is_valid().to_numpy(zero_copy_only=False) & value.is_valid().to_numpy(zero_copy_only=False)
    return items.take(np.flatnonzero(counted))
