"""What a delay is tried on: batches of events, from the sources themselves or from a run that is played again."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from penstock.batch import Arrival, Tick
from penstock.duration import SECOND
from penstock.engine.rows import SourceBatch, stamped_rows
from penstock.flow import Flow
from penstock.monitor.lateness import Behind, Lateness
from penstock.monitor.why.errors import Unexplained
from penstock.monitor.why.events import arrivals, refuse_unread
from penstock.monitor.why.replay import Replay
from penstock.plan import Input, Plan
from penstock.sources.source import Chunk, Offsets

ROWS = 20_000  # that are tried
BATCHES = 200
PATIENCE = 3  # looks at sources that have nothing more


@dataclass
class Gathered:
    """Events in the batches they came in, and how far behind the newest of their partition each came.

    `newest` is what partitions had reached before, where a run is looked at from the middle on.
    """

    batches: list[tuple[list[Arrival], Tick]] = field(default_factory=list)
    lateness: dict[str, Lateness] = field(default_factory=dict)
    times: list[tuple[int, int]] = field(default_factory=list)
    newest: dict[tuple[str, str], int] = field(default_factory=dict)
    whole: bool = False

    @property
    def events(self) -> int:
        """How many events there are."""
        return sum(len(rows) for rows, _ in self.batches)

    def take(self, one: Input, chunk: Chunk, now: int, behind: Behind) -> list[Arrival]:
        """The rows of a chunk; their delays are counted."""
        given = SourceBatch(one.source.name, chunk.partition, chunk.offsets, chunk.rows)
        stamped = stamped_rows(one, given, now).times
        name = f"{one.source.name}/{chunk.partition}"
        if len(stamped):
            self.lateness.setdefault(name, Lateness()).add(behind.more(name, stamped))
            self.times.append((int(stamped.min()), int(stamped.max())))
        return list(arrivals(one, chunk))


def from_sources(flow: Flow, rows: int = ROWS, *, clock: Callable[[], int] = lambda: time.time_ns() // 1000,
                 wait: Callable[[float], None] = time.sleep) -> Gathered:  # fmt: skip
    """About so many rows of what the sources have from their start, in batches a second apart."""
    refuse_unread(flow)
    found, behind, now = Gathered(), Behind(), clock()
    inputs = flow.inputs
    at: dict[str, Offsets] = {one.source.name: one.source.reader.start() for one in inputs}
    quiet = 0
    while found.events < rows and len(found.batches) < BATCHES and quiet < PATIENCE:
        # A share of what is asked for, so that there are batches enough between which the watermark moves.
        since, at = at, {one.source.name: one.source.reader.latest(at[one.source.name], now, max(rows // 100, 1))
                         for one in inputs}  # fmt: skip
        taken = [row for one in inputs for row in _read(found, one, since, at, now, behind)]
        found.batches.append((taken, _tick(inputs, at, now)))
        found.whole = all(one.source.reader.finished(at[one.source.name], now) for one in inputs)
        quiet = 0 if taken else quiet + 1
        now += SECOND
        if found.whole:
            break
    if not found.events:
        raise Unexplained(
            "the sources have no events",
            "a delay is tried on events that were there",
            "let them have some first; a few thousand are enough",
        )
    found.batches = _trimmed(found.batches)
    return found


def from_run(replay: Replay, rows: int = ROWS) -> Gathered:
    """The last batches of a run with about so many rows, under the clocks they had."""
    found, behind = Gathered(), Behind()
    chosen: list[Any] = []
    for batch in reversed(replay.batches):
        chunks = list(replay.again.chunks(batch))
        chosen.append((batch, chunks))
        if sum(len(chunk.offsets) for _, held in chosen for _, chunk in held) >= rows:
            break
    found.whole = chosen[-1][0].number == 0
    clocks = {batch.number: batch.before for batch in replay.batches}
    # What the partitions had reached before these batches is known: an event may be behind that.
    found.newest = {(one.source, one.partition): one.newest for one in chosen[-1][0].before if one.newest is not None}
    behind.newest = {"/".join(name): newest for name, newest in found.newest.items()}
    for batch, chunks in reversed(chosen):
        after = clocks.get(batch.number + 1, ())
        names = tuple((one.source, one.partition) for one in after)
        # Who spoke, or has more to read, is not silent: what was written down says of whom that held.
        spared = tuple((one.source, one.partition) for one in after if not one.silent_for)
        taken = [row for one, chunk in chunks for row in found.take(one, chunk, batch.now, behind)]
        found.batches.append((taken, Tick(batch.now, None, names, behind=spared)))
    return found


def _read(found: Gathered, one: Input, since: dict[str, Offsets], upto: dict[str, Offsets], now: int, behind: Behind
          ) -> Iterable[Arrival]:  # fmt: skip
    name, reader = one.source.name, one.source.reader
    if since[name] != upto[name]:
        for split in reader.splits(since[name], upto[name]):
            for chunk in reader.read(split):
                yield from found.take(one, chunk, now, behind)


def _tick(inputs: Sequence[Input], at: dict[str, Offsets], now: int) -> Tick:
    known, behind = [], []
    for one in inputs:
        name, reader = one.source.name, one.source.reader
        known += [(name, partition) for partition in reader.partitions(at[name])]
        behind += [(name, partition) for partition in reader.behind(at[name], now)]
    return Tick(now, None, tuple(known), behind=tuple(behind))


def _trimmed(batches: list[tuple[list[Arrival], Tick]]) -> list[tuple[list[Arrival], Tick]]:
    """Without the empty batches at the end."""
    last = max(number for number, (rows, _) in enumerate(batches) if rows)
    return batches[: last + 1]


def pace(found: Gathered) -> tuple[int, float | None]:
    """How much event time the events span, and how many come in a second of it, once the first batch is there."""
    if not found.times:
        return 0, None
    moved = max(high for _, high in found.times) - found.times[0][1]
    after = sum(len(rows) for rows, _ in found.batches[1:])
    span = max(high for _, high in found.times) - min(low for low, _ in found.times)
    return span, after * SECOND / moved if moved > 0 and after else None


def all_delays(lateness: Iterable[Lateness]) -> Lateness:
    """The delays of all partitions together."""
    whole = Lateness()
    for one in lateness:
        whole.add(one)
    return whole


def plan_with(plan: Plan, delay: int) -> Plan:
    """The same windows with a watermark that waits so long; bad rows are no reason to stop."""
    from penstock.event_time import Bounded

    def waiting(one: Input) -> Input:
        assert one.time is not None
        old = one.time.watermark
        rule = Bounded(delay=delay, idle=old.idle, when_idle=old.when_idle, max_skew=old.max_skew)
        return replace(one, time=replace(one.time, watermark=rule), source=replace(one.source, max_bad=None))

    return replace(plan, inputs=tuple(waiting(one) for one in plan.inputs))


def median(values: Sequence[int]) -> int | None:
    """The middle one; of an even number the lower."""
    return None if not values else int(np.sort(np.array(values, dtype=np.int64))[(len(values) - 1) // 2])
