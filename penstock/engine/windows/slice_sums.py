"""Windows that share what they hold: each is a stretch of sorted cells, added up without copying a cell into each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from penstock.engine.aggregates.numeric import Native
from penstock.engine.aggregates.protocol import Accumulator, Columns
from penstock.engine.columns.constants import kept_by, pick
from penstock.engine.windows.partials import Cells, take_arrays

MANY_MORE = 4


@dataclass(frozen=True, slots=True)
class Line:
    """Cells of several keys on one line, by key and then by instant: a stretch of a key is found by a search."""

    instants: np.ndarray
    places: np.ndarray
    order: np.ndarray

    def at(self, codes: np.ndarray, times: np.ndarray, side: Literal["left", "right"] = "left") -> np.ndarray:
        """The number that stands for an instant of a key; on the right side, for just after it."""
        return codes * (len(self.instants) + 1) + np.searchsorted(self.instants, times, side=side)

    def first(self, codes: np.ndarray, times: np.ndarray) -> np.ndarray:
        """The first cell of a key from an instant on."""
        return np.searchsorted(self.places, self.at(codes, times))

    def beyond(self, codes: np.ndarray, times: np.ndarray) -> np.ndarray:
        """The first cell of a key after an instant, or of the next key."""
        return np.searchsorted(self.places, self.at(codes, times, "right"))


def line(codes: np.ndarray, ranked: tuple[np.ndarray, np.ndarray], stable: bool = True) -> Line:
    """The line of cells of these keys, their instants ranked; stable where the order of equal ones leaves a trace."""
    instants, ranks = ranked
    unordered = codes * (len(instants) + 1) + ranks
    order = np.argsort(unordered, kind="stable" if stable else "quicksort")
    return Line(instants, unordered[order], order)


def rank(times: np.ndarray, step: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """The different instants in order, and the rank of each; by counting where steps between them are few."""
    low = int(times.min())
    if (int(times.max()) - low) // step > MANY_MORE * len(times):
        return np.unique(times, return_inverse=True)
    place = (times - low) // step
    there = np.bincount(place) > 0
    return low + np.flatnonzero(there) * step, (np.cumsum(there) - 1)[place]


def fold_grid(
    cells: Cells,
    codes: np.ndarray,
    ranked: tuple[np.ndarray, np.ndarray],
    windows: tuple[np.ndarray, np.ndarray, np.ndarray],
    accumulators: Sequence[Accumulator],
) -> Cells | None:
    """The same as `fold_spans` for windows of a key from a start to before an end, on a grid of keys and instants.

    None where most of the grid would be empty, or where an accumulator is not made of numbers that are added up.
    """
    (instants, ranks), (code, start, end) = ranked, windows
    keys, width = int(codes.max()) + 1, len(instants)
    reductions = _reductions(accumulators, cells)
    if reductions is None or keys * width > MANY_MORE * len(cells):
        return None
    first, beyond = (code * width + np.searchsorted(instants, edge) for edge in (start, end))
    some = beyond > first
    grid = _Grid(keys * width, codes * width + ranks, first[some], beyond[some])
    records = grid.folded(np.add, cells.records)
    filled = records > 0
    model = np.empty(keys, dtype=np.int64)
    model[codes] = np.arange(len(codes))
    of = model[code[some][filled]]
    held = tuple(
        (records[filled],)
        if isinstance(accumulator, Native) and accumulator.counts_all
        else tuple(pick(grid.folded(how, column), filled) for how, column in zip(hows, columns, strict=True))
        for accumulator, hows, columns in zip(accumulators, reductions, cells.held, strict=True)
    )
    return Cells(
        take_arrays(cells.keys, of),
        cells.hash[of],
        start[some][filled],
        end[some][filled],
        records[filled],
        pick(grid.folded(np.maximum, cells.newest), filled),
        pick(grid.folded(np.minimum, cells.since), filled),
        held,
    )


@dataclass(frozen=True, slots=True)
class _Grid:
    """Room for every instant of every key: where each cell lies in it, and the stretches that are wanted."""

    size: int
    place: np.ndarray
    first: np.ndarray
    beyond: np.ndarray

    def folded(self, how: np.ufunc, column: np.ndarray) -> np.ndarray:
        """A column of the cells reduced over each stretch."""
        if kept_by(how, column):
            return pick(column, self.first)
        limits = np.iinfo(np.int64)
        nothing = 0 if how is np.add else limits.max if how is np.minimum else limits.min
        room = np.full(self.size, nothing, dtype=column.dtype)
        how.at(room, self.place, column)
        return _spans(how, room, self.first, self.beyond)


def _reductions(accumulators: Sequence[Accumulator], cells: Cells) -> list[tuple[np.ufunc, ...]] | None:
    """How each accumulator's columns are reduced, if that is all there is to any of them."""
    found = [
        accumulator.spanning(columns) if isinstance(accumulator, Native) else None
        for accumulator, columns in zip(accumulators, cells.held, strict=True)
    ]
    return None if None in found else [hows for hows in found if hows is not None]


def fold_spans(
    cells: Cells,
    lined: Line,
    span: tuple[np.ndarray, np.ndarray],
    windows: tuple[np.ndarray, np.ndarray],
    accumulators: Sequence[Accumulator],
) -> Cells:
    """One cell for each window: all that lies on the line within its span; a window that spans nothing is left out."""
    filled = span[1] > span[0]
    first, beyond = span[0][filled], span[1][filled]
    sums = {
        name: _spans(ufunc, pick(getattr(cells, name), lined.order), first, beyond)
        for name, ufunc in (("records", np.add), ("newest", np.maximum), ("since", np.minimum))
    }
    held = tuple(
        _held(accumulator, take_arrays(columns, lined.order), first, beyond)
        for accumulator, columns in zip(accumulators, cells.held, strict=True)
    )
    model = lined.order[first]
    keys, start, end = take_arrays(cells.keys, model), windows[0][filled], windows[1][filled]
    return Cells(keys, cells.hash[model], start, end, **sums, held=held)


def _held(accumulator: Accumulator, held: Columns, first: np.ndarray, beyond: np.ndarray) -> Columns:
    ufuncs = accumulator.spanning(held) if isinstance(accumulator, Native) else None
    if ufuncs is not None:
        return tuple(_spans(ufunc, column, first, beyond) for ufunc, column in zip(ufuncs, held, strict=True))
    counts = beyond - first
    starts = np.cumsum(counts) - counts
    place = np.repeat(first - starts, counts) + np.arange(int(counts.sum()))
    return accumulator.grouped(take_arrays(held, place), starts)


def _spans(ufunc: np.ufunc, column: np.ndarray, first: np.ndarray, beyond: np.ndarray) -> np.ndarray:
    """A reduction over each stretch; every second result is that of the gap between two, and is dropped."""
    if not len(first):
        return column[:0]
    if kept_by(ufunc, column):
        return pick(column, first)
    edges = np.stack([first, beyond], axis=1).ravel()
    reduced: np.ndarray = ufunc.reduceat(np.append(column, column[:1]), edges)[::2]
    return reduced
