"""The plan in words: what, where, when, how, what is combined before the shuffle, what is kept and until when."""

from __future__ import annotations

from penstock.model.aggregates import SKETCHES
from penstock.model.triggers import When
from penstock.model.windows import Custom, EventPair, Global, Session, Sliding
from penstock.plan.graph import Flow
from penstock.plan.stages import Input, Plan, RowStage
from penstock.types.durations import words


def explain_flow(flow: Flow) -> str:
    """All stages in words; where there is but one of windows, that one alone."""
    parts = []
    for number, stage in enumerate(flow.stages, 1):
        said = explain(stage) if isinstance(stage, Plan) else explain_rows(stage)
        several = len(flow.stages) > 1
        parts.append(
            "\n".join([f"stage {number}: {stage.label}", *(f"  {line}" for line in said.splitlines())])
            if several
            else said
        )
    return "\n".join(parts)


def explain_rows(stage: RowStage) -> str:
    """Where the rows of a stage come from, what it gives, what it keeps and when it lets go."""
    lines = []
    for entry in stage.entries:
        if len(stage.entries) > 1:
            lines.append(f"{entry.name}:")
        lines += [line for one in entry.inputs for line in input_words(one)]
        lines.append(f"by:     {', '.join(entry.keys) if entry.keys else 'all rows together'}")
        if entry.dealt != "by key":
            lines.append("to:     every shard" if entry.dealt == "everywhere" else "to:     any shard, evenly")
        if not entry.waited:
            lines.append("clock:  the watermark of this stage does not wait for it")
    lines.append(f"what:   {stage.operator}")
    lines += [f"gives:  {name} ({columns})" for name, columns in stage.outputs.items()]
    return "\n".join([*lines, *(f"keeps:  {said}" for said in stage.operator.holds(stage.sides))])


def explain(plan: Plan) -> str:
    """The four questions and their answers, one line each, and what is kept until when."""
    computed = ", ".join(f"{name} = {aggregate}" for name, aggregate in plan.aggregates)
    lines = [line for one in plan.inputs for line in input_words(one)]
    keys = ", ".join(plan.keys) if plan.keys else "all rows together"
    lines += [
        f"what:   {computed}",
        f"by:     {keys}",
        f"where:  {plan.window}, corrected for {words(plan.lateness)} after completion"
        if plan.lateness
        else f"where:  {plan.window}, no corrections after completion",
        f"when:   {plan.trigger}",
        f"how:    {plan.mode or 'one pane a window, so no mode is needed'}",
        f"before the shuffle: {_combined(plan)}",
    ]
    lines += [f"keeps:  {said}" for said in _kept(plan)]
    lines += [f"in Python, one at a time: {part}" for part in _python(plan)]
    return "\n".join(lines)


def input_words(one: Input) -> list[str]:
    """A source on its way to a stage: its columns, its clock, and what is done to its rows, one line each."""
    reader = one.source.reader
    if hasattr(reader, "kept_under"):
        return [f"table:  {one.source.name} ({reader.schema})", f"  {reader.says()}"]
    lines = [f"source: {one.source.name} ({one.source.schema})" + (", bounded" if one.source.bounded else "")]
    lines += [f"  {step}" for step in one.before]
    if one.source.derived is not None:
        signed = ", of which rows may be withdrawn" if one.signed else ""
        return [f"reads:  {one.source.name} ({one.source.schema}){signed}", *(f"  {step}" for step in one.after)]
    if one.time is not None and one.time.basis == "processing":
        lines.append("  processing time: now of the batch; nothing is late")
    elif one.time is not None:
        lines.append(f"  {one.time.basis} time: {one.time.column}; watermark: {one.time.watermark}")
        lines.append(f"    {one.time.watermark.waits()}")
    return lines + [f"  {step}" for step in one.after]


def _kept(plan: Plan) -> list[str]:
    """What is held of windows and when it is let go, as `holds` says it of an operator."""
    names = ", ".join(name for name, _ in plan.aggregates)
    place, until = _until(plan)
    each = _each(plan, place)
    pieces = plan.shown_mode == "discarding" and not plan.fires_once
    said = [f"{f'what is new of {names}' if pieces else f'{names} so far'}, {each}{until}"]
    if isinstance(plan.window, EventPair):
        after = f"the end of the window that begins right after it{_more(plan)}"
        said.append(f"{names} of the events themselves, {_each(plan, 'event time')}until W is past {after}")
    values = [name for name, one in plan.aggregates if plan.signed and one.keeps_values]
    if values:
        said.append(f"every value of {', '.join(values)}, until the window expires: one may be withdrawn")
    different = [name for name, one in plan.aggregates if not plan.signed and one.kind == "distinct"]
    if different:
        said.append(f"every different value of {', '.join(different)}, until then")
    if plan.withdraws():
        again = "the next one" if plan.shown_mode == "retracting" else "a window that it becomes part of"
        said.append(f"{'the sum of its panes' if pieces else 'the last pane'}, {each}until then: {again} withdraws it")
    return said


def _each(plan: Plan, place: str) -> str:
    parts = [part for part in ("key" if plan.keys else "", place) if part]
    return f"for each {' and '.join(parts)}, " if parts else ""


def _until(plan: Plan) -> tuple[str, str]:
    """Of what there is an answer for each key, and how long."""
    rule = plan.window
    if isinstance(rule, Global):
        return "", "until the input ends"
    if isinstance(rule, Session):
        return "window", f"until W is more than {words(rule.gap + plan.lateness)} past its last record"
    if isinstance(rule, Sliding) and _in_slices(plan, rule):
        return "slice", f"until W is at the end of the last window that it is part of{_more(plan)}"
    return "window", f"until W is {'past' if rule.closed else 'at'} its end{_more(plan)}"


def _more(plan: Plan) -> str:
    return f" and {words(plan.lateness)} more" if plan.lateness else ""


def _in_slices(plan: Plan, rule: Sliding) -> bool:
    """Whether windows that overlap are put together when they expire, of slices that they share."""
    asked = any(isinstance(part, When) for part in plan.trigger.walk())
    return rule.size != rule.slide and plan.fires_once and not asked


def _combined(plan: Plan) -> str:
    if isinstance(plan.window, Session):
        return "one row per key and burst; events behind the watermark travel as rows, for a live session may take them"
    if isinstance(plan.window, EventPair):
        return "one row per key and event time; the windows are made in the shard"
    if isinstance(plan.window, Custom) and plan.window.merging:
        return "one row per key and assigned window; events of expired windows travel as rows"
    if isinstance(plan.window, Sliding) and plan.window.size != plan.window.slide:
        if _in_slices(plan, plan.window):
            return "one row per key and slice; windows are put together from slices in the shard"
        return "one row per key and slice; slices are added to each of their windows in the shard"
    return "one row per key and window"


def _python(plan: Plan) -> list[str]:
    steps = [
        f"{name} ({aggregate.kind})" for name, aggregate in plan.aggregates if aggregate.kind in ("fold", *SKETCHES)
    ]
    if isinstance(plan.window, Custom):
        steps.append("assign, per event time" + (", merge, per touched key" if plan.window.merging else ""))
    return steps
