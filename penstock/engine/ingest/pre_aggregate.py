"""Records to cells: a batch's rows combined to one row for each (key, window), before anything is shuffled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.engine.aggregates.numeric import Native
from penstock.engine.aggregates.protocol import Grouped
from penstock.engine.columns.constants import constant, is_constant, places
from penstock.engine.columns.keys import Keys, canonical, hashes, side_by_side, whole
from penstock.engine.expressions import evaluate
from penstock.engine.windows.assignment import end_of
from penstock.engine.windows.compiled import Compiled
from penstock.engine.windows.partials import Cells, Held, take_column
from penstock.model.aggregates import Aggregate
from penstock.model.windows import Global
from penstock.types.arrow import one_batch


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows that reached the window, with their event time and the place they came from.

    `place` is the partition of all, or a column with that of each; `at` are the rows' places in `offsets`, or None
    where they are the same. `ops` are +1 and -1, or None where no row can be withdrawn.
    """

    batch: pa.RecordBatch
    times: np.ndarray
    place: str | pa.Array
    all_offsets: np.ndarray
    at: np.ndarray | None = None
    ops: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.times)

    @property
    def offsets(self) -> np.ndarray:
        """The offset of each row in its partition."""
        return self.all_offsets if self.at is None else self.all_offsets[self.at]

    @property
    def partitions(self) -> pa.Array:
        """The partition of each row."""
        return pa.repeat(pa.scalar(self.place), len(self)) if isinstance(self.place, str) else self.place

    def take(self, rows: np.ndarray) -> Rows:
        """These rows, by place or by mask."""
        rows = places(rows)
        place = self.place if isinstance(self.place, str) else take_column(self.place, rows)
        at = np.arange(len(self)) if self.at is None else self.at
        ops = None if self.ops is None else self.ops[rows]
        return Rows(take_column(self.batch, rows), self.times[rows], place, self.all_offsets, at[rows], ops)

    @property
    def signs(self) -> np.ndarray:
        """The sign of each row."""
        return np.ones(len(self), dtype=np.int8) if self.ops is None else self.ops


def concat_rows(parts: Sequence[Rows]) -> Rows:
    """Rows one after the other."""
    if len(parts) == 1:
        return parts[0]
    return Rows(
        one_batch(pa.Table.from_batches([part.batch for part in parts])),
        np.concatenate([part.times for part in parts]),
        _place_of(parts),
        np.concatenate([part.offsets for part in parts]),
        ops=None if all(part.ops is None for part in parts) else np.concatenate([part.signs for part in parts]),
    )


def _place_of(parts: Sequence[Rows]) -> str | pa.Array:
    """The partition of all rows, if it is one, or a column with that of each."""
    first = parts[0].place
    if isinstance(first, str) and all(isinstance(part.place, str) and part.place == first for part in parts):
        return first
    return pa.concat_arrays([part.partitions for part in parts])


def keys_of(compiled: Compiled, rows: Rows) -> Keys:
    """The key columns of rows, in canonical form."""
    return tuple(canonical(rows.batch.column(name)) for name in compiled.plan.keys)


def group_rows(compiled: Compiled, rows: Rows, order: np.ndarray, starts: np.ndarray) -> Held:
    """The accumulators of rows that are grouped by an order and the first row of each group."""
    taken = pa.array(order)
    # Numbers do not ask when and where they came from.
    nothing = (rows.times[:0], pa.array([], pa.string()), rows.offsets[:0])
    place = nothing if compiled.numeric else (rows.times[order], rows.partitions.take(taken), rows.offsets[order])
    times, partitions, offsets = place
    held = []
    ops = None if rows.ops is None else rows.ops[order]
    for (_, aggregate), accumulator in zip(compiled.aggregates, compiled.accumulators, strict=True):
        by = None if aggregate.by is None else rows.batch.column(aggregate.by).take(taken)
        values = _values(compiled, aggregate, rows).take(taken)
        held.append(accumulator.partial(Grouped(starts, values, by, times, partitions, offsets, ops)))
    return tuple(held)


def combine_rows(compiled: Compiled, rows: Rows, start: np.ndarray, end: np.ndarray | None = None) -> Cells:
    """The cells of rows that each lie in one window; where `end` is None, its start says which."""
    keys = keys_of(compiled, rows)
    varying = [bound for bound in (start, end) if bound is not None and not _constant(bound)]
    bounds = [pa.array(bound) for bound in varying]
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
    starts_of = np.full(n, start[0]) if _constant(start) else next(place).to_numpy()
    if end is None:
        ends_of = end_of(compiled, starts_of)
    else:
        ends_of = np.full(n, end[0]) if _constant(end) else next(place).to_numpy()
    newest = _newest(groups, rows.times, n) if isinstance(compiled.plan.window, Global) else constant(0, n)
    keys = found[: len(keys)]
    return Cells(keys, hashes(keys, n), starts_of, ends_of, records, newest, constant(0, n), held)


def _by_arrow(compiled: Compiled, rows: Rows, groups: list[pa.Array]) -> tuple[Keys, np.ndarray, Held] | None:
    """Group and aggregate in one pass of Arrow's group-by, where every aggregate is one of its own."""
    columns = list(groups)
    specs: list[tuple[Any, ...]] = [([], "count_all")]
    wanted: list[tuple[int, bool] | None] = []
    names = [f"g{i}" for i in range(len(groups))]
    for i, ((_, aggregate), accumulator) in enumerate(zip(compiled.aggregates, compiled.accumulators, strict=True)):
        if not isinstance(accumulator, Native):
            return None
        if accumulator.counts_all:
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
    found = [whole(made.column(i)) for i in range(made.num_columns)]
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


def _constant(column: np.ndarray) -> bool:
    """Whether all values are one; a broadcast value says so by itself."""
    if not len(column) or column[0] != column[-1]:
        return False
    return is_constant(column) or bool((column == column[0]).all())
