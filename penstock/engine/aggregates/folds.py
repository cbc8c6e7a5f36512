"""Aggregates of the user's own, group by group."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa

from penstock.engine.aggregates.protocol import Columns, Grouped
from penstock.engine.aggregates.sketches import grouped_each, pairwise_each, partial_each
from penstock.model.aggregates import Aggregate
from penstock.model.folds import NOTHING, fold_added, fold_combined, fold_result
from penstock.types.arrow import arrow_type


@dataclass(frozen=True, slots=True)
class Folded:
    """One column of accumulators as JSON; no text is the accumulator of nothing."""

    aggregate: Aggregate

    def types(self) -> tuple[pa.DataType, ...]:
        """Text."""
        return (pa.string(),)

    def zero(self, n: int) -> Columns:
        """Nothing folded yet."""
        return (pa.array([NOTHING] * n, pa.string()),)

    def partial(self, rows: Grouped) -> Columns:
        """The accumulator of each group of rows."""
        return (partial_each(rows, pa.string(), partial(fold_added, self.aggregate, NOTHING)),)

    def grouped(self, held: Columns, starts: np.ndarray) -> Columns:
        """The accumulator of each group of accumulators."""
        return (grouped_each(held[0], starts, partial(fold_combined, self.aggregate)),)

    def pairwise(self, left: Columns, right: Columns) -> Columns:
        """The accumulator of both, row by row."""
        return (pairwise_each(left[0], right[0], partial(fold_combined, self.aggregate)),)

    def result(self, held: Columns) -> pa.Array:
        """The user's answers, in the type that was declared."""
        answers = [fold_result(self.aggregate, accumulator) for accumulator in held[0].to_pylist()]
        return pa.array(answers, arrow_type(self.aggregate.type or "string"))
