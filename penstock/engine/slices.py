"""Windows that show one pane, when they expire: slices are kept as they came, and put together once.

No window has a state. A batch's cells are a run; runs wait, are merged when there are many, and are read when the
windows they lie in expire.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from penstock.engine.assign import covering, end_of, windows_of
from penstock.engine.cells import Cells, concat_cells
from penstock.engine.compiled import Compiled
from penstock.engine.keys import key_codes
from penstock.engine.numbers import constant
from penstock.engine.panes import pane_table
from penstock.engine.regroup import fold_runs
from penstock.engine.spans import MANY_MORE, fold_grid, fold_spans, line, rank
from penstock.engine.table import LATE, ON_TIME
from penstock.engine.windows import Clock
from penstock.instant import MIN_TIME
from penstock.window import Global, Sliding

MANY_RUNS = 16


@dataclass(frozen=True, slots=True)
class Slices:
    """All slices that some window still needs, in runs, and the W under which windows last expired."""

    runs: tuple[Cells, ...] = ()
    watermark: int = MIN_TIME


def expire_slices(compiled: Compiled, memory: Slices, clock: Clock) -> tuple[Slices, list[pa.Table], int]:
    """Show the windows that have expired since the last batch, and let go of slices no window needs."""
    if clock.watermark <= memory.watermark:
        return memory, [], 0
    before, memory = memory.watermark, Slices(memory.runs, clock.watermark)
    kept, due = [], []
    for run in memory.runs:
        dying, staying = _sorted_out(compiled, run, clock)
        due += dying
        kept += staying
    if not due:
        return memory, [], 0
    windows = _windows(compiled, due, clock, before)
    panes = _panes(compiled, windows)
    return Slices(tuple(kept), clock.watermark), panes, int(windows.records.sum())


def _sorted_out(compiled: Compiled, run: Cells, clock: Clock) -> tuple[list[Cells], list[Cells]]:
    """What of a run lies in windows that expire now, and what is still needed after that."""
    if compiled.overlapping:
        return _sorted_out_shared(compiled, run, clock)
    gone = compiled.expires_at(run.end) <= clock.watermark
    if not gone.any():
        return [], [run]
    return ([run], []) if gone.all() else ([run.take(gone)], [run.take(~gone)])


def _sorted_out_shared(compiled: Compiled, run: Cells, clock: Clock) -> tuple[list[Cells], list[Cells]]:
    """The same where windows share slices: whole runs, for stretches of slices are found by their instants."""
    oldest = np.array([run.start.min()])
    first, last = _window_ends(compiled, oldest, end_of(compiled, oldest))
    due = [run] if compiled.expires_at(first)[0] <= clock.watermark else []
    if compiled.expires_at(last)[0] > clock.watermark:
        return due, [run]
    alive = compiled.expires_at(_window_ends(compiled, run.start, run.end)[1]) > clock.watermark
    # A slice that nobody needs any more may stay a while: it lies in no window that is still to be shown.
    staying = run if 2 * int(alive.sum()) > len(run) else run.take(alive)
    return due, [staying] if len(staying) else []


def add_slices(compiled: Compiled, memory: Slices, parts: Sequence[Cells], clock: Clock) -> tuple[Slices, int]:
    """Keep a batch's cells; merge runs once there are many."""
    parts = [part for part in parts if len(part)]
    if not parts:
        return memory, 0
    # Without lateness no window can be born late, and nobody asks since when it is there.
    since = clock.watermark if compiled.plan.lateness else 0
    new = (replace(cells, since=constant(since, len(cells))) for cells in parts)
    runs = (*memory.runs, *new)
    placed = sum(int((cells.records * live_windows(compiled, cells, clock.watermark)).sum()) for cells in parts)
    if len(runs) > MANY_RUNS:
        runs = _compacted(compiled, runs)
    return Slices(runs, memory.watermark), placed


def live_windows(compiled: Compiled, cells: Cells, watermark: int) -> np.ndarray:
    """How many windows that have not expired each slice lies in."""
    rule = compiled.plan.window
    if not isinstance(rule, Sliding) or not compiled.overlapping:
        return (compiled.expires_at(cells.end) > watermark).astype(np.int64)
    return covering(rule, cells.start, cells.end, after=watermark - compiled.plan.lateness - rule.size)[1]


def _compacted(compiled: Compiled, runs: tuple[Cells, ...]) -> tuple[Cells, ...]:
    """Newer runs of like size become one, so that each cell is merged a few times and not with every batch."""
    merged, rest = [runs[-1]], list(runs[:-1])
    while rest and len(rest[-1]) <= 2 * sum(len(run) for run in merged):
        merged.insert(0, rest.pop())
    return (*rest, fold_runs(merged, compiled.accumulators))


def _windows(compiled: Compiled, due: list[Cells], clock: Clock, before: int) -> Cells:
    """The windows that expire now, each put together from its slices."""
    rule = compiled.plan.window
    if not isinstance(rule, Sliding) or not compiled.overlapping:
        return fold_runs(due, compiled.accumulators)
    cells = concat_cells(due)
    codes = key_codes(cells.keys, cells.hash)
    ranked = rank(cells.start, math.gcd(rule.slide, rule.size % rule.slide))
    code, end = _expiring(compiled, cells, codes, ranked[0], (before, clock.watermark))
    start = end - rule.size
    folded = fold_grid(cells, codes, ranked, (code, start, end), compiled.accumulators)
    if folded is not None:
        return folded
    lined = line(codes, ranked, stable=not compiled.numeric)
    span = (lined.first(code, start), lined.first(code, end))
    return fold_spans(cells, lined, span, (start, end), compiled.accumulators)


def _expiring(
    compiled: Compiled, cells: Cells, codes: np.ndarray, starts: np.ndarray, between: tuple[int, int]
) -> tuple[np.ndarray, np.ndarray]:
    """The keys and ends of the windows that expire now: every key with every end where that is not many too many."""
    rule = compiled.plan.window
    assert isinstance(rule, Sliding)
    after, upto = (watermark - compiled.plan.lateness - rule.size for watermark in between)
    _, found = windows_of(rule, starts, end_of(compiled, starts), after, upto)
    ends, keys = np.unique(found) + rule.size, int(codes.max()) + 1
    if len(ends) * keys <= MANY_MORE * len(cells):
        return np.repeat(np.arange(keys), len(ends)), np.tile(ends, keys)
    of, found = windows_of(rule, cells.start, cells.end, after, upto)
    pairs = np.unique(codes[of] * len(ends) + np.searchsorted(ends, found + rule.size))
    return pairs // len(ends), ends[pairs % len(ends)]


def _panes(compiled: Compiled, windows: Cells) -> list[pa.Table]:
    if not len(windows):
        return []
    n = len(windows)
    when = np.full(n, ON_TIME, dtype=np.int8)
    if compiled.plan.lateness:
        when = np.where(windows.since >= compiled.complete_at(windows.end), LATE, ON_TIME).astype(np.int8)
    newest = windows.newest if isinstance(compiled.plan.window, Global) else windows.end - 1
    values = compiled.results(windows.held, windows.records)
    shown = (np.zeros(n, dtype=np.int64), when, newest)
    return [pane_table(compiled, windows.keys, (windows.start, windows.end), values, shown, (True, 1))]


def _window_ends(compiled: Compiled, start: np.ndarray, end: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The ends of the first and of the last window that each slice lies in."""
    rule = compiled.plan.window
    assert isinstance(rule, Sliding)
    oldest, copies = covering(rule, start, end)
    return oldest + rule.size, oldest + (copies - 1) * rule.slide + rule.size
