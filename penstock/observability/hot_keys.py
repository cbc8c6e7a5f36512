"""Which keys have most of the traffic? A sketch of heavy hitters over what tasks have counted, with its error.

Space-saving: as many counters as there may be keys on the page, ten times over; a key that has no counter takes the
smallest one and inherits its count as its error. What is older counts less, so that a key that cools down is let go.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from operator import itemgetter

COUNTERS = 200
SHOWN = 20
FADE = 0.98  # of a count that is left after a batch
_COUNT_THEN_NAME = itemgetter(1, 0)


@dataclass
class HotKeys:
    """Counts of keys, at most so many of them."""

    counts: dict[str, float] = field(default_factory=dict)
    errors: dict[str, float] = field(default_factory=dict)
    total: float = 0.0

    def batch(self, counted: Iterable[tuple[str, int]], looked: int) -> None:
        """Take what a batch has counted among so many events that were looked at."""
        if not looked:
            return
        self.total = self.total * FADE + looked
        for held in (self.counts, self.errors):
            for key in held:
                held[key] *= FADE
        for key, number in counted:
            self._count(key, number)

    def shares(self) -> list[tuple[str, float, float]]:
        """The keys with the largest shares: each with its share of all events, and by how much that may be too high."""
        largest = sorted(self.counts.items(), key=lambda one: (-one[1], one[0]))[:SHOWN]
        return [(key, number / self.total, self.errors[key] / self.total) for key, number in largest]

    def _count(self, key: str, number: int) -> None:
        if key not in self.counts and len(self.counts) >= COUNTERS:
            least, inherited = min(self.counts.items(), key=_COUNT_THEN_NAME)
            del self.counts[least]
            del self.errors[least]
            self.counts[key] = self.errors[key] = inherited
        self.counts[key] = self.counts.get(key, 0.0) + number
        self.errors.setdefault(key, 0.0)
