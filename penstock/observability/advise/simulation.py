"""A watermark rule played over events that came: what each on-time pane held of the rows that its window ever got.

The engine plays the pipeline's windows and triggers over the batches, with one more aggregate, which counts rows. What
a window has in the end is found by the same engine with a watermark that waits for all of them: rows that a rule makes
late are missing from its panes like those that come after them.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from penstock.engine.in_process import ColumnarRun
from penstock.engine.ingest.row_steps import SourceBatch
from penstock.engine.watermarks import ClockState, Spoken
from penstock.model.aggregates import rows as count_of_rows
from penstock.model.panes import Pane
from penstock.model.triggers import at_watermark
from penstock.model.watermarks import Bounded, Watermark
from penstock.model.windows import Window
from penstock.observability.advise.inputs import Gathered, median
from penstock.observability.lateness_histogram import Lateness, counted
from penstock.plan.stages import Plan
from penstock.reference.aggregates import canonical
from penstock.runtime.batch import Arrival, Tick
from penstock.types.timestamps import MAX_TIME, MIN_TIME, plus

COUNTED = "@rows"  # the aggregate that counts; no column of a pipeline has such a name
TENTH = 0.1  # of the windows are worse than what is said of the worst

Group = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class OnTime:
    """A pane that was shown on time: its window, how many rows it held, and how long after the end it came: how far W
    was behind the newest event, and how long the window had been complete. Batches come on top: as long as they are."""

    window: Window
    rows: int
    after_end: int


@dataclass(slots=True)
class Played:
    """What a rule did. `reached` is W of the last batch, `begun` the first that there was; `behind` is how far behind W
    rows came, and `delay` how far W is behind the newest event of the partition that it waits for."""

    late: int = 0
    held: int = 0
    delay: int = 0
    reached: int = MIN_TIME
    begun: int | None = None
    behind: Lateness = field(default_factory=Lateness)
    on_time: dict[Group, list[OnTime]] = field(default_factory=lambda: defaultdict(list))
    corrected: dict[Group, list[Window]] = field(default_factory=lambda: defaultdict(list))


@dataclass(frozen=True, slots=True)
class Judged:
    """Of the windows that can be judged: the share of all their rows that on-time panes held, in the middle of the
    windows, and what nine in ten hold at least; how many windows and rows that is of, and how many windows are open."""

    complete: float | None
    median: float | None
    worst: float | None
    after_end: int | None
    windows: int
    rows: int
    open: int


@dataclass(frozen=True, slots=True)
class Ends:
    """The windows of each key in order, each with the number of rows that ever came for it."""

    plan: Plan
    windows: dict[Group, list[tuple[Window, int]]]

    def holding(self, key: Group, window: Window) -> Window | None:
        """The window that a window of this key is in the end: where windows merge, the one that it is a part of."""
        if not self.plan.window.merging:
            return window
        windows = self.windows.get(key, [])
        place = bisect_right(windows, window.start, key=lambda one: one[0].start)
        return windows[place - 1][0] if place else None

    def judge(self, played: Played, begun: int, settled: int) -> Judged:
        """How complete the panes were of those windows that began after `begun` and end by `settled`."""
        shown: dict[tuple[Group, Window | None], list[OnTime]] = defaultdict(list)
        for key, panes in played.on_time.items():
            for pane in panes:
                shown[key, self.holding(key, pane.window)].append(pane)
        corrected = {(key, self.holding(key, one)) for key, windows in played.corrected.items() for one in windows}
        pairs: list[tuple[int, int]] = []
        after, still = [], 0
        for key, windows in self.windows.items():
            for window, rows in windows:
                if window.start < begun:
                    continue
                panes = shown.get((key, window), []) if window.end <= settled else []
                after += [pane.after_end for pane in panes]
                pairs += [(pane.rows, rows) for pane in panes]
                if panes:
                    continue
                # Shown late alone, or never: when the window was complete nothing of it was there.
                missed = (key, window) in corrected or played.reached >= plus(self._complete_at(window), self.lateness)
                if missed and window.end <= settled:
                    pairs.append((0, rows))
                else:
                    still += 1
        return _judged(pairs, after, still)

    @property
    def lateness(self) -> int:
        """How long a complete window takes corrections."""
        return self.plan.lateness

    def begun_before(self, begun: int) -> int:
        """How many windows began before a time."""
        return sum(window.start < begun for windows in self.windows.values() for window, _ in windows)

    def _complete_at(self, window: Window) -> int:
        return self.plan.window.complete_at(window.end)


class _Run(ColumnarRun):
    """A run of events that are played often: they become columns once."""

    def __init__(self, plan: Plan, columns: dict[int, Any]) -> None:
        super().__init__(plan)
        self.columns = columns

    def _batches(self, arrivals: list[Arrival]) -> list[tuple[SourceBatch, list[Arrival]]]:
        """The arrivals of each partition as one Arrow batch; the lists live as long as what was gathered."""
        if not arrivals:
            return []
        if id(arrivals) not in self.columns:
            self.columns[id(arrivals)] = super()._batches(arrivals)
        found: list[tuple[SourceBatch, list[Arrival]]] = self.columns[id(arrivals)]
        return found


def play(plan: Plan, found: Gathered) -> Played:
    """The windows over the events, batch by batch, as a run would show them."""
    run, played = _begun(_counting(plan), found), Played()
    newest, behind = max(found.newest.values(), default=MIN_TIME), []
    for rows, tick in found.batches:
        before, played.reached = played.reached, run.watermark
        outcome = run.batch(rows, tick)
        played.held = max(played.held, run.open_windows())
        for report in run.reports:
            behind.append(np.maximum(report.times, played.reached) - report.times)
        for pane in outcome.panes:
            if pane.op > 0 and pane.window.end < MAX_TIME:
                waited = max(before - pane.window.end, 0) + newest - played.reached
                _note(played, pane, waited)
        newest = max([newest, *(one.newest for one in run.partitions() if one.newest is not None)])
        if played.begun is None and run.watermark > MIN_TIME:
            played.begun = run.watermark
    played.late = run.totals.late
    played.behind = counted(np.concatenate(behind)) if behind else Lateness()
    clocks = [one for one in run.partitions() if one.newest is not None and one.watermark > MIN_TIME]
    played.delay = max((one.newest - one.watermark for one in clocks if one.newest is not None), default=0)
    return played


def ends(plan: Plan, found: Gathered) -> Ends:
    """The windows with all rows that ever came for them: nothing is complete before the last has come."""
    inputs = tuple(
        replace(one, time=replace(one.time, watermark=_endless(one.time.watermark)))
        for one in plan.inputs
        if one.time is not None
    )
    run = _Run(_counting(replace(plan, trigger=at_watermark(), lateness=0, inputs=inputs)), found.columns)
    for rows, tick in found.batches:
        run.batch(rows, Tick(tick.now))
    windows: dict[Group, list[tuple[Window, int]]] = defaultdict(list)
    for pane in run.batch([], Tick(run.now, MAX_TIME)).panes:
        windows[_group(pane)].append((pane.window, _rows(pane)))
    return Ends(plan, {key: sorted(some) for key, some in windows.items()})


def _endless(rule: Watermark) -> Bounded:
    """A rule that lets nothing be complete; what it thinks of events from the future is as it was."""
    # Longer than all of time, and the watermark less a window's size is still an int64.
    return Bounded(delay=2**62, idle=None, when_idle="hold", max_skew=rule.max_skew)


def _counting(plan: Plan) -> Plan:
    """The same windows with their rows counted, each pane of all that are there."""
    return replace(plan, mode="accumulating", aggregates=(*plan.aggregates, (COUNTED, count_of_rows())))


def _note(played: Played, pane: Pane, after_end: int) -> None:
    if pane.timing == "on_time":
        played.on_time[_group(pane)].append(OnTime(pane.window, _rows(pane), after_end))
    elif pane.timing == "late":
        played.corrected[_group(pane)].append(pane.window)


def _rows(pane: Pane) -> int:
    rows = pane.values[COUNTED]
    assert isinstance(rows, int)
    return rows


def _group(pane: Pane) -> Group:
    """The key of a pane; one NaN is like the other."""
    return tuple(canonical(value) for value in pane.key)


def _begun(plan: Plan, found: Gathered) -> _Run:
    """A run that has heard what its partitions had reached before."""
    run = _Run(plan, found.columns)
    if found.newest:
        names = tuple(found.newest)
        run.clock = ClockState(spoken={name: Spoken(newest) for name, newest in found.newest.items()})
        run.batch([], Tick(found.batches[0][1].now, None, names, behind=names))
    return run


def _judged(pairs: Sequence[tuple[int, int]], after: Sequence[int], still: int) -> Judged:
    if not pairs:
        return Judged(None, None, None, None, 0, 0, still)
    held, ever = (np.array(side, dtype=np.int64) for side in zip(*pairs, strict=True))
    shares = np.sort(held / ever)
    middle, worst = (float(shares[int(share * (len(shares) - 1))]) for share in (0.5, TENTH))
    return Judged(float(held.sum() / ever.sum()), middle, worst, median(after), len(pairs), int(ever.sum()), still)
