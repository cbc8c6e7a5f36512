"""Messages of Kafka in blocks: what a chunk needs of them, cut where chunks end, without the messages themselves.

What comes in one go depends on the network; where a chunk ends must not, so that a batch read again is the same.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from penstock.connectors.formats.message_bytes import Values, kept
from penstock.connectors.kafka.consumer import Span
from penstock.connectors.kafka.librdkafka import Messages
from penstock.connectors.source import MAX_ROWS
from penstock.types.timestamps import LATEST

CHUNK_BYTES = 256 << 20  # of values after which a chunk ends


@dataclass(frozen=True, slots=True)
class Block:
    """Values of messages in order, and what else of a message becomes a column.

    `opens` says that a chunk begins with it; `logged` is the offset of its last message and when the log took that.
    """

    values: Values
    offsets: np.ndarray
    beside: dict[str, pa.Array]
    opens: bool = False
    logged: tuple[int, int] | None = None

    @staticmethod
    def of(messages: Messages, wanted: tuple[str, ...]) -> Block:
        """A block of messages."""
        beside = {what: _BESIDE[what](messages) for what in wanted if what in _BESIDE}
        return Block(Values(messages.values()), messages.offsets, beside)

    @staticmethod
    def joined(blocks: list[Block]) -> Block:
        """Blocks one after the other."""
        if len(blocks) == 1:
            return blocks[0]
        return Block(
            Values.joined([block.values for block in blocks]),
            np.concatenate([block.offsets for block in blocks]),
            {what: pa.concat_arrays([block.beside[what] for block in blocks]) for what in blocks[0].beside},
        )

    def __len__(self) -> int:
        return len(self.values)

    def part(self, low: int, high: int) -> Block:
        """Some of its messages."""
        cut = slice(low, high)
        beside = {what: column[cut] for what, column in self.beside.items()}
        return Block(self.values.part(low, high), self.offsets[cut], beside)


@dataclass
class Cutting:
    """Cuts what comes of a range: a chunk ends at a fixed offset, or with the value that makes it large."""

    span: Span
    wanted: tuple[str, ...]
    slot: int = 0
    size: int = 0

    def __call__(self, messages: Messages) -> list[Block]:
        """Messages as blocks, none of which belongs to two chunks."""
        whole, made, at = Block.of(messages, self.wanted), [], 0
        while at < len(whole):
            now = int(whole.offsets[at] - self.span.low) // MAX_ROWS
            opens = now != self.slot or self.size >= CHUNK_BYTES
            if opens:
                self.slot, self.size = now, 0
            end = int(np.searchsorted(whole.offsets, self.span.low + (now + 1) * MAX_ROWS))
            block = whole.part(at, end)
            if self.size + block.values.size >= CHUNK_BYTES:
                sums = np.cumsum(block.values.sizes) + self.size
                block = block.part(0, int(np.searchsorted(sums, CHUNK_BYTES)) + 1)
            self.size += block.values.size
            at += len(block)
            made.append(replace(block, opens=opens, logged=_logged(messages[at - 1 : at])))
        return made


def _logged(last: Messages) -> tuple[int, int] | None:
    """The offset of a message and when the log took it, by the time that Kafka keeps with it."""
    (millis,) = last.millis().tolist()
    return (int(last.offsets[0]), millis * 1_000) if 0 < millis <= LATEST // 1_000 else None


def _headers(messages: Messages) -> pa.Array:
    """Headers as JSON: a list of names and values in order, for a name may be there twice."""
    pairs = ([[name, None if value is None else kept(value)] for name, value in some] for some in messages.headers())
    return pa.array([json.dumps(some, ensure_ascii=False) for some in pairs], pa.string())


_BESIDE: dict[str, Callable[[Messages], pa.Array]] = {
    "key": lambda messages: messages.keys().cast(pa.binary()),
    "headers": _headers,
    "kafka_time": lambda messages: pa.array(messages.millis()),
}
