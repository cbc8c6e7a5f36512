"""An advice: the delays that were observed, a table of what each delay would do, a recommendation and a verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from penstock.checkpoint.store import Store
from penstock.flow import Flow, flow_of
from penstock.monitor.advise.gathered import ROWS, Gathered, all_delays, from_run, from_sources, pace
from penstock.monitor.advise.table import (
    SHARES,
    Row,
    counted,
    delay_in,
    delay_of,
    delays,
    follows_delays,
    nice,
    tried,
)
from penstock.monitor.advise.verdict import Arriving, Verdict, arriving_batches, arriving_files, verdict
from penstock.monitor.lateness import Lateness, together
from penstock.monitor.observation import Observation
from penstock.monitor.why.batches import observations
from penstock.monitor.why.errors import Unexplained
from penstock.monitor.why.replay import replay_of
from penstock.pipeline import Pipeline
from penstock.plan import Plan

LATE = 0.001  # the share of events that may be late where nobody says otherwise
LONG = 3  # times longer, and a delay is too long for what it saves


@dataclass(frozen=True, slots=True)
class Recommended:
    """A delay, the share of events that are late with it, and the lateness that would take in the others.

    `tail` says that a delay for them all would be far longer: better wait less, and correct.
    """

    delay: int
    share: float
    lateness: int
    tail: bool
    whole: int


@dataclass(frozen=True, slots=True)
class Advice:
    """All that is said. `exact` where each delay was tried on the events; else `late` counts events behind it."""

    name: str
    exact: bool
    events: int
    span: int
    current: int | None
    follows: bool
    lateness: Mapping[str, int]
    partitions: tuple[tuple[str, int, int], ...]
    rows: tuple[Row, ...]
    recommended: Recommended | None
    verdict: Verdict

    def plain(self) -> dict[str, Any]:
        """The same as values that JSON has."""
        return asdict(self)


def of_stream(pipeline: Pipeline, file: str, rows: int = ROWS, late: float = LATE) -> Advice:
    """An advice on a pipeline, by some of what its sources have."""
    flow = pipeline.flow
    number = reading_windows(flow)
    found = from_sources(flow if number is None else flow_of((flow.stages[number],)), rows)
    wants = verdict(flow, Arriving(arriving_files(flow), pace(found)[1]), file)
    return _tried(pipeline.name, flow, number, found, late, wants)


def of_run(pipeline: Pipeline, file: str, store: Store, rows: int = ROWS, late: float = LATE) -> Advice:
    """An advice on a run, by the events of its last batches, which are read again."""
    number = reading_windows(pipeline.flow)
    if number is None:
        raise Unexplained(
            f"the pipeline {pipeline.name!r} has no windows that read a source",
            "a delay is tried by running such windows with it",
            "leave the file out: penstock advise CHECKPOINT says what was counted while it ran",
        )
    found = from_run(replay_of(pipeline, store, number + 1), rows)
    wants = verdict(pipeline.flow, arriving_batches(observations(store)), file)
    return _tried(pipeline.name, pipeline.flow, number, found, late, wants)


def of_record(name: str, seen: Sequence[Observation], late: float = LATE) -> Advice:
    """An advice on a run, by what was counted while it ran."""
    by_partition = together(one.behind for one in seen)
    lateness = all_delays(by_partition.values())
    if not lateness.total:
        raise Unexplained(
            "nothing was counted of how late events come",
            "what is observed is kept beside the checkpoint, in penstock/monitor, unless observe=False says not to",
            "name the pipeline's file: penstock advise FILE CHECKPOINT reads its events again",
        )
    current = delay_in(seen)
    rows = counted(lateness, seen, delays(lateness, current), current)
    wants = verdict(None, arriving_batches(seen))
    return Advice(name, False, lateness.total, 0, current, False, _quantiles(lateness), _slowest(by_partition),
                  tuple(rows), recommended(rows, lateness.longest, late), wants)  # fmt: skip


def recommended(rows: Sequence[Row], longest: int, late: float) -> Recommended:
    """The shortest delay that is good enough; where the last few events are far behind the rest, one that lets those
    be corrections."""
    enough = next((row for row in rows if row.share <= late), rows[-1])
    nearly = next((row for row in rows if row.share <= 10 * late), enough)
    tail = enough.delay > LONG * max(nearly.delay, 1) and nearly is not enough
    chosen = nearly if tail else enough
    return Recommended(chosen.delay, chosen.share, nice(max(longest - chosen.delay, 0)) if chosen.late else 0, tail,
                       enough.delay)  # fmt: skip


def reading_windows(flow: Flow) -> int | None:
    """The first stage of windows that reads sources alone."""
    found = [n for n, stage in enumerate(flow.stages) if isinstance(stage, Plan) and not flow.above(n)]
    return found[0] if found else None


def _tried(name: str, flow: Flow, number: int | None, found: Gathered, late: float, wants: Verdict) -> Advice:
    lateness = all_delays(found.lateness.values())
    plan = None if number is None else flow.stages[number]
    time = None if plan is None else plan.inputs[0].time
    current = delay_of(time)
    waits = delays(lateness, current)
    rows = tried(plan, found, waits, current) if isinstance(plan, Plan) else []
    said = recommended(rows, lateness.longest, late) if rows else None
    return Advice(name, True, found.events, pace(found)[0], current, follows_delays(time), _quantiles(lateness),
                  _slowest(found.lateness), tuple(rows), said, wants)  # fmt: skip


def _quantiles(lateness: Lateness) -> dict[str, int]:
    return {f"p{100 * p:g}" if p < 1 else "max": lateness.quantile(p) for p in SHARES}


def _slowest(lateness: Mapping[str, Lateness]) -> tuple[tuple[str, int, int], ...]:
    """The partitions whose events come latest, each with its p99 and its longest delay."""
    found = [(name, one.quantile(0.99), one.longest) for name, one in lateness.items() if one.total]
    return tuple(sorted(found, key=lambda one: (-one[1], -one[2], one[0]))[:5])
