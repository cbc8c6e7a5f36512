"""Where in event time, in columns: the windows of a batch's event times, or the slices that windows are put together from."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from penstock.duration import DAY
from penstock.engine.compiled import Compiled
from penstock.engine.saturate import plus
from penstock.instant import MAX_TIME, MIN_TIME
from penstock.window import Calendar, Custom, EventPair, Global, Session, Sliding


@dataclass(frozen=True, slots=True)
class Assigned:
    """For each placement of a row: the row, and the window or slice; `alone` says that rows and placements are one."""

    rows: np.ndarray
    start: np.ndarray
    end: np.ndarray
    alone: bool = True


def assign(compiled: Compiled, times: np.ndarray) -> Assigned:
    """The windows of each event time; for sliding windows the slice, which lies in all of them."""
    rule = compiled.plan.window
    rows = np.empty(0, dtype=np.int64)
    match rule:
        case Sliding(size, slide, offset) if size == slide:
            start = (times - offset) // size * size + offset
            return Assigned(rows, start, start + size)
        case Sliding():
            return Assigned(rows, *slices(rule, times))
        case Session(gap):
            return Assigned(rows, times, plus(times, gap))
        case EventPair():
            return Assigned(rows, times, times)
        case Global():
            return Assigned(rows, np.full(len(times), MIN_TIME), np.full(len(times), MAX_TIME))
        case Calendar():
            return Assigned(rows, *_calendar(rule, times))
        case Custom():
            return _custom(rule, times)
    raise TypeError(f"{rule!r} is no window of ours")


def slices(rule: Sliding, times: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The slice of each event time: the edges are the starts and the ends of windows."""
    base = (times - rule.offset) // rule.slide * rule.slide + rule.offset
    rest = rule.size % rule.slide
    if rest == 0:
        return base, base + rule.slide
    late = times - base >= rest
    return np.where(late, base + rest, base), np.where(late, base + rule.slide, base + rest)


def last_end(compiled: Compiled, times: np.ndarray, assigned: Assigned) -> np.ndarray:
    """The end of the last window that each event time is in, for windows that assign one slice a row."""
    rule = compiled.plan.window
    if isinstance(rule, Sliding):
        return (times - rule.offset) // rule.slide * rule.slide + rule.offset + rule.size
    return assigned.end


def windows_of(rule: Sliding, start: np.ndarray, end: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """For each slice, the windows that cover it: the slice's row and the window's start, oldest window first."""
    newest = (start - rule.offset) // rule.slide * rule.slide + rule.offset
    copies = (newest - (end - rule.size)) // rule.slide + 1
    rows = np.repeat(np.arange(len(start)), copies)
    first = np.repeat(np.cumsum(copies) - copies, copies)
    back = np.repeat(copies, copies) - 1 - (np.arange(len(rows)) - first)
    return rows, newest[rows] - back * rule.slide


def _calendar(rule: Calendar, times: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """One look at the calendar for each different day, then all rows by their place between the edges."""
    edges: set[int] = set()
    for day in np.unique(times // DAY).tolist():
        for instant in (day * DAY, (day + 1) * DAY - 1):
            at = instant
            edges.update(rule.assign(min(max(at, int(times.min())), int(times.max())))[0])
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
