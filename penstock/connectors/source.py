"""What is a source: a log whose rows keep their offsets, so that a batch can be read again and gives the same."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

from penstock.api.events import events
from penstock.api.stream import Stream
from penstock.types.schema import Schema

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

Offsets = dict[str, Any]
Split = dict[str, Any]
AFTER_END = "end= holds from the checkpoint's first batch on: go on without it, or begin a new checkpoint"
TASKS = 2  # that read a batch where nobody says how many cores there are
MAX_ROWS = 1_000_000  # of one chunk: ingest combines better on large batches, and memory stays bounded
MAX_BYTES = 512 << 20  # of rows that are put together, for a column of one batch holds less than 2 GB


@dataclass(frozen=True, slots=True)
class Undecoded:
    """A row that could not be decoded: where it was, its raw text, and why."""

    offset: int
    raw: str
    reason: str


@dataclass(frozen=True, slots=True)
class Chunk:
    """Rows of one partition in order of their offsets; `rows` has the Arrow schema of the source.

    `logged` is the offset of one of them and the time at which its log took it, where a log tells that.
    """

    partition: str
    offsets: np.ndarray
    rows: pa.RecordBatch
    undecoded: tuple[Undecoded, ...] = ()
    logged: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class Lag:
    """How far a partition was read, and where its log ended when that was looked at."""

    partition: str
    current: int
    end: int


class LogReader(Protocol):
    """How a source is read; a frozen dataclass, for it travels to the workers.

    A reader may also have `lag(at) -> list[Lag]`, how far each partition is from its end, `beyond(at) -> list[str]`,
    what is there and lies after the end it was given, in words, `committed(at)`, which is told on the driver of each
    position that is safe, a field `tasks`, which a run fills where it is None, and a `kind`, its name in checkpoints,
    which is that of its class where it has none.
    """

    def start(self) -> Offsets:
        """Where a new checkpoint begins; the same whenever it is asked."""

    def latest(self, since: Offsets, now: int, limit: int | None) -> Offsets:
        """How far the next batch reads: about `limit` rows at most, and nothing that is not there yet."""

    def splits(self, since: Offsets, upto: Offsets) -> list[Split]:
        """The work between two positions in a few large pieces; depends on its arguments alone."""

    def read(self, split: Split) -> Iterator[Chunk]:
        """The rows of a piece, the same chunks whenever it is asked."""

    def partitions(self, at: Offsets) -> list[str]:
        """The partitions that are known at a position."""

    def behind(self, at: Offsets, now: int) -> list[str]:
        """The partitions that have more to read beyond a position."""

    def finished(self, at: Offsets, now: int) -> bool:
        """Whether a source that ends has been read to its end."""


def came_after(reader: Any, at: Offsets, now: int) -> list[str]:
    """What came after the end of a source that has been read to it, in words, and what to do."""
    if not hasattr(reader, "beyond") or not reader.finished(at, now):
        return []
    return [f"{one}; {AFTER_END}" for one in reader.beyond(at)]


def shared_among(reader: Any, tasks: int) -> Any:
    """The reader with its work cut for so many tasks, unless it was told another number."""
    return replace(reader, tasks=tasks) if getattr(reader, "tasks", TASKS) is None else reader


def source(reader: LogReader, columns: str | Schema, *, name: str, bounded: bool, max_bad: int | str | None) -> Stream:
    """The stream of a reader's rows."""
    stream = events(columns, name=name, bounded=bounded, max_bad=max_bad)
    (one,) = stream.inputs
    return replace(stream, inputs=(replace(one, source=replace(one.source, reader=reader)),))
