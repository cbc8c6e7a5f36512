"""What the shards have said of a batch, put together on the driver."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from penstock.connectors.fingerprint import combined, shown
from penstock.coordinator.messages import (
    ARCHIVE,
    BAD,
    COUNTS,
    LATE,
    PANES,
    REPORTS,
    ROWS,
    SEEN,
    STATE,
    TICK,
    kind_of,
    stage_of,
)
from penstock.coordinator.staging import staged_rows
from penstock.engine.ingest.windows import Report
from penstock.engine.shuffle.cells import read_reports
from penstock.engine.shuffle.codec import unpacked
from penstock.runtime.batch import Counts
from penstock.types.timestamps import MAX_TIME

LARGEST = "largest"  # of what shards tell of their state: it does not add up
STREAMS = (PANES, ROWS, LATE, BAD, ARCHIVE)


@dataclass(frozen=True, slots=True)
class Part:
    """Rows of one stream from one shard: in the word itself, or put aside."""

    head: dict[str, Any]
    payload: bytes

    def tables(self, staging: str | None) -> Iterator[pa.Table]:
        """The rows, a bounded part at a time."""
        if "staged" in self.head:
            assert staging is not None
            yield from staged_rows(staging, self.head["staged"])
        else:
            yield unpacked(self.payload)[1]["rows"]


@dataclass
class Heard:
    """A batch as the driver knows it; `holds` are for each stage the least event time it may give behind its W.

    `held` says how much each stage remembers, `seen` are the samples that the tasks of the sources have taken.
    """

    streams: dict[str, list[Part]] = field(default_factory=dict)
    told: list[tuple[int, Report]] = field(default_factory=list)
    counts: Counts = field(default_factory=Counts)
    read: dict[str, list[int]] = field(default_factory=dict)
    tick: dict[str, Any] = field(default_factory=dict)
    state: dict[str, int] = field(default_factory=dict)
    held: dict[int, int] = field(default_factory=dict)
    began: float | None = None
    holds: dict[int, int] = field(default_factory=dict)
    seen: list[dict[str, Any]] = field(default_factory=list)

    @property
    def reports(self) -> list[Report]:
        """The time reports, those of a partition in order of their offsets."""
        return [report for _, report in sorted(self.told, key=lambda one: (one[1].source, one[1].partition, one[0]))]

    def rows(self, kind: str) -> int:
        """How many rows a stream has in this batch."""
        return sum(int(part.head["rows"]) for part in self.streams.get(kind, ()))

    @property
    def sizes(self) -> dict[str, int]:
        """How many rows each stream has in this batch."""
        return {kind: self.rows(kind) for kind in sorted(self.streams)}

    def all_rows(self, *kinds: str) -> int:
        """How many rows the streams of these kinds have together, whatever the stage."""
        return sum(self.rows(name) for name in self.streams if kind_of(name) in kinds)

    @property
    def results(self) -> int:
        """How many panes and rows came to the driver."""
        return self.all_rows(PANES, ROWS)

    def fingerprint(self, kind: str) -> str:
        """A number for the rows of a stream that does not depend on their order."""
        return shown(combined(part.head["fingerprint"] for part in self.streams[kind]))


def gathered(words: Iterable[Any]) -> Heard:
    """The words of all shards, in an order that does not depend on which came first."""
    heard = Heard()
    for word in sorted(
        words, key=lambda word: (word["kind"], word["shard"], word["head"], bytes(word["payload"][:64]))
    ):
        kind, head = word["kind"], word["head"]
        if kind_of(kind) in STREAMS:
            heard.streams.setdefault(kind, []).append(Part(json.loads(head), bytes(word["payload"])))
        elif kind == REPORTS:
            heard.told += read_reports(bytes(word["payload"]))
        elif kind == COUNTS:
            _count(heard, json.loads(head))
        elif kind == SEEN:
            heard.seen.append(json.loads(head))
        elif kind_of(kind) == STATE:
            said = json.loads(head)
            stage = stage_of(kind)
            heard.holds[stage] = min(heard.holds.get(stage, MAX_TIME), said.pop("hold", MAX_TIME))
            heard.held[stage] = heard.held.get(stage, 0) + said.get("open", 0)
            for name, number in said.items():
                held = heard.state.get(name, 0)
                heard.state[name] = max(held, number) if name == LARGEST else held + number
        elif kind == TICK:
            tick = json.loads(head)
            began = tick.pop("began", None)
            heard.began = began if heard.began is None else min(heard.began, began)
            heard.tick = _later(heard.tick, tick)
    return heard


def _count(heard: Heard, said: dict[str, Any]) -> None:
    heard.counts += Counts(**said["counts"])
    if "source" in said:
        seen = heard.read.setdefault(said["source"], [0, 0])
        seen[0] += said["read"]
        seen[1] += said["bad"]


def _later(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    return other if not one or other["now"] > one["now"] else one
