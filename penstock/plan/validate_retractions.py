"""Which stage may read which: what takes a row back that was withdrawn, and what would count it twice."""

from __future__ import annotations

from collections.abc import Iterable

from penstock.errors import PlanError
from penstock.model.aggregates import SKETCHES, Aggregate
from penstock.model.windows import EventPair, Global
from penstock.plan.operators.join import Join
from penstock.plan.operators.top_n import Top
from penstock.plan.stages import Input, Operator, Plan, RowStage
from penstock.plan.validate_partial_panes import ADDED_UP
from penstock.types.durations import words


def refuse_refiring(plan: Plan) -> None:
    """Refuse to hand panes on that take the place of others without a word: what reads them would count both."""
    if plan.fires_once or plan.shown_mode == "retracting":
        return
    shown = f"panes come {plan.trigger}, {plan.shown_mode}, and lateness is {words(plan.lateness)}"
    if plan.shown_mode == "accumulating":
        raise PlanError(
            "panes that replace one another cannot be read by another stage",
            f"{shown}: a stage that reads them would take each for one more",
            "write .retracting(), so that each pane withdraws the one before it; or show each window once",
        )
    if plan.window.merging:
        raise PlanError(
            "pieces of windows that merge cannot be read by another stage",
            f"{shown}: one withdrawal takes back all that a window has shown, which was several rows",
            "write .retracting(), so that each pane withdraws the one before it",
        )


def refuse_signed(stage: Plan | RowStage) -> None:
    """Refuse rows that may be withdrawn where nothing is taken back, and a column in the place of their sign."""
    if isinstance(stage, RowStage):
        signed = any(side.signed for side in stage.sides)
        if signed and not stage.operator.corrects(stage.sides):
            raise PlanError(
                f"{stage.label} over rows that may be withdrawn",
                f"{_source(stage.inputs)} takes back what it gave, and {stage.label} takes nothing back",
                "let the windows before it show each window once: no early or late panes, lateness 0",
            )
        names = [name for output in stage.outputs.values() for name in output.names] if stage.withdraws() else []
    else:
        names = list(stage.schema.names) if stage.signed else []
    if "op" in names:
        raise PlanError(
            f"{stage.label} has rows that may be withdrawn, and a column called 'op'",
            "in what is written, the column op says whether a row comes (+1) or is withdrawn (-1)",
            "rename it: .select(..., kind='op')",
        )


def old_corrections(stage: Plan | RowStage) -> list[str]:
    """Warn where what is corrected may be so old that the correction is late."""
    forgets = not isinstance(stage.window, Global) if isinstance(stage, Plan) else _forgets(stage.operator)
    return [
        f"{one.source.name} corrects what it gave however old it is, and a correction that comes behind W is late for "
        f'{stage.label}: read it in ps.global_window(), by a join that says keep="forever", or by top without window='
        for one in stage.inputs
        if forgets and one.source.derived is not None and _corrects_all(one.source.derived.stage)
    ]


def _forgets(operator: Operator) -> bool:
    """Whether a stage that takes rows back does so only for as long as W allows."""
    return (isinstance(operator, Join) and not all(operator.forever)) or (
        isinstance(operator, Top) and operator.window is not None
    )


def _corrects_all(stage: Plan | RowStage) -> bool:
    """Whether a stage may take back what it gave long ago."""
    if isinstance(stage, Plan):
        return isinstance(stage.window, Global) and stage.withdraws()
    if isinstance(stage.operator, Top):
        return stage.operator.window is None
    above = [one.source.derived.stage for one in stage.inputs if one.source.derived is not None]
    return stage.withdraws() and not _forgets(stage.operator) and any(map(_corrects_all, above))


def refuse_windows(plan: Plan) -> None:
    """Refuse windows over rows that may be withdrawn whose answer would be wrong."""
    if plan.signed:
        _refuse_bounds(plan)
        for name, aggregate in plan.aggregates:
            _refuse_aggregate(plan, name, aggregate)


def _refuse_bounds(plan: Plan) -> None:
    if not plan.window.merging and not isinstance(plan.window, EventPair):
        return
    raise PlanError(
        f"{plan.window} over rows that may be withdrawn",
        f"{_source(plan.inputs)} takes back what it gave, and a row that is gone may have been what held the window "
        "together",
        "let the windows before it show each window once, or cut time by ps.tumbling(...) here",
    )


def _refuse_aggregate(plan: Plan, name: str, aggregate: Aggregate) -> None:
    said = f"{name} = {aggregate}"
    if aggregate.kind in SKETCHES:
        exact = "ps.distinct(...)" if aggregate.kind == "approx_distinct" else "ps.collect(...) or ps.mean(...)"
        raise PlanError(
            f"{said} over rows that may be withdrawn",
            f"{_source(plan.inputs)} takes back what it gave, and nothing can be taken out of a sketch",
            f"write {exact}, or let the windows before it show each window once",
        )
    if aggregate.kind == "fold" and not callable(getattr(aggregate.function, "retract", None)):
        raise PlanError(
            f"{said} over rows that may be withdrawn",
            f"{_source(plan.inputs)} takes back what it gave, and the fold has no way to take a value back",
            "give it a method retract(accumulator, value), the opposite of add",
        )
    if plan.pieces and aggregate.kind not in ADDED_UP:
        raise PlanError(
            f"{said} in pieces, over rows that may be withdrawn",
            f"a piece holds what is new, and a withdrawal of what an earlier piece has shown: of that there is no "
            f"{aggregate.kind}",
            "write .retracting() or .accumulating(); in pieces rows, count and sum can be corrected",
        )
    for column in (aggregate.column, aggregate.by) if aggregate.keeps_values else ():
        if column is not None and plan.schema.type_of(column, name).startswith("array<"):
            raise PlanError(
                f"{said} over lists that may be withdrawn",
                "to take a value back the values are kept in order, and lists have none",
                "name a column of single values",
            )


def _source(inputs: Iterable[Input]) -> str:
    return next(one.source.name for one in inputs if one.signed)
