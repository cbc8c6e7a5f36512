"""Which type each part of an expression has, and which conversions SQL leaves unsaid.

Both engines run the tree that `infer` gives, so they cannot differ about types: sugar is gone, every null has a type,
and operands are already of the type that their operation works on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from penstock.errors import PlanError, did_you_mean
from penstock.expressions import nodes as n
from penstock.expressions.nodes import UNTYPED, Node, show
from penstock.types.schema import FLOATS, INTEGERS, NUMBERS, Schema, canonical_type
from penstock.types.text import decimal_parts

WIDE = "decimal(19,0)"
CASTS = {
    "int": (*NUMBERS, "string", "decimal"),
    "long": (*NUMBERS, "string", "decimal"),
    "float": (*NUMBERS, "string", "decimal"),
    "double": (*NUMBERS, "string", "decimal"),
    "string": (*INTEGERS, "boolean", "string"),
    "timestamp": ("timestamp", "date", "string"),
    "date": ("date", "timestamp", "string"),
    "decimal": ("decimal", *INTEGERS, "string"),
    "boolean": ("boolean",),
    "binary": ("binary",),
}
_ORDERED = (*NUMBERS, "string", "binary", "date", "timestamp", "decimal")


@dataclass(frozen=True, slots=True)
class Typed:
    """A part of an expression with its operation, its type and its operands; `node` is what the user wrote."""

    op: str
    type: str
    args: tuple[Typed, ...]
    node: Node


def infer(node: Node, schema: Schema, where: str) -> Typed:
    """The typed tree of an expression, or the refusal of one that has no type."""
    found = _Inference(schema, where).typed(node)
    if found.type == UNTYPED:
        raise _untyped(node, where)
    return found


def type_of(node: Node, schema: Schema, where: str) -> str:
    """The canonical name of an expression's type."""
    return infer(node, schema, where).type


class _Inference:
    def __init__(self, schema: Schema, where: str) -> None:
        self.schema = schema
        self.where = where

    def typed(self, node: Node) -> Typed:
        match node:
            case n.Name():
                return Typed("column", self.schema.type_of(node.column, self.where), (), node)
            case n.Literal():
                return Typed("literal", node.type, (), node)
            case n.Compare():
                return self.compared(node, (node.left, node.right), node.op, ordered=node.op not in ("=", "!="))
            case n.In():
                found = self.compared(node, (node.operand, *node.choices), "in", ordered=False)
                return Typed("not", "boolean", (found,), node) if node.negated else found
            case n.Arithmetic():
                return self.arithmetic(node)
            case n.Negate():
                return self.number("negate", node, node.operand)
            case n.And() | n.Or():
                return self.booleans("and" if isinstance(node, n.And) else "or", node, node.left, node.right)
            case n.Not():
                return self.booleans("not", node, node.operand)
            case n.IsNull():
                found = self.typed(node.operand)
                found = self.become(found, "boolean") if found.type == UNTYPED else found
                return Typed("is_not_null" if node.negated else "is_null", "boolean", (found,), node)
            case n.Case():
                return self.case(node, node.branches, node.otherwise)
            case n.Cast():
                return self.cast(node)
            case n.Call():
                return self.call(node)
        raise TypeError(f"{node!r} is not a node")

    def become(self, typed: Typed, target: str) -> Typed:
        """A part as the type its operation works on; only what loses nothing that SQL keeps."""
        if typed.type == target:
            return typed
        if typed.type == UNTYPED:
            return Typed("literal", target, (), typed.node)
        if typed.type in INTEGERS and target in FLOATS:
            return Typed("widen", target, (typed,), typed.node)
        if typed.type in INTEGERS and target == WIDE:
            return Typed("to_decimal", target, (typed,), typed.node)
        if typed.op == "column":
            return replace(typed, type=target)
        # The operation keeps its own type, which a cast checks its range by.
        return Typed("same", target, (typed,), typed.node)

    def unified(self, node: Node, parts: Sequence[Typed]) -> tuple[Typed, ...]:
        """Parts that must all be of one type, as the branches of a case."""
        known = {part.type for part in parts} - {UNTYPED}
        if not known:
            raise _untyped(node, self.where)
        if len(known) == 1:
            target = known.pop()
        elif known <= set(NUMBERS):
            target = "long" if known <= set(INTEGERS) else "double"
        else:
            raise self.mixed(node, parts)
        return tuple(self.become(part, target) for part in parts)

    def compared(self, node: Node, nodes: Sequence[Node], op: str, ordered: bool) -> Typed:
        parts = [self.typed(part) for part in nodes]
        kinds = {_kind(part.type) for part in parts} - {UNTYPED}
        if "decimal" in kinds and kinds <= {"decimal", *INTEGERS}:
            parts = [part if _kind(part.type) == "decimal" else self.become(part, WIDE) for part in parts]
        else:
            parts = list(self.unified(node, parts))
        if ordered and _kind(parts[0].type) not in _ORDERED:
            raise self.wrong(node, parts[0], "there is no order of such values", "compare them with = or !=")
        return Typed(op, "boolean", tuple(parts), node)

    def booleans(self, op: str, node: Node, *nodes: Node) -> Typed:
        return Typed(op, "boolean", self.all_of("boolean", node, nodes), node)

    def all_of(self, wanted: str, node: Node, nodes: Sequence[Node]) -> tuple[Typed, ...]:
        parts = [self.typed(part) for part in nodes]
        for part in parts:
            if part.type not in (wanted, UNTYPED):
                hint = "compare it, as in {} = 1" if wanted == "boolean" else "write cast({} as string)"
                raise self.wrong(node, part, f"a {wanted} must stand there", hint.format(show(part.node)))
        return tuple(self.become(part, wanted) for part in parts)

    def number(self, op: str, node: Node, operand: Node) -> Typed:
        """A function of one number that keeps its type, int becoming long because its result may not fit."""
        part = self.typed(operand)
        if part.type == UNTYPED:
            raise _untyped(node, self.where)
        if part.type not in NUMBERS and _kind(part.type) != "decimal":
            raise self.wrong(node, part, "it needs a number", f"write cast({show(part.node)} as long)")
        return Typed(op, "long" if part.type == "int" else part.type, (part,), node)

    def arithmetic(self, node: n.Arithmetic) -> Typed:
        left, right = self.typed(node.left), self.typed(node.right)
        kinds = {_kind(left.type), _kind(right.type)} - {UNTYPED}
        if not kinds:
            raise _untyped(node, self.where)
        if "decimal" in kinds and kinds <= {"decimal", *INTEGERS} and node.op in "+-":
            return self.decimal_sum(node, left, right)
        if not kinds <= set(NUMBERS):
            odd = left if left.type not in (*NUMBERS, UNTYPED) else right
            hint = "write a || b to join text" if odd.type == "string" and node.op == "+" else "write cast({} as {})"
            why = "decimals can only be added, subtracted and compared, with decimals and whole numbers"
            if _kind(odd.type) != "decimal":
                why = f"{node.op} works on numbers"
            raise self.wrong(node, odd, why, hint.format(show(odd.node), "long" if odd.type == "string" else "double"))
        floating = node.op == "/" or kinds & set(FLOATS)
        target = "double" if floating else "long"
        return Typed(node.op, target, (self.become(left, target), self.become(right, target)), node)

    def decimal_sum(self, node: n.Arithmetic, left: Typed, right: Typed) -> Typed:
        parts = [self.become(part, WIDE) if _kind(part.type) != "decimal" else part for part in (left, right)]
        sizes = [decimal_parts(part.type) for part in parts]
        scale = max(size[1] for size in sizes)
        precision = max(size[0] - size[1] for size in sizes) + scale + 1
        if precision > 38:
            why = f"its result could need {precision} digits, and a decimal holds 38"
            raise self.wrong(node, parts[0], why, f"write cast({show(parts[0].node)} as double)")
        return Typed(node.op, f"decimal({precision},{scale})", tuple(parts), node)

    def case(self, node: Node, branches: Sequence[tuple[Node, Node]], otherwise: Node | None) -> Typed:
        tests = self.all_of("boolean", node, [test for test, _ in branches])
        values = [self.typed(value) for _, value in branches]
        last = self.typed(otherwise) if otherwise is not None else Typed("literal", UNTYPED, (), n.literal(None))
        values = list(self.unified(node, [*values, last]))
        pairs = [part for pair in zip(tests, values, strict=False) for part in pair]
        return Typed("case", values[0].type, (*pairs, values[-1]), node)

    def cast(self, node: n.Cast) -> Typed:
        part, target = self.typed(node.operand), canonical_type(node.type)
        widens = part.type in NUMBERS and target in FLOATS
        if widens or part.type in (UNTYPED, target) or (part.type, target) == ("int", "long"):
            return self.become(part, target)
        allowed = CASTS[_kind(target)]
        if _kind(part.type) not in allowed:
            why = f"only {', '.join(allowed)} can become {target}"
            raise self.wrong(node, part, why, "leave the cast out, or cast twice")
        return Typed("cast", target, (part,), node)

    def call(self, node: n.Call) -> Typed:
        if node.function not in FUNCTIONS:
            raise self.refused(
                node,
                f"calls {node.function}, which is not a function",
                "the names of functions are fixed",
                did_you_mean(node.function, FUNCTIONS),
            )
        fewest, most, rule, sample = FUNCTIONS[node.function]
        if not fewest <= len(node.args) <= most:
            wanted = str(fewest) if fewest == most else f"at least {fewest}" if most == _ANY else f"{fewest} to {most}"
            why = f"{node.function} takes {wanted} and has {len(node.args)}"
            raise self.refused(node, "has a wrong number of arguments", why, f"write it as in {sample}")
        return rule(self, node)

    def strings(self, node: n.Call) -> Typed:
        parts = self.all_of("string", node, node.args)
        return Typed(node.function, "long" if node.function == "length" else "string", parts, node)

    def pattern(self, node: n.Call) -> Typed:
        self.constant(node, 1, "text", lambda value: isinstance(value, str))
        return Typed(node.function, "boolean", self.all_of("string", node, node.args[:1]), node)

    def substring(self, node: n.Call) -> Typed:
        for place in range(1, len(node.args)):
            self.constant(node, place, "a whole number, counted from 1", lambda v: isinstance(v, int) and v >= 1)
        return Typed("substring", "string", self.all_of("string", node, node.args[:1]), node)

    def rounded(self, node: n.Call) -> Typed:
        if len(node.args) == 2:
            self.constant(node, 1, "a whole number from 0 to 15", lambda v: isinstance(v, int) and 0 <= v <= 15)
        found = self.number(node.function, node, node.args[0])
        if _kind(found.type) == "decimal":
            hint = f"write cast({show(node.args[0])} as double)"
            raise self.wrong(node, found.args[0], "decimals are not rounded", hint)
        return found.args[0] if found.args[0].type in INTEGERS else found

    def absolute(self, node: n.Call) -> Typed:
        return self.number("abs", node, node.args[0])

    def extreme(self, node: n.Call) -> Typed:
        parts = self.unified(node, [self.typed(part) for part in node.args])
        if _kind(parts[0].type) not in _ORDERED:
            raise self.wrong(node, parts[0], "there is no order of such values", "write a case")
        return Typed(node.function, parts[0].type, parts, node)

    def first(self, node: n.Call) -> Typed:
        parts = self.unified(node, [self.typed(part) for part in node.args])
        return Typed("coalesce", parts[0].type, parts, node)

    def choice(self, node: n.Call) -> Typed:
        return self.case(node, [(node.args[0], node.args[1])], node.args[2])

    def null_if(self, node: n.Call) -> Typed:
        return self.case(node, [(n.Compare("=", *node.args), n.literal(None))], node.args[0])

    def constant(self, node: n.Call, place: int, what: str, accepts: Callable[[object], bool]) -> None:
        given = node.args[place]
        if not (isinstance(given, n.Literal) and not isinstance(given.value, bool) and accepts(given.value)):
            why = f"argument {place + 1} of {node.function} must be {what}, the same for all rows"
            hint = f"write it as in {FUNCTIONS[node.function][3]}"
            raise self.refused(node, f"gives {node.function} {show(given)}", why, hint)

    def mixed(self, node: Node, parts: Sequence[Typed]) -> PlanError:
        types = "; ".join(f"{show(part.node)} is a {part.type}" for part in parts if part.type != UNTYPED)
        first, *rest = [part for part in parts if part.type != UNTYPED]
        other = next(part for part in rest if part.type != first.type)
        castable = _kind(other.type) in CASTS[_kind(first.type)]
        hint = f"write cast({show(other.node)} as {first.type})" if castable else "give values of one type"
        if first.type in ("timestamp", "date") and isinstance(other.node, n.Literal) and other.type == "string":
            hint = f"write {first.type} {show(other.node)}"
        elif _kind(first.type) == "decimal" and isinstance(other.node, n.Literal) and other.type == "double":
            hint = f"write decimal '{other.node.value}'"
        return self.refused(node, "mixes types", types, hint)

    def wrong(self, node: Node, part: Typed, why: str, hint: str) -> PlanError:
        return self.refused(node, f"has a {part.type} in {show(part.node)}", why, hint)

    def refused(self, node: Node, what: str, why: str, hint: str) -> PlanError:
        return PlanError(f"{self.where} {what}: {show(node)}", why, hint or "cast it in the source")


def _kind(type_name: str) -> str:
    return "decimal" if type_name.startswith("decimal") else type_name


def _untyped(node: Node, where: str) -> PlanError:
    return PlanError(
        f"{where} has a value of no type: {show(node)}",
        "a bare null can be of any type",
        "say which, as in cast(null as long)",
    )


_ANY = 1_000
_Rule = Callable[[_Inference, n.Call], Typed]
FUNCTIONS: dict[str, tuple[int, int, _Rule, str]] = {
    "abs": (1, 1, _Inference.absolute, "abs(points)"),
    "ceil": (1, 1, _Inference.rounded, "ceil(price)"),
    "floor": (1, 1, _Inference.rounded, "floor(price)"),
    "round": (1, 2, _Inference.rounded, "round(price, 2)"),
    "lower": (1, 1, _Inference.strings, "lower(team)"),
    "upper": (1, 1, _Inference.strings, "upper(team)"),
    "trim": (1, 1, _Inference.strings, "trim(team)"),
    "length": (1, 1, _Inference.strings, "length(team)"),
    "concat": (1, _ANY, _Inference.strings, "concat(team, '!')"),
    "substring": (2, 3, _Inference.substring, "substring(team, 1, 3)"),
    "like": (2, 2, _Inference.pattern, "team like 'a%'"),
    "starts_with": (2, 2, _Inference.pattern, "starts_with(team, 'a')"),
    "ends_with": (2, 2, _Inference.pattern, "ends_with(team, 'a')"),
    "contains": (2, 2, _Inference.pattern, "contains(team, 'a')"),
    "least": (1, _ANY, _Inference.extreme, "least(a, b)"),
    "greatest": (1, _ANY, _Inference.extreme, "greatest(a, b)"),
    "coalesce": (1, _ANY, _Inference.first, "coalesce(points, 0)"),
    "nullif": (2, 2, _Inference.null_if, "nullif(points, 0)"),
    "if": (3, 3, _Inference.choice, "if(points > 3, 'many', 'few')"),
}
