"""What a delay is tried on: batches of events, from the sources themselves or from a run that is played again."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from penstock.connectors.source import Chunk, Offsets
from penstock.engine.ingest.row_steps import SourceBatch, stamped_rows
from penstock.model.windows import Calendar, EventPair, Sliding, WindowRule
from penstock.observability.lateness_histogram import Behind, Lateness
from penstock.observability.why.errors import Unexplained
from penstock.observability.why.events import arrivals, refuse_unread
from penstock.observability.why.replay import Replay
from penstock.plan.graph import Flow
from penstock.plan.stages import Input, Plan
from penstock.runtime.batch import Arrival, Tick
from penstock.types.durations import DAY, SECOND, WEEK

ROWS = 200_000  # that are tried at most
BATCHES = 200
LENGTHS = 20  # of a window: a stream that spans so many, and what comes behind, is long enough
BEHIND = 4  # times as long as all but one in a thousand events are behind
PATIENCE = 3  # looks at sources that have nothing more


@dataclass
class Gathered:
    """Events in the batches they came in, and how far behind the newest of their partition each came.

    `newest` is what partitions had reached before, where a run is looked at from the middle on; `first` is how many
    events the first read gave. `columns` are those of each batch, once it was played.
    """

    batches: list[tuple[list[Arrival], Tick]] = field(default_factory=list)
    lateness: dict[str, Lateness] = field(default_factory=dict)
    times: list[tuple[int, int]] = field(default_factory=list)
    newest: dict[tuple[str, str], int] = field(default_factory=dict)
    whole: bool = False
    first: int = 0
    columns: dict[int, Any] = field(default_factory=dict, repr=False)

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


def from_sources(
    flow: Flow,
    rows: int = ROWS,
    *,
    clock: Callable[[], int] = lambda: time.time_ns() // 1000,
    wait: Callable[[float], None] = time.sleep,
) -> Gathered:
    """Rows of what the sources have from their start, in batches a second apart: at most about so many, and no more
    than tell what there is to tell of the windows."""
    refuse_unread(flow)
    found, behind, now = Gathered(), Behind(), clock()
    inputs = flow.inputs
    at: dict[str, Offsets] = {one.source.name: one.source.reader.start() for one in inputs}
    quiet = 0
    while found.events < rows and len(found.batches) < 2 * BATCHES and quiet < PATIENCE:
        # A share of what is asked for, so that there are batches enough between which the watermark moves.
        since, at = (
            at,
            {
                one.source.name: one.source.reader.latest(at[one.source.name], now, max(rows // BATCHES, 1))
                for one in inputs
            },
        )
        taken = [row for one in inputs for row in _read(found, one, since, at, now, behind)]
        found.batches.append((taken, _tick(inputs, at, now)))
        found.whole = all(one.source.reader.finished(at[one.source.name], now) for one in inputs)
        quiet = 0 if taken else quiet + 1
        now += SECOND
        if found.whole or _spans_enough(found, flow):
            break
    if not found.events:
        raise Unexplained(
            "the sources have no events",
            "a delay is tried on events that were there",
            "let them have some first; a few thousand are enough",
        )
    found.first = len(found.batches[0][0])
    found.batches = _split(_trimmed(found.batches))
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
    found.first = len(found.batches[0][0])
    return found


def _read(
    found: Gathered, one: Input, since: dict[str, Offsets], upto: dict[str, Offsets], now: int, behind: Behind
) -> Iterable[Arrival]:
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


def _spans_enough(found: Gathered, flow: Flow) -> bool:
    """Whether the events span many windows. Of sessions and the like, which have no length, all is read that was asked
    for; of others no more, for the shorter a stream is, the shorter are its batches, as they are in a run."""
    lengths = [_length(stage.window) for stage in flow.stages if isinstance(stage, Plan)]
    if not found.times or not lengths or any(length is None for length in lengths):
        return False
    moved = max(high for _, high in found.times) - found.times[0][1]
    longest = max(length for length in lengths if length is not None)
    return moved >= LENGTHS * longest + BEHIND * all_delays(found.lateness.values()).quantile(0.999)


def _length(window: WindowRule) -> int | None:
    match window:
        case Sliding(size=size):
            return size
        case EventPair(distance=distance):
            return distance
        case Calendar(unit=unit):
            return {"day": DAY, "week": WEEK, "month": 31 * DAY}[unit]
    return None


def _split(batches: list[tuple[list[Arrival], Tick]]) -> list[tuple[list[Arrival], Tick]]:
    """Few batches as more of them, a second apart: the watermark moves only between them."""
    pieces = BATCHES // len(batches)
    if pieces < 2:
        return batches
    found, now = [], batches[0][1].now or 0
    for rows, tick in batches:
        partitions: dict[tuple[str, str], list[Arrival]] = {}
        for row in rows:
            partitions.setdefault((row.source, row.partition), []).append(row)
        for piece in range(1, pieces + 1):
            some = [
                row
                for mine in partitions.values()
                for row in mine[len(mine) * (piece - 1) // pieces : len(mine) * piece // pieces]
            ]
            # Who has more of this batch to give is not silent.
            behind = tick.behind if piece == pieces else tuple({**dict.fromkeys(tick.behind), **partitions})
            found.append((some, replace(tick, now=now, behind=behind)))
            now += SECOND
    return found


def pace(found: Gathered) -> tuple[int, float | None]:
    """How much event time the events span, and how many come in a second of it, once the first batch is there."""
    if not found.times:
        return 0, None
    moved = max(high for _, high in found.times) - found.times[0][1]
    after = found.events - found.first
    span = max(high for _, high in found.times) - min(low for low, _ in found.times)
    return span, after * SECOND / moved if moved > 0 and after else None


def all_delays(lateness: Iterable[Lateness]) -> Lateness:
    """The delays of all partitions together."""
    whole = Lateness()
    for one in lateness:
        whole.add(one)
    return whole


def plan_with(plan: Plan, delay: int | None, lateness: int | None = None) -> Plan:
    """The same windows with a watermark that waits so long, or its own; bad rows are no reason to stop."""
    from penstock.model.watermarks import Bounded

    def waiting(one: Input) -> Input:
        assert one.time is not None
        rule = one.time.watermark
        if delay is not None:
            rule = Bounded(delay=delay, idle=rule.idle, when_idle=rule.when_idle, max_skew=rule.max_skew)
        return replace(one, time=replace(one.time, watermark=rule), source=replace(one.source, max_bad=None))

    takes = plan.lateness if lateness is None else lateness
    return replace(plan, lateness=takes, inputs=tuple(waiting(one) for one in plan.inputs))


def median(values: Sequence[int]) -> int | None:
    """The middle one; of an even number the lower."""
    return None if not values else int(np.sort(np.array(values, dtype=np.int64))[(len(values) - 1) // 2])
