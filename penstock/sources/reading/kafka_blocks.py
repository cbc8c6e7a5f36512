"""Messages of Kafka in blocks: what a chunk needs of them, cut where chunks end, without the messages themselves.

What comes in one go depends on the network; where a chunk ends must not, so that a batch read again is the same.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.sources.kafka_log.consumers import Span
from penstock.sources.reading.raw_bytes import kept
from penstock.sources.source import MAX_ROWS

CHUNK_BYTES = 256 << 20  # of values after which a chunk ends


@dataclass(frozen=True, slots=True)
class Block:
    """Values of messages in order, their bytes in all, and what else of a message becomes a column.

    `opens` says that a chunk begins with it; `logged` is the offset of its last message and when the log took that.
    """

    values: list[Any]
    offsets: np.ndarray
    size: int
    nulls: bool
    beside: dict[str, pa.Array]
    opens: bool = False
    logged: tuple[int, int] | None = None

    @staticmethod
    def of(messages: list[Any], wanted: tuple[str, ...]) -> Block:
        """A block of messages, of which there is one at least."""
        from confluent_kafka import Message

        values = list(map(Message.value, messages))
        first, last = messages[0].offset(), messages[-1].offset()
        if last - first + 1 == len(messages):
            offsets = np.arange(first, last + 1)
        else:
            offsets = np.fromiter(map(Message.offset, messages), np.int64, len(messages))
        beside = {what: _BESIDE[what](messages) for what in wanted if what in _BESIDE}
        try:
            return Block(values, offsets, sum(map(len, values)), False, beside)
        except TypeError:
            return Block(values, offsets, sum(len(value or b"") for value in values), True, beside)

    @staticmethod
    def joined(blocks: list[Block]) -> Block:
        """Blocks one after the other."""
        if len(blocks) == 1:
            return blocks[0]
        return Block(
            [value for block in blocks for value in block.values],
            np.concatenate([block.offsets for block in blocks]),
            sum(block.size for block in blocks),
            any(block.nulls for block in blocks),
            {what: pa.concat_arrays([block.beside[what] for block in blocks]) for what in blocks[0].beside},
        )

    def __len__(self) -> int:
        return len(self.values)

    def sums(self) -> np.ndarray:
        """The bytes of values up to each one and with it."""
        sizes = (0 if value is None else len(value) for value in self.values)
        return np.cumsum(np.fromiter(sizes, np.int64, len(self)))

    def part(self, low: int, high: int) -> Block:
        """Some of its messages."""
        if low == 0 and high >= len(self):
            return self
        cut = slice(low, high)
        values = self.values[cut]
        beside = {what: column[cut] for what, column in self.beside.items()}
        return Block(values, self.offsets[cut], sum(len(value or b"") for value in values), self.nulls, beside)


@dataclass
class Cutting:
    """Cuts what comes of a range: a chunk ends at a fixed offset, or with the value that makes it large."""

    span: Span
    wanted: tuple[str, ...]
    slot: int = 0
    size: int = 0

    def __call__(self, messages: list[Any]) -> list[Block]:
        """Messages as blocks, none of which belongs to two chunks."""
        whole, made, at = Block.of(messages, self.wanted), [], 0
        while at < len(whole):
            now = int(whole.offsets[at] - self.span.low) // MAX_ROWS
            opens = now != self.slot or self.size >= CHUNK_BYTES
            if opens:
                self.slot, self.size = now, 0
            end = int(np.searchsorted(whole.offsets, self.span.low + (now + 1) * MAX_ROWS))
            block = whole.part(at, end)
            if self.size + block.size >= CHUNK_BYTES:
                block = block.part(0, int(np.searchsorted(block.sums() + self.size, CHUNK_BYTES)) + 1)
            self.size += block.size
            at += len(block)
            made.append(replace(block, opens=opens, logged=_logged(messages[at - 1])))
        return made


def _logged(message: Any) -> tuple[int, int] | None:
    """The offset of a message and when the log took it, by the time that Kafka keeps with it."""
    kind, millis = message.timestamp()
    return (message.offset(), millis * 1_000) if kind and millis > 0 else None


def _headers(messages: list[Any]) -> pa.Array:
    """Headers as JSON: a list of names and values in order, for a name may be there twice."""
    texts = []
    for message in messages:
        pairs = [[name, None if value is None else kept(value)] for name, value in message.headers() or ()]
        texts.append(json.dumps(pairs, ensure_ascii=False))
    return pa.array(texts, pa.string())


_BESIDE: dict[str, Callable[[list[Any]], pa.Array]] = {
    "key": lambda messages: pa.array([message.key() for message in messages], pa.binary()),
    "headers": _headers,
    "kafka_time": lambda messages: pa.array([message.timestamp()[1] for message in messages], pa.int64()),
}
