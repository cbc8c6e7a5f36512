"""How far the next batch reads: positions to positions, and what is lost between them. Asks nobody.

A position holds the ids of the topics and for each partition the next offset and the end that was seen when the batch
was planned, so that everything else follows from the position alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from penstock.connectors.kafka.errors import DataLost, gone, recreated, retained, shrunk, truncated
from penstock.connectors.kafka.metadata import Log, Topic, parted
from penstock.connectors.source import Offsets
from penstock.types.durations import SECOND

HELD = 5 * SECOND  # after which an open transaction is more than ordinary traffic
SMALL = 20_000  # messages for which a second task does not pay
UNBEGUN: Offsets = {"begun": False, "ids": {}, "partitions": {}, "stop": {}, "held": {}, "lost": {}}


def begun(
    topics: Mapping[str, Topic], logs: Mapping[str, Log], at: Mapping[str, int], stop: Mapping[str, int], now: int
) -> Offsets:
    """The first position of a checkpoint; it fixes the beginning, so that a batch that is run again has the same."""
    return {
        "begun": True,
        "ids": {name: topic.id for name, topic in topics.items()},
        "partitions": {one: [at[one], max(at[one], logs[one].end)] for one in logs},
        "stop": dict(stop),
        "held": held({}, logs, now),
        "lost": {},
    }


def advanced(
    since: Offsets,
    topics: Mapping[str, Topic],
    logs: Mapping[str, Log],
    lost: Mapping[str, Any],
    stop: Mapping[str, int],
    now: int,
    limit: int | None,
) -> Offsets:
    """The position after the next batch; partitions that are new or have lost something only get their beginning."""
    known = since["partitions"]
    caps = {one: min(log.end, stop.get(one, log.end)) for one, log in logs.items()}
    reading = {one: known[one][0] for one in logs if one in known and one not in lost}
    taken = shared({one: max(0, caps[one] - at) for one, at in reading.items()}, limit)
    made: dict[str, list[int]] = {}
    for one, log in logs.items():
        at = reading[one] + taken[one] if one in reading else log.first
        made[one] = [at, max(at, log.end)]
    return {
        "begun": True,
        "ids": {name: topic.id for name, topic in topics.items()},
        "partitions": made,
        "stop": dict(stop),
        "held": held(since["held"], logs, now),
        "lost": dict(lost),
    }


def shared(backlogs: Mapping[str, int], limit: int | None) -> dict[str, int]:
    """What each partition gives of a limit: by what it has, so that all come to their ends together."""
    total = sum(backlogs.values())
    if limit is None or total <= limit:
        return dict(backlogs)
    return {one: min(backlog, max(1, limit * backlog // total)) for one, backlog in backlogs.items()}


def held(before: Mapping[str, Any], logs: Mapping[str, Log], now: int) -> dict[str, list[int]]:
    """Partitions whose last messages wait for a transaction to end: its stable end, its end, and since when."""
    waiting = {}
    for one, log in logs.items():
        if log.end < log.high:
            same = before.get(one)
            waiting[one] = [log.end, log.high, same[2] if same and same[0] == log.end else now]
    return waiting


def losses(since: Offsets, topics: Mapping[str, Topic], logs: Mapping[str, Log]) -> list[DataLost]:
    """What cannot be read any more, in the order in which it matters."""
    left = unfinished(since)
    ids: Mapping[str, str] = since["ids"]
    here = {one for topic in topics.values() for one in topic.partitions}
    found: list[DataLost] = []
    for name, was in ids.items():
        read_to = [f"{one} offset {at}" for one, (at, _) in since["partitions"].items() if parted(one)[0] == name]
        if name not in topics:
            found.append(gone(name, read_to))
        elif other(was, topics[name].id):
            found.append(recreated(name, was, topics[name].id, read_to))
    if vanished := [one for one in left if one not in here and parted(one)[0] in topics]:
        found.append(shrunk(vanished))
    if passed := [(one, at, logs[one].first) for one, at in left.items() if one in logs and at < logs[one].first]:
        found.append(retained(passed))
    if short := cut(left, logs):
        found.append(truncated(short))
    return found


def cut(left: Mapping[str, int], logs: Mapping[str, Log]) -> list[tuple[str, int, int]]:
    """Logs that end before what was read of them."""
    return [(one, at, logs[one].high) for one, at in left.items() if one in logs and at > logs[one].high]


def jumps(since: Offsets, topics: Mapping[str, Topic], logs: Mapping[str, Log]) -> dict[str, list[int]]:
    """What is skipped where that was asked for: partitions, how far they were read, and where they go on."""
    anew = {name for name, was in since["ids"].items() if name in topics and other(was, topics[name].id)}
    made = {}
    for one, (at, _) in since["partitions"].items():
        log = logs.get(one)
        if log is None:
            made[one] = [at, -1]
        elif parted(one)[0] in anew or not log.first <= at <= log.high:
            made[one] = [at, log.first]
    return made


def other(was: str, is_now: str) -> bool:
    """Whether two ids are of two topics; brokers of old know none."""
    return bool(was and is_now and was != is_now)


def unfinished(at: Offsets) -> dict[str, int]:
    """The partitions that are not at their stop, and where they are."""
    stop = at["stop"]
    return {one: place for one, (place, _) in at["partitions"].items() if place < stop.get(one, place + 1)}


def more(at: Offsets) -> list[str]:
    """The partitions that had more than was taken, when it was looked."""
    stop = at["stop"]
    return [one for one, (place, end) in at["partitions"].items() if place < min(end, stop.get(one, end))]


def behind(at: Offsets, now: int) -> list[str]:
    """Those, and the ones that a transaction has held back for a while: what it brings must not come too late."""
    waiting = {one for one, (_, _, since) in at["held"].items() if now - since >= HELD} & unfinished(at).keys()
    there = set(more(at))
    return [one for one in at["partitions"] if one in there or one in waiting]


def ranges(since: Offsets, upto: Offsets) -> dict[str, tuple[int, int]]:
    """The offsets between two positions; a partition that begins or jumps has none."""
    known, lost = since["partitions"], upto["lost"]
    between = {one: (known[one][0], at) for one, (at, _) in upto["partitions"].items() if one in known}
    return {one: (low, high) for one, (low, high) in between.items() if low < high and one not in lost}


def dealt(spans: Mapping[str, tuple[int, int]], tasks: int) -> list[list[str]]:
    """Partitions in a few heaps of about the same number of messages."""
    sizes = {one: high - low for one, (low, high) in spans.items()}
    heaps = max(1, min(tasks, len(spans), -(-sum(sizes.values()) // SMALL)))
    dealt: list[list[str]] = [[] for _ in range(heaps)]
    loads = [0] * heaps
    for one in sorted(sizes, key=lambda one: (-sizes[one], one)):
        least = loads.index(min(loads))
        dealt[least].append(one)
        loads[least] += sizes[one]
    return [_in_order(heap) for heap in dealt if heap]


def _in_order(heap: Sequence[str]) -> list[str]:
    return sorted(heap, key=parted)
