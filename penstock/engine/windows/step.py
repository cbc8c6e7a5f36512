"""SHARD, pure: memory and a batch's arrivals to memory, panes and late rows, under one clock."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from penstock.engine.columns.keys import hashes
from penstock.engine.ingest.pre_aggregate import Rows, concat_rows, keys_of
from penstock.engine.ingest.windows import Blob
from penstock.engine.state.runs import Run, extract, grown
from penstock.engine.windows.assignment import windows_of
from penstock.engine.windows.compiled import Compiled
from penstock.engine.windows.custom import merge_custom
from penstock.engine.windows.due import Wanted, events_finder, wanted_keys, wanted_windows, windows_finder
from penstock.engine.windows.event_pairs import forget, take_pairs
from penstock.engine.windows.late import LateRows, late_table
from penstock.engine.windows.lifecycle import Clock, evaluate_all, expire, put
from penstock.engine.windows.panes import no_panes
from penstock.engine.windows.partials import Cells, concat_cells, empty_cells
from penstock.engine.windows.regroup import combine_cells, fold_runs
from penstock.engine.windows.sessions import merge_sessions
from penstock.engine.windows.slices import Slices, add_slices, all_cells, expire_slices, live_windows
from penstock.engine.windows.table import Windows, no_windows
from penstock.model.windows import Custom, EventPair, Session, Sliding
from penstock.runtime.batch import Counts
from penstock.types.timestamps import MIN_TIME, plus


@dataclass(frozen=True, slots=True)
class Memory:
    """What a shard remembers: windows with a state, or slices, for event pairs the events, and when it last looked."""

    windows: tuple[Run[Windows], ...]
    slices: Slices
    events: tuple[Run[Cells], ...]
    clock: Clock


@dataclass(frozen=True, slots=True)
class Stepped:
    """What a batch does to a shard."""

    memory: Memory
    panes: pa.Table
    late: pa.Table
    counts: Counts


@dataclass(frozen=True, slots=True)
class _Arrived:
    """What came for a shard: cells of windows that are alive, and rows that may still find one."""

    cells: Cells
    suspects: Rows | None


@dataclass(frozen=True, slots=True)
class _Taken:
    """The rows a batch needed, after its arrivals were added and merged."""

    windows: Windows
    events: Cells
    late: LateRows | None
    placed: int
    missed: int = 0


def start(compiled: Compiled) -> Memory:
    """A shard that remembers nothing."""
    return Memory((), Slices(), (), Clock(MIN_TIME, MIN_TIME))


# Infinities and NaN among the users' numbers go through the sums as IEEE 754 says, without a warning.
@np.errstate(all="ignore")
def step(compiled: Compiled, memory: Memory, blobs: Sequence[Blob], clock: Clock) -> Stepped:
    """One batch: expired windows leave, arrivals are added and merged, each window it may change is looked at once."""
    ordered = sorted(blobs, key=lambda blob: blob.origin)
    if compiled.by_slices:
        return _by_slices(compiled, memory, ordered, clock)
    arrived = _arrived(compiled, ordered, clock)
    wanted = _wanted(compiled, arrived)
    finders = (windows_finder(compiled), events_finder(compiled))
    mine = extract(finders[0], memory.windows, wanted, memory.clock, clock)
    known = extract(finders[1], memory.events, wanted, memory.clock, clock)
    windows, panes, ended = expire(compiled, mine.joined(no_windows(compiled)), clock)
    events = known.joined(empty_cells(compiled.key_types, compiled.accumulators))
    taken = _taken(compiled, windows, events, arrived, clock)
    windows, shown = evaluate_all(compiled, taken.windows, clock)
    left = forget(compiled, taken.events, clock) if isinstance(compiled.plan.window, EventPair) else taken.events
    late, suspects = (0 if some is None else len(some) for some in (taken.late, arrived.suspects))
    counts = Counts(late=late, kept=suspects - late, placed=taken.placed, missed=taken.missed, ended=ended)
    runs = grown(finders[0], mine, windows, clock), grown(finders[1], known, left, clock)
    return Stepped(
        Memory(runs[0], memory.slices, runs[1], clock),
        _whole(compiled, [*panes, *shown]),
        late_table(compiled, [] if taken.late is None else [taken.late], clock.watermark),
        counts,
    )


def held_cells(memory: Memory) -> int:
    """How many rows are held, for a look at every batch: windows, or slices, of which some may wait to be let go."""
    return sum(run.live for run in memory.windows) + sum(run.rows for run in memory.slices.runs)


def open_records(compiled: Compiled, memory: Memory) -> int:
    """How many records lie in windows that are still held."""
    held = sum(run.records for run in memory.windows)
    for cells in all_cells(memory.slices):
        held += int((cells.records * live_windows(compiled, cells, memory.slices.watermark)).sum())
    return held


def open_windows(compiled: Compiled, memory: Memory) -> int:
    """How many windows are held, by key; where there are slices they are put together to be counted."""
    if not memory.slices.runs:
        return sum(run.live for run in memory.windows)
    rule = compiled.plan.window
    live = [
        cells.take(live_windows(compiled, cells, memory.slices.watermark) > 0) for cells in all_cells(memory.slices)
    ]
    cells = fold_runs(live, compiled.accumulators)
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
    return Stepped(replace(memory, slices=slices, clock=clock), _whole(compiled, panes), none, counts)


def _arrived(compiled: Compiled, blobs: Sequence[Blob], clock: Clock) -> _Arrived:
    cells = _cells(compiled, [blob.cells for blob in blobs if len(blob.cells)])
    rows = [blob.suspects for blob in blobs if blob.suspects is not None and len(blob.suspects)]
    return _Arrived(_in_windows(compiled, cells, clock), concat_rows(rows) if rows else None)


def _wanted(compiled: Compiled, arrived: _Arrived) -> Wanted:
    """Which windows arrivals may touch: their own, those of their keys, and of sessions those within reach."""
    rule, cells, rows = compiled.plan.window, arrived.cells, arrived.suspects
    if not compiled.suspects:
        return wanted_windows(cells.hash, cells.start, cells.end)
    hashed, low, high = [cells.hash], [cells.start], [cells.end]
    if rows is not None:
        hashed.append(hashes(keys_of(compiled, rows), len(rows)))
        low.append(rows.times)
        high.append(rows.times)
    if not isinstance(rule, Session) or not any(map(len, low)):
        return wanted_keys(np.concatenate(hashed))
    earliest, latest = int(np.concatenate(low).min()), int(np.concatenate(high).max())
    return wanted_keys(np.concatenate(hashed), earliest, plus(latest, rule.gap))


def _taken(compiled: Compiled, windows: Windows, events: Cells, arrived: _Arrived, clock: Clock) -> _Taken:
    """Arrivals added and merged, by the kind of window."""
    rule, cells, suspects = compiled.plan.window, arrived.cells, arrived.suspects
    if isinstance(rule, Session):
        windows, late, placed = merge_sessions(compiled, windows, cells, suspects, clock)
        return _Taken(windows, events, late, placed)
    if isinstance(rule, Custom) and rule.merging:
        windows, late, placed, missed = merge_custom(compiled, windows, suspects, clock)
        return _Taken(windows, events, late, placed, missed)
    if isinstance(rule, EventPair):
        return _Taken(*take_pairs(compiled, windows, events, cells, suspects, clock))
    return _Taken(put(compiled, windows, cells, clock), events, None, int(cells.records.sum()))


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
