"""An advice: the delays that were observed, a table of what each delay would do, a recommendation and a verdict."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any

from penstock.api.pipeline import Pipeline
from penstock.model.windows import Global
from penstock.observability.advise.goals import Goals
from penstock.observability.advise.inputs import ROWS, Gathered, all_delays, from_run, from_sources, pace
from penstock.observability.advise.trade_offs import (
    CLOSE,
    SHARES,
    Row,
    Trial,
    counted,
    delay_in,
    delay_of,
    delays,
    follows_delays,
    moves,
    nice,
)
from penstock.observability.advise.verdict import Arriving, Verdict, arriving_batches, arriving_files, verdict
from penstock.observability.lateness_histogram import Lateness, together
from penstock.observability.observation import Observation
from penstock.observability.why.batches import observations
from penstock.observability.why.errors import Unexplained
from penstock.observability.why.replay import replay_of
from penstock.plan.graph import Flow, flow_of
from penstock.plan.stages import Plan
from penstock.storage.local import Store
from penstock.types.durations import SECOND

LATE = 0.001  # of the events: with fewer that are late, nearly all are waited for
LONG = 3  # times longer, and a delay is too long for what it saves
NEARLY = 2  # times what may be missing is missing: nearly as complete
AGES = 1_000  # times longer, and windows are not kept for the few that come so late
STEPS = 3  # by which the delay that is just enough is narrowed down


@dataclass(frozen=True, slots=True)
class Recommended:
    """A delay, the share of events that are late with it, and the lateness that would take in the others: all but the
    share `left`, where that was played.

    `tail` says that a delay for them all, `whole`, would be far longer: better wait less, and correct. On-time panes
    hold the share `complete`, and come `after_end` of their windows. `unmet` names the goals that it misses, and
    `instead` is the shortest delay that is complete enough, where this one is not; `sooner` is one that is nearly as
    complete and far shorter.
    """

    delay: int
    share: float
    lateness: int
    tail: bool
    whole: int
    complete: float | None = None
    after_end: int | None = None
    left: float | None = None
    unmet: tuple[str, ...] = ()
    instead: Row | None = None
    sooner: Row | None = None


@dataclass(frozen=True, slots=True)
class Advice:
    """All that is said. `exact` where each delay was tried on the events; else `late` counts events behind it, and
    `complete` is the least there can be.

    The events came in so many `batches`. Windows that began `before` them are left out, and so are those after whose
    end the recording does not go on for `settling`. Windows that are `endless` are never complete.
    """

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
    goals: Goals = field(default_factory=Goals)
    batches: int = 0
    before: int = 0
    settling: int = 0
    endless: bool = False

    def plain(self) -> dict[str, Any]:
        """The same as values that JSON has."""
        return asdict(self)


def of_stream(pipeline: Pipeline, file: str, rows: int = ROWS, goals: Goals | None = None) -> Advice:
    """An advice on a pipeline, by some of what its sources have."""
    flow = pipeline.flow
    number = reading_windows(flow)
    found = from_sources(flow if number is None else flow_of((flow.stages[number],)), rows)
    wants = verdict(flow, Arriving(arriving_files(flow), pace(found)[1]), file)
    return _tried(pipeline.name, flow, number, found, goals or Goals(), wants)


def of_run(pipeline: Pipeline, file: str, store: Store, rows: int = ROWS, goals: Goals | None = None) -> Advice:
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
    return _tried(pipeline.name, pipeline.flow, number, found, goals or Goals(), wants)


def of_record(name: str, seen: Sequence[Observation], goals: Goals | None = None) -> Advice:
    """An advice on a run, by what was counted while it ran."""
    asked = goals or Goals()
    by_partition = together(one.behind for one in seen)
    lateness = all_delays(by_partition.values())
    if not lateness.total:
        raise Unexplained(
            "nothing was counted of how late events come",
            "what is observed is kept beside the checkpoint, in penstock/monitor, unless observe=False says not to",
            "name the pipeline's file: penstock advise FILE CHECKPOINT reads its events again",
        )
    current = delay_in(seen)
    waits = {*delays(lateness, current), *(nice(lateness.quantile(share)) for share in asked.shares if share)}
    rows = counted(lateness, seen, sorted(waits), current)
    wants = verdict(None, arriving_batches(seen))
    return Advice(
        name,
        False,
        lateness.total,
        0,
        current,
        False,
        _quantiles(lateness),
        _slowest(by_partition),
        tuple(rows),
        recommended(rows, lateness.longest, asked),
        wants,
        asked,
    )


def recommended(rows: Sequence[Row], longest: int, goals: Goals) -> Recommended | None:
    """The shortest delay that reaches the goals, or comes nearest; none where too little is known.

    The last few events may be far behind the rest: how few are late is reached by corrections then, not by waiting. Of
    being complete and being soon, which cannot always be had together, the answer that comes in time is chosen.
    """
    fixed = [row for row in rows if row.tells and not row.moves]
    if not fixed or not rows[0].tells:
        return None
    chosen = _chosen(fixed, goals)
    whole = next((row for row in fixed if row.share <= (LATE if goals.late is None else goals.late)), fixed[-1])
    instead = next((row for row in fixed if "complete" not in goals.unmet(row)), None)
    unmet = goals.unmet(chosen)
    missing = NEARLY * (1 - goals.complete)
    sooner = next((row for row in fixed if row.complete is not None and 1 - row.complete <= missing), chosen)
    furthest = longest if longest <= AGES * max(whole.delay, SECOND) else whole.delay
    return Recommended(
        chosen.delay,
        chosen.share,
        nice(max(furthest - chosen.delay, 0)) if chosen.late else 0,
        chosen.late > 0 and _far(whole, chosen),
        whole.delay,
        chosen.complete,
        chosen.after_end,
        None,
        unmet,
        instead if "complete" in unmet else None,
        sooner if _far(chosen, sooner) and "complete" not in unmet else None,
    )


def _chosen(rows: Sequence[Row], goals: Goals) -> Row:
    def reaching(*names: str) -> list[Row]:
        return [row for row in rows if not set(names) & set(goals.unmet(row))]

    enough, corrected = reaching("complete", "latency", "late"), reaching("complete", "latency")
    nearly = [row for row in corrected if goals.late is None or row.share <= 10 * goals.late] or corrected
    if enough and not _far(enough[0], nearly[0]):
        return enough[0]
    if nearly:
        return nearly[0]
    in_time = reaching("latency")
    if not in_time and reaching("complete"):
        return reaching("complete")[0]
    return max(in_time or rows, key=lambda row: (row.complete or 0, -row.delay))


def _far(longer: Row, shorter: Row) -> bool:
    return longer.delay > LONG * max(shorter.delay, 1)


def reading_windows(flow: Flow) -> int | None:
    """The first stage of windows that reads sources alone."""
    found = [n for n, stage in enumerate(flow.stages) if isinstance(stage, Plan) and not flow.above(n)]
    return found[0] if found else None


def _tried(name: str, flow: Flow, number: int | None, found: Gathered, goals: Goals, wants: Verdict) -> Advice:
    lateness = all_delays(found.lateness.values())
    plan = None if number is None else flow.stages[number]
    time = None if plan is None else plan.inputs[0].time
    told = Advice(
        name,
        True,
        found.events,
        pace(found)[0],
        delay_of(time),
        follows_delays(time),
        _quantiles(lateness),
        _slowest(found.lateness),
        (),
        None,
        wants,
        goals,
        len(found.batches),
    )
    if not isinstance(plan, Plan):
        return told
    trial = Trial(plan, found, goals, told.current)
    _search(trial)
    rows = sorted([*trial.rows, *([trial.as_it_is()] if moves(time) else [])], key=lambda row: row.delay)
    return replace(
        told,
        rows=tuple(rows),
        recommended=_with_lateness(trial, goals),
        before=trial.before,
        settling=trial.settling,
        endless=isinstance(plan.window, Global),
    )


def _search(trial: Trial) -> None:
    """Try the delays that were seen, and then those between which a goal is just reached."""
    goals = trial.goals
    for delay in delays(trial.behind, trial.current):
        trial.row(delay)
    if not trial.rows[0].tells:
        return
    if goals.latency is not None:
        if goals.latency < trial.rows[-1].delay:
            trial.row(goals.latency)
        _narrow(trial, lambda row: "latency" in goals.unmet(row))
    for goal in ("complete", "late"):
        _narrow(trial, partial(_reaches, goals, goal))


def _reaches(goals: Goals, goal: str, row: Row) -> bool:
    return goal not in goals.unmet(row)


def _narrow(trial: Trial, beyond: Callable[[Row], bool]) -> None:
    """Try delays between the longest before a boundary and the shortest beyond it."""
    for _ in range(STEPS):
        rows = trial.rows
        place = next((place for place, row in enumerate(rows) if beyond(row)), 0)
        low, high = rows[place - 1].delay if place else 0, rows[place].delay
        middle = nice(math.isqrt(low * high) if low else high // 2)
        if not place or high <= CLOSE * low or not low < middle < high:
            return
        trial.row(middle)


def _with_lateness(trial: Trial, goals: Goals) -> Recommended | None:
    """A recommendation, with its lateness played."""
    said = recommended(trial.rows, trial.behind.longest, goals)
    if said is None or not said.lateness:
        return said
    left = trial.with_lateness(said.delay, said.lateness)
    unmet = tuple(name for name in said.unmet if name != "late" or goals.late is None or left > goals.late)
    return replace(said, left=left, unmet=unmet)


def _quantiles(lateness: Lateness) -> dict[str, int]:
    return {f"p{100 * p:g}" if p < 1 else "max": lateness.quantile(p) for p in SHARES}


def _slowest(lateness: Mapping[str, Lateness]) -> tuple[tuple[str, int, int], ...]:
    """The partitions whose events come latest, each with its p99 and its longest delay."""
    found = [(name, one.quantile(0.99), one.longest) for name, one in lateness.items() if one.total]
    return tuple(sorted(found, key=lambda one: (-one[1], -one[2], one[0]))[:5])
