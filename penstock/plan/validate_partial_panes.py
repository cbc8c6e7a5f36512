"""What may be made of pieces of panes: the same as of the whole, through every stage that they go through."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce

from penstock.errors import PlanError
from penstock.expressions.builder import columns_of
from penstock.expressions.nodes import Name, Node
from penstock.model.aggregates import Aggregate
from penstock.plan.operators.enrich import Enrich
from penstock.plan.operators.join import Join
from penstock.plan.operators.join_schema import right_columns
from penstock.plan.operators.passthrough import Pass
from penstock.plan.operators.process import Process
from penstock.plan.operators.table_join import TableJoin
from penstock.plan.operators.temporal_join import TemporalJoin
from penstock.plan.row_steps import Map, MapBatches, Project, Where
from penstock.plan.stages import PANES, Entry, Input, Plan, RowStage

ADDED_UP = ("rows", "count", "sum")
FACT, COMPUTED = "a fact", "computed"
# Of each column: a fact of the window, a piece of an aggregate of that kind, or computed from pieces.
Roles = Mapping[str, str]

_WHY = "windows before it give pieces, of which only all together are the answer of a window"
_WHOLE = "let the windows before it show each window once: no early or late panes, lateness 0"
_RETRACT = "write .retracting() in the place of .discarding() before it"


def refuse_pieces(stage: Plan | RowStage) -> None:
    """Refuse a stage over pieces whose answer is not that of the whole."""
    for side, entry in enumerate(stage.entries):
        for roles in filter(None, map(_roles_of, entry.inputs)):
            if isinstance(stage, Plan):
                _refuse_keys(stage.keys, roles, _RETRACT)
                _refuse_aggregates(stage, roles)
            else:
                _refuse_rows(stage, side, entry, roles)


def _refuse_keys(keys: Sequence[str], roles: Roles, instead: str) -> None:
    for key in keys:
        if roles.get(key) != FACT:
            raise PlanError(f"key_by({key!r}) over pieces of panes", _WHY, instead)


def _refuse_aggregates(plan: Plan, roles: Roles) -> None:
    for name, aggregate in plan.aggregates:
        seen = columns_of(aggregate.where) if aggregate.where is not None else frozenset()
        if not _combines(aggregate, roles) or any(roles.get(column) != FACT for column in seen):
            raise PlanError(
                f"{name} = {aggregate} over pieces of panes",
                f"{_WHY}: the {aggregate.kind} of the pieces is not that of the whole",
                f"{_RETRACT}; pieces have a sum where they are sums or counts, a min of min and a max of max",
            )


def _combines(aggregate: Aggregate, roles: Roles) -> bool:
    """Whether an aggregate of pieces is that of the whole; a fold is the user's own, and says what it does."""
    if aggregate.kind == "fold":
        return True
    role = roles.get(aggregate.column or "", COMPUTED)
    if role == FACT:
        return aggregate.kind in ("min", "max", "distinct", "approx_distinct")
    if aggregate.kind == "sum":
        return role in ADDED_UP
    return aggregate.kind in ("min", "max") and role == aggregate.kind


def _refuse_rows(stage: RowStage, side: int, entry: Entry, roles: Roles) -> None:
    """Refuse a stage that would take each piece for a row of its own; a keyed function is the user's own."""
    operator, instead = stage.operator, _RETRACT if stage.operator.corrects(stage.sides) else _WHOLE
    match operator:
        case Pass() | Enrich():
            return
        case Process() | TableJoin() | TemporalJoin() if side == 0:
            reached: tuple[str, ...] = ()
        case Join():
            reached = operator.columns if side == 0 else ()
            others = [one for one in stage.entries if one is not entry]
            if any(_side_roles(one) for one in others):
                raise PlanError(
                    f"{stage.label} of pieces of panes with pieces of panes",
                    f"{_WHY}: each piece of one side would meet each of the other",
                    instead,
                )
        case _:
            raise PlanError(
                f"{stage.label} over pieces of panes",
                f"{_WHY}: {stage.label} would take each for a row of its own",
                instead,
            )
    _refuse_keys((*entry.keys, *reached), roles, instead)


def _roles_of(one: Input) -> Roles | None:
    """What the columns of an input are, if pieces come to it."""
    if one.source.derived is None:
        return None
    made, output = one.source.derived.stage, one.source.derived.output
    roles = _of_panes(made) if isinstance(made, Plan) else _of_rows(made, output)
    return None if roles is None else _after(one, roles)


def _of_panes(made: Plan) -> Roles | None:
    if not made.pieces:
        return None
    kinds: dict[str, str] = {name: aggregate.kind for name, aggregate in made.aggregates}
    return {name: kinds.get(name, FACT) for name in made.outputs[PANES].names}


def _of_rows(made: RowStage, output: str) -> Roles | None:
    """What the columns of a stage's output are: those of pieces stay what they are, what joins them is a fact."""
    roles = [_side_roles(entry) for entry in made.entries]
    left, right = roles[0], roles[1] if len(roles) > 1 else None
    given = made.outputs[output].names
    match made.operator:
        case Pass():
            return left
        case Enrich() as asked if left is not None:
            known = FACT if asked.on and all(left[name] == FACT for name in asked.on) else COMPUTED
            return {name: left.get(name, known) for name in given}
        case Join() | TableJoin() | TemporalJoin() if left is not None:
            return {name: left.get(name, FACT) for name in given}
        case Join() as join if right is not None and not join.once:
            named = right_columns(made.sides[1], join.prefix)
            return dict.fromkeys(given, FACT) | {new: right[name] for name, new in named.items()}
    return None


def _side_roles(entry: Entry) -> Roles | None:
    """What the columns of a side are, if pieces come to it; of pieces of several kinds they are computed."""
    found = [roles for roles in map(_roles_of, entry.inputs) if roles is not None]
    return reduce(_both, found) if found else None


def _both(one: Roles, other: Roles) -> Roles:
    return {name: role if other[name] == role else COMPUTED for name, role in one.items()}


def _after(one: Input, roles: Roles) -> Roles:
    """What row steps make of them."""
    for step in one.after:
        match step:
            case Project(columns, keep):
                made = {name: _role(node, roles) for name, node in columns}
                roles = {**(roles if keep else {}), **made}
            case Where(predicate):
                if not isinstance(predicate, Node) or any(roles[name] != FACT for name in columns_of(predicate)):
                    roles = dict.fromkeys(roles, COMPUTED)
            case Map() | MapBatches():
                roles = dict.fromkeys(step.schema.names, COMPUTED)
    return roles


def _role(node: Node, roles: Roles) -> str:
    if isinstance(node, Name):
        return roles[node.column]
    return FACT if all(roles[name] == FACT for name in columns_of(node)) else COMPUTED
