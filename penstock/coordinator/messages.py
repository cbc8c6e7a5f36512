"""What travels between Spark's stages: packets to a shard, and words from a shard to the driver."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

import pyarrow as pa

from penstock.errors import PenstockError

PACKETS = "shard int, kind string, payload binary"
WORDS = "shard int, kind string, head string, payload binary"
PACKET_SCHEMA = pa.schema([("shard", pa.int32()), ("kind", pa.string()), ("payload", pa.binary())])
CELLS, TICK, NOW, REPORTS, COUNTS = "cells", "tick", "now", "reports", "counts"
PANES, LATE, BAD, ARCHIVE, STATE = "panes", "late", "quarantine", "archive", "state"
ROWS, SEEN = "rows", "seen"
_LIMIT = 16 << 20
# Spark holds a row in one array of bytes, and copies it at each step: so a payload of any size travels in small rows,
# below what the collector of the JVM takes for huge.
PIECE = 256 << 10
_PIECE_OF = "#"


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


class LostPiece(PenstockError):
    """A packet did not come whole: the batch must not go on without what it has lost."""


class Packet(NamedTuple):
    """Bytes for one shard."""

    shard: int
    kind: str
    payload: bytes


def in_pieces(packet: Packet) -> Iterator[Packet]:
    """A packet as some of a bounded size, each of which says which one of how many of which packet it is."""
    size = len(packet.payload)
    if size <= PIECE:
        yield packet
        return
    name, count = uuid.uuid4().hex[:12], -(-size // PIECE)
    for i in range(count):
        piece = packet.payload[i * PIECE : (i + 1) * PIECE]
        yield Packet(packet.shard, f"{packet.kind}{_PIECE_OF}{name}.{i}.{count}", piece)


def put_together(packets: Iterable[Packet]) -> list[Packet]:
    """The packets that came, in whatever order, those in pieces whole again."""
    whole: list[Packet] = []
    broken: dict[tuple[int, str, str], dict[int, Packet]] = {}
    for packet in packets:
        kind, parted, which = packet.kind.partition(_PIECE_OF)
        if not parted:
            whole.append(packet)
            continue
        name, number, count = which.split(".")
        pieces = broken.setdefault((packet.shard, kind, name), {})
        pieces[int(number)] = packet
        if len(pieces) == int(count):
            payload = b"".join(pieces[i].payload for i in range(len(pieces)))
            whole.append(Packet(packet.shard, kind, payload))
            del broken[packet.shard, kind, name]
    if broken:
        raise LostPiece(
            f"{len(broken)} packets came without some of their pieces",
            "a task gives all pieces of a packet or none",
            "let Spark start the batch anew: stop the query and run the pipeline again",
        )
    return whole


def packet_batches(packets: Iterable[Packet]) -> Iterator[pa.RecordBatch]:
    """Packets as Arrow batches of a bounded size."""
    held: list[Packet] = []
    size = 0
    for piece in chain.from_iterable(map(in_pieces, packets)):
        if held and size + len(piece.payload) > _LIMIT:
            yield _batch(held)
            held, size = [], 0
        held.append(piece)
        size += len(piece.payload)
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
