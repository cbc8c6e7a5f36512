"""Approximate counts and quantiles of each group, in bounded space."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial, reduce
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.engine.aggregates.protocol import Columns, Grouped
from penstock.engine.columns.arrays import plain_values
from penstock.model.aggregates import Aggregate
from penstock.model.sketches import new_sketch, sketch_result, union_sketches, update_sketch

Combine = Callable[[Any, Any], Any]


def partial_each(rows: Grouped, kind: pa.DataType, added: Callable[[list[Any]], Any]) -> pa.Array:
    """What `added` makes of the values of each group."""
    counted = np.concatenate([[0], np.cumsum(rows.values.is_valid().to_numpy(zero_copy_only=False))])
    values = plain_values(rows.values)
    bounds = counted[np.append(rows.starts, len(rows.values))].tolist()
    return pa.array([added(values[a:b]) for a, b in pairwise(bounds)], kind)


def grouped_each(held: pa.Array, starts: np.ndarray, combined: Combine) -> pa.Array:
    """The accumulators of each group, combined from left to right."""
    if len(starts) == len(held):
        return held
    states, bounds = held.to_pylist(), [*starts.tolist(), len(held)]
    return pa.array([reduce(combined, states[a:b]) for a, b in pairwise(bounds)], held.type)


def pairwise_each(left: pa.Array, right: pa.Array, combined: Combine) -> pa.Array:
    """The accumulators of both, row by row."""
    return pa.array([combined(a, b) for a, b in zip(left.to_pylist(), right.to_pylist(), strict=True)], left.type)


@dataclass(frozen=True, slots=True)
class Sketch:
    """One column of sketches as bytes; no bytes are the sketch of nothing."""

    aggregate: Aggregate

    def types(self) -> tuple[pa.DataType, ...]:
        """Bytes."""
        return (pa.binary(),)

    def zero(self, n: int) -> Columns:
        """Sketches of nothing."""
        return (pa.array([new_sketch(self.aggregate)] * n, pa.binary()),)

    def partial(self, rows: Grouped) -> Columns:
        """The sketch of each group of rows."""
        return (partial_each(rows, pa.binary(), partial(update_sketch, self.aggregate, new_sketch(self.aggregate))),)

    def grouped(self, held: Columns, starts: np.ndarray) -> Columns:
        """The sketch of each group of sketches."""
        return (grouped_each(held[0], starts, partial(union_sketches, self.aggregate)),)

    def pairwise(self, left: Columns, right: Columns) -> Columns:
        """The sketch of both, row by row."""
        return (pairwise_each(left[0], right[0], partial(union_sketches, self.aggregate)),)

    def result(self, held: Columns) -> pa.Array:
        """What the sketches say."""
        kind = pa.int64() if self.aggregate.kind == "approx_distinct" else pa.float64()
        return pa.array([sketch_result(self.aggregate, sketch) for sketch in held[0].to_pylist()], kind)
