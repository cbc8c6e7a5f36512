"""Windows that show one pane, when they expire: slices are kept as they came, and put together once.

No window has a state. A batch's cells are a run; runs wait, are merged when there are many, and are read when the
windows they lie in expire.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from penstock.engine.columns.constants import constant, different
from penstock.engine.columns.keys import key_codes
from penstock.engine.state.parts import Part, Stored
from penstock.engine.windows.assignment import covering, end_of, windows_of
from penstock.engine.windows.compiled import Compiled
from penstock.engine.windows.lifecycle import Clock
from penstock.engine.windows.panes import pane_table
from penstock.engine.windows.partials import Cells, concat_cells
from penstock.engine.windows.regroup import fold_runs
from penstock.engine.windows.slice_sums import MANY_MORE, fold_grid, fold_spans, line, rank
from penstock.engine.windows.table import LATE, ON_TIME
from penstock.model.windows import Global, Sliding
from penstock.types.timestamps import MIN_TIME

MANY_RUNS = 16
LARGEST = 1 << 20  # pieces of a run do not grow beyond so many cells


@dataclass(frozen=True, slots=True, eq=False)
class Piece:
    """A part of a run, how many cells it has, where the first begins, and where the first that is needed ends."""

    part: Part[Cells]
    rows: int
    start: int
    end: int


@dataclass(frozen=True, slots=True, eq=False)
class SliceRun:
    """Cells in which no (key, window) is there twice; a large run lies in pieces by the hash of the key."""

    pieces: tuple[Piece, ...]

    @property
    def rows(self) -> int:
        """How many cells it has, also such as no window needs any more."""
        return sum(piece.rows for piece in self.pieces)


@dataclass(frozen=True, slots=True)
class Slices:
    """All slices that some window still needs, in runs, and the W under which windows last expired.

    Cells whose windows have expired under that W may be there still, and mean nothing.
    """

    runs: tuple[SliceRun, ...] = ()
    watermark: int = MIN_TIME


def all_cells(memory: Slices) -> Iterator[Cells]:
    """The cells of every piece."""
    for run in memory.runs:
        for piece in run.pieces:
            yield piece.part.get().rows


def expire_slices(compiled: Compiled, memory: Slices, clock: Clock) -> tuple[Slices, list[pa.Table], int]:
    """Show the windows that have expired since the last batch, and let go of slices no window needs."""
    if clock.watermark <= memory.watermark:
        return memory, [], 0
    between = (memory.watermark, clock.watermark)
    kept: list[SliceRun] = []
    due: list[Cells] = []
    for run in memory.runs:
        staying: list[Piece] = []
        for piece in run.pieces:
            dying, still = _sorted_out(compiled, piece, between)
            due += dying
            staying += still
        kept += [SliceRun(tuple(staying))] if staying else []
    memory = Slices(tuple(kept), clock.watermark)
    if not due:
        return memory, [], 0
    windows = _windows(compiled, due, between)
    panes = _panes(compiled, windows)
    return memory, panes, int(windows.records.sum())


def _sorted_out(compiled: Compiled, piece: Piece, between: tuple[int, int]) -> tuple[list[Cells], list[Piece]]:
    """What of a piece lies in windows that expire now, and what is still needed after that."""
    before, watermark = between
    if compiled.overlapping:
        return _sorted_out_shared(compiled, piece, watermark)
    if compiled.expires_at(np.array([piece.end]))[0] > watermark:
        return [], [piece]
    cells = piece.part.get().rows
    expires = compiled.expires_at(cells.end)
    dying, alive = (expires > before) & (expires <= watermark), expires > watermark
    due = [] if not dying.any() else [cells] if dying.all() else [cells.take(dying)]
    # Cells that have expired stay where they are while they are few: W says which they are.
    if 2 * int(alive.sum()) > len(cells):
        return due, [replace(piece, end=int(cells.end[alive].min()))]
    return due, [new_piece(cells.take(alive))] if alive.any() else []


def _sorted_out_shared(compiled: Compiled, piece: Piece, watermark: int) -> tuple[list[Cells], list[Piece]]:
    """The same where windows share slices: whole pieces, for stretches of slices are found by their instants."""
    oldest = np.array([piece.start])
    first, last = _window_ends(compiled, oldest, end_of(compiled, oldest))
    due = [piece.part.get().rows] if compiled.expires_at(first)[0] <= watermark else []
    if compiled.expires_at(last)[0] > watermark:
        return due, [piece]
    cells = piece.part.get().rows
    alive = compiled.expires_at(_window_ends(compiled, cells.start, cells.end)[1]) > watermark
    # A slice that nobody needs any more may stay a while: it lies in no window that is still to be shown.
    if 2 * int(alive.sum()) > len(cells):
        return due, [piece]
    return due, [new_piece(cells.take(alive))] if alive.any() else []


def add_slices(compiled: Compiled, memory: Slices, parts: Sequence[Cells], clock: Clock) -> tuple[Slices, int]:
    """Keep a batch's cells; merge runs once there are many."""
    parts = [part for part in parts if len(part)]
    if not parts:
        return memory, 0
    # Without lateness no window can be born late, and nobody asks since when it is there.
    since = clock.watermark if compiled.plan.lateness else 0
    new = (SliceRun((new_piece(replace(cells, since=constant(since, len(cells)))),)) for cells in parts)
    runs = (*memory.runs, *new)
    placed = sum(int((cells.records * live_windows(compiled, cells, clock.watermark)).sum()) for cells in parts)
    if len(runs) > MANY_RUNS:
        runs = _compacted(compiled, runs, memory.watermark)
    return Slices(runs, memory.watermark), placed


def new_piece(cells: Cells) -> Piece:
    """Cells as a piece of a run."""
    cells = cells.settled()
    return Piece(Part(Stored(cells)), len(cells), int(cells.start.min()), int(cells.end.min()))


def live_windows(compiled: Compiled, cells: Cells, watermark: int) -> np.ndarray:
    """How many windows that have not expired each slice lies in."""
    rule = compiled.plan.window
    if not isinstance(rule, Sliding) or not compiled.overlapping:
        return (compiled.expires_at(cells.end) > watermark).astype(np.int64)
    return covering(rule, cells.start, cells.end, after=watermark - compiled.plan.lateness - rule.size)[1]


def _compacted(compiled: Compiled, runs: tuple[SliceRun, ...], watermark: int) -> tuple[SliceRun, ...]:
    """Newer runs of like size become one, so that each cell is merged a few times and not with every batch."""
    merged, rest = [runs[-1]], list(runs[:-1])
    while rest and rest[-1].rows <= 2 * sum(run.rows for run in merged):
        merged.insert(0, rest.pop())
    count = -(-sum(run.rows for run in merged) // LARGEST)
    pieces = []
    for i in range(count):
        cells = _folded(compiled, [piece for run in merged for piece in run.pieces], (i, count), watermark)
        pieces += [new_piece(cells)] if cells is not None else []
    return (*rest, SliceRun(tuple(pieces))) if pieces else tuple(rest)


def _folded(compiled: Compiled, pieces: list[Piece], share: tuple[int, int], watermark: int) -> Cells | None:
    """One cell for each (key, window) of one share of the keys; what has expired is left behind."""
    number, count = share
    parts = []
    for piece in pieces:
        cells = piece.part.get().rows
        mine = np.ones(len(cells), dtype=bool)
        if count > 1:
            mine = ((cells.hash >> np.uint64(32)) * np.uint64(count)) >> np.uint64(32) == number
        if not compiled.overlapping and compiled.expires_at(cells.end.min(keepdims=True))[0] <= watermark:
            mine &= compiled.expires_at(cells.end) > watermark
        parts.append(cells if mine.all() else cells.take(mine))
    return _fold_evenly(compiled, [cells for cells in parts if len(cells)])


def _fold_evenly(compiled: Compiled, parts: list[Cells]) -> Cells | None:
    """The cells of all, in even halves: a large part is not gone through once for each small one."""
    if len(parts) < 2:
        return parts[0] if parts else None
    sizes = np.cumsum([len(cells) for cells in parts])
    middle = min(max(int(np.searchsorted(sizes, sizes[-1] / 2)), 1), len(parts) - 1)
    halves = [_fold_evenly(compiled, half) for half in (parts[:middle], parts[middle:])]
    return fold_runs([half for half in halves if half is not None], compiled.accumulators)


def _windows(compiled: Compiled, due: list[Cells], between: tuple[int, int]) -> Cells:
    """The windows that expire now, each put together from its slices."""
    rule = compiled.plan.window
    if not isinstance(rule, Sliding) or not compiled.overlapping:
        return fold_runs(due, compiled.accumulators)
    cells = concat_cells(due)
    codes = key_codes(cells.keys, cells.hash)
    ranked = rank(cells.start, math.gcd(rule.slide, rule.size % rule.slide))
    code, end = _expiring(compiled, cells, codes, ranked[0], between)
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
    ends, keys = different(found) + rule.size, int(codes.max()) + 1
    if len(ends) * keys <= MANY_MORE * len(cells):
        return np.repeat(np.arange(keys), len(ends)), np.tile(ends, keys)
    of, found = windows_of(rule, cells.start, cells.end, after, upto)
    pairs = different(codes[of] * len(ends) + np.searchsorted(ends, found + rule.size))
    return pairs // len(ends), ends[pairs % len(ends)]


def _panes(compiled: Compiled, windows: Cells) -> list[pa.Table]:
    if compiled.signed:
        windows = windows.take(~compiled.emptied(windows.held))
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
