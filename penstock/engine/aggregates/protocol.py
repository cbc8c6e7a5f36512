"""What, in columns: how an aggregate keeps its accumulators, one row for each (key, window).

Accumulators are columns of equal length. Rows to be combined lie together: `starts` gives the first row of each group,
and the groups cover all rows. A value that is null does not count, so `where=` turns values into nulls beforehand.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

Column = np.ndarray | pa.Array
Columns = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Grouped:
    """A batch's rows, sorted so that those of a group lie together, in order of (partition, offset) within it.

    `ops` are their signs, or None where none can be withdrawn.
    """

    starts: np.ndarray
    values: pa.Array
    by: pa.Array | None
    times: np.ndarray
    partitions: pa.Array
    offsets: np.ndarray
    ops: np.ndarray | None = None


class Accumulator(Protocol):
    """One aggregate's columns and what can be done with them."""

    def types(self) -> tuple[pa.DataType, ...]:
        """The Arrow types of the columns, as they are stored."""

    def zero(self, n: int) -> Columns:
        """The accumulators of `n` windows without records."""

    def partial(self, rows: Grouped) -> Columns:
        """The accumulators of a batch's groups."""

    def grouped(self, held: Columns, starts: np.ndarray) -> Columns:
        """The accumulators of groups of accumulators."""

    def pairwise(self, left: Columns, right: Columns) -> Columns:
        """The accumulators of both, row by row."""

    def result(self, held: Columns) -> pa.Array:
        """The answers of windows with records; the caller fills in what an empty pane shows."""
