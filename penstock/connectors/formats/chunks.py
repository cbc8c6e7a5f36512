"""How pieces of files become chunks: bad rows apart with their text, small pieces of one partition together."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.connectors.formats.coerce import Bad, conformed
from penstock.connectors.source import MAX_BYTES, MAX_ROWS, Chunk, Undecoded
from penstock.types.arrow import arrow_schema, one_batch
from penstock.types.schema import Schema

LONGEST_RAW = 65_536  # characters of a bad row that are kept; file and offset lead to the rest


@dataclass(frozen=True, slots=True)
class Piece:
    """Rows of one file in order, and those between them that could not be decoded."""

    offsets: np.ndarray
    rows: pa.RecordBatch
    undecoded: tuple[Undecoded, ...] = ()


@dataclass
class _Gathered:
    pieces: list[Piece] = field(default_factory=list)
    rows: int = 0
    undecoded: int = 0
    size: int = 0

    def takes(self, part: Piece, most: int) -> bool:
        """Whether a part fits, too, so that all have at most so many bytes."""
        rows, undecoded = self.rows + len(part.offsets), self.undecoded + len(part.undecoded)
        return max(rows, undecoded) <= MAX_ROWS and self.size + part.rows.nbytes <= most

    def add(self, part: Piece) -> None:
        """One more."""
        self.pieces.append(part)
        self.rows += len(part.offsets)
        self.undecoded += len(part.undecoded)
        self.size += part.rows.nbytes

    def chunk(self, partition: str, schema: pa.Schema) -> Chunk:
        return Chunk(
            partition,
            np.concatenate([piece.offsets for piece in self.pieces]),
            one_batch(pa.Table.from_batches([piece.rows for piece in self.pieces], schema)),
            tuple(bad for piece in self.pieces for bad in piece.undecoded),
        )


def chunks(pieces: Iterable[tuple[str, Piece]], schema: Schema, most: int = MAX_BYTES) -> Iterator[Chunk]:
    """Pieces, each with its partition, as chunks of one: of a million rows or so many bytes, but a piece at least."""
    wanted = arrow_schema(schema)
    held, partition = _Gathered(), ""
    for name, piece in pieces:
        for part in _cut(piece):
            if held.pieces and (name != partition or not held.takes(part, most)):
                yield held.chunk(partition, wanted)
                held = _Gathered()
            partition = name
            held.add(part)
    if held.rows or held.undecoded:
        yield held.chunk(partition, wanted)


def _cut(piece: Piece) -> Iterator[Piece]:
    """A piece in parts of at most a million rows, each bad row in the part it belongs to."""
    if len(piece.offsets) <= MAX_ROWS:
        yield piece
        return
    bad = list(piece.undecoded)
    for low in range(0, len(piece.offsets), MAX_ROWS):
        offsets = piece.offsets[low : low + MAX_ROWS]
        last = low + MAX_ROWS >= len(piece.offsets)
        mine = tuple(one for one in bad if last or one.offset <= offsets[-1])
        bad = bad[len(mine) :]
        yield Piece(offsets, piece.rows.slice(low, MAX_ROWS), mine)


def fitted(table: pa.RecordBatch, schema: Schema, offsets: np.ndarray, where: str) -> Piece:
    """A batch of a file as a piece: missing columns are null, rows with values of another type are undecoded."""
    arrays: list[pa.Array] = []
    bad: Bad = {}
    for column in schema.columns:
        if column.name not in table.schema.names:
            arrays.append(pa.nulls(table.num_rows, arrow_schema(schema).field(column.name).type))
            continue
        array, wrong = conformed(table.column(column.name), column.type)
        arrays.append(array)
        for row, why in wrong.items():
            bad.setdefault(row, f"column {column.name!r}: {why}")
    made = pa.RecordBatch.from_arrays(arrays, schema=arrow_schema(schema))
    texts = {row: _text(table, row) for row in bad}
    return without(made, offsets, {row: f"{where}: {why}" for row, why in bad.items()}, texts)


def without(rows: pa.RecordBatch, offsets: np.ndarray, bad: Bad, texts: dict[int, str]) -> Piece:
    """A piece of these rows without the bad ones, which keep their text and their reason."""
    if not bad:
        return Piece(offsets, rows)
    good = np.ones(rows.num_rows, dtype=bool)
    good[list(bad)] = False
    kept = np.flatnonzero(good)
    undecoded = tuple(Undecoded(int(offsets[row]), raw(texts[row]), bad[row]) for row in sorted(bad))
    return Piece(offsets[kept], rows.take(pa.array(kept)), undecoded)


def raw(text: str) -> str:
    """A bad row's text as it is kept: one that is very long is cut."""
    if len(text) <= LONGEST_RAW:
        return text
    return f"{text[:LONGEST_RAW]}… ({len(text):,} characters in all)"


def _text(table: pa.RecordBatch, row: int) -> str:
    return json.dumps({name: _value(table.column(name)[row]) for name in table.schema.names}, default=_shown)


def _value(scalar: pa.Scalar) -> Any:
    try:
        return scalar.as_py()
    except Exception:  # a time or a zone that Python has no word for, or text that is not UTF-8
        return scalar.value if hasattr(scalar, "value") else scalar.as_buffer().to_pybytes()


def _shown(value: Any) -> str:
    return value.decode(errors="backslashreplace") if isinstance(value, bytes) else str(value)
