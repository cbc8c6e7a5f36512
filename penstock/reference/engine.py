"""Stages played by the reference: the executable specification, one record at a time."""

from __future__ import annotations

import copy
from typing import Any

from penstock.plan.graph import AnyStage, flow_of
from penstock.reference.aggregates import Record
from penstock.reference.row_steps import Reading, Stamped, Travelling
from penstock.reference.stage import Played, started
from penstock.reference.watermarks import Clock
from penstock.runtime.bad_row_limit import refuse_bad
from penstock.runtime.batch import Arrival, Counts, Outcome, PartitionClock, StageOutcome, Tick


class ReferenceRun:
    """A stage or several, and all they read, in progress."""

    def __init__(self, *plans: AnyStage) -> None:
        self.flow = flow_of(plans)
        self.clock = Clock(self.flow)
        self.stages = [started(stage) for stage in self.flow.stages]
        self.given = [0] * len(self.stages)
        self.totals = Counts()
        self.bad: dict[str, list[int]] = {}

    @property
    def watermark(self) -> int:
        """W of the batch to come."""
        return self.clock.watermark

    @property
    def now(self) -> int | None:
        """The processing clock of the last batch."""
        return self.clock.now

    def batch(self, arrivals: list[Arrival], tick: Tick) -> Outcome:
        """Play one batch, stage after stage."""
        if tick.watermark is not None:
            self.clock.given(tick.watermark)
        now = max((at for at in (self.clock.now, tick.now) if at is not None), default=0)
        reading = Reading(now)
        waiting: list[list[list[Record]]] = [[[] for _ in stage.entries] for stage in self.flow.stages]
        stamps: list[Stamped] = []
        again = 0
        for one in self.flow.inputs:
            said, rows = reading.stamped(one, [a for a in arrivals if a.source == one.source.name])
            stamps += said
            feeds = self.flow.fed_by(one.source.name)
            again += (len(feeds) - 1) * len(rows)
            for feed in feeds:
                waiting[feed.stage][feed.entry] += reading.prepared(self.flow.stages[feed.stage], feed.input, rows)
        played = [self._stage(number, waiting, reading) for number in range(len(self.stages))]
        heard = {(arrival.source, arrival.partition) for arrival in arrivals}
        self.clock.end_batch(stamps, heard, now, tick, [one.hold for one in played])
        bad = [*reading.bad, *(row for one in played for row in one.bad)]
        counts = sum((one.counts for one in played), Counts()) + Counts(
            read=len(arrivals),
            added=reading.added,
            dropped=reading.dropped,
            filtered=reading.filtered,
            quarantined=len(bad),
            given=again,
        )
        self.totals += counts
        refuse_bad(self.flow, self.bad, arrivals, bad)
        last = played[-1]
        shown = tuple(StageOutcome(tuple(one.panes), tuple(one.rows), tuple(one.late)) for one in played)
        return Outcome(tuple(last.panes), tuple(last.late), tuple(bad), counts, shown)

    def _stage(self, number: int, waiting: list[list[list[Record]]], reading: Reading) -> Played:
        """One stage; what it gives waits for those that read it."""
        plan = self.flow.stages[number]
        played = self.stages[number].step(waiting[number], self.clock.stages[number], reading.now)
        given: dict[str, list[Travelling]] = {}
        for row in played.given(plan):
            arrival = Arrival(f"{plan.label}.{row.output}", "0", self.given[number], row.row)
            given.setdefault(row.output, []).append(Travelling(arrival, dict(row.row), row.event_time, row.op))
            self.given[number] += 1
        for output, rows in given.items():
            for feed in self.flow.fed_from(number, output):
                played.counts += Counts(given=len(rows))
                waiting[feed.stage][feed.entry] += reading.prepared(self.flow.stages[feed.stage], feed.input, rows)
        return played

    def partitions(self) -> tuple[PartitionClock, ...]:
        """The clock of each partition."""
        return self.clock.partitions()

    def open_records(self) -> int:
        """How many records lie in windows that are still held."""
        return sum(stage.open_records() for stage in self.stages)

    def open_windows(self) -> int:
        """How many windows, rows, entries and timers are held."""
        return sum(stage.held() for stage in self.stages)

    def snapshot(self) -> Any:
        """All that is remembered, as a value."""
        clock = self.clock
        held = (clock.watermark, clock.now, clock.batch, clock.spoken, clock.stages, self.totals, self.bad, self.given)
        return [stage.snapshot() for stage in self.stages], copy.deepcopy(held)

    def restore(self, snapshot: Any) -> None:
        """Go on from what was remembered."""
        stages, held = snapshot
        for stage, one in zip(self.stages, stages, strict=True):
            stage.restore(one)
        self.clock = Clock(self.flow)
        (
            self.clock.watermark,
            self.clock.now,
            self.clock.batch,
            self.clock.spoken,
            self.clock.stages,
            self.totals,
            self.bad,
            self.given,
        ) = copy.deepcopy(held)
