"""Windows that share what they hold: each is a stretch of sorted cells, added up without copying a cell into each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from penstock.engine.accumulator import Accumulator, Columns
from penstock.engine.cells import Cells, take_arrays
from penstock.engine.native import Native
from penstock.engine.numbers import is_constant, is_nothing, pick

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


def line(codes: np.ndarray, times: np.ndarray, step: int = 1, stable: bool = True) -> Line:
    """The line of cells at these instants of these keys; stable where the order of equal ones leaves a trace."""
    instants, ranks = _ranked(times, step)
    unordered = codes * (len(instants) + 1) + ranks
    order = np.argsort(unordered, kind="stable" if stable else "quicksort")
    return Line(instants, unordered[order], order)


def _ranked(times: np.ndarray, step: int) -> tuple[np.ndarray, np.ndarray]:
    """The different instants in order, and the rank of each; by counting where steps between them are few."""
    low = int(times.min())
    if (int(times.max()) - low) // step > MANY_MORE * len(times):
        return np.unique(times, return_inverse=True)
    place = (times - low) // step
    there = np.bincount(place) > 0
    return low + np.flatnonzero(there) * step, (np.cumsum(there) - 1)[place]


def fold_spans(
    cells: Cells, lined: Line, span: tuple[np.ndarray, np.ndarray], windows: tuple[np.ndarray, np.ndarray],
    accumulators: Sequence[Accumulator],
) -> Cells:  # fmt: skip
    """One cell for each window: all that lies on the line within its span; a window that spans nothing is left out."""
    filled = span[1] > span[0]
    first, beyond = span[0][filled], span[1][filled]
    sums = {name: _spans(ufunc, pick(getattr(cells, name), lined.order), first, beyond)
            for name, ufunc in (("records", np.add), ("newest", np.maximum), ("since", np.minimum))}  # fmt: skip
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
    if is_nothing(column) or (is_constant(column) and ufunc is not np.add):
        return pick(column, first)
    edges = np.stack([first, beyond], axis=1).ravel()
    reduced: np.ndarray = ufunc.reduceat(np.append(column, column[:1]), edges)[::2]
    return reduced
