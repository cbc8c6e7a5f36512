"""How many different values each group has, exactly."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from penstock.engine.aggregates.protocol import Columns, Grouped
from penstock.engine.columns.arrays import interleaved, lists_of, parents_of
from penstock.engine.columns.keys import canonical
from penstock.engine.columns.sorting import groups_of, in_order, order_codes


@dataclass(frozen=True, slots=True)
class Distinct:
    """One column of lists: the different values of each window, sorted, so that equal sets are equal bytes."""

    type: pa.DataType

    def types(self) -> tuple[pa.DataType, ...]:
        """A list of the values' type."""
        return (pa.list_(self.type),)

    def zero(self, n: int) -> Columns:
        """No values yet."""
        return (lists_of(pa.array([], self.type), np.zeros(n, np.int64)),)

    def partial(self, rows: Grouped) -> Columns:
        """The different values of each group of rows."""
        counted = np.flatnonzero(rows.values.is_valid().to_numpy(zero_copy_only=False))
        groups = groups_of(rows.starts, len(rows.values))[counted]
        return self._unique(groups, canonical(rows.values.take(pa.array(counted))), len(rows.starts))

    def grouped(self, held: Columns, starts: np.ndarray) -> Columns:
        """The different values of each group of lists."""
        if len(starts) == len(held[0]):
            return held
        return self._unique(groups_of(starts, len(held[0]))[parents_of(held[0])], held[0].flatten(), len(starts))

    def pairwise(self, left: Columns, right: Columns) -> Columns:
        """The different values of both, row by row."""
        return self.grouped(*interleaved(left, right))

    def result(self, held: Columns) -> pa.Array:
        """How many there are."""
        return held[0].value_lengths().cast(pa.int64())

    def _unique(self, groups: np.ndarray, values: pa.Array, n: int) -> Columns:
        codes = order_codes(values)
        order = in_order(groups, [codes])
        groups, codes = groups[order], codes[order]
        new = np.ones(len(order), bool)
        new[1:] = (np.diff(groups) != 0) | (codes[1:] != codes[:-1])
        return (lists_of(values.take(pa.array(order[new])), np.bincount(groups[new], minlength=n)),)
