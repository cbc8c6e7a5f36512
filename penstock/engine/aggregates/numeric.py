"""Counts, sums, means and numeric extremes: accumulators of plain numbers, by Arrow's own group-by."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.engine.aggregates.protocol import Columns, Grouped
from penstock.model.aggregates import Aggregate

Spec = tuple[str, str, Any]
_INT, _FLOAT = pa.int64(), pa.float64()


@dataclass(frozen=True, slots=True)
class Native:
    """An aggregate whose accumulators are numbers: `n`, how many values, and what they add up to."""

    name: str
    aggregate: Aggregate
    integer: bool

    @property
    def counts_all(self) -> bool:
        """Whether it counts every record, as the cells themselves do."""
        return self.aggregate.kind == "rows" and self.aggregate.where is None

    def types(self) -> tuple[pa.DataType, ...]:
        match self.aggregate.kind:
            case "rows" | "count":
                return (_INT,)
            case "min" | "max":
                return (_INT, _INT)
        return (_INT, _FLOAT)

    def zero(self, n: int) -> Columns:
        return tuple(np.zeros(n, dtype=np.int64 if kind == _INT else np.float64) for kind in self.types())

    def specs(self, column: str) -> list[Spec]:
        """What Arrow's group-by is asked for, over the column that holds the values."""
        counted: Spec = (column, "count", None)
        match self.aggregate.kind:
            case "rows" | "count":
                return [counted]
            case "min" | "max":
                return [counted, (column, self.aggregate.kind, None)]
        return [counted, (column, "sum", None)]

    def prepared(self, values: pa.Array) -> pa.Array:
        """The values as Arrow's group-by should see them: floats to be ordered become integers in the same order."""
        if self.aggregate.kind in ("min", "max") and not self.integer:
            return pa.array(_ordered(values.fill_null(0.0).to_numpy()), _INT, mask=nulls_of(values))
        if self.aggregate.kind == "mean" and self.integer:
            return values.cast(_FLOAT, safe=False)
        return values

    def safe(self, values: pa.Array) -> bool:
        """Whether Arrow's group-by may add these values up: it does not say when integers leave 64 bits."""
        return True

    def from_arrow(self, outputs: list[pa.Array]) -> Columns:
        """The accumulators from what Arrow's group-by gave for `specs`."""
        plain = [numbers_of(column) for column in outputs]
        if self.aggregate.kind == "mean":
            return plain[0], plain[1].astype(np.float64, copy=False)
        return tuple(plain)

    def partial(self, rows: Grouped) -> Columns:
        values = self.prepared(rows.values)
        present = ~nulls_of(values)
        n = add_runs(present.astype(np.int64), rows.starts)
        if self.aggregate.kind in ("rows", "count"):
            return (n,)
        numbers = numbers_of(values)
        match self.aggregate.kind:
            case "min" | "max":
                return n, self._extreme(numbers, present, rows.starts)
        return n, add_runs(numbers, rows.starts)

    def regroups(self, held: Columns) -> bool:
        """Whether Arrow's group-by may combine these accumulators."""
        return True

    def regrouped(self, held: Columns) -> list[tuple[pa.Array, str]]:
        """The accumulators and how Arrow's group-by combines each."""
        if self.aggregate.kind in ("min", "max"):
            return [(pa.array(held[0]), "sum"), (with_nulls(held[1], held[0] == 0), self.aggregate.kind)]
        return [(pa.array(column), "sum") for column in held]

    def spanning(self, held: Columns) -> tuple[np.ufunc, ...] | None:
        """How stretches of accumulators are reduced, column by column, where that is all there is to it."""
        if self.aggregate.kind in ("min", "max"):
            best = np.minimum if self.aggregate.kind == "min" else np.maximum
            return (np.add, best) if (held[0] > 0).all() else None
        return (np.add,) * len(held) if self.regroups(held) else None

    def grouped(self, held: Columns, starts: np.ndarray) -> Columns:
        n = add_runs(held[0], starts)
        match self.aggregate.kind:
            case "rows" | "count":
                return (n,)
            case "min" | "max":
                return n, self._extreme(held[1], held[0] > 0, starts)
        return n, add_runs(held[1], starts)

    def pairwise(self, left: Columns, right: Columns) -> Columns:
        n = left[0] + right[0]
        match self.aggregate.kind:
            case "rows" | "count":
                return (n,)
            case "min" | "max":
                better = np.minimum if self.aggregate.kind == "min" else np.maximum
                both = better(left[1], right[1])
                return n, np.where(left[0] == 0, right[1], np.where(right[0] == 0, left[1], both))
        return n, left[1] + right[1]

    def result(self, held: Columns) -> pa.Array:
        n = held[0]
        match self.aggregate.kind:
            case "rows" | "count":
                return pa.array(n)
            case "min" | "max":
                values = held[1] if self.integer else _unordered(held[1])
                return with_nulls(values, n == 0)
            case "mean":
                return with_nulls(held[1] / np.maximum(n, 1), n == 0)
        # One zero, whatever signs were added up.
        return with_nulls(held[1] + 0.0, n == 0)

    def _extreme(self, values: np.ndarray, present: np.ndarray, starts: np.ndarray) -> np.ndarray:
        least = self.aggregate.kind == "min"
        limits = np.iinfo(np.int64)
        seen = np.where(present, values, limits.max if least else limits.min)
        found = (np.minimum if least else np.maximum).reduceat(seen, starts) if len(starts) else seen[:0]
        empty = add_runs(present.astype(np.int64), starts) == 0
        return np.where(empty, 0, found)


def add_runs(values: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """The sum of each run of rows."""
    return np.add.reduceat(values, starts) if len(starts) else values[:0]


def nulls_of(values: pa.Array) -> np.ndarray:
    """Where a column is null."""
    if not values.null_count:
        return np.zeros(len(values), dtype=bool)
    return values.is_null().to_numpy(zero_copy_only=False)


def numbers_of(column: pa.Array) -> np.ndarray:
    """A column as plain numbers, 0 where it is null."""
    return column.fill_null(0).to_numpy() if column.null_count else column.to_numpy()


def with_nulls(values: np.ndarray, nulls: np.ndarray) -> pa.Array:
    """Numbers as a column that is null where it is told to be."""
    return pa.array(values, mask=nulls) if nulls.any() else pa.array(values)


def _ordered(values: np.ndarray) -> np.ndarray:
    """Floats as integers in the same order: negative below positive, one zero, one NaN above all."""
    canonical = np.where(np.isnan(values), np.nan, values + 0.0)
    bits = np.ascontiguousarray(canonical).view(np.int64)
    return np.where(bits < 0, bits ^ np.int64(0x7FFFFFFFFFFFFFFF), bits)


def _unordered(bits: np.ndarray) -> np.ndarray:
    return np.where(bits < 0, bits ^ np.int64(0x7FFFFFFFFFFFFFFF), bits).view(np.float64)
