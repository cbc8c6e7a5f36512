"""What the tests of the sources share: readers, and reading all there is in batches of some size."""

from __future__ import annotations

import json
from typing import Any

from penstock.api.stream import Stream
from penstock.connectors.source import Chunk, LogReader, Offsets
from penstock.types.arrow import from_arrow

NOW = 1_800_000_000_000_000


def reader_of(stream: Stream) -> Any:
    """The reader of a stream that has one source."""
    return stream.inputs[0].source.reader


def logged(offsets: Offsets) -> Offsets:
    """A position as it comes back from Spark's log."""
    made: Offsets = json.loads(json.dumps(offsets))
    return made


def batches(reader: LogReader, limit: int | None, most: int = 1_000, now: int = NOW) -> list[list[Chunk]]:
    """All that is there, batch by batch; each batch is read twice and gives the same."""
    since, found = logged(reader.start()), []
    for _ in range(most):
        upto = logged(reader.latest(since, now, limit))
        if upto == since:
            break
        chunks = between(reader, since, upto)
        assert [shown(chunk) for chunk in between(reader, since, upto)] == [shown(chunk) for chunk in chunks]
        found.append(chunks)
        since = upto
    return found


def between(reader: LogReader, since: Offsets, upto: Offsets) -> list[Chunk]:
    """The chunks between two positions."""
    return [chunk for split in logged({"s": reader.splits(since, upto)})["s"] for chunk in reader.read(split)]


def shown(chunk: Chunk) -> Any:
    """A chunk as plain values."""
    return chunk.partition, chunk.offsets.tolist(), repr(chunk.rows.to_pylist()), chunk.undecoded


def rows_by_offset(stream: Stream, limit: int | None, now: int = NOW) -> dict[tuple[str, int], Any]:
    """Every row, and every text that is none, by its partition and offset; an offset that comes twice is a failure."""
    reader = reader_of(stream)
    found: dict[tuple[str, int], Any] = {}
    for batch in batches(reader, limit, now=now):
        for chunk in batch:
            assert chunk.offsets.tolist() == sorted(set(chunk.offsets.tolist()))
            assert chunk.rows.num_rows == len(chunk.offsets)
            rows = from_arrow(chunk.rows, stream.schema)
            pairs = [*zip(chunk.offsets.tolist(), rows, strict=True), *((bad.offset, bad) for bad in chunk.undecoded)]
            for offset, row in sorted(pairs, key=lambda pair: pair[0]):
                assert (chunk.partition, offset) not in found
                found[chunk.partition, offset] = row
    return found
