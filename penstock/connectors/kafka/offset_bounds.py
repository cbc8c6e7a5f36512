"""Where reading begins and ends: words, a time or offsets as the user wrote them, and the offsets they stand for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from penstock.connectors.kafka.client import Cluster
from penstock.connectors.kafka.errors import outside, unnamed, unnamed_partition
from penstock.connectors.kafka.metadata import Log, at_time, parted
from penstock.errors import PlanError, did_you_mean
from penstock.types import timestamps

WORDS = ("earliest", "latest")
Offset = int | str


@dataclass(frozen=True, slots=True)
class Bound:
    """The earliest or latest offset of each partition, its first one at a time, or these."""

    word: str | None = None
    time: int | None = None
    offsets: tuple[tuple[str, Offset], ...] = ()

    def moves_with(self, partition: str) -> bool:
        """Whether it is the latest offset of a partition, which is another one later."""
        return (dict(self.offsets).get(partition) if self.offsets else self.word) == "latest"

    def __str__(self) -> str:
        if self.time is not None:
            return timestamps.show(self.time)
        return self.word or ", ".join(f"{partition}: {offset}" for partition, offset in self.offsets)


def bound(given: Any, what: str, words: tuple[str, ...] = WORDS) -> Bound:
    """A bound as it was written."""
    if isinstance(given, str) and given in WORDS:
        if given not in words:
            raise PlanError(
                f'{what}="{given}" leaves nothing to read', f"{what} says where reading stops", f'write {what}="latest"'
            )
        return Bound(word=given)
    if isinstance(given, (str, datetime)):
        try:
            return Bound(time=timestamps.parse(given))
        except ValueError:
            hint = f'write {what}="latest", {what}="2026-01-31T12:00:00Z" or {what}={{"scores/0": 42}}'
            raise PlanError(
                f"{what} is {given!r}, which is neither a word nor a point in time",
                f"{what} is {' or '.join(repr(word) for word in words)}, a time, or an offset for each partition",
                did_you_mean(str(given), words, hint),
            ) from None
    if isinstance(given, Mapping) and given:
        for partition, offset in given.items():
            _refuse_offset(partition, offset, what)
        return Bound(offsets=tuple(sorted(given.items())))
    raise PlanError(
        f"{what} is {given!r}",
        f"{what} is {' or '.join(repr(word) for word in words)}, a time, or an offset for each partition",
        f'write {what}="latest", {what}="2026-01-31T12:00:00Z" or {what}={{"scores/0": 42}}',
    )


def beginning(one: Bound, logs: Mapping[str, Log], cluster: Cluster, isolation: str) -> dict[str, int]:
    """The offsets at which a new checkpoint begins, each of which is there."""
    if one.offsets:
        _refuse_others("start", one, logs)
        made = {}
        for partition, offset in one.offsets:
            log = logs[partition]
            made[partition] = _worded(offset, log)
            if not log.first <= made[partition] <= log.high:
                raise outside("start", partition, made[partition], log.first, log.high)
        return made
    if one.time is not None:
        found = at_time(cluster, logs, one.time, isolation)
        return {partition: log.end if (at := found[partition]) is None else at for partition, log in logs.items()}
    return {partition: log.first if one.word == "earliest" else log.end for partition, log in logs.items()}


def ending(one: Bound, logs: Mapping[str, Log], cluster: Cluster, isolation: str, now: int) -> dict[str, int]:
    """The offsets before which reading stops; a partition is left out while its end cannot be told."""
    if one.offsets:
        _refuse_others("end", one, logs)
        return {partition: _worded(offset, logs[partition]) for partition, offset in one.offsets}
    if one.time is None:
        return {partition: log.end for partition, log in logs.items()}
    found = at_time(cluster, logs, one.time, isolation)
    made = {}
    for partition, log in logs.items():
        offset = found[partition]
        if offset is not None:
            made[partition] = offset
        elif now >= one.time:
            made[partition] = log.end
    return made


def _worded(offset: Offset, log: Log) -> int:
    if isinstance(offset, str):
        return log.first if offset == "earliest" else log.end
    return offset


def _refuse_others(what: str, one: Bound, partitions: Iterable[str]) -> None:
    given, there = {partition for partition, _ in one.offsets}, list(partitions)
    if missing := [partition for partition in there if partition not in given]:
        raise unnamed(what, missing)
    if others := sorted(given - set(there)):
        raise unnamed_partition(what, others)


def _refuse_offset(partition: Any, offset: Any, what: str) -> None:
    try:
        topic, number = parted(partition)
    except (AttributeError, ValueError):
        topic, number = "", -1
    whole = isinstance(offset, int) and not isinstance(offset, bool) and offset >= 0
    if not topic or number < 0 or not (whole or offset in WORDS):
        raise PlanError(
            f"{what} has {partition!r}: {offset!r}",
            "it gives an offset for each partition, which is named by its topic and number",
            f'write {what}={{"scores/0": 42, "scores/1": "earliest"}}',
        )
