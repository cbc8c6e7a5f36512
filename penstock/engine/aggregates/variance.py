"""The variance of values far from zero: sums of distances from an origin that is one of the values.

Differences of near numbers are exact, so nothing is lost however large the numbers are themselves.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from penstock.engine.aggregates.numeric import Native, add_runs, nulls_of, numbers_of, with_nulls
from penstock.engine.aggregates.protocol import Columns, Grouped


@dataclass(frozen=True, slots=True)
class Variance(Native):
    """How many values, the origin, and the sums of the distances from it and of their squares."""

    def types(self) -> tuple[pa.DataType, ...]:
        return (pa.int64(), pa.float64(), pa.float64(), pa.float64())

    def safe(self, values: pa.Array) -> bool:
        """Arrow's group-by knows no origin."""
        return False

    def partial(self, rows: Grouped) -> Columns:
        values = rows.values.cast(pa.float64(), safe=False) if self.integer else rows.values
        there, numbers = ~nulls_of(values), numbers_of(values)
        nothing = np.zeros(len(numbers))
        return self.grouped((there.astype(np.int64), numbers, nothing, nothing), rows.starts)

    def regroups(self, held: Columns) -> bool:
        return False

    def grouped(self, held: Columns, starts: np.ndarray) -> Columns:
        n, origin, _, _ = held
        if not len(starts):
            return tuple(column[:0] for column in held)
        # The origin of a run is that of its first row that has values.
        place = np.where(n > 0, np.arange(len(n)), len(n) - 1)
        chosen = origin[np.minimum.reduceat(place, starts)]
        moved = _moved(held, np.repeat(chosen, np.diff(np.append(starts, len(n)))))
        return add_runs(n, starts), chosen, add_runs(moved[0], starts), add_runs(moved[1], starts)

    def pairwise(self, left: Columns, right: Columns) -> Columns:
        empty: np.ndarray = left[0] == 0
        origin: np.ndarray = left[1].copy()
        origin[empty] = right[1][empty]
        ours, theirs = _moved(left, origin), _moved(right, origin)
        return left[0] + right[0], origin, ours[0] + theirs[0], ours[1] + theirs[1]

    def result(self, held: Columns) -> pa.Array:
        n, _, first, second = held
        spread = second - first * first / np.maximum(n, 1)
        return with_nulls(np.maximum(spread, 0.0) / np.maximum(n - 1, 1), n < 2)


def _moved(held: Columns, origin: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The two sums as seen from another origin; nothing where there are no values."""
    n, old, first, second = held
    step = np.where(n > 0, old - origin, 0.0)
    return first + n * step, second + 2 * step * first + n * step * step
