"""The clock in columns: each partition's reports, a batch at a time, and the watermark that follows."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from penstock.engine.ingest.windows import Report
from penstock.model.watermarks import (
    DELAYS_A_CHUNK,
    EXACT_DELAYS,
    REMEMBERED_DELAYS,
    Bounded,
    FromColumn,
    Percentile,
    Punctuated,
    TimeBase,
    quantile_rank,
)
from penstock.plan.graph import Flow
from penstock.runtime.batch import WHOLE, PartitionClock, Tick
from penstock.types.timestamps import MIN_TIME, plus

Name = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Chunk:
    """Up to 10,000 delays: the different ones, in order, and how often each was seen."""

    delays: np.ndarray
    times: np.ndarray
    rounded: bool

    @property
    def total(self) -> int:
        return int(self.times.sum())


@dataclass(frozen=True, slots=True)
class Spoken:
    """What one partition has said so far."""

    newest: int = MIN_TIME
    given: int = MIN_TIME
    silent_for: int = 0
    last_batch: int = -1
    chunks: tuple[Chunk, ...] = ()


@dataclass(frozen=True)
class ClockState:
    """The memory of all rules, the watermark of all sources so far, and that of each stage."""

    watermark: int = MIN_TIME
    now: int | None = None
    batch: int = 0
    spoken: dict[Name, Spoken] = field(default_factory=dict)
    stages: tuple[int, ...] = ()

    def of(self, number: int) -> int:
        """The watermark of a stage; where there is one stage alone it is that of its sources."""
        return self.stages[number] if self.stages else self.watermark


def given(flow: Flow, state: ClockState, watermark: int) -> ClockState:
    """A watermark from outside, for all that reads sources alone."""
    reached = max(state.watermark, watermark)
    stages = tuple(
        state.of(number) if flow.waits_for(number)[1] else max(state.of(number), reached)
        for number in range(len(flow.stages))
    )
    return replace(state, watermark=reached, stages=stages)


def end_batch(
    flow: Flow,
    state: ClockState,
    reports: Sequence[Report],
    now: int,
    tick: Tick,
    holds: Sequence[int] = (),
    at: int | None = None,
) -> ClockState:
    """Hear a batch's reports and decide the watermarks of the next one; `at` is that of all sources where it is known.

    `holds` are for each stage the least event time that it may still give behind its watermark.
    """
    elapsed = 0 if state.now is None or tick.resumed else now - state.now
    heard = {(report.source, report.partition) for report in reports}
    spoken = dict(state.spoken)
    for name in (*tick.partitions, *sorted(heard)):
        spoken.setdefault(name, Spoken())
    spoken = _with_unread(flow, spoken, {*tick.partitions, *heard})
    for name, one in spoken.items():
        spared = name in heard or name in tick.behind or name not in state.spoken or tick.resumed
        silent = 0 if spared else one.silent_for + elapsed
        last = state.batch if name in heard else one.last_batch
        spoken[name] = replace(one, silent_for=silent, last_batch=last)
    for report in reports:
        name = (report.source, report.partition)
        spoken[name] = _heard(spoken[name], report, isinstance(_time(flow, name[0]).watermark, Percentile))

    def reached(sources: Collection[str]) -> int:
        return max(state.watermark, _minimum(flow, spoken, now, sources)) if at is None else at

    def following(number: int) -> int:
        """A stage follows its own sources, and those it reads as they stood in this batch."""
        own, above = flow.waits_for(number)
        upon = [min([state.of(one), *holds[one : one + 1]]) for one in above]
        return max(state.of(number), min([*upon, *([reached(own)] if own else [])]))

    stages = tuple(following(number) for number in range(len(flow.stages)))
    return ClockState(reached(flow.waited), now, state.batch + 1, spoken, stages)


def partition_clocks(plan: Flow, state: ClockState) -> tuple[PartitionClock, ...]:
    """What each partition stands at that a watermark waits for, for people to read."""
    waited = plan.waited
    return tuple(
        PartitionClock(
            name[0],
            name[1],
            None if one.newest == MIN_TIME else one.newest,
            _watermark_of(plan, name, one),
            _idle(plan, name, one),
            one.silent_for,
        )
        for name, one in sorted(state.spoken.items())
        if name[0] in waited
    )


def encoded(state: ClockState) -> dict[str, Any]:
    """The state as plain values, for a snapshot."""
    return {
        "watermark": state.watermark,
        "now": state.now,
        "batch": state.batch,
        "stages": list(state.stages),
        "spoken": [
            [
                *name,
                one.newest,
                one.given,
                one.silent_for,
                one.last_batch,
                [[chunk.delays.tolist(), chunk.times.tolist(), chunk.rounded] for chunk in one.chunks],
            ]
            for name, one in sorted(state.spoken.items())
        ],
    }


def decoded(held: dict[str, Any]) -> ClockState:
    """The state that was encoded."""
    spoken = {}
    for source, partition, newest, given, silent, last, chunks in held["spoken"]:
        parts = tuple(Chunk(np.array(d, np.int64), np.array(t, np.int64), rounded) for d, t, rounded in chunks)
        spoken[source, partition] = Spoken(newest, given, silent, last, parts)
    # Older clocks have one stage, whose watermark is that of its sources.
    return ClockState(held["watermark"], held["now"], held["batch"], spoken, tuple(held.get("stages", ())))


def _with_unread(flow: Flow, spoken: dict[Name, Spoken], named: set[Name]) -> dict[Name, Spoken]:
    """With one partition, not yet read, for each source of which none is known; without it once one is."""
    known, found = {source for source, _ in spoken}, {source for source, _ in named}
    unread = {(source, WHOLE): Spoken() for source in flow.waited - known if _time(flow, source).basis != "processing"}
    stood_in = {(source, WHOLE) for source in found} - named
    return unread | {n: one for n, one in spoken.items() if n not in stood_in or one.last_batch >= 0}


def _heard(one: Spoken, report: Report, remember: bool) -> Spoken:
    chunks = one.chunks
    if not len(report.times):
        return replace(one, given=max(one.given, report.given))
    if remember:
        running = np.maximum(np.maximum.accumulate(report.times), one.newest)
        chunks = _remembered(chunks, running - report.times)
    newest = max(one.newest, int(report.times.max()))
    return replace(one, newest=newest, given=max(one.given, report.given), chunks=chunks)


def _remembered(chunks: tuple[Chunk, ...], delays: np.ndarray) -> tuple[Chunk, ...]:
    """More delays, cut into chunks of 10,000; the oldest are forgotten as soon as the others are enough."""
    kept = REMEMBERED_DELAYS // DELAYS_A_CHUNK
    while len(delays):
        if not chunks or chunks[-1].total == DELAYS_A_CHUNK:
            none = np.empty(0, dtype=np.int64)
            chunks = (*chunks[-kept:], Chunk(none, none, False))
        room = DELAYS_A_CHUNK - chunks[-1].total
        chunks = (*chunks[:-1], _counted(chunks[-1], delays[:room]))
        delays = delays[room:]
    return chunks[-kept:] if chunks and chunks[-1].total == DELAYS_A_CHUNK else chunks


def _counted(chunk: Chunk, delays: np.ndarray) -> Chunk:
    fresh = coarse(delays) if chunk.rounded else delays
    seen, counts = _tally(
        np.concatenate([chunk.delays, fresh]), np.concatenate([chunk.times, np.ones(len(fresh), np.int64)])
    )
    if not chunk.rounded and len(seen) > EXACT_DELAYS:
        return Chunk(*_tally(coarse(seen), counts), True)
    return Chunk(seen, counts, chunk.rounded)


def _tally(values: np.ndarray, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    seen, place = np.unique(values, return_inverse=True)
    total = np.zeros(len(seen), dtype=np.int64)
    np.add.at(total, place, counts)
    return seen, total


def coarse(delays: np.ndarray) -> np.ndarray:
    """Delays rounded up to eight significant bits."""
    bits = np.zeros(len(delays), dtype=np.int64)
    rest = delays.copy()
    for step in (32, 16, 8, 4, 2, 1):
        large = rest >= (np.int64(1) << np.int64(step))
        bits += np.where(large, step, 0)
        rest = np.where(large, rest >> np.int64(step), rest)
    low = np.maximum(bits + (delays > 0) - 8, 0)
    return -((-delays) >> low) << low


def _minimum(plan: Flow, spoken: dict[Name, Spoken], now: int, sources: Collection[str]) -> int:
    processing = [now for name in sources if _time(plan, name).basis == "processing"]
    timed = {
        name: one for name, one in spoken.items() if name[0] in sources and _time(plan, name[0]).basis != "processing"
    }
    active = [_watermark_of(plan, name, one) for name, one in timed.items() if not _idle(plan, name, one)]
    if active or processing:
        return min([*processing, *active])
    if not timed:
        return MIN_TIME
    # All are silent: the partitions that spoke last are the last to step aside.
    last = max(one.last_batch for one in timed.values())
    held = min(_watermark_of(plan, name, one) for name, one in timed.items() if one.last_batch == last)
    # The others do not wait any more for a source that has never spoken and may advance.
    told = {name[0] for name, one in timed.items() if one.newest > MIN_TIME or _holds(plan, name[0])}
    return max(held, min((_advanced(plan, spoken, source) for source in told), default=MIN_TIME))


def _holds(plan: Flow, source: str) -> bool:
    return _time(plan, source).watermark.when_idle == "hold"


def _advanced(plan: Flow, spoken: dict[Name, Spoken], source: str) -> int:
    """How far silence lets a source's watermark go: as far as the processing clock went, if it may."""
    partitions = {name: one for name, one in spoken.items() if name[0] == source}
    newest = max(one.newest for one in partitions.values())
    if _holds(plan, source):
        return MIN_TIME
    behind = min(
        plus(one.newest, -_watermark_of(plan, name, one)) for name, one in partitions.items() if one.newest == newest
    )
    return newest + min(one.silent_for for one in partitions.values()) - max(behind, 0)


def _watermark_of(plan: Flow, name: Name, one: Spoken) -> int:
    match _time(plan, name[0]).watermark:
        case Bounded(delay=delay):
            return plus(one.newest, -delay)
        case Percentile(p=p, floor=floor, ceiling=ceiling):
            return plus(one.newest, -min(max(_quantile(one.chunks, p), floor), ceiling))
        case FromColumn() | Punctuated():
            return one.given
    return MIN_TIME


def _quantile(chunks: tuple[Chunk, ...], p: float) -> int:
    """The smallest delay that a share `p` of the remembered ones does not exceed."""
    if not chunks:
        return 0
    delays, times = _tally(
        np.concatenate([chunk.delays for chunk in chunks]), np.concatenate([chunk.times for chunk in chunks])
    )
    below = np.cumsum(times)
    return int(delays[np.searchsorted(below, quantile_rank(p, int(below[-1])))])


def _idle(plan: Flow, name: Name, one: Spoken) -> bool:
    idle = _time(plan, name[0]).watermark.idle
    return idle is not None and one.silent_for >= idle


def _time(plan: Flow, source: str) -> TimeBase:
    time = next(one.time for one in plan.inputs if one.source.name == source)
    assert time is not None
    return time
