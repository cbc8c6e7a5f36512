"""The least and greatest text, date, time, boolean or decimal of each group."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.engine.aggregates.protocol import Columns, Grouped
from penstock.engine.columns.sorting import groups_of, leading


@dataclass(frozen=True, slots=True)
class Extreme:
    """One column with the best value so far, null where there is none."""

    type: pa.DataType
    greatest: bool

    def types(self) -> tuple[pa.DataType, ...]:
        """The type of the values themselves."""
        return (self.type,)

    def zero(self, n: int) -> Columns:
        """No value yet."""
        return (pa.nulls(n, self.type),)

    def partial(self, rows: Grouped) -> Columns:
        """The best value of each group of rows."""
        return self.grouped((rows.values,), rows.starts)

    def grouped(self, held: Columns, starts: np.ndarray) -> Columns:
        """The best value of each group."""
        (values,) = held
        if len(starts) == len(values):
            return held
        counted = np.flatnonzero(values.is_valid().to_numpy(zero_copy_only=False))
        groups, values = groups_of(starts, len(values))[counted], values.take(pa.array(counted))
        rows = leading(groups, (values,), self.greatest, 1)
        places = np.full(len(starts), -1)
        places[groups[rows]] = rows
        return (values.take(pa.array(places, mask=places < 0)),)

    def pairwise(self, left: Columns, right: Columns) -> Columns:
        """The better of both, row by row."""
        # Arrow compares neither booleans nor times with a zone element by element; the numbers below them it does.
        kind = {pa.bool_(): pa.int8()}.get(self.type, pa.int64() if pa.types.is_timestamp(self.type) else self.type)
        better = pc.max_element_wise if self.greatest else pc.min_element_wise
        return (better(left[0].cast(kind), right[0].cast(kind), skip_nulls=True).cast(self.type),)

    def result(self, held: Columns) -> pa.Array:
        """The best value, or null."""
        return held[0]
