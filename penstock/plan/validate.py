"""What fits together: refuses plans that cannot be right, each with its remedy, and names what is costly."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from penstock.errors import PlanError, did_you_mean
from penstock.expressions.builder import columns_of, type_of
from penstock.model.panes import PANE_COLUMNS
from penstock.model.triggers import AtExpiry, When
from penstock.model.watermarks import FromColumn, Punctuated, TimeBase, Watermark
from penstock.model.windows import Custom, Global, Sliding
from penstock.plan.graph import AnyStage
from penstock.plan.operators.process import Process
from penstock.plan.row_steps import Map, MapBatches, Where
from penstock.plan.stages import Input, Plan
from penstock.plan.validate_partial_panes import refuse_pieces
from penstock.plan.validate_retractions import old_corrections, refuse_signed, refuse_windows
from penstock.types.durations import words
from penstock.types.schema import NUMBERS

if TYPE_CHECKING:
    from penstock.api.stream import Stream

MANY_WINDOWS = 1_000


def checked(stage: AnyStage) -> tuple[str, ...]:
    """Raise what cannot be right in a stage of any kind; return warnings."""
    if isinstance(stage, Plan):
        return check(stage)
    if any(one.time is None for one in stage.inputs):
        raise PlanError(
            f"{stage.label} over a stream that has no event time",
            "what a stage remembers is let go by the watermark, so each row needs an event time",
            'write .event_time("at", watermark=ps.bounded("2 minutes")) before it',
        )
    _inherited(stage)
    refuse_signed(stage)
    said = stage.operator.check(stage.sides)
    refuse_pieces(stage)
    return (*said, *old_corrections(stage))


def check(plan: Plan) -> tuple[str, ...]:
    """Raise what cannot be right; return warnings of what is costly or surprising."""
    _inputs(plan)
    _inherited(plan)
    _names(plan)
    plan.key_schema  # noqa: B018 - refuses unknown keys
    _trigger(plan)
    _mode(plan)
    refuse_signed(plan)
    refuse_windows(plan)
    refuse_pieces(plan)
    return (*_warnings(plan), *old_corrections(plan))


def _inherited(stage: AnyStage) -> None:
    """Lateness may not shrink from stage to stage: a correction of one would come too late for the next."""
    mine, given = _lateness(stage), inherited_lateness(*_waited(stage))
    if mine is not None and mine < given:
        ordered = not isinstance(stage, Plan) and isinstance(stage.operator, Process)
        raise PlanError(
            f"{stage.label} has a lateness of {words(mine)}, and what it reads has {words(given)}",
            "rows that come so late for the stage before are given on, and would be late here",
            'leave ordered=True out, or write lateness="0" in the stages before'
            if ordered
            else f'write lateness="{words(given)}", or more',
        )


def inherited_lateness(*inputs: Input) -> int:
    """How long rows that other stages give may come behind the watermark: the lateness of a stage that says none."""
    stages = [one.source.derived.stage for one in inputs if one.source.derived is not None]
    return max((_handed_on(stage) for stage in stages), default=0)


def _handed_on(stage: AnyStage) -> int:
    """How long behind its watermark a stage gives rows: one for which none is too late gives them as it reads them."""
    said = _lateness(stage)
    return inherited_lateness(*_waited(stage)) if said is None else said


def _waited(stage: AnyStage) -> list[Input]:
    """What a stage's watermark waits for: not tables and rules."""
    return [one for entry in stage.entries if entry.waited for one in entry.inputs]


def _lateness(stage: AnyStage) -> int | None:
    """How long behind its watermark a stage takes rows; None where nothing is too late for it."""
    if isinstance(stage, Plan):
        return stage.lateness
    if isinstance(stage.operator, Process):
        return 0 if stage.operator.ordered else None
    found: int | None = getattr(stage.operator, "lateness", None)
    return found


def check_time(one: Input, time: TimeBase) -> None:
    """Refuse a time base that the rows cannot give."""
    if one.time is not None:
        raise PlanError(
            "the stream has its event time already",
            "a row has one event time",
            "leave one of the two calls out",
        )
    if not isinstance(time.watermark, Watermark):
        raise PlanError(
            f"{time.watermark!r} is not a watermark rule",
            "the watermark says how long to wait for events",
            'write watermark=ps.bounded("2 minutes")',
        )
    if time.unit not in (None, "s", "ms", "us"):
        raise PlanError(
            f"there is no unit {time.unit!r} of time",
            "a time that is a number counts seconds, milliseconds or microseconds",
            'write unit="s", unit="ms" or unit="us"',
        )
    if time.column is not None:
        _time_column(one, time.column, time.unit)
    held = one.schema
    if isinstance(time.watermark, FromColumn):
        _time_column(one, time.watermark.column, time.unit)
    if isinstance(time.watermark, Punctuated) and type_of(time.watermark.mark, held, "punctuated") != "boolean":
        raise PlanError(
            f"the mark of {time.watermark} is not a boolean",
            "a row is a mark where the predicate is true",
            "write a comparison, such as ps.punctuated(\"kind = 'mark'\")",
        )


def check_union(streams: Sequence[Stream]) -> None:
    """Refuse to unite streams whose rows differ."""
    for stream in streams:
        if not hasattr(stream, "inputs"):
            raise PlanError(
                f"union with {stream!r}, which is not a stream",
                "a union is of streams, each with rows of its own",
                'write web.union(app) with app = ps.events(..., name="app")',
            )
    first = streams[0]
    names = [one.source.name for stream in streams for one in stream.inputs]
    for stream in streams[1:]:
        if stream.schema != first.schema:
            raise PlanError(
                "union of streams with different columns",
                f"one has ({first.schema}), another ({stream.schema})",
                f"write .select({', '.join(repr(name) for name in first.schema.names)}) on the other first",
            )
        if {one.time is None for one in stream.inputs} != {one.time is None for one in first.inputs}:
            raise PlanError(
                "union of a stream that has its event time with one that has not",
                "every row of the union needs an event time",
                "call .event_time(...) on each before the union, or once after it",
            )
    if len(set(names)) < len(names):
        raise PlanError(
            f"union of sources with one name: {', '.join(names)}",
            "partitions are told apart by the name of their source",
            'name them: ps.events(..., name="web")',
        )


def _time_column(one: Input, column: str, unit: str | None) -> None:
    held = one.schema.type_of(column, "event_time")
    if held in NUMBERS and unit not in ("s", "ms", "us"):
        raise PlanError(
            f"the time column {column!r} is a {held} without a unit",
            "a number does not say whether it counts seconds or milliseconds",
            f'write .event_time({column!r}, unit="ms", ...), or "s" or "us"',
        )
    if held not in (*NUMBERS, "timestamp", "date", "string"):
        raise PlanError(
            f"the column {column!r} of type {held} is not a time",
            "event time is a timestamp, a date, an ISO 8601 text, or a number with a unit",
            "name the column that says when the event happened",
        )


def _inputs(plan: Plan) -> None:
    if any(one.time is None for one in plan.inputs):
        raise PlanError(
            "windows over a stream that has no event time",
            "a window is a stretch of event time, so each row needs one",
            'write .event_time("at", watermark=ps.bounded("2 minutes")) before .window(...)',
        )
    if not plan.aggregates:
        raise PlanError(
            "an aggregate of nothing",
            "a pane holds at least one value",
            "write .aggregate(plays=ps.rows())",
        )


def _names(plan: Plan) -> None:
    results = plan.result_schema.names
    for name in (*plan.keys, *results):
        if name in PANE_COLUMNS:
            raise PlanError(
                f"the column {name!r} has the name of one of the pane's own",
                f"a pane carries {', '.join(PANE_COLUMNS)} beside keys and aggregates",
                f'rename it: .with_columns({name}_="{name}") and key by that, or call the aggregate otherwise',
            )
        if (*plan.keys, *results).count(name) > 1:
            raise PlanError(
                f"the name {name!r} stands for two columns of the pane",
                "keys and aggregates share one row",
                f"name each key once: .key_by({', '.join(map(repr, dict.fromkeys(plan.keys)))})"
                if plan.keys.count(name) > 1
                else f"call the aggregate otherwise, such as total_{name}=...",
            )


def _trigger(plan: Plan) -> None:
    for part in plan.trigger.walk():
        if isinstance(part, When):
            _when(plan, part)
    if isinstance(plan.window, Global) and not plan.bounded:
        _global(plan)


def _when(plan: Plan, when: When) -> None:
    results = plan.result_schema
    for name in sorted(columns_of(when.predicate)):
        if name not in results.names:
            raise PlanError(
                f"when names the column {name!r}, which is not one of the aggregates",
                f"a trigger sees the pane that would be shown; its aggregates are: {', '.join(results.names)}",
                did_you_mean(name, results.names),
            )
        if results.type_of(name, "when").startswith("array<"):
            raise PlanError(
                f"when looks at {name!r}, which is a list",
                f"{name} is of type {results.type_of(name, 'when')}, and expressions are of single values",
                'name an aggregate of a single value, such as plays=ps.rows() with ps.when("plays > 100")',
            )
    if type_of(when.predicate, results, "when") != "boolean":
        raise PlanError(
            f"when({when}) is not a boolean",
            "the trigger is ready while the predicate over the aggregate's columns is true",
            'write a comparison, such as ps.when("points > 100")',
        )


def _global(plan: Plan) -> None:
    trigger = plan.trigger
    if trigger.may_stall or trigger.can_finish:
        raise PlanError(
            f"a global window that shows a pane {trigger}",
            "the global window of an unbounded stream never ends, so its records would stay hidden for ever"
            if trigger.may_stall
            else "the trigger can finish, and what comes after that would stay hidden for ever",
            "write .trigger(ps.repeat(ps.count(1000))) or ps.at_watermark(early=ps.every('1 minute'))",
        )


def _mode(plan: Plan) -> None:
    if plan.mode is None and not plan.fires_once:
        raise PlanError(
            "a window that can fire more than once does not say how its panes relate",
            f"panes come {plan.trigger}, and lateness is {words(plan.lateness)}",
            "write .accumulating(), .discarding() or .retracting() before .aggregate(...)",
        )


def _warnings(plan: Plan) -> list[str]:
    said = []
    if isinstance(plan.window, Sliding):
        copies = -(-plan.window.size // plan.window.slide)
        if copies > MANY_WINDOWS:
            said.append(f"each event is in {copies:,} windows: their panes are many, even where slices are shared")
    for one in plan.inputs:
        assert one.time is not None
        if one.time.watermark.idle is None and one.time.basis not in ("processing", "derived"):
            said.append(f"idle=None: a partition of {one.source.name} that falls silent holds the watermark for ever")
        for step in (*one.before, *one.after):
            if isinstance(step, (Map, MapBatches)) or (isinstance(step, Where) and callable(step.predicate)):
                said.append(f"{step} runs Python for each row or batch of {one.source.name}")
    if isinstance(plan.window, Custom):
        said.append("custom windows run Python for each different event time")
    for name, aggregate in plan.aggregates:
        if aggregate.kind == "fold":
            said.append(f"{name} runs Python for each record")
        if plan.signed and aggregate.keeps_values:
            said.append(f"{name} keeps every value of a window, for one may be withdrawn")
        elif aggregate.kind == "distinct":
            said.append(f"{name} keeps every different value; approx_distinct keeps a sketch of bounded size")
    if any(isinstance(part, AtExpiry) for part in plan.trigger.walk()) and plan.lateness == 0:
        said.append("at_expiry without lateness is the same as at_watermark")
    return said
