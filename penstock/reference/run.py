"""A plan played by the reference: the executable specification, one record at a time."""

from __future__ import annotations

import copy
from typing import Any

from penstock.batch import Arrival, Counts, Outcome, PartitionClock, Tick
from penstock.limits import refuse_bad
from penstock.plan import Plan
from penstock.reference.assign import forget, take
from penstock.reference.machine import Machine
from penstock.reference.rows import read
from penstock.reference.watermark import Clock


class ReferenceRun:
    """A plan in progress."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.clock = Clock(plan)
        self.machine = Machine(plan)
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
        """Play one batch."""
        if tick.watermark is not None:
            self.clock.watermark = max(self.clock.watermark, tick.watermark)
        now = max((at for at in (self.clock.now, tick.now) if at is not None), default=0)
        rows = read(self.plan, arrivals, now)
        machine = self.machine
        machine.begin(self.clock.watermark, now)
        machine.expire()
        take(machine, rows.records)
        machine.evaluate()
        forget(machine)
        heard = {(arrival.source, arrival.partition) for arrival in arrivals}
        self.clock.end_batch(rows.stamps, heard, now, tick)
        counts = machine.counts + Counts(
            read=len(arrivals), added=rows.added, dropped=rows.dropped, filtered=rows.filtered,
            quarantined=len(rows.quarantined),
        )  # fmt: skip
        self.totals += counts
        refuse_bad(self.plan, self.bad, arrivals, rows.quarantined)
        return Outcome(tuple(machine.panes), tuple(machine.late), tuple(rows.quarantined), counts)

    def partitions(self) -> tuple[PartitionClock, ...]:
        """The clock of each partition."""
        return self.clock.partitions()

    def open_records(self) -> int:
        """How many records lie in windows that are still held."""
        return sum(open_.records for windows in self.machine.windows.values() for open_ in windows.values())

    def open_windows(self) -> int:
        """How many windows are held."""
        return sum(len(windows) for windows in self.machine.windows.values())

    def snapshot(self) -> Any:
        """All that is remembered, as a value."""
        machine, clock = self.machine, self.clock
        held = (machine.windows, machine.events, clock.watermark, clock.now, clock.batch, clock.spoken,
                self.totals, self.bad)  # fmt: skip
        return copy.deepcopy(held)

    def restore(self, snapshot: Any) -> None:
        """Go on from what was remembered."""
        held = copy.deepcopy(snapshot)
        self.machine, self.clock = Machine(self.plan), Clock(self.plan)
        self.machine.windows, self.machine.events = held[:2]
        self.clock.watermark, self.clock.now, self.clock.batch, self.clock.spoken = held[2:6]
        self.totals, self.bad = held[6:]
