"""What travels between Spark's stages: packets to a shard, and words from a shard to the driver."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import pyarrow as pa

PACKETS = "shard int, kind string, payload binary"
WORDS = "shard int, kind string, head string, payload binary"
PACKET_SCHEMA = pa.schema([("shard", pa.int32()), ("kind", pa.string()), ("payload", pa.binary())])
CELLS, TICK, NOW, REPORTS, COUNTS = "cells", "tick", "now", "reports", "counts"
PANES, LATE, BAD, ARCHIVE, STATE = "panes", "late", "quarantine", "archive", "state"
ROWS, SEEN = "rows", "seen"
_LIMIT = 16 << 20


def at(stage: int, kind: str) -> str:
    """A kind of packet or word of a stage: those of the first have no number, nor has what belongs to no stage."""
    return f"{stage}/{kind}" if stage else kind


def stage_of(kind: str) -> int:
    """The stage that a packet is for."""
    number, parted, _ = kind.partition("/")
    return int(number) if parted else 0


def kind_of(kind: str) -> str:
    """What a packet or word is, without its stage and its name."""
    return kind.rpartition("/")[2].partition(":")[0]


def rows_of(output: str) -> str:
    """The kind of the rows that a stage gives to an output of that name."""
    return f"{ROWS}:{output}"


def late_of(entry: int) -> str:
    """The kind of the late rows of an entry of a stage."""
    return f"{LATE}:{entry}" if entry else LATE


class Packet(NamedTuple):
    """Bytes for one shard."""

    shard: int
    kind: str
    payload: bytes


def packet_batches(packets: Iterable[Packet]) -> Iterator[pa.RecordBatch]:
    """Packets as Arrow batches of a bounded size."""
    held: list[Packet] = []
    size = 0
    for packet in packets:
        if held and size + len(packet.payload) > _LIMIT:
            yield _batch(held)
            held, size = [], 0
        held.append(packet)
        size += len(packet.payload)
    if held:
        yield _batch(held)


def _batch(packets: list[Packet]) -> pa.RecordBatch:
    shards, kinds, payloads = zip(*packets, strict=True)
    return pa.RecordBatch.from_arrays(
        [pa.array(shards, pa.int32()), pa.array(kinds, pa.string()), pa.array(payloads, pa.binary())],
        schema=PACKET_SCHEMA,
    )


@dataclass(frozen=True, slots=True)
class ShardIds:
    """The numbers by which Spark knows the shards: chosen so that each gets a partition of its own."""

    ids: tuple[int, ...]

    def __len__(self) -> int:
        return len(self.ids)


def shard_ids(shards: int) -> ShardIds:
    """For each shard the least number that Spark's hash partitioning sends to the partition of that rank."""
    found: dict[int, int] = {}
    number = 0
    while len(found) < shards:
        found.setdefault(spark_hash(number) % shards, number)
        number += 1
    return ShardIds(tuple(found[i] for i in range(shards)))


def spark_hash(number: int) -> int:
    """Spark's hash of an integer: Murmur3, 32 bits, seed 42, as a signed number."""
    k = number & 0xFFFFFFFF
    k = k * 0xCC9E2D51 & 0xFFFFFFFF
    k = (k << 15 | k >> 17) & 0xFFFFFFFF
    h = 42 ^ (k * 0x1B873593 & 0xFFFFFFFF)
    h = (h << 13 | h >> 19) & 0xFFFFFFFF
    h = (h * 5 + 0xE6546B64) & 0xFFFFFFFF
    h ^= 4
    h ^= h >> 16
    h = h * 0x85EBCA6B & 0xFFFFFFFF
    h ^= h >> 13
    h = h * 0xC2B2AE35 & 0xFFFFFFFF
    h ^= h >> 16
    return h - (1 << 32) if h & 0x80000000 else h
