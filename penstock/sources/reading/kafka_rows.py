"""Messages of Kafka as chunks: values decoded in blocks, keys and offsets beside them, chunks cut at fixed places.

What comes in one go depends on the network; where a chunk ends must not, so that a batch read again is the same.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from penstock.arrow import arrow_schema, arrow_type
from penstock.schema import Schema
from penstock.sources.kafka_log.consumers import BLOCK, Reading, Span, messages, ready
from penstock.sources.kafka_log.shape import KEYS, Shape
from penstock.sources.reading.chunks import Piece, chunks, without
from penstock.sources.reading.conform import Bad, conformed
from penstock.sources.reading.raw_bytes import kept
from penstock.sources.source import MAX_ROWS, Chunk, Undecoded

if TYPE_CHECKING:
    from penstock.sources.kafka import Kafka

AHEAD = 8  # partitions that are fetched while another one is read
BLOCK_BYTES = 8 << 20  # of values that are decoded together
CHUNK_BYTES = 256 << 20  # of values after which a chunk ends
NULL = "the value is null (a tombstone)"
WIDTHS = {"long": 8, "int": 4}

Decode = Callable[[Sequence[bytes], Schema], Iterator[Piece]]


def kafka_chunks(reader: Kafka, parts: Sequence[Sequence[Any]]) -> Iterator[Chunk]:
    """The messages of some partitions, one partition after the other."""
    reading = Reading(reader.cluster, reader.isolation, reader.group)
    rows = Rows(reader.shape, decoder(reader))
    spans = [Span(topic, ids, number, low, high, more) for topic, number, ids, low, high, more in parts]
    waiting = iter(spans)
    fetching = [(span, ready(reading, span)) for span in islice(waiting, AHEAD)]
    while fetching:
        span, one = fetching.pop(0)
        yield from rows.chunks(span, messages(one, reading, span))
        fetching += [(span, ready(reading, span)) for span in islice(waiting, 1)]


def decoder(reader: Kafka) -> Decode:
    """Who reads the values."""
    if reader.shape.value == "json":
        from penstock.sources.reading.json_values import json_values

        return json_values
    if reader.shape.value == "avro":
        from penstock.sources.reading.avro_values import AvroValues

        return AvroValues(reader.shape.avro, reader.shape.registry, reader.cluster.seconds)
    return alone


@dataclass
class Rows:
    """How messages become rows of a shape."""

    shape: Shape
    decode: Decode
    schema: Schema = field(init=False)

    def __post_init__(self) -> None:
        self.schema = self.shape.schema

    def chunks(self, span: Span, blocks: Iterator[list[Any]]) -> Iterator[Chunk]:
        """The chunks of a range: each ends at a fixed offset, or with the value that makes it large."""
        held: list[Piece] = []
        slot = size = 0
        logged = None
        for given in _gathered(blocks):
            at = 0
            while at < len(given):
                now = int(given.offsets[at] - span.low) // MAX_ROWS
                if now != slot or size >= CHUNK_BYTES:
                    yield from self._chunk(span, held, logged)
                    held, slot, size = [], now, 0
                end = int(np.searchsorted(given.offsets, span.low + (slot + 1) * MAX_ROWS))
                sums = np.cumsum(given.sizes[at:end]) + size
                end = min(end, at + int(np.searchsorted(sums, CHUNK_BYTES)) + 1)
                held += self._pieces(given.part(at, end), span)
                size, at = int(sums[end - at - 1]), end
                logged = _logged(given.messages[end - 1])
        yield from self._chunk(span, held, logged)

    def _chunk(self, span: Span, pieces: list[Piece], logged: tuple[int, int] | None) -> Iterator[Chunk]:
        for one in chunks(((span.name, piece) for piece in pieces), self.schema):
            yield replace(_in_order(one), logged=logged)

    def _pieces(self, block: Block, span: Span) -> Iterator[Piece]:
        """Values that are not too many at a time, decoded, with what is beside them."""
        sums = np.cumsum(block.sizes)
        at = 0
        while at < len(block):
            low = int(sums[at - 1]) if at else 0
            end = max(at + 1, int(np.searchsorted(sums, low + BLOCK_BYTES)))
            yield from self._decoded(block.part(at, end), span)
            at = end

    def _decoded(self, block: Block, span: Span) -> Iterator[Piece]:
        beside, bad = self._beside(block, span)
        for piece in self._valued(block.values):
            rows = piece.offsets
            whole = len(rows) == len(block)
            taken = beside if whole else [column.take(pa.array(rows)) for column in beside]
            made = pa.RecordBatch.from_arrays([*piece.rows.columns, *taken], schema=arrow_schema(self.schema))
            wrong = {i: bad[row] for i, row in enumerate(rows.tolist()) if row in bad} if bad else {}
            texts = {i: kept(block.values[int(rows[i])]) for i in wrong}
            good = without(made, block.offsets[rows], wrong, texts)
            undecoded = [replace(one, offset=int(block.offsets[one.offset])) for one in piece.undecoded]
            yield replace(good, undecoded=(*undecoded, *good.undecoded))

    def _valued(self, values: list[Any]) -> Iterator[Piece]:
        """The rows of values by their places; one that is null is no row, unless the value is the column itself."""
        if None not in values or self.decode is alone:
            yield from self.decode(values, self.shape.body)
            return
        there = np.array([at for at, value in enumerate(values) if value is not None], np.int64)
        for piece in self.decode([value for value in values if value is not None], self.shape.body):
            undecoded = (replace(one, offset=int(there[one.offset])) for one in piece.undecoded)
            yield Piece(there[piece.offsets], piece.rows, tuple(undecoded))
        nulls = tuple(Undecoded(at, "", NULL) for at, value in enumerate(values) if value is None)
        yield Piece(np.zeros(0, np.int64), pa.RecordBatch.from_pylist([], schema=arrow_schema(self.shape.body)), nulls)

    def _beside(self, block: Block, span: Span) -> tuple[list[pa.Array], Bad]:
        """The columns beside the value, and the messages whose keys are not what they should be."""
        made: list[pa.Array] = []
        bad: Bad = {}
        for what, _ in self.shape.beside:
            if what == "key":
                keys, bad = _keys(block.messages, self.shape.key)
                made.append(keys)
            else:
                made.append(_BESIDE[what](block, span))
        return made, bad


@dataclass(frozen=True, slots=True)
class Block:
    """Messages in order, and what was taken out of them."""

    messages: list[Any]
    values: list[bytes | None]
    offsets: np.ndarray
    sizes: np.ndarray

    @staticmethod
    def of(messages: list[Any]) -> Block:
        """A block of messages, of which there is one at least."""
        from confluent_kafka import Message

        values = list(map(Message.value, messages))
        first, last = messages[0].offset(), messages[-1].offset()
        if last - first + 1 == len(messages):
            offsets = np.arange(first, last + 1)
        else:
            offsets = np.fromiter(map(Message.offset, messages), np.int64, len(messages))
        try:
            sizes = np.fromiter(map(len, values), np.int64, len(values))
        except TypeError:
            sizes = np.array([0 if value is None else len(value) for value in values], np.int64)
        return Block(messages, values, offsets, sizes)

    @staticmethod
    def joined(blocks: list[Block]) -> Block:
        """Blocks one after the other."""
        if len(blocks) == 1:
            return blocks[0]
        return Block(
            [message for block in blocks for message in block.messages],
            [value for block in blocks for value in block.values],
            np.concatenate([block.offsets for block in blocks]),
            np.concatenate([block.sizes for block in blocks]),
        )

    def __len__(self) -> int:
        return len(self.values)

    def part(self, low: int, high: int) -> Block:
        """Some of its messages."""
        if low == 0 and high >= len(self):
            return self
        cut = slice(low, high)
        return Block(self.messages[cut], self.values[cut], self.offsets[cut], self.sizes[cut])


def _in_order(chunk: Chunk) -> Chunk:
    """A chunk by its offsets: what was decoded apart from its neighbours goes back between them."""
    undecoded = tuple(sorted(chunk.undecoded, key=lambda one: one.offset))
    if bool(np.all(chunk.offsets[1:] > chunk.offsets[:-1])):
        return replace(chunk, undecoded=undecoded)
    order = np.argsort(chunk.offsets)
    return Chunk(chunk.partition, chunk.offsets[order], chunk.rows.take(pa.array(order)), undecoded)


def _logged(message: Any) -> tuple[int, int] | None:
    """The offset of a message and when the log took it, by the time that Kafka keeps with it."""
    kind, millis = message.timestamp()
    return (message.offset(), millis * 1_000) if kind and millis > 0 else None


def _gathered(blocks: Iterator[list[Any]]) -> Iterator[Block]:
    """What comes in small numbers put together, until it is worth decoding."""
    held: list[Block] = []
    rows = size = 0
    for some in blocks:
        held.append(Block.of(some))
        rows, size = rows + len(some), size + int(held[-1].sizes.sum())
        if rows >= BLOCK or size >= BLOCK_BYTES:
            yield Block.joined(held)
            held, rows, size = [], 0, 0
    if held:
        yield Block.joined(held)


def alone(values: Sequence[Any], schema: Schema) -> Iterator[Piece]:
    """Values that are a column by themselves: text, or bytes as they are."""
    (column,) = schema.columns
    array, bad = conformed(pa.array(values, pa.binary()), column.type)
    rows = pa.RecordBatch.from_arrays([array], schema=arrow_schema(schema))
    yield without(rows, np.arange(len(values)), {at: f"the value: {why}" for at, why in bad.items()},
                  {at: kept(values[at]) for at in bad})  # fmt: skip


def _keys(messages: list[Any], kind: str) -> tuple[pa.Array, Bad]:
    keys = [message.key() for message in messages]
    if kind not in WIDTHS:
        array, bad = conformed(pa.array(keys, pa.binary()), KEYS[kind])
        return array, {at: f"the key: {why}" for at, why in bad.items()}
    width = WIDTHS[kind]
    bad = {at: f"the key has {len(key)} bytes instead of {width}" for at, key in enumerate(keys)
           if key is not None and len(key) != width}  # fmt: skip
    numbers = [None if key is None or at in bad else int.from_bytes(key, signed=True) for at, key in enumerate(keys)]
    return pa.array(numbers, arrow_type(kind)), bad


def _headers(block: Block, span: Span) -> pa.Array:
    """Headers as JSON: a list of names and values in order, for a name may be there twice."""
    texts = []
    for message in block.messages:
        pairs = [[name, None if value is None else kept(value)] for name, value in message.headers() or ()]
        texts.append(json.dumps(pairs, ensure_ascii=False))
    return pa.array(texts, pa.string())


def _times(block: Block, span: Span) -> pa.Array:
    """Kafka's own times, of creation or of appending, as the topic is set up; null where there is none."""
    millis = np.fromiter((message.timestamp()[1] for message in block.messages), np.int64, len(block))
    return pa.array(millis * 1_000, mask=millis < 0).cast(arrow_type("timestamp"))


_BESIDE: dict[str, Callable[[Block, Span], pa.Array]] = {
    "headers": _headers,
    "topic": lambda block, span: pa.repeat(span.topic, len(block)),
    "partition": lambda block, span: pa.repeat(pa.scalar(span.partition, pa.int64()), len(block)),
    "offset": lambda block, span: pa.array(block.offsets),
    "kafka_time": _times,
}
