"""Does this job want a stream at all? Files of a night, a dashboard of each minute and single events often do not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from penstock.model.triggers import AtWatermark, Every, Trigger
from penstock.model.windows import Calendar, Session, Sliding
from penstock.observability.advise.inputs import median
from penstock.observability.observation import Observation
from penstock.plan.graph import Flow
from penstock.plan.operators.passthrough import Pass
from penstock.plan.stages import Plan, RowStage
from penstock.types.durations import DAY, HOUR, MINUTE, SECOND, words

# What a job wants: a batch that ends; a run now and then that catches up; a stream of fewer, larger batches; no
# windows and no watermark; a stream.
BATCH, NOW_AND_THEN, SLOWER, PLAIN, STREAM = "batch", "now and then", "slower", "plain", "stream"
BURST = 10 * MINUTE  # files that come within that of one another came together
MANY = 10  # batches for one answer, from which on fewer would do


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a job wants, the numbers that say so, and the cheaper thing to write."""

    wants: str
    facts: dict[str, Any]
    instead: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Arriving:
    """How events come: how long between two heaps of them, how many a second, how long between two batches."""

    gap: int | None = None
    rate: float | None = None
    batch_every: int = SECOND


def verdict(flow: Flow | None, arriving: Arriving, name: str = "pipeline.py") -> Verdict:
    """What a job wants, by its plan where it is known and by how its events come."""
    fresh = None if flow is None else freshness(flow)
    facts = {"gap": arriving.gap, "rate": arriving.rate, "batch_every": arriving.batch_every, "fresh": fresh}
    if flow is not None and flow.bounded:
        return Verdict(BATCH, facts, (f"penstock run {name} --until end",))
    if arriving.gap is not None and arriving.gap >= HOUR:
        return Verdict(NOW_AND_THEN, facts, (f"penstock run {name} --until caught_up",))
    if flow is not None and all(isinstance(one, RowStage) and isinstance(one.operator, Pass) for one in flow.stages):
        return Verdict(PLAIN, facts)
    if fresh is not None and fresh >= MANY * arriving.batch_every:
        every = max(min(fresh // 2, HOUR) // SECOND, 1) * SECOND
        return Verdict(
            SLOWER,
            {**facts, "fewer": every // arriving.batch_every},
            (f'penstock run {name} --batch-every "{words(every)}"',),
        )
    return Verdict(STREAM, facts)


def freshness(flow: Flow) -> int | None:
    """How often an answer can change at most, in microseconds; None where any event may change one."""
    periods = [_fresh(stage) for stage in flow.stages if isinstance(stage, Plan)]
    if len(periods) < len(flow.stages) or not periods or any(one is None for one in periods):
        return None
    return min(one for one in periods if one is not None)


def _fresh(plan: Plan) -> int | None:
    match plan.window:
        case Sliding(slide=slide):
            size: int | None = slide
        case Calendar():
            size = DAY
        case Session(gap=gap):
            size = gap
        case _:
            size = None
    trigger = plan.trigger
    if isinstance(trigger, AtWatermark):
        if trigger.early is None:
            return size
        early = _period(trigger.early)
        return None if early is None else min(early, size) if size is not None else early
    return _period(trigger) if not trigger.only_at_expiry else size


def _period(trigger: Trigger) -> int | None:
    """The period of a trigger that looks at the clock alone."""
    return trigger.period if isinstance(trigger, Every) else None


def arriving_files(flow: Flow) -> int | None:
    """How long it is between two heaps of files, in the middle, where directories are read and heaps can be seen."""
    from penstock.connectors.files.source import Directory
    from penstock.storage.listing import listed

    gaps = []
    for one in flow.inputs:
        reader = one.source.reader
        if not isinstance(reader, Directory):
            return None
        came = sorted(file.written // 1000 for file in listed(reader.path))
        gaps += [later - earlier for earlier, later in pairwise(came) if later - earlier > BURST]
        if len(came) < 3 or not gaps:
            return None
    return median(gaps)


def arriving_batches(seen: Sequence[Observation]) -> Arriving:
    """How events came to a run that was observed."""
    full = [one.now for one in seen if one.counts.get("read", 0)]
    gaps = [later - earlier for earlier, later in pairwise(full) if later - earlier > BURST]
    every = median([later.now - earlier.now for earlier, later in pairwise(seen)]) or SECOND
    spanned = seen[-1].now - seen[0].now if seen else 0
    read = sum(one.counts.get("read", 0) for one in seen)
    return Arriving(
        median(gaps) if 2 * len(gaps) >= max(len(full) - 1, 1) else None,
        read * SECOND / spanned if spanned else None,
        max(every, 1),
    )
