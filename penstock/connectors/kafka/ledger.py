"""What a topic's ledger says: the last record of its name in a compacted topic, read to the very end."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    IsolationLevel,
    KafkaError,
    KafkaException,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic, OffsetSpec, ResourceType

from penstock.connectors.kafka.producer import ANSWER_SECONDS, Heard, explained, options, said
from penstock.connectors.kafka.records import Record
from penstock.connectors.sink import Ledger
from penstock.connectors.sink_errors import SinkError, down

if TYPE_CHECKING:
    from penstock.connectors.kafka.sink import Kafka

VERSION = 1
# Segments are closed often, so that the cleaner keeps the topic as short as the list of its sinks.
LEDGER_TOPIC = {
    "cleanup.policy": "compact",
    "segment.ms": "600000",
    "segment.bytes": "16777216",
    "min.cleanable.dirty.ratio": "0.1",
}


@dataclass(frozen=True, slots=True)
class Found:
    """The ledger's record of a topic: what was committed last, who was taken over, which columns the rows have."""

    ledger: Ledger
    retired: tuple[str, ...]
    columns: tuple[tuple[str, str], ...]

    def record(self, name: str) -> Record:
        """As it lies in the topic, under the name of what it is of."""
        content = {"version": VERSION, **asdict(self.ledger), "retired": self.retired, "columns": self.columns}
        return Record(name.encode(), json.dumps(content, ensure_ascii=False).encode(), [])


class Progress:
    """The ledger's topic as far as it was read, by the names of its records; and a look at the topic of the rows."""

    def __init__(self, sink: Kafka, *names: str) -> None:
        self.sink, self.heard = sink, Heard()
        self.found: dict[str, Found | None] = dict.fromkeys(names)
        self.position = self.partitions = 0
        self.consumer: Any = None
        with explained(sink, self.heard):
            self.admin: Any = AdminClient(options(sink, self.heard))

    def check_topics(self, *, upserts: bool) -> None:
        """See that both topics are there and fit, and make those that may be made."""
        with self._explained():
            self.partitions = _there(self.sink, self.admin, upserts)

    def glance(self) -> bool:
        """Read what is settled, without waiting for transactions that are open; whether that is all there is."""
        stable, end = (self._end(level) for level in (IsolationLevel.READ_COMMITTED, IsolationLevel.READ_UNCOMMITTED))
        self._read_to(stable)
        return stable == end

    def read(self) -> None:
        """Read to the end as it is now; waits for transactions that others have open in the ledger's topic.

        The last stable offset would not do: where another sink's transaction is open before it, a record of ours that
        is committed lies beyond, and the batch would be written a second time.
        """
        self._read_to(self._end(IsolationLevel.READ_UNCOMMITTED))

    def topic_holds_records(self) -> bool:
        """Whether a reader would find anything in the topic of the rows."""
        if self._offsets(OffsetSpec.earliest()) == self._offsets(OffsetSpec.latest()):
            return False
        at = [TopicPartition(self.sink.topic, number, OFFSET_BEGINNING) for number in range(self.partitions)]
        with explained(self.sink, self.heard):
            consumer = self._consumer(at)
        try:
            ended: set[int] = set()
            until = time.monotonic() + ANSWER_SECONDS
            while len(ended) < self.partitions:
                message = self._polled(consumer, until)
                if message.error() is None:
                    return True
                ended.add(message.partition())
            return False
        finally:
            consumer.close()

    def close(self) -> None:
        """Let the broker go."""
        if self.consumer is not None:
            self.consumer.close()
        self.consumer = self.admin = None

    @contextmanager
    def _explained(self) -> Iterator[None]:
        with explained(self.sink, self.heard):
            try:
                yield
            except KafkaException:
                self.admin.poll(0)  # its callbacks speak only here
                raise

    def _consumer(self, at: list[TopicPartition]) -> Any:
        consumer = Consumer(
            options(
                self.sink,
                self.heard,
                **{
                    "group.id": "penstock-progress",
                    "enable.auto.commit": False,
                    "isolation.level": "read_committed",
                    "enable.partition.eof": True,
                    "auto.offset.reset": "error",
                    "allow.auto.create.topics": False,
                    # The end of a partition is told when a fetch comes back empty, which takes as long as this.
                    "fetch.wait.max.ms": 100,
                    "queued.max.messages.kbytes": 1024,
                },
            )
        )
        # Connected first: assigned without a connection, it would wait half a second before it tries again.
        consumer.list_topics(at[0].topic, timeout=ANSWER_SECONDS)
        consumer.assign(at)
        return consumer

    def _offsets(self, which: OffsetSpec) -> list[int]:
        """The first or the last offset of each partition of the rows."""
        at = {TopicPartition(self.sink.topic, number): which for number in range(self.partitions)}
        with self._explained():
            asked = self.admin.list_offsets(at, request_timeout=ANSWER_SECONDS)
            return [asked[one].result().offset for one in at]

    def _end(self, isolation: IsolationLevel) -> int:
        at = TopicPartition(self.sink.progress_topic, 0)
        with self._explained():
            asked = self.admin.list_offsets(
                {at: OffsetSpec.latest()}, request_timeout=ANSWER_SECONDS, isolation_level=isolation
            )
            end: int = asked[at].result().offset
        return end

    def _read_to(self, end: int) -> None:
        """Take records until the position is at the end."""
        if self.consumer is None:
            with explained(self.sink, self.heard):
                self.consumer = self._consumer([TopicPartition(self.sink.progress_topic, 0, OFFSET_BEGINNING)])
        until = time.monotonic() + ANSWER_SECONDS
        while self.position < end:
            message = self._polled(self.consumer, until)
            if message.error() is not None:
                # Markers and cleaned offsets are never delivered: only this event tells that they are behind us.
                self.position = max(self.position, message.offset())
                continue
            self.position = message.offset() + 1
            name = (message.key() or b"").decode(errors="replace")
            if name in self.found:
                self.found[name] = _parsed(self.sink, message.value())

    def _polled(self, consumer: Any, until: float) -> Any:
        """The next record or end of a partition."""
        while True:
            with explained(self.sink, self.heard):
                message = consumer.poll(0.2)
            if message is not None:
                error = message.error()
                if error is None or error.code() == KafkaError._PARTITION_EOF:
                    return message
                raise said(self.sink, error, self.heard)
            if time.monotonic() > until:
                if self.heard.hopeless is not None:
                    raise said(self.sink, self.heard.hopeless, self.heard)
                raise down(
                    self.sink.place,
                    f"{self.sink.progress_topic} could not be read to its end in {ANSWER_SECONDS:.0f} seconds: a "
                    "broker is away, or a transaction of another sink is open in it, until its time-out",
                )


def _parsed(sink: Kafka, value: bytes | None) -> Found | None:
    """A record of the ledger; none where it was deleted."""
    if value is None:
        return None
    try:
        content = json.loads(value)
        if content["version"] > VERSION:
            raise SinkError(
                f"the ledger of {sink.place} has version {content['version']}",
                f"this Penstock reads up to version {VERSION}: a newer one wrote it",
                "run the newer Penstock",
            )
        told = {name: content[name] for name in ("sink", "lineage", "batch", "epoch", "rows", "fingerprint")}
        columns = tuple((str(name), str(kind)) for name, kind in content["columns"])
        return Found(Ledger(**told), tuple(content["retired"]), columns)
    except (ValueError, KeyError, TypeError) as error:
        raise SinkError(
            f"the ledger of {sink.place} in {sink.progress_topic} cannot be read: {error!r}",
            "somebody else writes to that topic, or the record was damaged",
            "name another progress_topic, and say takeover=True to begin there in the middle",
        ) from error


def _there(sink: Kafka, admin: Any, upserts: bool) -> int:
    """The number of partitions of a topic that is there and fits, as the ledger's does."""
    number = _partitions(admin, sink.topic)
    if number is None and sink.create is not None:
        config = {"cleanup.policy": "compact" if upserts else "delete"}
        _make(
            sink,
            admin,
            NewTopic(sink.topic, sink.create.partitions or -1, sink.create.replication or -1, config=config),
        )
        number = _settled(sink, admin, sink.topic)
    if number is None:
        raise SinkError(
            f"there is no topic {sink.topic!r} on {sink.place.partition('#')[0]}",
            "a topic is made on purpose, with the partitions and copies that it needs",
            f"make it, or write ps.to_kafka({sink.topic!r}, ..., create=True, partitions=4)",
        )
    if _partitions(admin, sink.progress_topic) is None:
        copies = sink.create.replication if sink.create is not None and sink.create.replication else -1
        _make(sink, admin, NewTopic(sink.progress_topic, 1, copies, config=LEDGER_TOPIC))
        _settled(sink, admin, sink.progress_topic)
    policies = _policies(admin, sink.topic, sink.progress_topic)
    if policies.get(sink.progress_topic, "compact") != "compact":
        raise SinkError(
            f"the topic {sink.progress_topic!r} has cleanup.policy={policies[sink.progress_topic]}",
            "it holds the ledger: what retention removes there would be written a second time",
            f"set cleanup.policy=compact for {sink.progress_topic!r}, or name another progress_topic",
        )
    if not upserts and policies.get(sink.topic) == "compact":
        raise SinkError(
            f"the topic {sink.topic!r} is compacted, and rows are to be appended to it",
            "compaction would remove all but the last record of a key, and refuses records without one",
            f"set cleanup.policy=delete for {sink.topic!r}, or name another topic, or say compacted=True for panes",
        )
    return number


def _partitions(admin: Any, topic: str) -> int | None:
    """How many partitions a topic has; None where there is none."""
    asked = admin.describe_topics(TopicCollection([topic]), request_timeout=ANSWER_SECONDS)
    try:
        return len(asked[topic].result().partitions)
    except KafkaException as error:
        if error.args[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
            return None
        raise


def _make(sink: Kafka, admin: Any, topic: NewTopic) -> None:
    """Make a topic; another run may have been quicker."""
    try:
        admin.create_topics([topic], request_timeout=ANSWER_SECONDS)[topic.topic].result()
    except KafkaException as error:
        if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
            raise


def _settled(sink: Kafka, admin: Any, topic: str) -> int:
    """Wait until a topic that was made is known."""
    until = time.monotonic() + ANSWER_SECONDS
    while time.monotonic() < until:
        number = _partitions(admin, topic)
        if number:
            return number
        time.sleep(0.05)
    raise down(sink.place, f"the topic {topic!r} was made and is not known yet")


def _policies(admin: Any, *topics: str) -> dict[str, str]:
    """How each topic is cleaned, as far as we may know."""
    resources = [ConfigResource(ResourceType.TOPIC, topic) for topic in topics]
    found = {}
    for resource, asked in admin.describe_configs(resources, request_timeout=ANSWER_SECONDS).items():
        try:
            found[resource.name] = asked.result()["cleanup.policy"].value
        except KafkaException as error:
            if error.args[0].code() != KafkaError.TOPIC_AUTHORIZATION_FAILED:
                raise
    return found
