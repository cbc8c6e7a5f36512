"""Rows on their way back: quarantined, repaired by hand, and put into an inbox that the pipeline reads as a partition.

penstock/repaired/000000000001    rows, sealed as every file of ours; made once, whole, and never changed or removed

How many of these files were read is part of the offset that Spark logs with each batch: so a repaired row enters
exactly once, whatever dies, like every other row.
"""

from __future__ import annotations

import io
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from penstock.checkpoint.checksummed_json import sealed, unsealed
from penstock.storage.local import Store
from penstock.types.schema import Column, Schema

if TYPE_CHECKING:
    from penstock.connectors.source import Chunk

FOLDER = "penstock/repaired"
PARTITION = "repaired"
FILE = 2**36  # offsets of one file, as in a directory
MOST = 50_000  # rows of one file, which are read in one batch

Place = tuple[str, str, int]


@dataclass(frozen=True, slots=True)
class Repaired:
    """A row and where it was read when it was quarantined: source, partition, offset."""

    place: Place
    row: dict[str, Any]

    def plain(self) -> list[Any]:
        """As values that JSON has."""
        return [*self.place, self.row]


@dataclass(frozen=True, slots=True)
class Inbox:
    """The inbox of a checkpoint as the source sees it; without a path there is none."""

    path: str = ""

    def latest(self, since: Mapping[str, Any]) -> dict[str, int]:
        """How far the next batch reads, to be put into its offset: one file more if it is there."""
        read = _read(since)
        upto = read + 1 if self._there(read + 1) else read
        return {PARTITION: upto} if upto else {}

    def splits(self, since: Mapping[str, Any], upto: Mapping[str, Any], sources: Sequence[str]) -> list[dict[str, Any]]:
        """The files between two offsets, once for each source."""
        numbers = range(_read(since) + 1, _read(upto) + 1)
        return [{"source": source, PARTITION: number} for number in numbers for source in sources]

    def behind(self, at: Mapping[str, Any]) -> list[list[str]]:
        """Whether there is more to read beyond an offset."""
        return [["", PARTITION]] if self._there(_read(at) + 1) else []

    def read(self, number: int, source: str, schema: Schema) -> Iterator[Chunk]:
        """The rows of a file that belong to a source."""
        with open(self._file(number), "rb") as file:
            held = unsealed(file.read(), self._file(number))["rows"]
        return chunks([row for one, _, _, row in held if one == source], schema, number * FILE)

    def _there(self, number: int) -> bool:
        return bool(self.path) and os.path.exists(self._file(number))

    def _file(self, number: int) -> str:
        return f"{self.path}/{_name(number)}"


def chunks(rows: Sequence[Mapping[str, Any]], schema: Schema, first: int) -> Iterator[Chunk]:
    """Rows as JSON has them, decoded as those of a file of JSON lines are; bytes are written as hex digits."""
    import pyarrow as pa

    from penstock.connectors.formats.chunks import chunks as chunked
    from penstock.connectors.formats.json_lines import json_pieces
    from penstock.connectors.source import Chunk
    from penstock.types.arrow import arrow_schema

    texts = Schema(tuple(Column(one.name, "string" if one.type == "binary" else one.type) for one in schema.columns))
    lines = "".join(f"{json.dumps(row)}\n" for row in rows).encode()
    for chunk in chunked(((PARTITION, one) for one in json_pieces(io.BytesIO(lines), texts, PARTITION, first)), texts):
        columns = [
            pa.array([None if text is None else bytes.fromhex(text) for text in held.to_pylist()], pa.binary())
            if one.type == "binary"
            else held
            for one, held in zip(schema.columns, chunk.rows.columns, strict=True)
        ]
        rows_made = pa.RecordBatch.from_arrays(columns, schema=arrow_schema(schema))
        yield Chunk(chunk.partition, chunk.offsets, rows_made, chunk.undecoded)


def put(store: Store, rows: Sequence[Repaired]) -> list[Repaired]:
    """Put the rows into the inbox that have not been there; gives those."""
    while True:
        names = store.names(FOLDER)
        known = replayed(store)
        new = list({one.place: one for one in rows if one.place not in known}.values())
        number = len(names)
        for at in range(0, len(new), MOST):
            number += 1
            part = sealed({"rows": [one.plain() for one in new[at : at + MOST]]})
            if not store.create(f"{FOLDER}/{_name(number)}", part):
                break  # somebody else has put rows there meanwhile: look again
        else:
            return new


def replayed(store: Store) -> set[Place]:
    """Which quarantined rows were put back."""
    found: set[Place] = set()
    for name in store.names(FOLDER):
        held = unsealed(store.read(f"{FOLDER}/{name}") or b"", f"{store.root}/{FOLDER}/{name}")
        found |= {(source, partition, offset) for source, partition, offset, _ in held["rows"]}
    return found


def _read(at: Mapping[str, Any]) -> int:
    """How many files were read at an offset; none where the checkpoint is older than the inbox."""
    return int(at.get(PARTITION, 0))


def _name(number: int) -> str:
    return f"{number:012d}"
