"""What an expression may say of a match: `last(high.price)`, `count(high)`, and the columns that stand for them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from penstock.errors import PlanError, did_you_mean
from penstock.expressions.builder import Col, Name, Node, columns_of, expression
from penstock.expressions.nodes import Call, show
from penstock.types.schema import INTEGERS, NUMBERS, Column, Schema

OF_A_STEP = ("first", "last", "count", "sum", "avg", "min", "max")
_UNORDERED = ("boolean", "binary")
# Text and quoted names are passed over; a step and a column with a point between them become one quoted name.
_DOTTED = re.compile(
    r"""(?P<kept>'(?:[^']|'')*'|"(?:[^"]|"")*"(?!\s*\.)|`(?:[^`]|``)*`)
      | (?P<step>[^\W\d]\w*)\.(?P<column>[^\W\d]\w*|"(?:[^"]|"")+")""",
    re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class Ref:
    """What of the events that a step has taken: of one of their columns, or of the events themselves."""

    function: str
    step: str
    column: str | None

    @property
    def name(self) -> str:
        """The column that stands for it while an expression is evaluated."""
        return f"{self.function}({self.step}.{self.column})" if self.column else f"{self.function}({self.step})"

    def type(self, schema: Schema, where: str) -> str:
        """Its type, or the refusal of what there is not."""
        if self.column is None:
            return "long"
        kind = schema.type_of(self.column, where)
        if self.function == "count":
            return "long"
        if self.function in ("sum", "avg"):
            if kind not in NUMBERS:
                raise self.refused(where, kind, "it adds up whole numbers and doubles", "double")
            return "double" if self.function == "avg" or kind not in INTEGERS else "long"
        if self.function in ("min", "max") and kind in _UNORDERED:
            raise self.refused(where, kind, "there is no order of such values", "string")
        return kind

    def refused(self, where: str, kind: str, why: str, target: str) -> PlanError:
        return PlanError(
            f"{where} has a {kind} in {self.name}",
            why,
            f'compute it first: .with_columns({self.column}="cast({self.column} as {target})")',
        )


@dataclass(frozen=True, slots=True)
class Read:
    """An expression with columns in the place of what it says of a match, and what those are, in order."""

    node: Node
    refs: tuple[Ref, ...]

    @property
    def columns(self) -> frozenset[str]:
        """All columns that it reads, those that stand for the match too."""
        return columns_of(self.node)

    def schema(self, schema: Schema, where: str) -> Schema:
        """The columns of the event and those that stand for the match."""
        held = tuple(Column(ref.name, ref.type(schema, where)) for ref in self.refs)
        return Schema((*schema.columns, *held))


def said(source: str | Col | Node) -> Node:
    """The node of an expression that may speak of steps; `high.price` becomes a column of that name.

    >>> show(said("price < last(high.price)"))
    'price < last("high.price")'
    """
    if not isinstance(source, str):
        return expression(source)
    return expression(_DOTTED.sub(_joined, source))


def shown(node: Node) -> str:
    """The text of such an expression, as one writes it."""
    return re.sub(r'"([^\W\d]\w*\.[^\W\d]\w*)"', r"\1", show(node))


def read(node: Node, schema: Schema, names: Sequence[str], allowed: Sequence[str], where: str) -> Read:
    """An expression that speaks of a match, made one of columns; `allowed` are the steps that it may speak of."""
    found: dict[Ref, None] = {}

    def of(function: str, said: str) -> Name | None:
        step, point, column = said.partition(".")
        if not point and not (function == "count" and said in names):
            return None
        if step not in names:
            if said in schema.names:
                return None
            raise PlanError(
                f"{where} speaks of {said}, and there is no step {step!r}",
                f"the steps of the pattern are: {', '.join(names)}",
                did_you_mean(step, names, f"write the column in double quotes if {said} is one"),
            )
        if step not in allowed:
            raise PlanError(
                f"{where} speaks of the step {step!r}, which has no events then",
                "a condition knows the steps before its own and its own earlier events; negated steps take none",
                f"known here: {', '.join(allowed)}" if allowed else "speak of the event's own columns",
            )
        ref = Ref(function, step, column or None)
        found[ref] = None
        return Name(ref.name)

    def rewritten(part: Node) -> Node:
        if isinstance(part, Name):
            return of("last", part.column) or part
        if isinstance(part, Call) and part.function in OF_A_STEP:
            made = of(part.function, _name_in(part))
            if made is None:
                raise PlanError(
                    f"{where} has {shown(part)}",
                    f"{part.function} is said of the events that a step has taken",
                    f"write it as in {part.function}({(*allowed, *names)[0]}{_sample(part)})",
                )
            return made
        changed = {field.name: _inside(getattr(part, field.name), rewritten) for field in fields(part)}  # type: ignore[arg-type]
        return replace(part, **changed)  # type: ignore[type-var]

    return Read(rewritten(node), tuple(found))


def _name_in(call: Call) -> str:
    """The name that is the call's only argument, or nothing."""
    first = call.args[0] if len(call.args) == 1 else None
    return first.column if isinstance(first, Name) else ""


def _sample(call: Call) -> str:
    return "" if call.function == "count" else f".{_name_in(call) or 'price'}"


def _inside(value: Any, change: Any) -> Any:
    """A field of a node with the nodes in it changed."""
    if isinstance(value, Node):
        return change(value)
    return tuple(_inside(part, change) for part in value) if isinstance(value, tuple) else value


def _joined(match: re.Match[str]) -> str:
    if match["kept"] is not None:
        return match["kept"]
    column = match["column"]
    column = column[1:-1] if column.startswith('"') else column
    return f'"{match["step"]}.{column}"'
