"""What a delay costs and what it saves: each is tried on the same events by the engine itself, or told from counts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

from penstock.model.watermarks import Bounded, FromColumn, Percentile, Punctuated, TimeBase
from penstock.observability.advise.goals import WINDOWS, Goals
from penstock.observability.advise.inputs import Gathered, median, plan_with
from penstock.observability.advise.simulation import Ends, Played, ends, play
from penstock.observability.lateness_histogram import Lateness
from penstock.observability.observation import Observation
from penstock.plan.stages import Plan
from penstock.types.durations import SECOND
from penstock.types.timestamps import MAX_TIME, MIN_TIME, plus

SHARES = (0.5, 0.9, 0.99, 0.999, 1.0)
CLOSE = 1.2  # times longer: no more than that is gained by trying both of two delays


@dataclass(frozen=True, slots=True)
class Row:
    """A delay, and what it does. `late` events are dropped, `share` of all; the middle answer comes `after_end` of its
    window, in event time, and at most so many windows are `held`. `now` marks the rule that the pipeline has, which is
    not a fixed delay where `moves`.

    On-time panes hold the share `complete` of the rows that ever came for their windows: that of the middle window is
    `median`, and nine in ten have `worst` or more. It is of so many `windows` and `rows`; `open` ones are left out, and
    where they are too few `tells` is false.
    """

    delay: int
    late: int
    share: float
    after_end: int | None
    held: int | None
    now: bool = False
    complete: float | None = None
    median: float | None = None
    worst: float | None = None
    windows: int | None = None
    rows: int | None = None
    open: int = 0
    tells: bool = True
    moves: bool = False


def delays(lateness: Lateness, current: int | None) -> list[int]:
    """The delays that are worth trying: none, what is used now, and what was observed, rounded up."""
    found = sorted({nice(lateness.quantile(p)) for p in SHARES[1:]})
    # A delay that makes half of the events late is none; of two that are nearly the same the longer is enough.
    apart = {one for one, after in pairwise([*found, MAX_TIME]) if CLOSE * one < after}
    return sorted({0, *apart} | ({current} if current is not None else set()))


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


def moves(time: TimeBase | None) -> bool:
    """Whether the rule has no fixed delay: what is observed sets it, or the rows say how far time is."""
    return time is not None and isinstance(time.watermark, (Percentile, FromColumn, Punctuated))


@dataclass
class Trial:
    """Windows and events on which rules are played, and what is needed to judge them.

    A window is judged if it began after the recording did, and if the recording goes on for so long beyond its end that
    what comes later is a tenth of what the goal lets be missing: the others have rows that nobody has seen.
    """

    plan: Plan
    found: Gathered
    goals: Goals
    current: int | None = None
    ends: Ends = field(init=False)
    behind: Lateness = field(init=False)
    begun: int = field(init=False)
    settling: int = field(init=False)
    settled: int = field(init=False)
    tried: dict[int, Row] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self.ends = ends(self.plan, self.found)
        first = play(plan_with(self.plan, 0), self.found)
        self.behind = first.behind
        begun = max(self.found.newest.values(), default=first.begun)
        self.begun = MAX_TIME if begun is None else begun
        self.settling = self.behind.quantile(self.goals.beyond) if self.behind.total else 0
        self.settled = plus(first.reached, -self.settling)
        self.tried[0] = self._row(0, first, now=self.current == 0)

    @property
    def rows(self) -> list[Row]:
        """What was tried, from the shortest delay on."""
        return [self.tried[delay] for delay in sorted(self.tried)]

    @property
    def before(self) -> int:
        """How many windows began before the recording."""
        return self.ends.begun_before(self.begun)

    def row(self, delay: int) -> Row:
        """A delay, played."""
        if delay not in self.tried:
            played = play(plan_with(self.plan, delay), self.found)
            self.tried[delay] = self._row(delay, played, now=delay == self.current)
        return self.tried[delay]

    def as_it_is(self) -> Row:
        """The pipeline's own rule, which finds its delay by itself."""
        played = play(plan_with(self.plan, None), self.found)
        return replace(self._row(played.delay, played, now=True), moves=True)

    def with_lateness(self, delay: int, lateness: int) -> float:
        """The share of events that are late where complete windows take corrections for so long."""
        return play(plan_with(self.plan, delay, lateness), self.found).late / max(self.found.events, 1)

    def _row(self, delay: int, played: Played, *, now: bool) -> Row:
        found = self.ends.judge(played, self.begun, self.settled)
        tells = found.windows >= WINDOWS and found.rows >= self.goals.rows
        share = played.late / max(self.found.events, 1)
        return Row(
            delay,
            played.late,
            share,
            found.after_end,
            played.held,
            now,
            found.complete,
            found.median,
            found.worst,
            found.windows,
            found.rows,
            found.open,
            tells,
        )


def tried(plan: Plan, found: Gathered, waits: Sequence[int], current: int | None) -> list[Row]:
    """Each delay, tried by running the windows over the events with it."""
    trial = Trial(plan, found, Goals(), current)
    return [trial.row(delay) for delay in waits]


def counted(lateness: Lateness, seen: Sequence[Observation], waits: Sequence[int], current: int | None) -> list[Row]:
    """Each delay, by what was counted while it ran: how many came later than that, which are not all late."""
    apart, rate = _apart(seen), _windows_a_second(seen)
    held = max((one.state.get("open", 0) for one in seen), default=0)
    rows = []
    for delay in waits:
        beyond = lateness.beyond(delay)
        more = None if rate is None or current is None else max(round(held + rate * (delay - current) / SECOND), 0)
        share = beyond / max(lateness.total, 1)
        # A row is missing from an on-time pane only if it came behind the watermark, which is at most as many.
        rows.append(Row(delay, beyond, share, delay + apart, more, delay == current, complete=1 - share))
    return rows


def delay_in(seen: Sequence[Observation]) -> int | None:
    """The delay that a run had: how far each partition's watermark was behind its newest event."""
    last: list[dict[str, Any]] = next((one.partitions for one in reversed(seen) if one.partitions), [])
    found = [
        one["newest"] - one["watermark"]
        for one in last
        if one["newest"] is not None and MIN_TIME < one["watermark"] < MAX_TIME
    ]
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
