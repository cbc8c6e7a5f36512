"""Cells of one key and window to one cell: by Arrow's own group-by where all accumulators are numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from penstock.engine.aggregates.numeric import Native, numbers_of
from penstock.engine.aggregates.protocol import Accumulator
from penstock.engine.columns.constants import constant, is_constant, is_nothing, pick
from penstock.engine.columns.keys import side_by_side, whole
from penstock.engine.windows.index import match
from penstock.engine.windows.partials import (
    CELL_NUMBERS,
    Cells,
    concat_cells,
    fold_cells,
    pair_held,
    put_column,
    put_held,
    take_held,
)


def combine_cells(cells: Cells, accumulators: Sequence[Accumulator]) -> Cells:
    """One cell for each (key, window), in the order in which each came first."""
    if len(cells) < 2:
        return cells
    varying = [bound for bound in (cells.start, cells.end) if bound.min() != bound.max()]
    groups = [*cells.keys, *(pa.array(bound) for bound in varying)]
    if not groups:
        return fold_cells(cells, np.zeros(1, dtype=np.int64), accumulators)
    return _by_arrow(cells, groups, accumulators) or _by_runs(cells, groups, accumulators)


def fold_runs(runs: Sequence[Cells], accumulators: Sequence[Accumulator]) -> Cells:
    """Sets of cells, each of which has no (key, window) twice, to one such set."""
    folded = runs[0]
    for run in runs[1:]:
        found = match(folded, run)
        hits = np.flatnonzero(found >= 0)
        if len(hits):
            at, more = found[hits], run.take(hits)
            added = pair_held(take_held(folded.held, at), more.held, accumulators)
            folded = replace(
                folded,
                records=put_column(folded.records, at, folded.records[at] + more.records),
                newest=put_column(folded.newest, at, np.maximum(folded.newest[at], more.newest)),
                since=put_column(folded.since, at, np.minimum(folded.since[at], more.since)),
                held=put_held(folded.held, at, added),
            )
        folded = concat_cells([folded, run.take(found < 0)])
    return folded


def _by_runs(cells: Cells, groups: list[pa.Array], accumulators: Sequence[Accumulator]) -> Cells:
    order, starts = side_by_side(groups)
    return cells if len(starts) == len(cells) else fold_cells(cells.take(order), starts, accumulators)


def _by_arrow(cells: Cells, groups: list[pa.Array], accumulators: Sequence[Accumulator]) -> Cells | None:
    every = (("hash", "min"), ("start", "min"), ("end", "min"), ("records", "sum"), ("newest", "max"), ("since", "min"))
    specs = [(name, how) for name, how in every if not _same(getattr(cells, name), how)]
    columns = {name: pa.array(getattr(cells, name)) for name, _ in specs}
    for i, (accumulator, held) in enumerate(zip(accumulators, cells.held, strict=True)):
        if not isinstance(accumulator, Native) or not accumulator.regroups(held):
            return None
        for j, (column, how) in enumerate(accumulator.regrouped(held)):
            if is_nothing(held[j]):
                continue
            columns[f"a{i}.{j}"] = column
            specs.append((f"a{i}.{j}", how))
    names = [f"g{i}" for i in range(len(groups))]
    table = pa.Table.from_arrays([*groups, *columns.values()], [*names, *columns])
    made = table.group_by(names, use_threads=False).aggregate(specs).combine_chunks()
    if made.num_rows == len(cells):
        return cells
    numbers = {name: pick(getattr(cells, name), np.zeros(made.num_rows, dtype=np.int64)) for name, _ in every}
    numbers |= {name: numbers_of(whole(made.column(f"{name}_{how}"))) for name, how in specs}
    nothing = constant(0, made.num_rows)
    held = tuple(
        tuple(numbers.get(f"a{i}.{j}", nothing) for j in range(len(accumulator.types())))
        for i, accumulator in enumerate(accumulators)
    )
    keys = tuple(whole(made.column(name)) for name in names[: len(cells.keys)])
    return Cells(keys=keys, held=held, **{name: numbers[name] for name in CELL_NUMBERS})


def _same(column: np.ndarray, how: str) -> bool:
    """Whether every group has the column's one value; a sum has it only if that is nothing."""
    return is_nothing(column) if how == "sum" else is_constant(column)
