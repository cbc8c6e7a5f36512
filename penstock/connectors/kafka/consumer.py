"""Messages of a range of offsets, from consumers that stay assigned between batches and know where they are.

A range is read when a message at its end or beyond comes, or the end of the partition there: markers of transactions
and compacted messages are never delivered, so nothing is counted.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from penstock.connectors.kafka.client import Cluster, Said, logged, made, passing
from penstock.connectors.kafka.errors import nothing_came, out_of_range, refused
from penstock.connectors.kafka.librdkafka import Consumer, Messages
from penstock.connectors.kafka.metadata import named

T = TypeVar("T")

MOST = 16  # consumers of a process: each has threads and memory of its own
BLOCK = 8_000  # messages at a time: they stay in the processor's cache until they are decoded
QUIET = 0.25  # seconds between two looks at the deadline
STALE = 5.0  # seconds after which a consumer that nobody asks stops fetching
# Little is fetched ahead: tasks wander between processes, and what one has fetched is of no use to the next.
PREFETCH = {
    "queued.min.messages": 10_000,
    "queued.max.messages.kbytes": 16_384,
    "max.partition.fetch.bytes": 512 << 10,
    "fetch.max.bytes": 8 << 20,
    "fetch.queue.backoff.ms": 10,  # a second, by default, in which a queue that was full runs dry
    "fetch.wait.max.ms": 10,  # what is read is there already: only the end of a partition is waited for
    "fetch.error.backoff.ms": 100,
}
# The end of a partition is an event, so that a range that ends in markers ends too.
NEEDED = {
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "auto.offset.reset": "error",
    "enable.partition.eof": True,
    "max.poll.interval.ms": 86_400_000,
}


@dataclass(frozen=True, slots=True)
class Reading:
    """How a cluster's messages are read."""

    cluster: Cluster
    isolation: str
    group: str | None = None

    def consumer(self) -> tuple[Consumer, Said]:
        """A new consumer."""

        def make(said: Said) -> Consumer:
            told = {**PREFETCH, **self.cluster.plain(), **NEEDED}
            named = {"isolation.level": self.isolation, "group.id": self.group or "penstock"}
            return Consumer({**told, **named}, said, logged)

        return made(self.cluster, make)


@dataclass(frozen=True, slots=True)
class Span:
    """Offsets of a partition of a topic of that id; whether more is there beyond them."""

    topic: str
    id: str
    partition: int
    low: int
    high: int
    more: bool

    @property
    def name(self) -> str:
        """The partition's name."""
        return named(self.topic, self.partition)


@dataclass(eq=False)
class Assigned:
    """A consumer, the one partition it has, and the offset that it gives next; None where that is not known."""

    consumer: Consumer
    said: Said
    key: tuple[object, ...]
    place: tuple[str, int]
    at: int | None = None
    paused: bool = False
    used: float = 0.0


_cache: list[Assigned] = []
_owner = 0


def ready(reading: Reading, span: Span) -> Assigned:
    """The consumer of a partition, at the beginning of a range; the fetching goes on while others are read."""
    one = _taken(reading, span)
    if one.paused:
        one.consumer.resume(*one.place)
    if one.at != span.low:
        one.consumer.assign(*one.place, span.low)
    one.at, one.paused = span.low, False
    return one


def messages(one: Assigned, reading: Reading, span: Span, taken: Callable[[Messages], T]) -> Iterator[T]:
    """What is taken of the messages of a range in order, some thousands at a time.

    The messages themselves are let go at once: their memory is that of the next ones, and still in the cache.
    """
    at, deadline = span.low, time.monotonic() + reading.cluster.seconds
    try:
        while at < span.high:
            before, some = at, None
            got = _consumed(one, reading, min(BLOCK, span.high - at))
            try:
                mine, at, beyond = _within(got, at, reading, span)
                if len(mine):
                    some = taken(mine)
            finally:
                got.let_go()
            if at > before:
                one.at = None if beyond else at
                if some is not None:
                    yield some
                deadline = time.monotonic() + reading.cluster.seconds
            elif time.monotonic() > deadline:
                heard = reading.cluster.scrubbed(one.said.last)
                raise nothing_came(span.name, at, span.high, reading.cluster.seconds, heard)
        if not span.more:
            _pause(one)
    except BaseException:
        drop(one)
        raise


def drop(one: Assigned) -> None:
    """Close a consumer and forget it."""
    if one in _cache:
        _cache.remove(one)
        one.consumer.close()


def drop_all() -> None:
    """Close the consumers of this process."""
    for one in list(_cache):
        drop(one)


def _taken(reading: Reading, span: Span) -> Assigned:
    """The consumer that has a partition, or a new one instead of the one that was idle longest."""
    global _owner
    if _owner != os.getpid():  # what a process was forked with are another's consumers, and their threads are not here
        _cache.clear()
        _owner = os.getpid()
    key = (reading, span.id, span.topic, span.partition)
    found = next((one for one in _cache if one.key == key), None)
    if found is None and len(_cache) >= MOST:
        drop(min(_cache, key=lambda one: one.used))
    if found is None:
        found = Assigned(*reading.consumer(), key, (span.topic, span.partition))
        _cache.append(found)
    found.used = time.monotonic()
    # Tasks wander between processes: a partition that is read elsewhere now need not be fetched here.
    for one in _cache:
        if not one.paused and found.used - one.used > STALE:
            _pause(one)
    return found


def _consumed(one: Assigned, reading: Reading, most: int) -> Messages:
    """What is there, at once; else what comes first."""
    from confluent_kafka import KafkaException

    try:
        got = one.consumer.take(most, 0)
        return got if len(got) else one.consumer.take(1, QUIET)
    except KafkaException as error:
        raise refused(reading.cluster.servers, reading.cluster.scrubbed(error.args[0]), "reading") from None


def _within(got: Messages, at: int, reading: Reading, span: Span) -> tuple[Messages, int, bool]:
    """The messages of a range, how far it is read with them, and whether the consumer is beyond its end."""
    failed = got.failures
    if failed.any():
        at = _heard(got, np.flatnonzero(failed), at, reading, span)
        got = got[failed == 0]
    if not len(got):
        return got, at, at > span.high
    offsets = got.offsets
    if offsets[-1] < span.high:
        at = max(at, int(offsets[-1]) + 1)
        return got, at, at > span.high
    return got[offsets < span.high], span.high, True


def _heard(got: Messages, failed: np.ndarray, at: int, reading: Reading, span: Span) -> int:
    """How far a partition is read by the ends among messages; errors among them that do not pass are raised."""
    from confluent_kafka import KafkaError

    gone = (
        KafkaError._AUTO_OFFSET_RESET,
        KafkaError.OFFSET_OUT_OF_RANGE,
        KafkaError.UNKNOWN_TOPIC_OR_PART,
        KafkaError._UNKNOWN_TOPIC,
        KafkaError._UNKNOWN_PARTITION,
        KafkaError.UNKNOWN_TOPIC_ID,
    )
    for row in failed.tolist():
        error = got.error(row)
        if error.code() == KafkaError._PARTITION_EOF:
            at = max(at, int(got.offsets[row]))
        elif error.code() in gone:
            raise out_of_range(span.name, span.low, span.high, reading.cluster.scrubbed(error.str()))
        elif not passing(error):
            raise refused(reading.cluster.servers, reading.cluster.scrubbed(error.str()), f"reading {span.name}")
    return at


def _pause(one: Assigned) -> None:
    """Stop the fetching at the end of a log: what trickles in is fetched in one go when it is asked for."""
    one.consumer.pause(*one.place)
    one.paused = True
