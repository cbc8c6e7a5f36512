"""Nexmark's people, auctions and bids, made up as they are read: any rate, several generators, the same every time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import gcd
from typing import Any

import numpy as np
import pyarrow as pa

import penstock as ps
from examples.nexmark.columns import event_columns
from examples.nexmark.timeline import STRIDE, Timeline
from penstock.connectors.source import TASKS, Chunk, Offsets, Split, source
from penstock.types import timestamps
from penstock.types.arrow import arrow_schema
from penstock.types.schema import Schema, schema

COLUMNS = """
    event_type long, date_time timestamp, id long, name string, email_address string, credit_card string, city string,
    state string, item_name string, description string, initial_bid long, reserve long, expires timestamp, seller long,
    category long, auction long, bidder long, price long, channel string, url string, extra string
"""
BEGIN = "2015-07-15T00:00:00Z"
ROWS = 250_000  # of one chunk
SMALL = 100_000  # rows for which a second task does not pay
UNASKED = 100_000  # rows of a batch where nobody says how many


@dataclass(frozen=True, slots=True)
class Nexmark:
    """How the events are read: each generator is a partition. A position is how many microseconds have passed."""

    timeline: Timeline
    columns: Schema
    realtime: bool
    tasks: int | None = None

    def start(self) -> Offsets:
        """The beginning; in real time the first batch says when it was."""
        return {"elapsed": 0, "since": None}

    def latest(self, since: Offsets, now: int, limit: int | None) -> Offsets:
        """As far as the clock has come, or in no time at all as far as is asked."""
        elapsed = int(since["elapsed"])
        began = now if since["since"] is None else int(since["since"])
        if limit is None and self.timeline.events is None and not self.realtime:
            limit = UNASKED
        ends = [] if limit is None else [elapsed + max(1, limit * self.timeline.delay // self.timeline.generators)]
        if self.realtime:
            ends.append(now - began)
        if self.timeline.events is not None:
            ends.append(self._end())
        return {"elapsed": max(elapsed, min(ends)), "since": began}

    def splits(self, since: Offsets, upto: Offsets) -> list[Split]:
        """Runs of events, about equally many in each piece."""
        spans = [(g, self.made(g, since["elapsed"]), self.made(g, upto["elapsed"])) for g in self._all()]
        total = sum(end - first for _, first, end in spans)
        pieces = max(1, min(self.tasks or TASKS, -(-total // SMALL)))
        cuts = [total * piece // pieces for piece in range(pieces + 1)]
        return [{"runs": runs} for low, high in pairwise(cuts) if (runs := _within(spans, low, high))]

    def read(self, split: Split) -> Iterator[Chunk]:
        """The events of a piece, made now."""
        wanted, shape = frozenset(self.columns.names), arrow_schema(self.columns)
        for generator, first, end in split["runs"]:
            for low in range(first, end, ROWS):
                numbers = range(low, min(low + ROWS, end))
                made = event_columns(self.timeline, generator, numbers, wanted)
                rows = pa.RecordBatch.from_arrays([made[name] for name in shape.names], schema=shape)
                yield Chunk(str(generator), np.arange(numbers.start, numbers.stop, dtype=np.int64), rows)

    def partitions(self, at: Offsets) -> list[str]:
        """All generators: they are known from the beginning."""
        return [str(generator) for generator in self._all()]

    def behind(self, at: Offsets, now: int) -> list[str]:
        """Those with events that were made by now; in no time at all, those that are not at their end."""
        elapsed = int(at["elapsed"])
        passed = 0 if at["since"] is None else now - int(at["since"])
        reached = passed if self.realtime else elapsed + self.timeline.delay
        return [str(g) for g in self._all() if self.made(g, reached) > self.made(g, elapsed)]

    def finished(self, at: Offsets, now: int) -> bool:
        """Whether all events there are to be have been made."""
        return self.timeline.events is not None and int(at["elapsed"]) >= self._end()

    def made(self, generator: int, elapsed: int) -> int:
        """How many events of a generator have come when so much time has passed."""
        return min(-(-elapsed // self.timeline.delay), self.timeline.share(generator))

    def _end(self) -> int:
        """How much time passes until the last event has come: the last generator has the most."""
        return self.timeline.share(self.timeline.generators - 1) * self.timeline.delay

    def _all(self) -> range:
        return range(self.timeline.generators)


def nexmark(*, events: int | None = None, generators: int = 1, rate: int = 10_000, group: int = 1, begin: str = BEGIN,
            realtime: bool = False, columns: Sequence[str] = (), name: str = "nexmark") -> ps.Stream:  # fmt: skip
    """The stream of all events; `event_type` is 0 for a person, 1 for an auction, 2 for a bid.

    `rate` events a second of event time, from all generators together; with `realtime=True` they also come at that
    rate. Events come out of order within groups of `group`. `columns` names those that are wanted, which is quicker.
    """
    reader = Nexmark(timeline(events=events, generators=generators, rate=rate, group=group, begin=begin),
                     _columns(columns), realtime)  # fmt: skip
    return source(reader, reader.columns, name=name, bounded=events is not None, max_bad=None)


def timeline(*, events: int | None = None, generators: int = 1, rate: int = 10_000, group: int = 1,
             begin: str = BEGIN) -> Timeline:  # fmt: skip
    """What the generators are asked for; the plain one takes this."""
    for word, number, least, most in (("generators", generators, 1, 10_000), ("rate", rate, 1, 1_000_000),
                                      ("group", group, 1, 10**9)):  # fmt: skip
        _whole(word, number, least, most)
    if events is not None:
        _whole("events", events, generators, 10**12)
    if gcd(group, STRIDE) > 1:
        raise ps.PlanError(
            f"group is {group}",
            f"events of a group are put out of order by steps of {STRIDE}, which must not divide it",
            f"write group={group + 1}",
        )
    return Timeline(events, generators, rate, group, timestamps.parse(begin))


def _columns(names: Sequence[str]) -> Schema:
    """The columns that are asked for, in their usual order; type and time are always there."""
    whole = schema(COLUMNS)
    for name in names:
        whole.type_of(name, "nexmark")
    wanted = {"event_type", "date_time", *(names or whole.names)}
    return Schema(tuple(column for column in whole.columns if column.name in wanted))


def _within(spans: list[tuple[int, int, int]], low: int, high: int) -> list[list[int]]:
    """The part of spans laid end to end that lies between two places."""
    found, at = [], 0
    for generator, first, end in spans:
        one, other = max(first, first + low - at), min(end, first + high - at)
        if one < other:
            found.append([generator, one, other])
        at += end - first
    return found


def _whole(word: str, number: Any, least: int, most: int) -> None:
    if isinstance(number, bool) or not isinstance(number, int) or not least <= number <= most:
        raise ps.PlanError(
            f"{word} is {number!r}",
            f"{word} is a whole number from {least:,} to {most:,}",
            f"write {word}={max(least, 10)}",
        )
