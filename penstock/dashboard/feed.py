"""What is known of a run just now: its last batches, up to a size, and how it stands; looked at twice a second.

All that is read lies beside the checkpoint, so that it is the same while the run is on, after it has stopped, and in
another process. A run that has not made its checkpoint yet is one that is being started.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections import OrderedDict, deque
from contextlib import suppress
from dataclasses import dataclass, replace

from penstock.dashboard.plane_encoding import compact, line
from penstock.dashboard.run_summary import stands
from penstock.errors import PenstockError
from penstock.observability.journal import Recorded
from penstock.observability.observation import Observation
from penstock.storage.local import LocalStore

EVERY = 0.5  # seconds between two looks
BYTES = 24 << 20  # of batches that are held
BATCHES = 3_000
RECENT = 1_500  # batches from which it is said what needs attention
WITH_PANES = 120  # of them, the last, that keep their panes
STANDS_EVERY = 1.0  # seconds between two times at which that is said


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
        self.recorded.begin_with(BYTES)  # of a long run no more is read than can be held
        self.begun = secrets.token_hex(4)
        self.batches: OrderedDict[int, Held] = OrderedDict()
        self.size = self.taken = self.stood = 0
        self.recent: deque[Observation] = deque(maxlen=RECENT)
        self.standing = b""
        self.stood_at = 0.0
        self.lineage: str | None = None
        self.changed = threading.Condition()
        self.ended = threading.Event()

    def look(self) -> None:
        """Read what is new, and wake those who listen; a file that cannot be read now is read the next time."""
        with suppress(OSError, PenstockError):
            for one in self.recorded.arriving():
                self._take(one)
        with self.changed:
            self.changed.notify_all()
        if time.monotonic() - self.stood_at >= STANDS_EVERY:
            self._stand()

    def look_at_last(self) -> None:
        """Look once more, whenever the last time was: the run has ended, and that is to be heard."""
        self.stood_at = 0.0
        self.look()

    def observed(self) -> list[Observation]:
        """The last batches in order, each once, without their dots."""
        with self.changed:
            return list(self.recent)

    def _stand(self) -> None:
        told = stands(self.store, self.observed())
        self.stood_at = time.monotonic()
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
            while self.recent and self.recent[-1].batch >= one.batch:
                self.recent.pop()  # it is run again, and so will be all that came after it
            self.recent.append(replace(one, dots=[]))
            if len(self.recent) > WITH_PANES:
                self.recent[-WITH_PANES] = replace(self.recent[-WITH_PANES], panes=[])
            if not self.taken % 100:
                self.changed.notify_all()
            while self.size > BYTES or len(self.batches) > BATCHES:
                _, gone = self.batches.popitem(last=False)
                self.size -= len(gone.data)

    def _begin_anew(self) -> None:
        """Forget a run whose checkpoint was made anew."""
        with self.changed:
            self.begun = secrets.token_hex(4)
            self.batches.clear()
            self.size = self.taken = self.stood = 0
            self.recent.clear()
            self.standing = b""
        self.recorded = Recorded(self.store)
