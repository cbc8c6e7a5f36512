"""Rows as they are, one at a time."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.plan.stages import MAIN
from penstock.reference.aggregates import Record
from penstock.reference.operators.protocol import Emitted, Out


class Passing:
    """Remembers nothing."""

    memory: None = None

    def step(self, arrivals: Sequence[Sequence[Record]], watermark: int, now: int) -> Emitted:
        """Give every row."""
        return Emitted([Out(MAIN, record.row, record.time, record.op) for record in arrivals[0]])

    def held(self) -> int:
        """Nothing."""
        return 0
