"""Where a batch spends its time, and how it waits for a sink that does not answer."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from penstock.connectors.sink_errors import SinkDown

FIRST_SECONDS = 0.5
MOST_SECONDS = 30.0


@dataclass
class Times:
    """When a batch began, when its shards began, when the driver had heard them, when the sinks had it."""

    begun: float
    stepping: float = 0.0
    heard: float = 0.0
    written: float = 0.0
    waited: float = 0.0

    def collected(self, shards_began: float | None) -> None:
        """All was heard; the clock of a machine elsewhere may differ, so what it says is kept within the batch."""
        self.heard = time.monotonic()
        ago = time.time() - shards_began if shards_began is not None else 0.0
        self.stepping = min(self.heard, max(self.begun, self.heard - ago))

    def shares(self, elapsed: float) -> dict[str, float]:
        """Which part of the time since the batch before went where."""
        read, step = self.stepping - self.begun, self.heard - self.stepping
        sinks = self.written - self.heard - self.waited
        whole = max(elapsed, read + step + sinks, 1e-9)
        spent = {"read": read / whole, "step": step / whole, "sinks": sinks / whole}
        return {**spent, "waiting": max(0.0, 1.0 - sum(spent.values()))}


def say_waiting(error: SinkDown) -> None:
    """Tell whoever reads stderr, where there is no progress to tell it with yet."""
    print(f"waiting: {error.what}", file=sys.stderr, flush=True)


@dataclass
class Waiting:
    """Who is told that a batch waits for a sink, what ends the waiting, and for how long it has waited."""

    asked: threading.Event
    tell: Callable[[SinkDown], None]
    seconds: float = 0.0

    def through(self, attempt: Callable[[], None]) -> None:
        """Try until the sink takes it, a little later each time; a stop that is asked for gives the batch up."""
        pause = FIRST_SECONDS
        while True:
            try:
                attempt()
                return
            except SinkDown as error:
                if self.asked.is_set():
                    raise
                self.tell(error)
                begun = time.monotonic()
                if self.asked.wait(pause):
                    raise
                self.seconds += time.monotonic() - begun
                pause = min(2 * pause, MOST_SECONDS)
