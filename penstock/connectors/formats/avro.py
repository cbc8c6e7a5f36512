"""Avro values of messages: whole columns at once where the schema is flat, and one by one with fastavro elsewhere."""

from __future__ import annotations

import io
import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.connectors.formats.avro_columnar import Flat, flat
from penstock.connectors.formats.avro_limits import Node, node_of, refuse_decimal, why_not
from penstock.connectors.formats.chunks import Piece, fitted
from penstock.connectors.formats.coerce import row_of, value_of
from penstock.connectors.formats.json_limits import reason
from penstock.connectors.formats.limits import DEFAULT, Limits
from penstock.connectors.formats.message_bytes import Values, kept
from penstock.connectors.kafka.schema_registry import Registry, schema_text
from penstock.connectors.source import Undecoded
from penstock.types.arrow import arrow_schema, to_arrow
from penstock.types.schema import Schema
from penstock.types.validate import shortened

DECIMAL = "penstock-decimal"  # ours: fastavro's own rounds
LONGEST_DECIMAL = 64  # bytes
LARGEST_SCHEMA = 1 << 20  # bytes; registries keep schemas in messages, which are no larger
HEAD = 5  # of a registry's messages: a zero, and the number of the schema in four bytes


@dataclass
class AvroValues:
    """Reads values that were written with one schema, or with those that a registry knows."""

    reader: str | None
    registry: Registry | None
    seconds: float
    limits: Limits = DEFAULT
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
        writer = self._writer(number, schema)
        mine = values if len(at) == len(values) else values.take(at)
        if isinstance(writer, str):
            made: Iterable[Piece] = [_refused(range(len(at)), writer, schema)]
        else:
            made = self._within(writer, mine, head, schema)
        for piece in made:
            undecoded = (replace(one, offset=int(at[one.offset])) for one in piece.undecoded)
            kept_whole = tuple(replace(one, raw=kept(values[one.offset])) for one in undecoded)
            yield Piece(at[piece.offsets], piece.rows, kept_whole)

    def _within(self, writer: Writer, values: Values, head: int, schema: Schema) -> Iterator[Piece]:
        """The rows of those that are not too long."""
        long = values.sizes > self.limits.size
        if not long.any():
            yield from writer.pieces(values, head, schema)
            return
        places = np.flatnonzero(~long)
        for piece in writer.pieces(values.take(places), head, schema):
            undecoded = tuple(replace(one, offset=int(places[one.offset])) for one in piece.undecoded)
            yield Piece(places[piece.offsets], piece.rows, undecoded)
        why = f"the value is longer than {self.limits.size:,} bytes"
        yield _refused(np.flatnonzero(long).tolist(), why, schema)

    def _writer(self, number: int, schema: Schema) -> Writer | str:
        if number not in self.writers:
            self.writers[number] = self._made(number, schema)
        return self.writers[number]

    def _made(self, number: int, schema: Schema) -> Writer | str:
        """What reads the messages of a schema; words where the registry's is none that anybody could read with."""
        if self.registry is None:
            assert self.reader is not None
            return Writer.of(self.reader, self.reader, self.limits, schema.names)
        text, why = schema_text(self.registry, number, self.seconds)
        if text is None:
            return why
        why = f"longer than {LARGEST_SCHEMA:,} bytes" if len(text) > LARGEST_SCHEMA else ""
        try:
            why = why or reason(text.encode(), self.limits) or ""
            if not why:
                return Writer.of(text, self.reader, self.limits, schema.names)
        except Exception as error:  # whatever a producer may have registered
            why = f"{type(error).__name__}: {error}"
        return f"the Avro schema {number} of the registry cannot be used: {shortened(why)}"


@dataclass
class Writer:
    """A schema that values were written with, made ready; and the one they are to be read with, if it is another."""

    written: Any
    read: Any
    flat: Flat | None
    root: Node
    limits: Limits = DEFAULT

    @staticmethod
    def of(text: str, reader: str | None, limits: Limits = DEFAULT, names: Collection[str] | None = None) -> Writer:
        """Both schemas, parsed; of fields that no column asks for, nothing becomes more than its plain type."""
        import fastavro

        fastavro.read.LOGICAL_READERS.update({f"bytes-{DECIMAL}": _decimal, f"fixed-{DECIMAL}": _decimal})
        plain = json.loads(text)
        same = reader is None or json.loads(reader) == plain
        read = None if same or reader is None else fastavro.parse_schema(_prepared(json.loads(reader)))
        written = fastavro.parse_schema(_asked(plain, names) if same and names is not None else _prepared(plain))
        root = node_of(written, {})
        if root.word != "record":
            raise ValueError(f"it is of a {root.word}, and only the fields of a record are columns")
        few = len(root.parts) < limits.items
        return Writer(written, read, flat(plain) if same and few else None, root, limits)

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
            if why:
                undecoded.append(Undecoded(at, "", shortened(why)))
            else:
                rows.append(row)
                offsets.append(at)
        return Piece(np.array(offsets, np.int64), to_arrow(rows, schema), tuple(undecoded))

    def _row(self, value: bytes, schema: Schema) -> tuple[dict[str, Any], str]:
        import fastavro

        if not value:
            return {}, "the value is empty"
        if why := why_not(value, self.root, self.limits):
            return {}, f"not Avro of this schema: {why}"
        try:
            found: Any = fastavro.schemaless_reader(io.BytesIO(value), self.written, self.read)
        except Exception as error:  # whatever foreign bytes make a decoder stumble over
            return {}, f"not Avro of this schema: {type(error).__name__}: {error}"
        return row_of(found, schema, _value)


def _value(kind: str, value: Any) -> Any:
    return value_of(kind, str(value) if isinstance(value, UUID) else value)


def _decimal(data: bytes, written: Mapping[str, Any], read: Any = None) -> Any:
    """A decimal with all its digits; one that no column could hold stays what it is."""
    if len(data) > LONGEST_DECIMAL:
        return data
    return Decimal(f"{int.from_bytes(data, signed=True)}e-{written.get('scale', 0)}")


def _asked(schema: Any, names: Collection[str]) -> Any:
    """A record's schema of which only these fields are more than their plain types."""
    if not isinstance(schema, dict) or not isinstance(schema.get("fields"), list):
        return _prepared(schema)
    fields = [{**one, "type": _prepared(one["type"], one["name"] in names)} for one in schema["fields"]]
    return {**schema, "fields": fields}


def _prepared(schema: Any, logical: bool = True) -> Any:
    """A schema whose decimals are ours; without the types that are not asked for, but those that have a name."""
    if isinstance(schema, list):
        return [_prepared(one, logical) for one in schema]
    if not isinstance(schema, dict):
        return schema
    made = {key: _prepared(one, logical) if key in ("type", "items", "values") else one for key, one in schema.items()}
    if isinstance(schema.get("fields"), list):
        made["fields"] = [{**one, "type": _prepared(one["type"], logical)} for one in schema["fields"]]
    if not logical and "name" not in made:
        made.pop("logicalType", None)
    if made.get("logicalType") == "decimal":
        refuse_decimal(made)
        made["logicalType"] = DECIMAL
    return made


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


def _refused(places: Sequence[int], why: str, schema: Schema) -> Piece:
    return _none(schema, tuple(Undecoded(at, "", why) for at in places))


def _none(schema: Schema, undecoded: tuple[Undecoded, ...]) -> Piece:
    return Piece(np.zeros(0, np.int64), pa.RecordBatch.from_pylist([], schema=arrow_schema(schema)), undecoded)
