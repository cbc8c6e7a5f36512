"""Topics of Kafka: a log like the others, its offsets in Spark's checkpoint, its partitions as Kafka has them."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from penstock.api.stream import Stream
from penstock.connectors.formats.limits import DEFAULT, Limits, limits_of
from penstock.connectors.kafka import metadata as cluster_topics, offsets
from penstock.connectors.kafka.client import Cluster, logger, settings_of
from penstock.connectors.kafka.groups import commit
from penstock.connectors.kafka.message_columns import Shape, shape
from penstock.connectors.kafka.metadata import COMMITTED, Log, Topic, Wanted, logs, parted
from penstock.connectors.kafka.offset_bounds import Bound, Offset, beginning, bound, ending
from penstock.connectors.source import TASKS, Chunk, Lag, Offsets, Split, source
from penstock.credentials import Secret
from penstock.errors import PlanError, did_you_mean
from penstock.humanize import many
from penstock.types.durations import MINUTE, Duration, positive, words
from penstock.types.schema import Schema

ISOLATIONS = (COMMITTED, "read_uncommitted")
ON_LOSS = ("stop", "skip")
STUCK = MINUTE  # after which a transaction that is still open is named
SECOND_LOOK = 5.0  # seconds in which a log that seems cut is looked at again: a leader may not know its end at first
_planned: dict[tuple[int, Kafka], Offsets] = {}


@dataclass(frozen=True, slots=True)
class Kafka:
    """How topics are read. A position is what `penstock.connectors.kafka.offsets` says."""

    wanted: Wanted
    cluster: Cluster
    shape: Shape
    begin: Bound
    end: Bound | None = None
    isolation: str = COMMITTED
    group: str | None = None
    on_loss: str = "stop"
    tasks: int | None = None
    limits: Limits = DEFAULT
    kind = "kafka"  # stands in checkpoints

    def start(self) -> Offsets:
        """Nowhere yet: the first batch reads nothing, and says where the beginning is."""
        return dict(offsets.UNBEGUN)

    def latest(self, since: Offsets, now: int, limit: int | None) -> Offsets:
        """As far as Kafka says that messages are there for good, each partition by its share."""
        made = self._next(since, now, limit) if since["begun"] else self._first(now)
        _planned[os.getpid(), self] = made
        return made

    def splits(self, since: Offsets, upto: Offsets) -> list[Split]:
        """Heaps of partitions, with their offsets."""
        if _planned.get((os.getpid(), self)) != upto:
            self._refuse_others(upto)
        spans = offsets.ranges(since, upto)
        more = set(offsets.more(upto))
        return [
            {"parts": [[*parted(one), upto["ids"][parted(one)[0]], *spans[one], one in more] for one in heap]}
            for heap in offsets.dealt(spans, self.tasks or TASKS)
        ]

    def read(self, split: Split) -> Iterator[Chunk]:
        """The messages of some partitions, each in order."""
        from penstock.connectors.kafka.decode import kafka_chunks

        return kafka_chunks(self, split["parts"])

    def partitions(self, at: Offsets) -> list[str]:
        """Those that were found so far."""
        return list(at["partitions"])

    def behind(self, at: Offsets, now: int) -> list[str]:
        """Those that had more than the batch took, or wait for a transaction."""
        return offsets.behind(at, now)

    def finished(self, at: Offsets, now: int) -> bool:
        """Whether a reader with an end has come to it in every partition."""
        complete = at["begun"] and set(at["stop"]) >= set(at["partitions"])
        return self.end is not None and complete and not offsets.unfinished(at)

    def lag(self, at: Offsets) -> list[Lag]:
        """How far each partition is from its end, as it was when the batch was planned."""
        return [Lag(one, current, end) for one, (current, end) in at["partitions"].items()]

    def beyond(self, at: Offsets) -> list[str]:
        """How many messages came after an end that was the latest one, in words."""
        if self.end is None or not at["begun"]:
            return []
        latest = [one for one in at["stop"] if one in at["partitions"] and self.end.moves_with(one)]
        messages = sum(max(0, at["partitions"][one][1] - at["stop"][one]) for one in latest)
        return [f"{many(messages, 'message')} came to {self.wanted} after its end, unread"] if messages else []

    def stuck(self, at: Offsets, now: int) -> list[str]:
        """Partitions that an open transaction has held back for a minute or more, in words."""
        return [
            f"{one}: nothing after offset {end} can be read, for a transaction has been open for "
            f"{words((now - since) // 1_000_000 * 1_000_000)}; {high - end} offsets wait for it"
            for one, (end, high, since) in at["held"].items()
            if now - since >= STUCK
        ]

    def notes(self, at: Offsets) -> list[str]:
        """What is worth knowing of the topics, in words."""
        count = len(at["partitions"])
        if not at["begun"] or self.tasks is None or count >= self.tasks:
            return []
        have = f"{count} partition{'s' if count != 1 else ''}"
        return [f"{self.wanted} has {have} for {self.tasks} cores: one task reads a partition, so that the others idle"]

    def committed(self, at: Offsets) -> None:
        """Show Kafka how far the group is; nothing is ever read from there."""
        if self.group is not None and at["begun"]:
            commit(self.cluster, self.group, {one: current for one, (current, _) in at["partitions"].items()})

    def _first(self, now: int) -> Offsets:
        topics = cluster_topics.begun(self.cluster, self.wanted)
        held = self._logs(topics)
        at = beginning(self.begin, held, self.cluster, self.isolation)
        return offsets.begun(topics, held, at, self._stop({}, held, now), now)

    def _next(self, since: Offsets, now: int, limit: int | None) -> Offsets:
        if self.end is None:
            since = {**since, "stop": {}}  # where there was an end and is none any more
        topics = cluster_topics.found(self.cluster, self.wanted, since["ids"])
        held = self._logs(topics)
        if offsets.losses(since, topics, held):
            topics, held = self._looked_again(since, topics, held)
        lost = self._lost(since, topics, held)
        if self.end is not None and set(since["stop"]) >= set(since["partitions"]):
            held = {one: log for one, log in held.items() if one in since["partitions"]}
        return offsets.advanced(since, topics, held, lost, self._stop(since["stop"], held, now), now, limit)

    def _logs(self, topics: Mapping[str, Topic]) -> dict[str, Log]:
        every = [one for topic in topics.values() for one in topic.partitions]
        return logs(self.cluster, every, self.isolation)

    def _stop(self, before: Mapping[str, int], held: Mapping[str, Log], now: int) -> dict[str, int]:
        """Where reading stops: once told of a partition it stays."""
        if self.end is None or (before and set(before) >= set(held)):
            return dict(before)
        return {**ending(self.end, held, self.cluster, self.isolation, now), **before}

    def _looked_again(
        self, since: Offsets, topics: dict[str, Topic], held: dict[str, Log]
    ) -> tuple[dict[str, Topic], dict[str, Log]]:
        """What there is when a leader that has just started has had time to find its end."""
        deadline = time.monotonic() + SECOND_LOOK
        while offsets.cut(offsets.unfinished(since), held) and time.monotonic() < deadline:
            time.sleep(SECOND_LOOK / 10)
            topics = cluster_topics.found(self.cluster, self.wanted, since["ids"])
            held = self._logs(topics)
        return topics, held

    def _lost(self, since: Offsets, topics: Mapping[str, Topic], held: Mapping[str, Log]) -> dict[str, list[int]]:
        """What is skipped, where that was asked for; else the refusal to go on."""
        found = offsets.losses(since, topics, held)
        if not found:
            return {}
        if self.on_loss == "stop":
            raise found[0]
        for one in found:
            logger.warning('%s; on_loss="skip" goes on without', one.what)
        return offsets.jumps(since, topics, held)

    def _refuse_others(self, upto: Offsets) -> None:
        """Refuse to read a batch again from topics that are not those it was planned on."""
        topics = cluster_topics.found(self.cluster, Wanted(()), upto["ids"])
        for loss in offsets.losses({**upto, "partitions": {}}, topics, {}):
            raise loss


def kafka(
    topics: str | Sequence[str] | re.Pattern[str],
    *,
    servers: str | Sequence[str],
    schema: str | Schema | None = None,
    value: str = "json",
    key: str | None = None,
    columns: Sequence[str] | Mapping[str, str] = (),
    avro_schema: Mapping[str, Any] | str | None = None,
    registry: str | Secret | None = None,
    start: str | datetime | Mapping[str, Offset] = "earliest",
    end: str | datetime | Mapping[str, Offset] | None = None,
    isolation: str = COMMITTED,
    group: str | None = None,
    on_loss: str = "stop",
    settings: Mapping[str, Any] | None = None,
    timeout: Duration = "1 minute",
    tasks: int | None = None,
    name: str = "kafka",
    max_bad: int | str | None = None,
    limits: Limits | None = None,
) -> Stream:
    """The messages of topics, of a list of them, or of all whose whole name matches a compiled pattern.

    `value` says what a message holds: json, avro (with `avro_schema` or `registry`), text or bytes. `columns` makes
    columns of its key, headers, topic, partition, offset and kafka_time. `start` and `end` are "earliest", "latest",
    a time of Kafka's, or offsets by partition, such as {"scores/0": 42}. `limits` is what a value may be.
    """
    made = Kafka(
        wanted=_wanted(topics),
        cluster=Cluster(_servers(servers), settings_of(settings), positive(timeout, "timeout")),
        shape=shape(value, schema, columns, key, avro_schema, registry),
        begin=bound(start, "start"),
        end=None if end is None else bound(end, "end", ("latest",)),
        isolation=_one_of("isolation", isolation, ISOLATIONS),
        group=_group(group),
        on_loss=_one_of("on_loss", on_loss, ON_LOSS),
        tasks=_tasks(tasks),
        limits=limits_of(limits),
    )
    return source(made, made.shape.schema, name=name, bounded=end is not None, max_bad=max_bad)


def _wanted(topics: Any) -> Wanted:
    if isinstance(topics, re.Pattern) and isinstance(topics.pattern, str):
        return Wanted((), topics)
    names = [topics] if isinstance(topics, str) else list(topics) if isinstance(topics, Sequence) else []
    if not names or not all(isinstance(one, str) and re.fullmatch(r"[a-zA-Z0-9._-]{1,249}", one) for one in names):
        raise PlanError(
            f"{topics!r} does not name a topic",
            "a topic's name is made of letters, digits, '.', '_' and '-'; a pattern is a compiled one",
            'write ps.kafka("scores", ...), ps.kafka(["red", "blue"], ...) or ps.kafka(re.compile("scores-.*"), ...)',
        )
    return Wanted(tuple(dict.fromkeys(names)))


def _servers(servers: Any) -> str:
    listed = [servers] if isinstance(servers, str) else list(servers) if isinstance(servers, Sequence) else []
    if not listed or not all(isinstance(one, str) and one.strip() for one in listed):
        raise PlanError(
            f"servers is {servers!r}",
            "it names one broker or a few, through which the others are found",
            'write servers="localhost:9092"',
        )
    return ",".join(one.strip() for one in listed)


def _group(group: Any) -> str | None:
    if group is not None and (not isinstance(group, str) or not group):
        raise PlanError(f"group is {group!r}", "it is the name of a consumer group", 'write group="team-scores"')
    return group


def _tasks(tasks: Any) -> int | None:
    if tasks is None or (isinstance(tasks, int) and not isinstance(tasks, bool) and 1 <= tasks <= 10_000):
        return tasks
    raise PlanError(
        f"tasks is {tasks!r}",
        "it is how many tasks read at a time",
        "write tasks=4, or leave it out: one for each core",
    )


def _one_of(what: str, given: Any, words: Sequence[str]) -> str:
    if given not in words:
        raise PlanError(
            f"{what} is {given!r}",
            f"it is {' or '.join(repr(word) for word in words)}",
            did_you_mean(str(given), words, f'write {what}="{words[0]}"'),
        )
    return str(given)
