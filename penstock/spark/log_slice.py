"""A stretch of a log, cut once: the same rows for whoever reads them, as a stream that ends or all at once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from penstock.connectors.source import Chunk, LogReader, Offsets, Split
from penstock.types.durations import DAY

BATCHES = 4


@dataclass(frozen=True, slots=True)
class Slice:
    """Positions of a reader, one after the other; each batch reads from one to the next."""

    reader: LogReader
    positions: tuple[Offsets, ...]
    now: int
    kind: str = "slice"

    def start(self) -> Offsets:
        """The first position."""
        return {"at": 0}

    def latest(self, since: Offsets, now: int, limit: int | None) -> Offsets:
        """One position further."""
        return {"at": min(since["at"] + 1, self._last)}

    def splits(self, since: Offsets, upto: Offsets) -> list[Split]:
        """What the reader says of each position and the next: a position may hold the work of its own batch alone."""
        steps = pairwise(self.positions[since["at"] : upto["at"] + 1])
        return [split for before, after in steps for split in self.reader.splits(before, after)]

    def read(self, split: Split) -> Iterator[Chunk]:
        """The reader's rows."""
        return self.reader.read(split)

    def partitions(self, at: Offsets) -> list[str]:
        """Those that the reader knows."""
        return self.reader.partitions(self.positions[at["at"]])

    def behind(self, at: Offsets, now: int) -> list[str]:
        """All, until the last position is reached."""
        return self.partitions(at) if at["at"] < self._last else []

    def finished(self, at: Offsets, now: int) -> bool:
        """Whether the last position is reached."""
        return bool(at["at"] >= self._last)

    def chunks(self) -> Iterator[Chunk]:
        """All rows at once."""
        for split in self.splits({"at": 0}, {"at": self._last}):
            yield from self.read(split)

    @property
    def _last(self) -> int:
        return len(self.positions) - 1


def sliced(reader: LogReader, bounded: bool, rows: int, now: int) -> Slice:
    """All rows of a log that ends, or about so many of one that does not; whether they come in real time or not."""
    # One that is played in real time began a day ago, so that its rows are there and none is from the future.
    at = reader.start()
    positions = [at, reader.latest(at, now - DAY, 1)]
    most = None if bounded else rows
    while not reader.finished(positions[-1], now) and (most is None or len(positions) < BATCHES + 2):
        at = reader.latest(positions[-1], now, max(1, rows // BATCHES))
        if at == positions[-1]:
            break
        positions.append(at)
    return Slice(reader, tuple(positions), now)
