"""What goes into a batch and what comes out: the values both engines are called with and answer with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Protocol

from penstock.model.panes import Given, Late, Pane, Quarantined


@dataclass(frozen=True, slots=True)
class Arrival:
    """A decoded row and where it came from; `bad` says why it could not be decoded."""

    source: str
    partition: str
    offset: int
    row: Mapping[str, Any]
    bad: str | None = None


@dataclass(frozen=True, slots=True)
class Counts:
    """Where every row and every placement of a row in a window went; `given` are those that stages gave to others.

    `deduplicated` rows are among those kept: dedup took them, and said of them that they are duplicates.
    """

    read: int = 0
    added: int = 0
    dropped: int = 0
    filtered: int = 0
    quarantined: int = 0
    late: int = 0
    kept: int = 0
    placed: int = 0
    missed: int = 0
    ended: int = 0
    given: int = 0
    deduplicated: int = 0

    def __add__(self, other: Counts) -> Counts:
        return Counts(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))

    @property
    def unusable(self) -> bool:
        """Whether rows were read and every one of them is in quarantine."""
        return self.quarantined > 0 and not (self.dropped or self.filtered or self.late or self.kept)

    def conserved(self, open_records: int) -> bool:
        """Whether nothing was lost: rows in = rows out, and records put into windows are there or were shown."""
        out = self.dropped + self.filtered + self.quarantined + self.late + self.kept
        return self.read + self.added + self.given == out and self.placed == self.ended + open_records


@dataclass(frozen=True, slots=True)
class StageOutcome:
    """What one batch gave in one stage: windows give panes, other stages rows."""

    panes: tuple[Pane, ...] = ()
    rows: tuple[Given, ...] = ()
    late: tuple[Late, ...] = ()


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one batch gave: in the last stage, and in each of them."""

    panes: tuple[Pane, ...]
    late: tuple[Late, ...]
    quarantined: tuple[Quarantined, ...]
    counts: Counts
    stages: tuple[StageOutcome, ...] = ()

    @property
    def rows(self) -> tuple[Given, ...]:
        """The rows that the last stage gave."""
        return self.stages[-1].rows if self.stages else ()


@dataclass(frozen=True, slots=True)
class PartitionClock:
    """What the watermark rule knows of a partition, for people to read."""

    source: str
    partition: str
    newest: int | None
    watermark: int
    idle: bool
    silent_for: int


WHOLE = "0"
"""The one partition that a source is until others are known."""


@dataclass(frozen=True, slots=True)
class Tick:
    """What the outside says about time in a batch: now, a watermark given by hand, and which partitions are known.

    `resumed` marks the first batch after an outage, in which silence does not count; nor does that of a partition
    that is `behind`, whose source has more to read.
    """

    now: int | None = None
    watermark: int | None = None
    partitions: tuple[tuple[str, str], ...] = ()
    resumed: bool = False
    behind: tuple[tuple[str, str], ...] = ()


class Run(Protocol):
    """A plan being played, batch by batch."""

    watermark: int
    now: int
    totals: Counts

    def batch(self, arrivals: list[Arrival], tick: Tick) -> Outcome:
        """Play one batch."""

    def partitions(self) -> tuple[PartitionClock, ...]:
        """The clock of each partition."""

    def open_records(self) -> int:
        """How many records lie in windows that are still held."""

    def open_windows(self) -> int:
        """How many windows are held."""

    def snapshot(self) -> Any:
        """All that is remembered, as a value."""

    def restore(self, snapshot: Any) -> None:
        """Go on from what was remembered."""
