"""What a stage gives in a batch, one row at a time, and what each kind of stage must be able to do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from penstock.reference.aggregates import Record
from penstock.types.timestamps import MAX_TIME


class Out(NamedTuple):
    """A row that a stage gives: to which output, its event time, and whether it comes (+1) or is withdrawn (-1)."""

    output: str
    row: dict[str, Any]
    time: int
    op: int = 1


class Bad(NamedTuple):
    """A row that a stage could not use: from which side it came, at which step, and why."""

    side: int
    record: Record
    step: str
    reason: str


@dataclass
class Emitted:
    """What a batch gave. `hold` is the least event time that the memory may still give behind the watermark."""

    rows: list[Out] = field(default_factory=list)
    late: list[tuple[int, Record]] = field(default_factory=list)
    bad: list[Bad] = field(default_factory=list)
    hold: int = MAX_TIME


class Machine(Protocol):
    """A stage in progress; all that it remembers is in `memory`, as plain values."""

    memory: Any

    def step(self, arrivals: Sequence[Sequence[Record]], watermark: int, now: int) -> Emitted:
        """Play one batch: for each side its rows, in order of partition and offset."""

    def held(self) -> int:
        """How many rows, entries and timers are held."""
