"""Rows as they are, in columns."""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence

from penstock.engine.ingest.pre_aggregate import Rows
from penstock.engine.operators.protocol import Emitted, Outgoing
from penstock.engine.state.codec import framed
from penstock.engine.state.snapshot import Saved
from penstock.engine.windows.lifecycle import Clock
from penstock.plan.stages import MAIN
from penstock.types.timestamps import MAX_TIME


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
