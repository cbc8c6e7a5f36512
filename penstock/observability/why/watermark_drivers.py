"""Who drove the watermark past a window, and what would have kept it behind."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from penstock.model.watermarks import Bounded, Percentile, TimeBase
from penstock.observability.why.batches import Batch
from penstock.runtime.batch import PartitionClock
from penstock.types.timestamps import MAX_TIME, MIN_TIME

# How the watermark came to pass: the input ended; the event's partition was not known yet, or had stepped aside; all
# were silent; its own partition was ahead; rows or the clock say it; nobody knows any more.
ENDED, UNKNOWN, ASIDE, SILENT, AHEAD, SAID, FORGOTTEN = (
    "ended",
    "unknown",
    "aside",
    "silent",
    "ahead",
    "said",
    "forgotten",
)


@dataclass(frozen=True, slots=True)
class Driver:
    """How W passed an instant: in which batch, and how. `own` is the event's partition as it stood, `slowest` the one
    that held W back most."""

    kind: str
    batch: int | None
    now: int | None
    watermark: int
    own: PartitionClock | None = None
    slowest: PartitionClock | None = None

    def plain(self) -> dict[str, Any]:
        """The same as values that JSON has."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Saves:
    """What would have saved an event: a delay, or a lateness, longer than so much; or its partition waited for longer.

    `knob` is the argument that the delay stands for: that of `bounded`, or the floor of `percentile`.
    """

    lateness: int
    delay: int | None
    knob: str
    idle: int | None


def driver(batches: Sequence[Batch], stage: int, partition: str, time: TimeBase, past: int) -> Driver:
    """How W came to be at or past an instant, the last of these batches being the one in which an event came."""
    passed = next(one for one in batches if one.watermark(stage) >= past)
    watermark = passed.watermark(stage)
    if passed is batches[0] and passed.number > 0:
        return Driver(FORGOTTEN, None, None, watermark)
    clocks = {f"{one.source}/{one.partition}": one for one in passed.before}
    own = clocks.get(partition)
    active = [one for one in clocks.values() if not one.idle]
    slowest = min(active, key=lambda one: one.watermark, default=None)
    kind = AHEAD
    if watermark == MAX_TIME:
        kind = ENDED
    elif not isinstance(time.watermark, (Bounded, Percentile)):
        kind = SAID
    elif own is None or own.newest is None:
        kind = UNKNOWN
    elif not active:
        kind = SILENT
    elif own.idle:
        kind = ASIDE
    return Driver(kind, passed.number, passed.now, watermark, own, slowest)


def saves(
    batches: Sequence[Batch], stage: int, partition: str, time: TimeBase, past: int, lateness: int, sources: int
) -> Saves:
    """What would have kept W below an instant in the last of these batches, in which an event came."""
    last = batches[-1]
    watermark = last.watermark(stage)
    over = watermark - past
    own = next((one for one in last.before if f"{one.source}/{one.partition}" == partition), None)
    ended, rule = watermark == MAX_TIME, time.watermark
    delay, knob = None, "delay"
    if isinstance(rule, Bounded) and sources == 1 and not ended:
        delay = rule.delay + over  # every partition's watermark is less by what the delay is more
    elif isinstance(rule, (Bounded, Percentile)) and own is not None and not own.idle and not ended:
        # Its own partition is waited for, whatever the others do.
        delay = None if own.newest is None else own.newest - past
        knob = "delay" if isinstance(rule, Bounded) else "floor"
    aside = own is not None and own.idle and MIN_TIME < own.watermark < past and not ended
    return Saves(MAX_TIME if ended else lateness + over, delay, knob, own.silent_for if own and aside else None)
