"""What a cluster holds: topics with their ids and partitions, and where each partition's log begins and ends."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from penstock.connectors.kafka.client import Cluster, patient
from penstock.connectors.kafka.errors import nothing_matches, unknown_topics

COMMITTED = "read_committed"
ASKED = "asked for its topics"
NO_ID = "AAAAAAAAAAAAAAAAAAAAAA"  # what brokers that know no ids say


@dataclass(frozen=True, slots=True)
class Wanted:
    """The topics that are read: these, or all whose whole name matches a pattern."""

    names: tuple[str, ...]
    pattern: re.Pattern[str] | None = None

    def __str__(self) -> str:
        return ", ".join(self.names) if self.pattern is None else f"topics like {self.pattern.pattern!r}"


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic as it is now."""

    id: str
    partitions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Log:
    """A partition's log: its first offset, the one after the last that may be read, and the one after the last."""

    first: int
    end: int
    high: int


def named(topic: str, partition: int) -> str:
    """A partition's name."""
    return f"{topic}/{partition}"


def parted(partition: str) -> tuple[str, int]:
    """The topic and the number that a partition's name holds."""
    topic, _, number = partition.rpartition("/")
    return topic, int(number)


def found(cluster: Cluster, wanted: Wanted, known: Iterable[str]) -> dict[str, Topic]:
    """The wanted topics that there are, and those of the known ones that still are."""
    names = {*wanted.names, *known}
    if wanted.pattern is not None:
        names |= {name for name in _every(cluster) if wanted.pattern.fullmatch(name) and not name.startswith("__")}
    return patient(cluster, ASKED, lambda client: _described(client, sorted(names), _wait(cluster)))


def begun(cluster: Cluster, wanted: Wanted) -> dict[str, Topic]:
    """The wanted topics of a new checkpoint, all of which must be there."""
    topics = found(cluster, wanted, ())
    missing = [name for name in wanted.names if name not in topics]
    if missing or not topics:
        if missing:
            raise unknown_topics(missing, _every(cluster), cluster.servers)
        assert wanted.pattern is not None
        raise nothing_matches(wanted.pattern.pattern, _every(cluster), cluster.servers)
    return topics


def logs(cluster: Cluster, partitions: Iterable[str], isolation: str) -> dict[str, Log]:
    """Where each partition begins and ends; what is committed ends at the last stable offset."""
    from confluent_kafka.admin import OffsetSpec

    every = list(partitions)
    asked = [(OffsetSpec.earliest(), isolation), (OffsetSpec.latest(), "read_uncommitted")]
    if isolation == COMMITTED:
        asked.append((OffsetSpec.latest(), COMMITTED))
    first, high, *stable = _offsets(cluster, every, asked)
    return {one: Log(first[one], (stable or [high])[0][one], high[one]) for one in every}


def at_time(cluster: Cluster, partitions: Iterable[str], instant: int, isolation: str) -> dict[str, int | None]:
    """The offset of the first message that Kafka has stamped with an instant or later; None where there is none."""
    from confluent_kafka.admin import OffsetSpec

    spec = OffsetSpec.for_timestamp(max(0, -(-instant // 1_000)))
    (offsets,) = _offsets(cluster, list(partitions), [(spec, isolation)])
    return {partition: None if offset < 0 else offset for partition, offset in offsets.items()}


def _every(cluster: Cluster) -> list[str]:
    return patient(cluster, ASKED, lambda client: list(client.list_topics(timeout=_wait(cluster)).topics))


def _described(client: Any, names: list[str], wait: float) -> dict[str, Topic]:
    from confluent_kafka import KafkaError, KafkaException, TopicCollection

    topics: dict[str, Topic] = {}
    asked = client.describe_topics(TopicCollection(names), request_timeout=wait) if names else {}
    for name, future in asked.items():
        try:
            told = future.result()
        except KafkaException as error:
            if error.args[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
                continue
            raise
        ids = str(told.topic_id)
        numbers = sorted(one.id for one in told.partitions)
        topics[name] = Topic("" if ids == NO_ID else ids, tuple(named(name, number) for number in numbers))
    return topics


def _offsets(cluster: Cluster, partitions: list[str], asked: list[tuple[Any, str]]) -> list[dict[str, int]]:
    """The answers to some questions about partitions, all asked at once."""
    from confluent_kafka import IsolationLevel, TopicPartition

    levels = {COMMITTED: IsolationLevel.READ_COMMITTED, "read_uncommitted": IsolationLevel.READ_UNCOMMITTED}
    places = {partition: TopicPartition(*parted(partition)) for partition in partitions}
    if not places:
        return [{} for _ in asked]

    def ask(client: Any) -> list[dict[str, int]]:
        futures: list[Mapping[Any, Any]] = [
            client.list_offsets(
                dict.fromkeys(places.values(), spec), isolation_level=levels[level], request_timeout=_wait(cluster)
            )
            for spec, level in asked
        ]
        return [
            {named(place.topic, place.partition): int(future.result().offset) for place, future in one.items()}
            for one in futures
        ]

    return patient(cluster, "asked for offsets", ask)


def _wait(cluster: Cluster) -> float:
    """For how long one question waits: a broker that is away is asked more than once."""
    return min(10.0, max(1.0, cluster.seconds / 3))
