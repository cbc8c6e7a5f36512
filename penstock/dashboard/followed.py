"""What is known of a run just now: its last batches, up to a size, and how it stands; looked at twice a second.

All that is read lies beside the checkpoint, so that it is the same while the run is on, after it has stopped, and in
another process. A run that has not made its checkpoint yet is one that is being started.
"""

from __future__ import annotations

import secrets
import threading
from collections import OrderedDict
from contextlib import suppress
from dataclasses import dataclass

from penstock.checkpoint.store import LocalStore
from penstock.dashboard.compact import compact, line
from penstock.dashboard.standing import stands
from penstock.errors import PenstockError
from penstock.monitor.observation import Observation
from penstock.monitor.recorded import Recorded

EVERY = 0.5  # seconds between two looks
BYTES = 24 << 20  # of batches that are held
BATCHES = 3_000


@dataclass(frozen=True, slots=True)
class Held:
    """A batch, ready to be sent; `number` grows with every one that is taken."""

    number: int
    data: bytes


@dataclass(frozen=True, slots=True)
class News:
    """What a listener has not heard: batches, how it stands if that has changed, and where it has got to."""

    begun: str
    batches: tuple[bytes, ...]
    standing: bytes | None
    upto: int
    stood: int


class Followed:
    """The last batches of a run, shared by all who listen."""

    def __init__(self, checkpoint: str) -> None:
        self.store = LocalStore(checkpoint)
        self.recorded = Recorded(self.store)
        self.begun = secrets.token_hex(4)
        self.batches: OrderedDict[int, Held] = OrderedDict()
        self.size = self.taken = self.stood = 0
        self.last: Observation | None = None
        self.before: Observation | None = None
        self.standing = b""
        self.lineage: str | None = None
        self.changed = threading.Condition()
        self.ended = threading.Event()

    def look(self) -> None:
        """Read what is new, and wake those who listen; a file that cannot be read now is read the next time."""
        with suppress(OSError, PenstockError):
            for one in self.recorded.arriving():
                self._take(one)
        told = stands(self.store, self.last, self.before)
        if self.lineage not in (None, told.get("lineage")):
            self._begin_anew()
        self.lineage = told.get("lineage")
        data = line(told)
        with self.changed:
            if data != self.standing:
                self.standing, self.stood = data, self.stood + 1
            self.changed.notify_all()

    def keep_looking(self) -> None:
        """Look until told to end; what runs in a thread."""
        while not self.ended.is_set():
            with suppress(Exception):  # whoever looks at a run must never fall silent for good
                self.look()
            self.ended.wait(EVERY)

    def since(self, begun: str, upto: int, stood: int, *, seconds: float, most: int = 100) -> News:
        """What came after that; waits up to so many seconds for something."""
        with self.changed:
            if begun == self.begun and upto >= self.taken and stood >= self.stood and not self.ended.is_set():
                self.changed.wait(seconds)
            if begun != self.begun:
                upto = stood = 0
            new = [one for one in self.batches.values() if one.number > upto][:most]
            standing = self.standing if self.stood > stood else None
            last = new[-1].number if new else upto
            return News(self.begun, tuple(one.data for one in new), standing, last, self.stood)

    def end(self) -> None:
        """Let all who listen go."""
        self.ended.set()
        with self.changed:
            self.changed.notify_all()

    def _take(self, one: Observation) -> None:
        data = line(compact(one))
        with self.changed:
            old = self.batches.pop(one.batch, None)
            self.size += len(data) - (len(old.data) if old is not None else 0)
            self.taken += 1
            self.batches[one.batch] = Held(self.taken, data)
            if self.last is None or one.batch > self.last.batch:
                self.before = self.last
            self.last = one
            while self.size > BYTES or len(self.batches) > BATCHES:
                _, gone = self.batches.popitem(last=False)
                self.size -= len(gone.data)

    def _begin_anew(self) -> None:
        """Forget a run whose checkpoint was made anew."""
        with self.changed:
            self.begun = secrets.token_hex(4)
            self.batches.clear()
            self.size = self.taken = self.stood = 0
            self.last = self.before = None
            self.standing = b""
        self.recorded = Recorded(self.store)
