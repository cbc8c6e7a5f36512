"""Approximate counts and quantiles of each group, in bounded space."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa

from penstock.engine.aggregates.opaque import grouped_each, pairwise_each, partial_each
from penstock.engine.aggregates.protocol import Columns, Grouped
from penstock.model.aggregates import Aggregate
from penstock.model.sketches import new_sketch, sketch_result, union_sketches, update_sketch


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
