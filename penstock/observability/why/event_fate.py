"""What became of an event, and why: late, taken, filtered out or quarantined."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from penstock.errors import did_you_mean
from penstock.model.windows import Custom, EventPair, Session, Window
from penstock.observability.sampling import row_text
from penstock.observability.why.batches import Batch, numbers
from penstock.observability.why.errors import Unexplained
from penstock.observability.why.events import Reached, reached
from penstock.observability.why.panes import Event, event_of
from penstock.observability.why.replay import Key, Replay, key_texts
from penstock.observability.why.watermark_drivers import Driver, Saves, driver, saves
from penstock.plan.stages import Plan
from penstock.reference.aggregates import Record
from penstock.types.timestamps import MAX_TIME, MIN_TIME, plus

LATE, TAKEN, FILTERED, QUARANTINED = "late", "taken", "filtered", "quarantined"


@dataclass(frozen=True, slots=True)
class Place:
    """A window an event belongs to: whether it took the event, and until which W it took any."""

    window: Window
    taken: bool
    expires_at: int


@dataclass(frozen=True, slots=True)
class EventWhy:
    """What became of an event. `newest` is the newest event of its partition that had come before."""

    event: Event
    fate: str
    batch: int
    now: int
    watermark: int
    key: Key = ()
    late_by: int = 0
    reason: str = ""
    places: tuple[Place, ...] = ()
    driver: Driver | None = None
    saves: Saves | None = None
    newest: Event | None = None

    def plain(self) -> dict[str, Any]:
        """The same as values that JSON has."""
        return {"exact": True, **asdict(self)}


def why_event(replay: Replay, asked: str) -> EventWhy:
    """What became of the event at `PARTITION/OFFSET`, and why."""
    if not replay.alone:
        raise Unexplained(
            "the windows read another stage, and no source",
            "an event of a source does not reach them as it is",
            "ask about a stage that reads the source: --stage 1",
        )
    partition, offset = _place(replay, asked)
    batch, there, newest = _found(replay, partition, offset)
    told = _on_the_way(replay, batch, there, offset)
    if isinstance(told, EventWhy):
        return told
    return replace(_judged(replay, batch, there, told), newest=newest)


def _place(replay: Replay, asked: str) -> tuple[str, int]:
    """The partition with its source, and the offset, from PARTITION/OFFSET."""
    name, _, number = asked.rpartition("/")
    known = sorted({f"{one.source}/{one.partition}" for batch in replay.batches for one in batch.before})
    sources = sorted(replay.flow.own_sources(replay.stage))
    if name and number.isdigit() and number.isascii():
        full = [one for one in known if one == name or one.partition("/")[2] == name]
        if len(full) == 1:
            return full[0], int(number)
        if not full:
            return (name if name.split("/")[0] in sources else f"{sources[0]}/{name}"), int(number)
    raise Unexplained(
        f"{asked!r} is not the place of an event",
        "an event is named by its partition and its offset there",
        did_you_mean(name, known, f"write --event {known[0] if known else 'scores/0'}/17"),
    )


def _found(replay: Replay, partition: str, offset: int) -> tuple[Batch, Reached, Event | None]:
    """The batch that brought an event, the chunk it is in, and the newest event of its partition before that batch."""
    newest: Event | None = None
    seen: set[str] = set()
    for batch in replay.batches:
        latest = newest
        for there in _chunks(replay, batch):
            seen.add(there.partition)
            if there.partition != partition:
                continue
            offsets = [there.chunk.offsets, np.array([one.offset for one in there.chunk.undecoded], dtype=np.int64)]
            if offset in np.concatenate(offsets):
                return batch, there, newest
            latest = _newer(latest, there)
        newest = latest
    raise Unexplained(
        f"there is no event at {partition}/{offset}",
        f"the batches {numbers(replay.batches)} were read again; in them are {', '.join(sorted(seen)) or 'no events'}",
        did_you_mean(partition, seen, "an older one is beyond what is kept; look for it among the late rows"),
    )


def _chunks(replay: Replay, batch: Batch) -> Iterator[Reached]:
    for one, chunk in replay.again.chunks(batch):
        if one.source.name in replay.flow.own_sources(replay.stage):
            yield reached(replay.plan, one, chunk, batch.now)


def _newer(held: Event | None, there: Reached) -> Event | None:
    """The newest event of a partition, by what its watermark was told."""
    read = there.stamped
    if not len(read.times):
        return held
    at = int(np.argmax(read.times))
    time = int(read.times[at])
    if held is not None and held.event_time >= time:
        return held
    return Event(there.partition, int(there.chunk.offsets[read.places()[at]]), time)


def _on_the_way(replay: Replay, batch: Batch, there: Reached, offset: int) -> EventWhy | Record:
    """The record of an event; or what became of it before the windows."""
    chunk, watermark = there.chunk, batch.watermark(replay.stage)
    at = (batch.number, batch.now, watermark)
    for bad in chunk.undecoded:
        if bad.offset == offset:
            event = Event(there.partition, offset, MIN_TIME, bad.raw)
            return EventWhy(event, QUARANTINED, *at, reason=f"decode: {bad.reason}")
    row = int(np.flatnonzero(chunk.offsets == offset)[0])
    raw = Event(there.partition, offset, MIN_TIME, row_text(chunk.rows.slice(row, 1).to_pylist()[0]))
    for read in (there.stamped, there.ready):
        for one in read.bad:
            if one.row == row:
                return EventWhy(raw, QUARANTINED, *at, reason=f"{one.step}: {one.reason}")
        if row not in read.places():
            return EventWhy(raw, FILTERED, *at)
    mine = np.flatnonzero(there.ready.places() == row)[:1]
    return there.records(replay.plan, mine)[0]


def _judged(replay: Replay, batch: Batch, there: Reached, record: Record) -> EventWhy:
    """What the windows of its key made of an event."""
    plan, watermark = replay.plan, batch.watermark(replay.stage)
    key = key_texts(plan, tuple(record.row[name] for name in plan.keys))
    if plan.window.merging or isinstance(plan.window, EventPair):
        replay.refuse_older(record.time, "what the event could have joined")
    machine = replay.watched(key, upto=batch.number)
    place = (record.partition, record.offset)
    refused = next((one for one in machine.rejected if (one.record.partition, one.record.offset) == place), None)
    taken = tuple(sorted(set(machine.taken.get(place, ()))))
    missed = refused.windows if refused is not None else tuple(_missed(plan, record.time, watermark, taken))
    places = tuple(
        sorted(
            (
                Place(one, one in taken, plus(plan.window.complete_at(one.end), plan.lateness))
                for one in {*taken, *missed}
            ),
            key=lambda one: one.window,
        )
    )
    told = EventWhy(
        event_of(plan, record),
        TAKEN if refused is None else LATE,
        batch.number,
        batch.now,
        watermark,
        key,
        min(watermark - record.time, MAX_TIME),
        places=places,
    )
    if refused is None:
        return told
    time = there.one.time
    assert time is not None
    past = max(one.expires_at for one in places)
    upto = [one for one in replay.batches if one.number <= batch.number]
    return replace(
        told,
        driver=driver(upto, replay.stage, record.partition, time, past),
        saves=saves(upto, replay.stage, record.partition, time, past, plan.lateness, len(plan.inputs)),
    )


def _missed(plan: Plan, time: int, watermark: int, taken: tuple[Window, ...]) -> Iterator[Window]:
    """The windows that had expired, of an event that another one took."""
    if isinstance(plan.window, (Session, EventPair)) or (isinstance(plan.window, Custom) and plan.window.merging):
        return
    for one in plan.window.assign(time):
        if one not in taken and watermark >= plus(plan.window.complete_at(one.end), plan.lateness):
            yield one
