"""What a delay costs and what it saves: each is tried on the same events by the engine itself, or told from counts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from penstock.batch import Tick
from penstock.duration import SECOND
from penstock.engine.watermark import ClockState, Spoken
from penstock.event_time import Bounded, Percentile, TimeBase
from penstock.instant import MAX_TIME, MIN_TIME
from penstock.monitor.advise.gathered import Gathered, median, plan_with
from penstock.monitor.lateness import Lateness
from penstock.monitor.observation import Observation
from penstock.plan import Plan
from penstock.testing.columnar import ColumnarRun

SHARES = (0.5, 0.9, 0.99, 0.999, 1.0)


@dataclass(frozen=True, slots=True)
class Row:
    """A delay: how many events it makes late, what share that is, how long after the end of a window its answer comes
    (in event time), and the most windows that were held. `now` marks the delay that the pipeline has."""

    delay: int
    late: int
    share: float
    after_end: int | None
    held: int | None
    now: bool = False


def delays(lateness: Lateness, current: int | None) -> list[int]:
    """The delays that are worth trying: none, what is used now, and what was observed, rounded up."""
    found = {0, *(nice(lateness.quantile(p)) for p in SHARES)}
    return sorted(found | ({current} if current is not None else set()))


def nice(delay: int) -> int:
    """A length rounded up to two digits, as people write one.

    >>> nice(4_812_345), nice(83_000_000), nice(999), nice(0)
    (4900000, 83000000, 1000, 0)
    """
    unit: int = 10 ** max(len(str(delay)) - 2, 0)
    return -(-delay // unit) * unit


def delay_of(time: TimeBase | None) -> int | None:
    """The delay that a watermark rule has, where it has a fixed one."""
    match None if time is None else time.watermark:
        case Bounded(delay=delay):
            return delay
    return None


def follows_delays(time: TimeBase | None) -> bool:
    """Whether the rule already sets its delay by what it observes."""
    return time is not None and isinstance(time.watermark, Percentile)


def tried(plan: Plan, found: Gathered, waits: Sequence[int], current: int | None) -> list[Row]:
    """Each delay, tried by running the windows over the events with it."""
    return [_tried(plan, found, delay, delay == current) for delay in waits]


def _tried(plan: Plan, found: Gathered, delay: int, now: bool) -> Row:
    run = _begun(plan_with(plan, delay), found)
    held, after, newest = 0, [], MIN_TIME
    for rows, tick in found.batches:
        outcome = run.batch(rows, tick)
        held = max(held, run.open_windows())
        after += [newest - pane.window.end for pane in outcome.panes
                  if pane.timing == "on_time" and pane.op > 0 and pane.window.end < MAX_TIME]  # fmt: skip
        newest = max([newest, *(one.newest for one in run.partitions() if one.newest is not None)])
    late = run.totals.late
    return Row(delay, late, late / max(found.events, 1), median(after), held, now)


def _begun(plan: Plan, found: Gathered) -> ColumnarRun:
    """A run that has heard what its partitions had reached before."""
    run = ColumnarRun(plan)
    if found.newest:
        names = tuple(found.newest)
        run.clock = ClockState(spoken={name: Spoken(newest) for name, newest in found.newest.items()})
        run.batch([], Tick(found.batches[0][1].now, None, names, behind=names))
    return run


def counted(lateness: Lateness, seen: Sequence[Observation], waits: Sequence[int], current: int | None) -> list[Row]:
    """Each delay, by what was counted while it ran: how many came later than that, which are not all late."""
    apart, rate = _apart(seen), _windows_a_second(seen)
    held = max((one.state.get("open", 0) for one in seen), default=0)
    rows = []
    for delay in waits:
        beyond = lateness.beyond(delay)
        more = None if rate is None or current is None else max(round(held + rate * (delay - current) / SECOND), 0)
        rows.append(Row(delay, beyond, beyond / max(lateness.total, 1), delay + apart, more, delay == current))
    return rows


def delay_in(seen: Sequence[Observation]) -> int | None:
    """The delay that a run had: how far each partition's watermark was behind its newest event."""
    last: list[dict[str, Any]] = next((one.partitions for one in reversed(seen) if one.partitions), [])
    found = [one["newest"] - one["watermark"] for one in last
             if one["newest"] is not None and MIN_TIME < one["watermark"] < MAX_TIME]  # fmt: skip
    return median(found)


def _apart(seen: Sequence[Observation]) -> int:
    """How far the newest events of partitions are apart, in the middle: the slowest is waited for."""
    found = []
    for one in seen:
        newest = [held["newest"] for held in one.partitions if held["newest"] is not None and not held["idle"]]
        if newest:
            found.append(max(newest) - min(newest))
    return median(found) or 0


def _windows_a_second(seen: Sequence[Observation]) -> float | None:
    """How many windows become complete for each second by which W moves."""
    shown, moved = 0.0, 0
    for one, after in pairwise(seen):
        kept = [pane for pane in one.panes if pane["stage"] == 0]
        if kept:
            share = sum(pane["timing"] == "on_time" and pane["op"] > 0 for pane in kept) / len(kept)
            shown += share * one.rows.get("panes", len(kept))
        if MIN_TIME < one.watermarks[0] and after.watermarks[0] < MAX_TIME:
            moved += after.watermarks[0] - one.watermarks[0]
    return shown * SECOND / moved if moved else None
