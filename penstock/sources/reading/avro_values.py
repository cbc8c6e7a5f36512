"""Avro values of messages: whole columns at once where the schema is flat, and one by one with fastavro elsewhere."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.arrow import arrow_schema, to_arrow
from penstock.decode import decode, shortened
from penstock.registry import Registry
from penstock.schema import Schema
from penstock.sources.kafka_log.registry import schema_text
from penstock.sources.reading.avro_columns import Flat, flat
from penstock.sources.reading.chunks import Piece, fitted
from penstock.sources.reading.raw_bytes import kept
from penstock.sources.reading.values import Values
from penstock.sources.source import Undecoded

HEAD = 5  # of a registry's messages: a zero, and the number of the schema in four bytes


@dataclass
class AvroValues:
    """Reads values that were written with one schema, or with those that a registry knows."""

    reader: str | None
    registry: Registry | None
    seconds: float
    writers: dict[int, Writer | str] = field(default_factory=dict)

    def __call__(self, values: Values, schema: Schema) -> Iterator[Piece]:
        """The rows of values by their places."""
        if self.registry is None:
            yield from self._of(0, np.arange(len(values)), 0, values, schema)
            return
        for number, places in _by_schema(values):
            if number < 0:
                yield _headless(places.tolist(), values, schema)
            else:
                yield from self._of(number, places, HEAD, values, schema)

    def _of(self, number: int, at: np.ndarray, head: int, values: Values, schema: Schema) -> Iterator[Piece]:
        """Bodies that one schema has written, of the values at these places."""
        writer = self._writer(number)
        mine = values if len(at) == len(values) else values.take(at)
        made = [_unknown(len(at), writer, schema)] if isinstance(writer, str) else writer.pieces(mine, head, schema)
        for piece in made:
            undecoded = (replace(one, offset=int(at[one.offset])) for one in piece.undecoded)
            kept_whole = tuple(replace(one, raw=kept(values[one.offset])) for one in undecoded)
            yield Piece(at[piece.offsets], piece.rows, kept_whole)

    def _writer(self, number: int) -> Writer | str:
        if number not in self.writers:
            text: str | None = self.reader
            if self.registry is not None:
                text = schema_text(self.registry, number, self.seconds)
            unknown = f"the registry has no Avro schema {number}"
            self.writers[number] = unknown if text is None else Writer.of(text, self.reader)
        return self.writers[number]


@dataclass
class Writer:
    """A schema that values were written with, made ready; and the one they are to be read with, if it is another."""

    written: Any
    read: Any
    flat: Flat | None

    @staticmethod
    def of(text: str, reader: str | None) -> Writer:
        """Both schemas, parsed."""
        import fastavro

        plain = json.loads(text)
        same = reader is None or json.loads(reader) == plain
        read = None if same or reader is None else fastavro.parse_schema(json.loads(reader))
        return Writer(fastavro.parse_schema(plain), read, flat(plain) if same else None)

    def pieces(self, values: Values, head: int, schema: Schema) -> Iterator[Piece]:
        """The rows of values: those that the columns could not make are read one by one, for their reasons."""
        if self.flat is None:
            yield self._one_by_one(values, head, range(len(values)), schema)
            return
        columns, good = self.flat.columns(values, head, schema.names)
        places = np.flatnonzero(good)
        piece = fitted(columns, schema, places, "")
        yield replace(piece, undecoded=tuple(_unplaced(one) for one in piece.undecoded))
        if len(places) < len(values):
            yield self._one_by_one(values, head, np.flatnonzero(~good).tolist(), schema)

    def _one_by_one(self, values: Values, head: int, places: Sequence[int], schema: Schema) -> Piece:
        rows, offsets, undecoded = [], [], []
        for at in places:
            row, why = self._row(values[at][head:], schema)
            if why is None:
                rows.append(row)
                offsets.append(at)
            else:
                undecoded.append(Undecoded(at, "", shortened(why)))
        return Piece(np.array(offsets, np.int64), to_arrow(rows, schema), tuple(undecoded))

    def _row(self, value: bytes, schema: Schema) -> tuple[dict[str, Any], str | None]:
        import fastavro

        if not value:
            return {}, "the value is empty"
        stream = io.BytesIO(value)
        try:
            found = fastavro.schemaless_reader(stream, self.written, self.read)
        except Exception as error:  # whatever foreign bytes make a decoder stumble over
            return {}, f"not Avro of this schema: {type(error).__name__}: {error}"
        if stream.tell() < len(value):
            return {}, f"not Avro of this schema: {len(value) - stream.tell()} bytes are left over"
        row = {name: str(one) if isinstance(one, UUID) else one for name, one in found.items()}
        return decode(row, schema)


def _unplaced(one: Undecoded) -> Undecoded:
    return replace(one, reason=one.reason.removeprefix(": "))


def _by_schema(values: Values) -> Iterable[tuple[int, np.ndarray]]:
    """The numbers of schemas, each with the places of its values; -1 for those that begin with none."""
    heads = pc.binary_slice(values.array.cast(pa.binary()), 0, HEAD).dictionary_encode()
    numbers = np.array([_number(head) for head in heads.dictionary.to_pylist()], np.int64)[heads.indices.to_numpy()]
    return [(number, np.flatnonzero(numbers == number)) for number in np.unique(numbers).tolist()]


def _number(value: bytes) -> int:
    return int.from_bytes(value[1:HEAD]) if len(value) >= HEAD and value[0] == 0 else -1


def _headless(places: Sequence[int], values: Values, schema: Schema) -> Piece:
    reasons = ("the value is empty", "the value does not begin as a registry's do: a zero and a schema's number")
    return _none(schema, tuple(Undecoded(at, kept(values[at]), reasons[bool(values[at])]) for at in places))


def _unknown(count: int, why: str, schema: Schema) -> Piece:
    return _none(schema, tuple(Undecoded(at, "", why) for at in range(count)))


def _none(schema: Schema, undecoded: tuple[Undecoded, ...]) -> Piece:
    return Piece(np.zeros(0, np.int64), pa.RecordBatch.from_pylist([], schema=arrow_schema(schema)), undecoded)
