"""Rows as they are, in columns."""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence

from penstock.engine.combine import Rows
from penstock.engine.encoding import framed
from penstock.engine.memory import Saved
from penstock.engine.operators.operator import Emitted, Outgoing
from penstock.engine.windows import Clock
from penstock.instant import MAX_TIME
from penstock.stage import MAIN


class Passing:
    """Remembers nothing."""

    def start(self) -> None:
        return None

    def step(self, memory: None, arrivals: Sequence[Rows], clock: Clock) -> Emitted:
        """Give every row."""
        rows = arrivals[0]
        return Emitted(None, {MAIN: Outgoing(rows.batch, rows.times, rows.ops)}, (None,), (), MAX_TIME)

    def saved(self, memory: None, known: Container[str] = ()) -> Saved:
        return Saved(framed({}), {})

    def parts(self, head: bytes) -> tuple[str, ...]:
        return ()

    def restored(self, head: bytes, fetch: Callable[[str], bytes]) -> None:
        return None

    def held(self, memory: None) -> int:
        return 0
