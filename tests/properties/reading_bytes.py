"""Bytes through the readers, as a batch has them: a file of a directory, messages of a partition, without a broker."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import penstock as ps
from penstock.connectors.formats.message_bytes import Values
from penstock.connectors.kafka.consumer import Span
from penstock.connectors.kafka.decode import Rows, decoder
from penstock.connectors.kafka.message_blocks import Block
from penstock.connectors.source import Chunk
from penstock.storage.listing import stat
from penstock.types.arrow import from_arrow
from penstock.types.schema import Schema
from tests.unit.connectors.sources.reading import reader_of

Outcome = tuple[str, Any]
"""`row` and its values, or `bad` and the reason."""


class Files:
    """A directory that is read as ps.directory reads it, a file at a time."""

    def __init__(self, where: Path, schema: str, suffix: str, **options: Any) -> None:
        self.options = options
        where.mkdir(parents=True, exist_ok=True)
        self.path = where / f"a.{suffix}"
        self.reader = reader_of(ps.directory(where, schema=schema, **options))

    def __call__(self, data: bytes) -> dict[int, Outcome]:
        """What becomes of each line or record, by its offset."""
        self.path.write_bytes(data)
        split = {"files": [[self.path.name, *stat(str(self.path.parent), self.path.name), 0, 0, 1]]}
        return outcomes(self.reader.read(split), self.reader.schema) if data else {}

    def rows(self, table: pa.Table, group: int) -> dict[int, Outcome]:
        """What becomes of each row of a Parquet file with row groups of so many rows."""
        pq.write_table(table, self.path, row_group_size=group, store_schema=group != 7)
        split = {"files": [[self.path.name, *stat(str(self.path.parent), self.path.name), 0, 0, 1]]}
        return outcomes(self.reader.read(split), self.reader.schema)


class Messages:
    """Values of messages, read as ps.kafka reads them once they have come."""

    def __init__(self, schema: str | None, value: str = "json", **options: Any) -> None:
        self.reader = reader_of(ps.kafka("t", servers="localhost:1", schema=schema, value=value, **options))
        self.rows = Rows(self.reader.shape, decoder(self.reader))

    def __call__(self, values: Sequence[bytes | None]) -> list[Outcome]:
        """What becomes of each value, in order."""
        block = Block(Values.of(values), np.arange(len(values), dtype=np.int64), {})
        span = Span("t", "id", 0, 0, len(values), False)
        found = outcomes(self.rows.chunks(span, iter([[block]])), self.rows.schema)
        assert sorted(found) == list(range(len(values)))
        return [found[at] for at in range(len(values))]


def outcomes(chunks: Iterable[Chunk], schema: Schema) -> dict[int, Outcome]:
    """Rows and reasons by offset; an offset that comes twice is a failure."""
    found: dict[int, Outcome] = {}
    for chunk in chunks:
        assert chunk.rows.num_rows == len(chunk.offsets)
        rows = from_arrow(chunk.rows, schema)
        pairs = [(at, ("row", row)) for at, row in zip(chunk.offsets.tolist(), rows, strict=True)]
        pairs += [(bad.offset, ("bad", bad.reason)) for bad in chunk.undecoded]
        for at, outcome in pairs:
            assert at not in found, at
            found[at] = outcome
    return found
