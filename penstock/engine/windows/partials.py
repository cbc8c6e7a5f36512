"""One row for each (key, window): what INGEST sends to a shard, and what a shard's memory is made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.engine.aggregates.protocol import Accumulator, Columns
from penstock.engine.columns.constants import changed, compressed, join, pick, places, reduced
from penstock.engine.columns.keys import Keys

Held = tuple[Columns, ...]
CELL_NUMBERS = ("hash", "start", "end", "records", "newest", "since")


@dataclass(frozen=True, slots=True)
class Cells:
    """Keys with their hash, windows, how many records each holds, and the accumulators.

    `newest` is the event time of the newest record, `since` the W under which the first one came.
    """

    keys: Keys
    hash: np.ndarray
    start: np.ndarray
    end: np.ndarray
    records: np.ndarray
    newest: np.ndarray
    since: np.ndarray
    held: Held

    def __len__(self) -> int:
        return len(self.start)

    def take(self, rows: np.ndarray) -> Cells:
        """These rows, in this order; a mask keeps where it is true."""
        rows = places(rows)
        return Cells(
            keys=take_arrays(self.keys, rows),
            **{name: pick(getattr(self, name), rows) for name in CELL_NUMBERS},
            held=take_held(self.held, rows),
        )

    def settled(self) -> Cells:
        """The same rows as they are kept: a column of numbers that is one value is kept as one."""
        numbers: dict[str, Any] = {name: compressed(getattr(self, name)) for name in CELL_NUMBERS}
        return replace(self, **numbers)


def empty_cells(key_types: Sequence[pa.DataType], accumulators: Sequence[Accumulator]) -> Cells:
    """No cells at all."""
    none = np.empty(0, dtype=np.int64)
    keys = tuple(pa.array([], kind) for kind in key_types)
    return Cells(keys, none.astype(np.uint64), none, none, none, none, none, tuple(a.zero(0) for a in accumulators))


def concat_cells(parts: Sequence[Cells]) -> Cells:
    """Cells one after the other."""
    if len(parts) == 1:
        return parts[0]
    return Cells(
        keys=concat_arrays([part.keys for part in parts]),
        **{name: join([getattr(part, name) for part in parts]) for name in CELL_NUMBERS},
        held=concat_held([part.held for part in parts]),
    )


def fold_cells(cells: Cells, starts: np.ndarray, accumulators: Sequence[Accumulator]) -> Cells:
    """One cell for each run of cells, with the first one's key and window."""
    return Cells(
        take_arrays(cells.keys, starts),
        cells.hash[starts],
        cells.start[starts],
        cells.end[starts],
        reduced(np.add, cells.records, starts),
        reduced(np.maximum, cells.newest, starts),
        reduced(np.minimum, cells.since, starts),
        group_held(cells.held, starts, accumulators),
    )


def group_held(held: Held, starts: np.ndarray, accumulators: Sequence[Accumulator]) -> Held:
    """The accumulators of runs of rows."""
    return tuple(a.grouped(columns, starts) for a, columns in zip(accumulators, held, strict=True))


def pair_held(left: Held, right: Held, accumulators: Sequence[Accumulator]) -> Held:
    """The accumulators of two sets of rows, row by row."""
    return tuple(a.pairwise(x, y) for a, x, y in zip(accumulators, left, right, strict=True))


def zero_held(n: int, accumulators: Sequence[Accumulator]) -> Held:
    """The accumulators of windows without records."""
    return tuple(a.zero(n) for a in accumulators)


def take_column(column: Any, rows: np.ndarray) -> Any:
    """Rows of one column, by place or by mask."""
    if isinstance(column, np.ndarray):
        return pick(column, rows)
    return column.filter(pa.array(rows)) if rows.dtype == bool else column.take(pa.array(rows))


def take_arrays(columns: Sequence[Any], rows: np.ndarray) -> tuple[Any, ...]:
    """Rows of several columns."""
    return tuple(take_column(column, rows) for column in columns)


def take_held(held: Held, rows: np.ndarray) -> Held:
    """Rows of the accumulators."""
    return tuple(take_arrays(columns, rows) for columns in held)


def concat_column(columns: Sequence[Any]) -> Any:
    """Columns one after the other."""
    if isinstance(columns[0], np.ndarray):
        return join(columns)
    return pa.concat_arrays(columns)


def concat_arrays(parts: Sequence[Sequence[Any]]) -> tuple[Any, ...]:
    """Rows of several columns, one set after the other."""
    return tuple(concat_column(columns) for columns in zip(*parts, strict=True))


def concat_held(parts: Sequence[Held]) -> Held:
    """Accumulators, one set after the other."""
    return tuple(concat_arrays(columns) for columns in zip(*parts, strict=True))


def put_column(column: Any, rows: np.ndarray, values: Any) -> Any:
    """A copy of a column with some rows replaced."""
    if isinstance(column, np.ndarray):
        return changed(column, rows, values)
    order = np.arange(len(column))
    order[rows] = len(column) + np.arange(len(rows))
    return pa.concat_arrays([column, values]).take(pa.array(order))


def put_held(held: Held, rows: np.ndarray, values: Held) -> Held:
    """A copy of the accumulators with some rows replaced."""
    return tuple(
        tuple(put_column(column, rows, new) for column, new in zip(columns, news, strict=True))
        for columns, news in zip(held, values, strict=True)
    )
