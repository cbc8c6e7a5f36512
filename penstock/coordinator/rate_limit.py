"""How much the next batch takes: so many rows that it lasts about as long as a batch should.

The driver measures a batch and leaves the number in a file; the source, a process of its own beside the driver, reads
it when it plans the next one. What was planned is logged, so a batch that is run again takes the same.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

FIRST_ROWS = 1_000_000
LEAST_ROWS = 1_000
MOST_ROWS = 50_000_000


@dataclass
class Throttle:
    """The rows that a batch may take, and how long it should last; `path` is where the source reads them."""

    path: str
    target: float
    most: int = MOST_ROWS
    rows: int = 0

    def __post_init__(self) -> None:
        self.most = min(self.most, MOST_ROWS)
        self.tell(min(FIRST_ROWS, self.most))

    def took(self, events: int, seconds: float) -> None:
        """Learn from a batch."""
        rows = next_rows(self.rows, events, seconds, self.target)
        self.tell(max(1, min(rows, self.most)))

    def tell(self, rows: int) -> None:
        """Leave the number where the source finds it, whole or not at all."""
        if rows == self.rows:
            return
        self.rows = rows
        with open(f"{self.path}.new", "w") as file:
            file.write(str(rows))
        os.replace(f"{self.path}.new", self.path)


def next_rows(rows: int, events: int, seconds: float, target: float) -> int:
    """The rows of the next batch: fewer after one that took too long, more after a full one that was quick.

    A batch that was not full says nothing of how many rows would fit: most of its time is the same for any batch.

    >>> next_rows(100_000, 100_000, 8.0, 4.0)
    50000
    >>> next_rows(100_000, 100_000, 1.0, 4.0)
    200000
    >>> next_rows(100_000, 500, 1.0, 4.0)
    100000
    """
    if seconds > 1.2 * target and events:
        return max(LEAST_ROWS, min(rows, int(events * target / seconds)))
    if events >= 0.8 * rows and seconds < 0.8 * target:
        return min(MOST_ROWS, int(rows * min(2.0, target / max(seconds, 1e-3))))
    return rows


def allowed(path: str) -> int | None:
    """What the driver has left for the source; None where nobody throttles."""
    if not path:
        return None
    with open(path) as file:
        return int(file.read())
