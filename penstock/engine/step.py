"""SHARD, pure: memory and a batch's arrivals to memory, panes and late rows, under one clock."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from penstock.batch import Counts
from penstock.engine.assign import windows_of
from penstock.engine.cells import Cells, concat_cells, empty_cells
from penstock.engine.combine import concat_rows
from penstock.engine.compiled import Compiled
from penstock.engine.custom import merge_custom
from penstock.engine.ingest import Blob
from penstock.engine.late import late_table
from penstock.engine.pairs import forget, take_pairs
from penstock.engine.panes import no_panes
from penstock.engine.regroup import combine_cells, fold_runs
from penstock.engine.sessions import merge_sessions
from penstock.engine.slices import Slices, add_slices, expire_slices, live_windows
from penstock.engine.table import Windows, no_windows
from penstock.engine.windows import Clock, evaluate_all, expire, put
from penstock.window import Custom, EventPair, Session, Sliding


@dataclass(frozen=True, slots=True)
class Memory:
    """What a shard remembers: windows with a state, or slices, and for event pairs the events themselves."""

    windows: Windows
    slices: Slices
    events: Cells


@dataclass(frozen=True, slots=True)
class Stepped:
    """What a batch does to a shard."""

    memory: Memory
    panes: pa.Table
    late: pa.Table
    counts: Counts


def start(compiled: Compiled) -> Memory:
    """A shard that remembers nothing."""
    return Memory(no_windows(compiled), Slices(), empty_cells(compiled.key_types, compiled.accumulators))


# Infinities and NaN among the users' numbers go through the sums as IEEE 754 says, without a warning.
@np.errstate(all="ignore")
def step(compiled: Compiled, memory: Memory, blobs: Sequence[Blob], clock: Clock) -> Stepped:
    """One batch: expired windows leave, arrivals are added and merged, each window is looked at once."""
    ordered = sorted(blobs, key=lambda blob: blob.origin)
    if compiled.by_slices:
        return _by_slices(compiled, memory, ordered, clock)
    windows, panes, ended = expire(compiled, memory.windows, clock)
    memory, late, counts = _taken(compiled, replace(memory, windows=windows), ordered, clock)
    windows, shown = evaluate_all(compiled, memory.windows, clock)
    events = memory.events
    if isinstance(compiled.plan.window, EventPair):
        events = forget(compiled, events, clock)
    return Stepped(
        Memory(windows, memory.slices, events), _whole(compiled, [*panes, *shown]), late,
        counts + Counts(ended=ended),
    )  # fmt: skip


def open_records(compiled: Compiled, memory: Memory) -> int:
    """How many records lie in windows that are still held."""
    held = int(memory.windows.records.sum())
    for run in memory.slices.runs:
        held += int((run.records * live_windows(compiled, run, memory.slices.watermark)).sum())
    return held


def open_windows(compiled: Compiled, memory: Memory) -> int:
    """How many windows are held, by key."""
    if not memory.slices.runs:
        return len(memory.windows)
    rule = compiled.plan.window
    cells = fold_runs(memory.slices.runs, compiled.accumulators)
    if isinstance(rule, Sliding) and compiled.overlapping:
        alive = memory.slices.watermark - compiled.plan.lateness - rule.size
        of, first = windows_of(rule, cells.start, cells.end, after=alive)
        cells = replace(cells.take(of), start=first, end=first + rule.size)
    return len(combine_cells(cells, compiled.accumulators))


def _by_slices(compiled: Compiled, memory: Memory, blobs: Sequence[Blob], clock: Clock) -> Stepped:
    slices, panes, ended = expire_slices(compiled, memory.slices, clock)
    slices, placed = add_slices(compiled, slices, [blob.cells for blob in blobs], clock)
    counts = Counts(placed=placed, ended=ended)
    none = late_table(compiled, [], clock.watermark)
    return Stepped(replace(memory, slices=slices), _whole(compiled, panes), none, counts)


def _taken(compiled: Compiled, memory: Memory, blobs: Sequence[Blob], clock: Clock) -> tuple[Memory, pa.Table, Counts]:
    """Arrivals added and merged, by the kind of window."""
    rule = compiled.plan.window
    cells = _cells(compiled, [blob.cells for blob in blobs if len(blob.cells)])
    rows = [blob.suspects for blob in blobs if blob.suspects is not None and len(blob.suspects)]
    suspects = concat_rows(rows) if rows else None
    windows, events, late, missed = memory.windows, memory.events, None, 0
    if isinstance(rule, Session):
        windows, late, placed = merge_sessions(compiled, windows, cells, suspects, clock)
    elif isinstance(rule, Custom) and rule.merging:
        windows, late, placed, missed = merge_custom(compiled, windows, suspects, clock)
    elif isinstance(rule, EventPair):
        windows, events, late, placed = take_pairs(compiled, windows, events, cells, suspects, clock)
    else:
        cells = _in_windows(compiled, cells, clock)
        windows, placed = put(compiled, windows, cells, clock), int(cells.records.sum())
    lost, judged = (0 if some is None else len(some) for some in (late, suspects))
    counts = Counts(late=lost, kept=judged - lost, placed=placed, missed=missed)
    table = late_table(compiled, [] if late is None else [late], clock.watermark)
    return Memory(windows, memory.slices, events), table, counts


def _cells(compiled: Compiled, parts: list[Cells]) -> Cells:
    if not parts:
        return empty_cells(compiled.key_types, compiled.accumulators)
    return concat_cells(parts) if isinstance(compiled.plan.window, Session) else fold_runs(parts, compiled.accumulators)


def _in_windows(compiled: Compiled, cells: Cells, clock: Clock) -> Cells:
    """The cells of slices as cells of the live windows they lie in."""
    rule = compiled.plan.window
    if not isinstance(rule, Sliding) or not compiled.overlapping or not len(cells):
        return cells
    alive = clock.watermark - compiled.plan.lateness - rule.size
    of, first = windows_of(rule, cells.start, cells.end, after=alive)
    spread = replace(cells.take(of), start=first, end=first + rule.size)
    return combine_cells(spread, compiled.accumulators)


def _whole(compiled: Compiled, panes: Sequence[pa.Table]) -> pa.Table:
    return pa.concat_tables(panes) if panes else no_panes(compiled)
