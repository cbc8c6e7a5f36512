"""Messages of a range of offsets, from consumers that stay assigned between batches and know where they are.

A range is read when a message at its end or beyond comes, or the end of the partition there: markers of transactions
and compacted messages are never delivered, so nothing is counted.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

from penstock.sources.kafka_log.cluster import Cluster, Said, made, passing
from penstock.sources.kafka_log.errors import nothing_came, out_of_range, refused
from penstock.sources.kafka_log.topics import named

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
NEEDED = {"enable.auto.commit": False, "enable.auto.offset.store": False, "auto.offset.reset": "error",
          "enable.partition.eof": True, "max.poll.interval.ms": 86_400_000}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Reading:
    """How a cluster's messages are read."""

    cluster: Cluster
    isolation: str
    group: str | None = None

    def consumer(self) -> tuple[Any, Said]:
        """A new consumer."""

        def make(said: Said) -> Any:
            from confluent_kafka import Consumer

            told = {**PREFETCH, **dict(self.cluster.client(said)), **NEEDED}
            return Consumer({**told, "isolation.level": self.isolation, "group.id": self.group or "penstock"})

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

    consumer: Any
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
    from confluent_kafka import TopicPartition

    one = _taken(reading, span)
    place = TopicPartition(span.topic, span.partition, span.low)
    if one.paused:
        one.consumer.resume([place])
    if one.at != span.low:
        one.consumer.assign([place])
    one.at, one.paused = span.low, False
    return one


def messages(one: Assigned, reading: Reading, span: Span, taken: Callable[[list[Any]], T]) -> Iterator[T]:
    """What is taken of the messages of a range in order, some thousands at a time.

    The messages themselves are let go at once: their memory is that of the next ones, and still in the cache.
    """
    at, deadline = span.low, time.monotonic() + reading.cluster.seconds
    try:
        while at < span.high:
            before = at
            got, at, beyond = _within(_consumed(one, reading, min(BLOCK, span.high - at)), at, reading, span)
            if at > before:
                one.at = None if beyond else at
                some = taken(got) if got else None
                del got
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


def _consumed(one: Assigned, reading: Reading, most: int) -> list[Any]:
    """What is there, at once; else what comes first."""
    from confluent_kafka import KafkaException

    try:
        got: list[Any] = one.consumer.consume(most, 0)
        if not got:
            first = one.consumer.poll(QUIET)
            got = [] if first is None else [first]
        return got
    except KafkaException as error:
        raise refused(reading.cluster.servers, reading.cluster.scrubbed(error.args[0]), "reading") from None


def _within(got: list[Any], at: int, reading: Reading, span: Span) -> tuple[list[Any], int, bool]:
    """The messages of a range, how far it is read with them, and whether the consumer is beyond its end."""
    from confluent_kafka import Message

    if any(map(Message.error, got)):
        got, at = _without_events(got, at, reading, span)
    if not got:
        return got, at, at > span.high
    last = got[-1].offset()
    if last < span.high:
        at = max(at, last + 1)
        return got, at, at > span.high
    return [message for message in got if message.offset() < span.high], span.high, True


def _without_events(got: list[Any], at: int, reading: Reading, span: Span) -> tuple[list[Any], int]:
    """Messages without the errors and ends among them; the end of a partition says how far it is read."""
    from confluent_kafka import KafkaError

    gone = (KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE, KafkaError.UNKNOWN_TOPIC_OR_PART,
            KafkaError._UNKNOWN_TOPIC, KafkaError._UNKNOWN_PARTITION, KafkaError.UNKNOWN_TOPIC_ID)  # fmt: skip
    plain = []
    for message in got:
        error = message.error()
        if error is None:
            plain.append(message)
        elif error.code() == KafkaError._PARTITION_EOF:
            at = max(at, message.offset())
        elif error.code() in gone:
            raise out_of_range(span.name, span.low, span.high, reading.cluster.scrubbed(error.str()))
        elif not passing(error):
            raise refused(reading.cluster.servers, reading.cluster.scrubbed(error.str()), f"reading {span.name}")
    return plain, at


def _pause(one: Assigned) -> None:
    """Stop the fetching at the end of a log: what trickles in is fetched in one go when it is asked for."""
    from confluent_kafka import TopicPartition

    one.consumer.pause([TopicPartition(*one.place)])
    one.paused = True
