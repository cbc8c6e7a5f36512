"""Where in event time, in columns: the windows of a batch's event times, or the slices that windows are made of."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from penstock.engine.columns.arrays import plus
from penstock.engine.windows.compiled import Compiled
from penstock.model.windows import Calendar, Custom, EventPair, Global, Session, Sliding
from penstock.types.durations import DAY
from penstock.types.timestamps import EARLIEST, LATEST, MAX_TIME, MIN_TIME


@dataclass(frozen=True, slots=True)
class Assigned:
    """For each placement of a row: the row, and the window or slice; `alone` says that rows and placements are one.

    Where `end` is None, the start alone says which window or slice it is: `end_of` has the rest.
    """

    rows: np.ndarray
    start: np.ndarray
    end: np.ndarray | None = None
    alone: bool = True

    def take(self, rows: np.ndarray) -> Assigned:
        """The placements of some rows, where each row has one."""
        return Assigned(self.rows, self.start[rows], None if self.end is None else self.end[rows])


def assign(compiled: Compiled, times: np.ndarray) -> Assigned:
    """The windows of each event time; for sliding windows the slice, which lies in all of them."""
    rule = compiled.plan.window
    rows = np.empty(0, dtype=np.int64)
    match rule:
        case Sliding():
            return Assigned(rows, slices(rule, times))
        case Session(gap):
            return Assigned(rows, times, plus(times, gap))
        case EventPair():
            return Assigned(rows, times)
        case Global():
            return Assigned(rows, np.broadcast_to(MIN_TIME, len(times)), np.broadcast_to(MAX_TIME, len(times)))
        case Calendar():
            return Assigned(rows, *_calendar(rule, times))
        case Custom():
            return _custom(rule, times)
    raise TypeError(f"{rule!r} is no window of ours")


def bounds(rule: Sliding | Calendar, times: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The start and the end of each event time's window, of windows that follow one another."""
    if isinstance(rule, Calendar):
        return _calendar(rule, times) if len(times) else (times, times)
    start = _floor(times, rule.size, rule.offset)
    return start, start + rule.size


def slices(rule: Sliding, times: np.ndarray) -> np.ndarray:
    """The start of each event time's slice: the edges are the starts and the ends of windows."""
    base = _floor(times, rule.slide, rule.offset)
    rest = rule.size % rule.slide
    return np.where(times - base >= rest, base + rest, base) if rest else base


def end_of(compiled: Compiled, start: np.ndarray) -> np.ndarray:
    """The ends of windows or slices that are known by their starts."""
    rule = compiled.plan.window
    if not isinstance(rule, Sliding):
        return start
    rest = rule.size % rule.slide
    if rest == 0:
        return start + rule.slide
    base = _floor(start, rule.slide, rule.offset)
    return np.where(start > base, base + rule.slide, base + rest)


def last_end(compiled: Compiled, times: np.ndarray, assigned: Assigned) -> np.ndarray:
    """The end of the last window that each event time is in, for windows that assign one slice a row."""
    rule = compiled.plan.window
    if isinstance(rule, Sliding):
        return _floor(times, rule.slide, rule.offset) + rule.size
    return end_of(compiled, assigned.start) if assigned.end is None else assigned.end


def _floor(times: np.ndarray, step: int, offset: int) -> np.ndarray:
    """The last multiple of a step (and an offset) up to each instant; one value where all have the same."""

    def below(instant: int) -> int:
        return (instant - offset) // step * step + offset

    # Most batches of a stream lie in one or two windows; a look at both ends rules out the first.
    if len(times) and below(int(times[0])) == below(int(times[-1])):
        low, high = below(int(times.min())), below(int(times.max()))
        if low == high:
            return np.broadcast_to(np.int64(low), len(times))
    floor = times - offset if offset else times // step
    if offset:
        floor //= step
    floor *= step
    floor += offset
    return floor


def windows_of(
    rule: Sliding, start: np.ndarray, end: np.ndarray, after: int = MIN_TIME, upto: int = MAX_TIME
) -> tuple[np.ndarray, np.ndarray]:
    """For each slice, the windows that cover it and start after one instant and up to another, oldest first.

    Gives the slice's row and the window's start.
    """
    oldest, copies = covering(rule, start, end, after, upto)
    rows = np.repeat(np.arange(len(start)), copies)
    step = np.arange(len(rows)) - np.repeat(np.cumsum(copies) - copies, copies)
    return rows, oldest[rows] + step * rule.slide


def covering(
    rule: Sliding, start: np.ndarray, end: np.ndarray, after: int = MIN_TIME, upto: int = MAX_TIME
) -> tuple[np.ndarray, np.ndarray]:
    """For each slice, the start of the oldest such window, and how many there are."""
    newest = (start - rule.offset) // rule.slide * rule.slide + rule.offset
    oldest = newest - (newest - (end - rule.size)) // rule.slide * rule.slide
    if upto < LATEST:
        newest = np.minimum(newest, (upto - rule.offset) // rule.slide * rule.slide + rule.offset)
    if after > EARLIEST:
        oldest = np.maximum(oldest, ((after - rule.offset) // rule.slide + 1) * rule.slide + rule.offset)
    return oldest, np.maximum((newest - oldest) // rule.slide + 1, 0)


def _calendar(rule: Calendar, times: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """One look at the calendar for each different day, then all rows by their place between the edges."""
    low, high = int(times.min()), int(times.max())
    (first,), (last,) = rule.assign(low), rule.assign(high)
    if first == last:
        start, end = first
        return np.broadcast_to(np.int64(start), len(times)), np.broadcast_to(np.int64(end), len(times))
    edges: set[int] = set()
    for day in np.unique(times // DAY).tolist():
        for instant in (day * DAY, (day + 1) * DAY - 1):
            edges.update(rule.assign(min(max(instant, low), high))[0])
    bounds = np.array(sorted(edges), dtype=np.int64)
    place = np.searchsorted(bounds, times, side="right")
    return bounds[place - 1], bounds[place]


def _custom(rule: Custom, times: np.ndarray) -> Assigned:
    """The user's function for each different event time."""
    different, codes = np.unique(times, return_inverse=True)
    windows = [rule.assign(time) for time in different.tolist()]
    counts = np.array([len(given) for given in windows], dtype=np.int64)
    flat = np.array([window for given in windows for window in given], dtype=np.int64).reshape(-1, 2)
    first = np.cumsum(counts) - counts
    copies = counts[codes]
    rows = np.repeat(np.arange(len(times)), copies)
    step = np.arange(len(rows)) - np.repeat(np.cumsum(copies) - copies, copies)
    place = np.repeat(first[codes], copies) + step
    return Assigned(rows, flat[place, 0], flat[place, 1], alone=False)
