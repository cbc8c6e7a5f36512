"""Which rows does a batch need: those its arrivals touch, those due by the watermark, those a trigger's clock wakes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from penstock.engine.columns.constants import is_constant
from penstock.engine.state.parts import Sorted, Stored, T
from penstock.engine.windows.compiled import Compiled
from penstock.engine.windows.index import mixed
from penstock.engine.windows.lifecycle import Clock
from penstock.engine.windows.table import Windows
from penstock.model.triggers import After, AtWatermark, Every
from penstock.model.windows import EventPair
from penstock.types.timestamps import MAX_TIME, MIN_TIME, plus

NOBODY = np.empty(0, dtype=np.uint64)
SAMPLE = 1_024  # rows by which it is said how many arrivals touch


@dataclass(frozen=True, slots=True)
class Wanted:
    """What arrivals touch: keys, or keys and windows, as sorted numbers, between two instants."""

    numbers: np.ndarray
    low: int = MIN_TIME
    high: int = MAX_TIME


@dataclass(frozen=True, slots=True)
class Finder:
    """How rows of a kind are found: by key or also by window, so long after their ends, and by what wakes them."""

    by_key: bool
    delays: tuple[int, ...]
    wakers: tuple[After | Every, ...] = ()


def windows_finder(compiled: Compiled) -> Finder:
    """Windows are looked at when they expire, when they are complete if a trigger minds, and when one wakes them."""
    nodes = list(compiled.plan.trigger.walk())
    closed = 1 if compiled.plan.window.closed else 0
    minded = any(isinstance(node, AtWatermark) for node in nodes)
    by_key = compiled.merging or isinstance(compiled.plan.window, EventPair)
    wakers = tuple(node for node in nodes if isinstance(node, After | Every))
    return Finder(by_key, ((closed,) if minded else ()) + (closed + compiled.plan.lateness,), wakers)


def events_finder(compiled: Compiled) -> Finder:
    """Remembered events are let go of when the last window that one of them can be in has expired."""
    rule = compiled.plan.window
    far = rule.distance if isinstance(rule, EventPair) else 0
    return Finder(by_key=True, delays=(1 + far + 1 + compiled.plan.lateness,))


def wanted_keys(hashed: np.ndarray, low: int = MIN_TIME, high: int = MAX_TIME) -> Wanted:
    """All rows of these keys that reach between two instants."""
    return Wanted(np.sort(hashed), low, high)


def wanted_windows(hashed: np.ndarray, start: np.ndarray, end: np.ndarray) -> Wanted:
    """The rows of these keys and windows."""
    if not len(hashed):
        return Wanted(NOBODY)
    return Wanted(np.sort(mixed(hashed, start, end)), int(end.min()), int(start.max()))


def touched(finder: Finder, stored: Stored[T], wanted: Wanted) -> np.ndarray:
    """The places of rows that arrivals touch."""
    numbers, order = stored.by_key() if finder.by_key else stored.by_window()
    sought = wanted.numbers
    if len(numbers) > len(sought):
        sought = stored.perhaps(numbers, sought)
    places = order[_among(numbers, sought)]
    if not finder.by_key or (wanted.low == MIN_TIME and wanted.high == MAX_TIME):
        return places
    rows = stored.rows
    return places[(rows.start[places] <= wanted.high) & (rows.end[places] >= wanted.low)]


def touched_share(finder: Finder, stored: Stored[T], live: np.ndarray, wanted: Wanted) -> float:
    """Which share of these rows arrivals touch, by some of them at even distances."""
    places = live[:: max(len(live) // SAMPLE, 1)]
    rows = stored.rows
    hashed = rows.hash[places]
    numbers = hashed if finder.by_key else mixed(hashed, rows.start[places], rows.end[places])
    at = np.minimum(np.searchsorted(wanted.numbers, numbers), len(wanted.numbers) - 1)
    return float((wanted.numbers[at] == numbers).mean())


def _among(numbers: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Where sorted numbers are among the wanted ones, which are sorted too: the fewer are looked up in the more."""
    if not len(numbers) or not len(wanted):
        return np.empty(0, dtype=np.int64)
    if len(numbers) < len(wanted):
        at = np.minimum(np.searchsorted(wanted, numbers), len(wanted) - 1)
        return np.flatnonzero(wanted[at] == numbers)
    first = np.searchsorted(numbers, wanted)
    first = first[numbers[np.minimum(first, len(numbers) - 1)] == wanted]
    if not (numbers[np.minimum(first + 1, len(numbers) - 1)] == numbers[first])[first + 1 < len(numbers)].any():
        return first
    sizes = np.searchsorted(numbers, numbers[first], side="right") - first
    return np.repeat(first, sizes) + np.arange(int(sizes.sum())) - np.repeat(np.cumsum(sizes) - sizes, sizes)


def due(finder: Finder, stored: Stored[T], after: int, upto: int) -> tuple[list[np.ndarray], int]:
    """The places of rows that a W has reached since another, and the next W that reaches one."""
    ends, found, following = stored.by_end(), [], MAX_TIME
    for delay in finder.delays:
        places, beyond = _between(ends, _latest_end(after, delay), _latest_end(upto, delay))
        found.append(places)
        following = min(following, MAX_TIME if beyond is None else plus(beyond, delay))
    return found, following


def woken(finder: Finder, stored: Stored[T], after: int, upto: int) -> tuple[list[np.ndarray], int]:
    """The places of rows that a processing time has reached since another, and the next that reaches one."""
    if not finder.wakers:
        return [], MAX_TIME
    waits, found, following = stored.by_wait(), [], MAX_TIME
    for waker in finder.wakers:
        places, beyond = _between(waits, _latest_wait(waker, after), _latest_wait(waker, upto))
        found.append(places)
        following = min(following, MAX_TIME if beyond is None else _wakes_at(waker, beyond))
    return found, following


def first_due(finder: Finder, rows: T, watermark: int) -> int:
    """The least W that reaches one of these rows, all of which were looked at under this one."""
    last = max(finder.delays)
    ends = rows.end[:1] if is_constant(rows.end) else rows.end
    if not len(ends):
        return MAX_TIME
    # A window of the user's making may have become one that has expired: it leaves with the next batch.
    least = plus(int(ends.min()), last)
    for delay in finder.delays:
        ahead = ends[ends > _latest_end(watermark, delay)]
        least = min(least, plus(int(ahead.min()), delay) if len(ahead) else MAX_TIME)
    return least


def first_wake(finder: Finder, rows: T, now: int) -> int:
    """The least processing time that wakes one of these rows, all of which were looked at in this one."""
    if not finder.wakers or not isinstance(rows, Windows):
        return MAX_TIME
    waits, least = rows.first_unshown[rows.unshown > 0], MAX_TIME
    for waker in finder.wakers:
        ahead = waits[waits > _latest_wait(waker, now)]
        least = min(least, _wakes_at(waker, int(ahead.min())) if len(ahead) else MAX_TIME)
    return least


def since(clock: Clock, due_at: int) -> int:
    """After which W rows may not have been looked at: that of the last batch, or one before what was due then."""
    return min(clock.watermark, plus(due_at, -1))


def _between(values: Sorted, after: int, upto: int) -> tuple[np.ndarray, int | None]:
    """The places of values beyond one and not beyond another, and the next value."""
    ordered, places = values
    first, last = np.searchsorted(ordered, [after, upto], side="right")
    return places[first:last], int(ordered[last]) if last < len(ordered) else None


def _latest_end(watermark: int, delay: int) -> int:
    """The latest end that a W reaches so long after it."""
    return plus(watermark, -delay)


def _latest_wait(waker: After | Every, now: int) -> int:
    """Since when a row must wait at the latest to be awake now."""
    if isinstance(waker, After):
        return plus(now, -waker.delay)
    return plus(waker.tick_after(now), -waker.period - 1) if now != MIN_TIME else MIN_TIME


def _wakes_at(waker: After | Every, waits: int) -> int:
    """When a row that waits since then is awake."""
    return plus(waits, waker.delay) if isinstance(waker, After) else min(waker.tick_after(waits), MAX_TIME)
