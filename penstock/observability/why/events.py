"""The events of a batch, read again where the source can do that, as they reached the windows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.connectors.source import Chunk
from penstock.engine.ingest.row_steps import Read, SourceBatch, prepared_rows, stamped_rows
from penstock.errors import PenstockError
from penstock.observability.why.batches import Batch
from penstock.observability.why.errors import Unexplained
from penstock.plan.graph import Flow
from penstock.plan.stages import Input, Plan
from penstock.quarantine.replay import Inbox
from penstock.reference.aggregates import Record, canonical
from penstock.runtime.batch import Arrival
from penstock.types.arrow import from_arrow


@dataclass(frozen=True, slots=True)
class Again:
    """A pipeline's sources, to be read a second time."""

    flow: Flow
    inbox: Inbox

    def chunks(self, batch: Batch) -> Iterator[tuple[Input, Chunk]]:
        """All that a batch read."""
        for one in self.flow.inputs:
            try:
                for chunk in self._read(one, batch):
                    yield one, chunk
            except (PenstockError, OSError) as error:
                said = error.what if isinstance(error, PenstockError) else str(error)
                raise Unexplained(
                    f"the events of batch {batch.number} cannot be read again from {one.source.name!r}",
                    said,
                    "leave the file out: penstock why CHECKPOINT says what the record alone has",
                ) from error
        files = (_repaired(batch.since), _repaired(batch.upto))
        for number in range(files[0] + 1, files[1] + 1):
            for one in self.flow.inputs:
                yield from ((one, chunk) for chunk in self.inbox.read(number, one.source.name, one.source.schema))

    def _read(self, one: Input, batch: Batch) -> Iterator[Chunk]:
        name, reader = one.source.name, one.source.reader
        since = reader.start() if batch.since is None else batch.since["sources"][name]
        upto = batch.upto["sources"][name]
        if since != upto:
            for split in reader.splits(since, upto):
                yield from reader.read(split)


def refuse_unread(flow: Flow) -> None:
    """Refuse sources that cannot be read a second time."""
    for one in flow.inputs:
        reader: Any = one.source.reader
        if reader is None or hasattr(reader, "frame") or hasattr(reader, "kept_under"):
            kind = "a DataFrame of Spark" if hasattr(reader, "frame") else "a table that is read whole"
            raise Unexplained(
                f"the source {one.source.name!r} is {'handed in' if reader is None else kind}",
                "only a source of Penstock can be read again from where a batch began to where it ended",
                "leave the file out: penstock why CHECKPOINT says what the record alone has",
            )


@dataclass(frozen=True, slots=True)
class Reached:
    """A chunk on its way to the windows: as it was read, with its event times, and as it reached them."""

    one: Input
    chunk: Chunk
    stamped: Read
    ready: Read

    @property
    def partition(self) -> str:
        """The partition with its source."""
        return f"{self.one.source.name}/{self.chunk.partition}"

    def records(self, plan: Plan, rows: np.ndarray) -> list[Record]:
        """Some of the rows as the windows take them."""
        offsets = self.chunk.offsets[self.ready.places()[rows]].tolist()
        taken = from_arrow(self.ready.batch.take(pa.array(rows)), plan.schema)
        times = self.ready.times[rows].tolist()
        return [
            Record(time, self.partition, offset, row) for time, offset, row in zip(times, offsets, taken, strict=True)
        ]


def reached(plan: Plan, one: Input, chunk: Chunk, now: int) -> Reached:
    """A chunk taken through the row steps of its source."""
    mine = next(held for held in plan.inputs if held.source.name == one.source.name)
    stamped = stamped_rows(mine, SourceBatch(one.source.name, chunk.partition, chunk.offsets, chunk.rows), now)
    return Reached(mine, chunk, stamped, prepared_rows(plan, mine, stamped))


def arrivals(one: Input, chunk: Chunk) -> Iterator[Arrival]:
    """A chunk as the reference engine is given it."""
    source, rows = one.source.name, from_arrow(chunk.rows, one.source.schema)
    for offset, row in zip(chunk.offsets.tolist(), rows, strict=True):
        yield Arrival(source, chunk.partition, offset, row)
    for bad in chunk.undecoded:
        yield Arrival(source, chunk.partition, bad.offset, {}, bad.reason)


def rows_of_key(plan: Plan, read: Read, key: Sequence[str]) -> np.ndarray:
    """Which rows have a key, whose columns are given as texts."""
    mask = np.ones(read.batch.num_rows, dtype=bool)
    for name, text in zip(plan.keys, key, strict=True):
        column = read.batch.column(name).dictionary_encode()
        wanted = [place for place, value in enumerate(column.dictionary.to_pylist()) if value_text(value) == text]
        places = column.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        mask &= np.isin(places, [*wanted, *([-1] if text == "null" else [])])
    return np.flatnonzero(mask)


def keys_of(plan: Plan, read: Read) -> set[tuple[str, ...]]:
    """The different keys of some rows, as texts."""
    if not plan.keys or not read.batch.num_rows:
        return set()
    different = pa.Table.from_batches([read.batch.select(plan.keys)]).group_by(list(plan.keys)).aggregate([])
    return {tuple(value_text(row[name]) for name in plan.keys) for row in different.to_pylist()}


def value_text(value: Any) -> str:
    """A value of a key column as people write it."""
    return "null" if value is None else str(canonical(value))


def _repaired(position: Any) -> int:
    return 0 if position is None else int(position.get("repaired", 0))
