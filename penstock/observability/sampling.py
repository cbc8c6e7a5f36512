"""A few of the events that a task has read, and how often it met each key: little work, whatever it reads.

Events are taken at even distances, so that the same batch always gives the same sample.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.connectors.source import Chunk
from penstock.engine.ingest.row_steps import Read
from penstock.observability.lateness_histogram import Behind, Lateness

DOTS = 24  # events of a task and batch that are shown
LOOKED_AT = 512  # events of a chunk by which keys are counted
KEYS = 32  # keys of a task that are told
LONGEST = 120  # characters of a value


@dataclass
class Sample:
    """What a task tells of the events of one source.

    `keys` are the columns they are grouped by, `time` the one that is their event time. `skew` has for a partition how
    long one event took to its log, and from there to here. `behind` begins with the newest event time of each
    partition in the batches before, and `delays` are how far this batch's events were behind.
    """

    source: str
    keys: tuple[str, ...]
    time: str | None = None
    dots: list[dict[str, Any]] = field(default_factory=list)
    counted: Counter[str] = field(default_factory=Counter)
    looked: int = 0
    skew: dict[str, list[int]] = field(default_factory=dict)
    behind: Behind = field(default_factory=Behind)
    delays: dict[str, Lateness] = field(default_factory=dict)

    def add(self, chunk: Chunk, read: Read, now: int) -> None:
        """Look at some rows of a chunk, which have their event times; a value that cannot be shown stops nothing."""
        with suppress(Exception):
            if len(read.times):
                self.delays.setdefault(chunk.partition, Lateness()).add(self.behind.more(chunk.partition, read.times))
                self._add(chunk, read, now)

    def _add(self, chunk: Chunk, read: Read, now: int) -> None:
        names = [name for name in self.keys if name in read.batch.schema.names]
        if names and len(names) == len(self.keys):
            seen = read.batch.select(names).take(pa.array(even(len(read.times), LOOKED_AT)))
            self.counted.update(key_text(row.values()) for row in seen.to_pylist())
            self.looked += seen.num_rows
        places = even(len(read.times), DOTS)
        offsets = chunk.offsets[places if read.at is None else read.at[places]].tolist()
        times = read.times[places].tolist()
        for offset, time, row in zip(offsets, times, read.batch.take(pa.array(places)).to_pylist(), strict=True):
            self.dots.append(
                {
                    "partition": chunk.partition,
                    "offset": offset,
                    "event_time": time,
                    "key": key_text(row[name] for name in names),
                    "text": row_text({name: value for name, value in row.items() if name not in (*names, self.time)}),
                }
            )
            if chunk.logged is not None and chunk.logged[0] == offset:
                self.skew[chunk.partition] = [chunk.logged[1] - time, now - chunk.logged[1]]

    def plain(self) -> dict[str, Any]:
        """The same as values that JSON has."""
        chosen = [self.dots[place] for place in even(len(self.dots), DOTS).tolist()]
        return {
            "source": self.source,
            "dots": chosen,
            "keys": self.counted.most_common(KEYS),
            "looked": self.looked,
            "skew": self.skew,
            "behind": {name: held.plain() for name, held in self.delays.items()},
        }


def even(count: int, most: int) -> np.ndarray:
    """At most so many places of a list, at even distances, the last one among them."""
    if count <= most:
        return np.arange(count)
    return (np.arange(1, most + 1) * count) // most - 1


def key_text(values: Iterator[Any] | Sequence[Any] | Any) -> str:
    """The key columns of a row in one text."""
    return shortened(" · ".join("null" if value is None else str(value) for value in values))


def row_text(row: Mapping[str, Any]) -> str:
    """The other columns of a row in one text: a single value stands alone, several have their names."""
    if len(row) == 1:
        return shortened("null" if (value := next(iter(row.values()))) is None else str(value))
    return shortened(", ".join(f"{name} {'null' if value is None else value}" for name, value in row.items()))


def shortened(text: str) -> str:
    """A text that is not too long to be looked at."""
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"
