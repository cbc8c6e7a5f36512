"""Records to cells: a batch's rows combined to one row for each (key, window), before anything is shuffled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.aggregate import Aggregate
from penstock.engine.accumulator import Grouped
from penstock.engine.cells import Cells, Held, concat_cells
from penstock.engine.compiled import Compiled
from penstock.engine.expression import evaluate
from penstock.engine.keys import Keys, canonical, hashes, side_by_side
from penstock.engine.native import Native
from penstock.window import Global

MANY_PIECES = 16


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows that reached the window, with their event time and the place they came from."""

    batch: pa.RecordBatch
    times: np.ndarray
    offsets: np.ndarray
    partitions: pa.Array

    def __len__(self) -> int:
        return len(self.times)

    def take(self, rows: np.ndarray) -> Rows:
        """These rows, by place or by mask."""
        taken = pa.array(rows)
        pick = (lambda column: column.filter(taken)) if rows.dtype == bool else (lambda column: column.take(taken))
        return Rows(pick(self.batch), self.times[rows], self.offsets[rows], pick(self.partitions))

    def slice(self, start: int, length: int) -> Rows:
        """A stretch of rows, without copying."""
        end = start + length
        return Rows(
            self.batch.slice(start, length), self.times[start:end], self.offsets[start:end],
            self.partitions.slice(start, length),
        )  # fmt: skip


def concat_rows(parts: Sequence[Rows]) -> Rows:
    """Rows one after the other."""
    if len(parts) == 1:
        return parts[0]
    table = pa.Table.from_batches([part.batch for part in parts]).combine_chunks()
    batches = table.to_batches()
    return Rows(
        batches[0] if batches else parts[0].batch,
        np.concatenate([part.times for part in parts]),
        np.concatenate([part.offsets for part in parts]),
        pa.concat_arrays([part.partitions for part in parts]),
    )


def keys_of(compiled: Compiled, rows: Rows) -> Keys:
    """The key columns of rows, in canonical form."""
    return tuple(canonical(rows.batch.column(name)) for name in compiled.plan.keys)


def combine_rows(compiled: Compiled, rows: Rows, start: np.ndarray, end: np.ndarray) -> Cells:
    """The cells of rows that each lie in one window."""
    pieces = _pieces(start, end)
    if pieces is None:
        return _combined(compiled, rows, start, end)
    return concat_cells(
        [_combined(compiled, rows.slice(i, j - i), start[i:j], end[i:j]) for i, j in pieces]
    )


def group_rows(compiled: Compiled, rows: Rows, order: np.ndarray, starts: np.ndarray) -> Held:
    """The accumulators of rows that are grouped by an order and the first row of each group."""
    inputs = [_values(compiled, aggregate, rows) for _, aggregate in compiled.plan.aggregates]
    taken = pa.array(order)
    times, partitions, offsets = rows.times[order], rows.partitions.take(taken), rows.offsets[order]
    held = []
    for (_, aggregate), accumulator, values in zip(
        compiled.plan.aggregates, compiled.accumulators, inputs, strict=True
    ):
        by = None if aggregate.by is None else rows.batch.column(aggregate.by).take(taken)
        grouped = Grouped(starts, values.take(taken), by, times, partitions, offsets)
        held.append(accumulator.partial(grouped))
    return tuple(held)


def _pieces(start: np.ndarray, end: np.ndarray) -> list[tuple[int, int]] | None:
    """Stretches of rows in one window, where there are few: Arrow groups by the key alone much faster."""
    if len(start) < 2:
        return None
    edges = np.flatnonzero((start[1:] != start[:-1]) | (end[1:] != end[:-1])) + 1
    if len(edges) > MANY_PIECES or len(edges) == 0:
        return None
    bounds = [0, *edges.tolist(), len(start)]
    windows = [(int(start[i]), int(end[i])) for i in bounds[:-1]]
    if len(set(windows)) < len(windows):
        return None
    return list(zip(bounds[:-1], bounds[1:], strict=True))


def _combined(compiled: Compiled, rows: Rows, start: np.ndarray, end: np.ndarray) -> Cells:
    keys = keys_of(compiled, rows)
    same_start = len(start) > 0 and bool((start == start[0]).all())
    same_end = len(end) > 0 and bool((end == end[0]).all())
    bounds = [pa.array(bound) for bound, same in ((start, same_start), (end, same_end)) if not same]
    groups = [*keys, *bounds] or [pa.array(np.zeros(len(rows), dtype=np.int8))]
    fast = _by_arrow(compiled, rows, groups)
    if fast is None:
        order, starts = side_by_side(groups)
        first = order[starts]
        records = np.diff(np.append(starts, len(rows))).astype(np.int64)
        held = group_rows(compiled, rows, order, starts)
        found = tuple(column.take(pa.array(first)) for column in groups)
    else:
        found, records, held = fast
    n = len(records)
    place = iter(found[len(keys) :])
    starts_of = np.full(n, start[0]) if same_start else next(place).to_numpy()
    ends_of = np.full(n, end[0]) if same_end else next(place).to_numpy()
    newest = np.zeros(n, dtype=np.int64)
    if isinstance(compiled.plan.window, Global):
        newest = _newest(groups, rows.times, n)
    return Cells(found[: len(keys)], hashes(found[: len(keys)], n), starts_of, ends_of, records, newest, held)


def _by_arrow(compiled: Compiled, rows: Rows, groups: list[pa.Array]) -> tuple[Keys, np.ndarray, Held] | None:
    """Group and aggregate in one pass of Arrow's group-by, where every aggregate is one of its own."""
    columns, specs, wanted = list(groups), [([], "count_all")], []
    names = [f"g{i}" for i in range(len(groups))]
    for i, ((_, aggregate), accumulator) in enumerate(
        zip(compiled.plan.aggregates, compiled.accumulators, strict=True)
    ):
        if not isinstance(accumulator, Native):
            return None
        if aggregate.kind == "rows" and aggregate.where is None:
            wanted.append(None)
            continue
        values = accumulator.prepared(_values(compiled, aggregate, rows))
        if not accumulator.safe(values):
            return None
        columns.append(values)
        names.append(f"v{i}")
        asked = accumulator.specs(f"v{i}")
        if values.null_count == 0:
            asked = asked[1:]
        specs += asked
        wanted.append((len(asked), values.null_count == 0))
    table = pa.Table.from_arrays(columns, names)
    made = table.group_by(names[: len(groups)], use_threads=False).aggregate(specs).combine_chunks()
    found = [_whole(made.column(i)) for i in range(made.num_columns)]
    keys, outputs = found[: len(groups)], found[len(groups) :]
    records = outputs[0].to_numpy()
    held, at = [], 1
    for accumulator, want in zip(compiled.accumulators, wanted, strict=True):
        assert isinstance(accumulator, Native)
        if want is None:
            held.append((records,))
            continue
        count, full = want
        got = outputs[at : at + count]
        held.append(accumulator.from_arrow([outputs[0], *got] if full else got))
        at += count
    return tuple(keys), records, tuple(held)


def _values(compiled: Compiled, aggregate: Aggregate, rows: Rows) -> pa.Array:
    """The column an aggregate reads, null where its `where` is not true."""
    if aggregate.column is not None:
        values = rows.batch.column(aggregate.column)
    else:
        values = pa.array(np.ones(len(rows), dtype=np.int64))
    if aggregate.where is None:
        return values
    mask = evaluate(aggregate.where, rows.batch, compiled.plan.schema).fill_null(False)
    return pc.if_else(mask, values, pa.scalar(None, values.type))


def _newest(groups: list[pa.Array], times: np.ndarray, n: int) -> np.ndarray:
    order, starts = side_by_side(groups)
    assert len(starts) == n
    return np.maximum.reduceat(times[order], starts) if n else times[:0]


def _whole(column: pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
