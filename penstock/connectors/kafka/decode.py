"""Messages of Kafka as chunks: values decoded in blocks, keys and offsets beside them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from penstock.connectors.formats.chunks import Piece, chunks, without
from penstock.connectors.formats.coerce import Bad, conformed
from penstock.connectors.formats.message_bytes import Values, kept
from penstock.connectors.kafka.consumer import BLOCK, Reading, Span, messages, ready
from penstock.connectors.kafka.message_blocks import Block, Cutting
from penstock.connectors.kafka.message_columns import KEYS, Shape
from penstock.connectors.source import Chunk, Undecoded
from penstock.types.arrow import arrow_schema, arrow_type
from penstock.types.schema import Schema
from penstock.types.timestamps import LATEST

if TYPE_CHECKING:
    from penstock.connectors.kafka.source import Kafka

AHEAD = 8  # partitions that are fetched while another one is read
BLOCK_BYTES = 8 << 20  # of values that are decoded together
NULL = "the value is null (a tombstone)"
WIDTHS = {"long": 8, "int": 4}

Decode = Callable[[Values, Schema], Iterator[Piece]]


def kafka_chunks(reader: Kafka, parts: Sequence[Sequence[Any]]) -> Generator[Chunk]:
    """The messages of some partitions, one partition after the other."""
    reading = Reading(reader.cluster, reader.isolation, reader.group)
    rows = Rows(reader.shape, decoder(reader))
    spans = [Span(topic, ids, number, low, high, more) for topic, number, ids, low, high, more in parts]
    waiting = iter(spans)
    fetching = [(span, ready(reading, span)) for span in islice(waiting, AHEAD)]
    while fetching:
        span, one = fetching.pop(0)
        yield from rows.chunks(span, messages(one, reading, span, Cutting(span, rows.wanted)))
        fetching += [(span, ready(reading, span)) for span in islice(waiting, 1)]


def decoder(reader: Kafka) -> Decode:
    """Who reads the values."""
    if reader.shape.value == "json":
        from penstock.connectors.formats.json_messages import json_values

        return partial(json_values, limits=reader.limits)
    if reader.shape.value == "avro":
        from penstock.connectors.formats.avro import AvroValues

        return AvroValues(reader.shape.avro, reader.shape.registry, reader.cluster.seconds, reader.limits)
    return alone


@dataclass
class Rows:
    """How messages become rows of a shape."""

    shape: Shape
    decode: Decode
    schema: Schema = field(init=False)

    def __post_init__(self) -> None:
        self.schema = self.shape.schema

    @property
    def wanted(self) -> tuple[str, ...]:
        """What of a message becomes a column, beside its value."""
        return tuple(what for what, _ in self.shape.beside)

    def chunks(self, span: Span, blocks: Iterator[list[Block]]) -> Iterator[Chunk]:
        """The chunks of a range; what comes in small numbers is put together until it is worth decoding."""
        held: list[Piece] = []
        waiting: list[Block] = []
        logged = None
        for block in chain.from_iterable(blocks):
            if block.opens:
                yield from self._chunk(span, [*held, *self._pieces(waiting, span)], logged)
                held, waiting = [], []
            waiting.append(block)
            logged = block.logged
            if sum(map(len, waiting)) >= BLOCK or sum(one.values.size for one in waiting) >= BLOCK_BYTES:
                held += self._pieces(waiting, span)
                waiting = []
        yield from self._chunk(span, [*held, *self._pieces(waiting, span)], logged)

    def _chunk(self, span: Span, pieces: list[Piece], logged: tuple[int, int] | None) -> Iterator[Chunk]:
        # Where a chunk ends is decided by the bytes of its values: what its pieces are depends on the network.
        for one in chunks(((span.name, piece) for piece in pieces), self.schema, sys.maxsize):
            yield replace(_in_order(one), logged=logged)

    def _pieces(self, blocks: list[Block], span: Span) -> Iterator[Piece]:
        """Values that are not too many at a time, decoded, with what is beside them."""
        if not blocks:
            return
        block = Block.joined(blocks)
        if block.values.size < BLOCK_BYTES:
            yield from self._decoded(block, span)
            return
        sums = np.cumsum(block.values.sizes)
        at = 0
        while at < len(block):
            low = int(sums[at - 1]) if at else 0
            end = max(at + 1, int(np.searchsorted(sums, low + BLOCK_BYTES)))
            yield from self._decoded(block.part(at, end), span)
            at = end

    def _decoded(self, block: Block, span: Span) -> Iterator[Piece]:
        beside, bad = self._beside(block, span)
        for piece in self._valued(block):
            rows = piece.offsets
            whole = len(rows) == len(block)
            taken = beside if whole else [column.take(pa.array(rows)) for column in beside]
            made = pa.RecordBatch.from_arrays([*piece.rows.columns, *taken], schema=arrow_schema(self.schema))
            wrong = {i: bad[row] for i, row in enumerate(rows.tolist()) if row in bad} if bad else {}
            texts = {i: kept(block.values[int(rows[i])]) for i in wrong}
            good = without(made, block.offsets[rows], wrong, texts)
            undecoded = [replace(one, offset=int(block.offsets[one.offset])) for one in piece.undecoded]
            yield replace(good, undecoded=(*undecoded, *good.undecoded))

    def _valued(self, block: Block) -> Iterator[Piece]:
        """The rows of values by their places; one that is null is no row, unless the value is the column itself."""
        values = block.values
        if not values.nulls or self.decode is alone:
            yield from self.decode(values, self.shape.body)
            return
        there = np.flatnonzero(values.there)
        for piece in self.decode(values.take(there), self.shape.body):
            undecoded = (replace(one, offset=int(there[one.offset])) for one in piece.undecoded)
            yield Piece(there[piece.offsets], piece.rows, tuple(undecoded))
        nulls = tuple(Undecoded(at, "", NULL) for at in np.flatnonzero(~values.there).tolist())
        yield Piece(np.zeros(0, np.int64), pa.RecordBatch.from_pylist([], schema=arrow_schema(self.shape.body)), nulls)

    def _beside(self, block: Block, span: Span) -> tuple[list[pa.Array], Bad]:
        """The columns beside the value, and the messages whose keys are not what they should be."""
        made: list[pa.Array] = []
        bad: Bad = {}
        for what, _ in self.shape.beside:
            if what == "key":
                keys, wrong = _keys(block.beside["key"], self.shape.key)
                made.append(keys)
                bad |= wrong
            elif what == "kafka_time":
                times, wrong = _times(block.beside["kafka_time"])
                made.append(times)
                bad = wrong | bad
            else:
                made.append(_BESIDE[what](block, span))
        return made, bad


def _in_order(chunk: Chunk) -> Chunk:
    """A chunk by its offsets: what was decoded apart from its neighbours goes back between them."""
    undecoded = tuple(sorted(chunk.undecoded, key=lambda one: one.offset))
    if bool(np.all(chunk.offsets[1:] > chunk.offsets[:-1])):
        return replace(chunk, undecoded=undecoded)
    order = np.argsort(chunk.offsets)
    return Chunk(chunk.partition, chunk.offsets[order], chunk.rows.take(pa.array(order)), undecoded)


def alone(values: Values, schema: Schema) -> Iterator[Piece]:
    """Values that are a column by themselves: text, or bytes as they are."""
    (column,) = schema.columns
    array, bad = conformed(values.array.cast(pa.binary()), column.type)
    rows = pa.RecordBatch.from_arrays([array], schema=arrow_schema(schema))
    yield without(
        rows,
        np.arange(len(values)),
        {at: f"the value: {why}" for at, why in bad.items()},
        {at: kept(values[at]) for at in bad},
    )


def _keys(keys: pa.Array, kind: str) -> tuple[pa.Array, Bad]:
    if kind not in WIDTHS:
        array, bad = conformed(keys, KEYS[kind])
        return array, {at: f"the key: {why}" for at, why in bad.items()}
    width, plain = WIDTHS[kind], keys.to_pylist()
    bad = {
        at: f"the key has {len(key)} bytes instead of {width}"
        for at, key in enumerate(plain)
        if key is not None and len(key) != width
    }
    numbers = [None if key is None or at in bad else int.from_bytes(key, signed=True) for at, key in enumerate(plain)]
    return pa.array(numbers, arrow_type(kind)), bad


def _times(times: pa.Array) -> tuple[pa.Array, Bad]:
    """Kafka's own times, of creation or of appending, as the topic is set up; null where there is none."""
    millis = times.to_numpy()
    far = millis > LATEST // 1_000  # a producer may write any number
    bad = dict.fromkeys(np.flatnonzero(far).tolist(), "the time of the message is outside the years 1 to 9999")
    return pa.array(np.where(far, 0, millis) * 1_000, mask=far | (millis < 0)).cast(arrow_type("timestamp")), bad


_BESIDE: dict[str, Callable[[Block, Span], pa.Array]] = {
    "headers": lambda block, span: block.beside["headers"],
    "topic": lambda block, span: pa.repeat(span.topic, len(block)),
    "partition": lambda block, span: pa.repeat(pa.scalar(span.partition, pa.int64()), len(block)),
    "offset": lambda block, span: pa.array(block.offsets),
}
