"""How a run stands after a batch, for people and machines to read."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from penstock.runtime.batch import Counts
from penstock.types.timestamps import MAX_TIME, MIN_TIME


@dataclass(frozen=True, slots=True)
class Progress:
    """One batch, and all batches so far.

    `seconds` is what the batch took, `elapsed` the time since the one before it ended, waiting included; `shares` says
    where that time went: read, step, sinks, waiting. `rows` are those that each stream of results has in this batch,
    named as in the ids of the sinks; `panes` are panes and rows of all stages together. `lag` counts what the logs had
    beyond this batch, where a log can tell. `waiting` says what the batch waits for, while it does. `notes` are what
    the logs say of themselves: a partition that an open transaction holds back, cores that have nothing to read.
    `held` says what each stage remembers after the batch: windows, rows, entries and timers.
    """

    batch: int
    now: int
    watermark: int
    events: int
    panes: int
    late: int
    quarantined: int
    seconds: float
    elapsed: float
    totals: Counts
    total_panes: int
    open_windows: int
    laggard: str | None
    shares: dict[str, float]
    lag: int | None = None
    waiting: str | None = None
    notes: tuple[str, ...] = ()
    rows: dict[str, int] = field(default_factory=dict)
    held: dict[str, int] = field(default_factory=dict)

    @property
    def rate(self) -> float:
        """Events per second since the batch before."""
        return self.events / self.elapsed if self.elapsed else 0.0

    @property
    def behind(self) -> int | None:
        """How far the watermark is behind the processing clock, in microseconds; None while it is infinite."""
        return None if self.watermark in (MIN_TIME, MAX_TIME) else self.now - self.watermark

    def plain(self) -> dict[str, Any]:
        """The same as values that JSON has."""
        return {**asdict(self), "events_per_second": round(self.rate, 1), "behind": self.behind}
