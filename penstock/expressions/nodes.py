"""What a row expression is made of: the nodes of its tree, and the one SQL text of each."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal

from penstock.errors import EvaluationError, PlanError
from penstock.types import timestamps

UNTYPED = "null"
RESERVED = frozenset(
    {
        "and",
        "or",
        "not",
        "is",
        "null",
        "in",
        "between",
        "like",
        "case",
        "when",
        "then",
        "else",
        "end",
        "cast",
        "as",
        "true",
        "false",
    }
)

LONG_MIN, LONG_MAX = -(2**63), 2**63 - 1
_PLAIN = re.compile(r"[^\W\d]\w*")
_SHORT = 80

# Binding powers, loosest first; the parser climbs them and `show` puts parentheses by them.
OR, AND, NOT, COMPARE, CONCAT, ADD, MULTIPLY, NEGATE, ATOM = range(1, 10)
POWER = {"+": ADD, "-": ADD, "*": MULTIPLY, "/": MULTIPLY, "%": MULTIPLY}


class Node:
    """One part of a row expression."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Name(Node):
    """The value of a column."""

    column: str


@dataclass(frozen=True, slots=True)
class Literal(Node):
    """A constant: long, double, string, boolean, binary, date, timestamp (microseconds), decimal or null."""

    value: object
    type: str


@dataclass(frozen=True, slots=True)
class Compare(Node):
    """One of = != < <= > >=; null if either side is null."""

    op: str
    left: Node
    right: Node


@dataclass(frozen=True, slots=True)
class Arithmetic(Node):
    """One of + - * / %."""

    op: str
    left: Node
    right: Node


@dataclass(frozen=True, slots=True)
class Negate(Node):
    """Unary minus."""

    operand: Node


@dataclass(frozen=True, slots=True)
class And(Node):
    """Three-valued and."""

    left: Node
    right: Node


@dataclass(frozen=True, slots=True)
class Or(Node):
    """Three-valued or."""

    left: Node
    right: Node


@dataclass(frozen=True, slots=True)
class Not(Node):
    """Three-valued not."""

    operand: Node


@dataclass(frozen=True, slots=True)
class IsNull(Node):
    """Whether a value is null, or with `negated` whether it is there; never null itself."""

    operand: Node
    negated: bool = False


@dataclass(frozen=True, slots=True)
class In(Node):
    """Whether a value equals one of the choices."""

    operand: Node
    choices: tuple[Node, ...]
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Case(Node):
    """The value of the first branch whose condition is true."""

    branches: tuple[tuple[Node, Node], ...]
    otherwise: Node | None = None


@dataclass(frozen=True, slots=True)
class Cast(Node):
    """A value as another type."""

    operand: Node
    type: str


@dataclass(frozen=True, slots=True)
class Call(Node):
    """A function of its arguments; the name is in lower case."""

    function: str
    args: tuple[Node, ...]


def literal(value: object) -> Node:
    """The node of a Python constant; NaN and the infinities become casts, for SQL has no other way to write them."""
    if value is None:
        return Literal(None, UNTYPED)
    if isinstance(value, bool):
        return Literal(value, "boolean")
    if isinstance(value, int) and LONG_MIN <= value <= LONG_MAX:
        return Literal(int(value), "long")
    if isinstance(value, float):
        finite = math.isfinite(value)
        return Literal(float(value), "double") if finite else Cast(Literal(_odd(value), "string"), "double")
    if isinstance(value, str) and not any("\ud800" <= letter <= "\udfff" for letter in value):
        return Literal(str(value), "string")
    if isinstance(value, bytes):
        return Literal(bytes(value), "binary")
    if isinstance(value, datetime):
        return Literal(timestamps.from_datetime(value), "timestamp")
    if isinstance(value, date):
        return Literal(value, "date")
    if isinstance(value, Decimal) and value.is_finite():
        return _decimal(value)
    raise PlanError(
        f"{value!r} cannot be a constant of an expression",
        "a constant is null, a boolean, a long, a double, text, bytes, a date, a time or a decimal",
        "convert it first, as in lit(int(count)) or lit(str(name))",
    )


def children(node: Node) -> Iterator[Node]:
    """The parts that a node is directly made of, in the order in which they are evaluated."""
    match node:
        case Compare() | Arithmetic() | And() | Or():
            yield from (node.left, node.right)
        case Negate() | Not() | IsNull() | Cast():
            yield node.operand
        case In():
            yield from (node.operand, *node.choices)
        case Case():
            for branch in node.branches:
                yield from branch
            if node.otherwise is not None:
                yield node.otherwise
        case Call():
            yield from node.args


def columns_of(node: Node) -> frozenset[str]:
    """The columns that an expression reads."""
    found, waiting = set(), [node]
    while waiting:
        part = waiting.pop()
        if isinstance(part, Name):
            found.add(part.column)
        waiting.extend(children(part))
    return frozenset(found)


def failed(problem: str, node: Node) -> EvaluationError:
    """The error of a row, in the same words whichever engine met it."""
    text = show(node)
    if len(text) > _SHORT:
        kind = node.op if isinstance(node, Arithmetic) else "-" if isinstance(node, Negate) else text.split("(")[0]
        text = f"{kind} of {', '.join(sorted(columns_of(node)))}"
    return EvaluationError(" ".join(f"{problem} in {text}".split()))


def show(node: Node) -> str:
    """The SQL text of an expression, which parses back to an equal one."""
    match node:
        case Name():
            return quoted(node.column)
        case Literal():
            return _show_literal(node)
        case Compare():
            return f"{_within(node.left, CONCAT)} {node.op} {_within(node.right, CONCAT)}"
        case Arithmetic():
            power = POWER[node.op]
            return f"{_within(node.left, power)} {node.op} {_within(node.right, power + 1)}"
        case Negate():
            # A minus right before a number is part of the number.
            number = isinstance(node.operand, Literal)
            return f"-({show(node.operand)})" if number else f"-{_within(node.operand, ATOM)}"
        case And():
            return f"{_within(node.left, AND)} and {_within(node.right, NOT)}"
        case Or():
            return f"{_within(node.left, OR)} or {_within(node.right, AND)}"
        case Not():
            return f"not {_within(node.operand, NOT)}"
        case IsNull():
            return f"{_within(node.operand, CONCAT)} is {'not ' if node.negated else ''}null"
        case In():
            choices = ", ".join(map(show, node.choices))
            return f"{_within(node.operand, CONCAT)} {'not ' if node.negated else ''}in ({choices})"
        case Case():
            branches = " ".join(f"when {show(test)} then {show(value)}" for test, value in node.branches)
            return f"case {branches}{'' if node.otherwise is None else ' else ' + show(node.otherwise)} end"
        case Cast():
            return f"cast({show(node.operand)} as {node.type})"
        case Call(function="like", args=(text, pattern)):
            return f"{_within(text, CONCAT)} like {_within(pattern, CONCAT)}"
        case Call():
            return f"{node.function}({', '.join(map(show, node.args))})"
    raise TypeError(f"{node!r} is not a node")


def quoted(name: str) -> str:
    """A column's name as SQL writes it: in double quotes unless it is a plain word."""
    if _PLAIN.fullmatch(name) and name.lower() not in RESERVED:
        return name
    return '"' + name.replace('"', '""') + '"'


def _within(node: Node, power: int) -> str:
    return show(node) if _power(node) >= power else f"({show(node)})"


def _power(node: Node) -> int:
    match node:
        case Or():
            return OR
        case And():
            return AND
        case Not():
            return NOT
        case Compare() | IsNull() | In() | Call(function="like", args=(_, _)):
            return COMPARE
        case Arithmetic():
            return POWER[node.op]
        case Negate():
            return NEGATE
    return ATOM


def _show_literal(node: Literal) -> str:
    value = node.value
    if value is None or isinstance(value, bool):
        return str(value).lower().replace("none", "null")
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, bytes):
        return f"x'{value.hex()}'"
    if isinstance(value, Decimal):
        return f"decimal '{value:f}'"
    if isinstance(value, date):
        return f"date '{value.isoformat()}'"
    if node.type == "timestamp" and isinstance(value, int):
        moment = timestamps.to_datetime(value)
        return f"timestamp '{value if moment is None else moment.replace(tzinfo=None).isoformat(' ')}'"
    return repr(value)


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def _odd(value: float) -> str:
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _decimal(value: Decimal) -> Literal:
    sign, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    scale, precision = max(0, -exponent), max(len(digits) + max(0, exponent), -exponent, 1)
    if precision > 38:
        raise PlanError(
            f"{value} has more than 38 digits",
            "a decimal holds at most 38 digits, those after the point included",
            "round it, or write it as a double",
        )
    plain = Decimal((sign, digits + (0,) * max(0, exponent), min(0, exponent)))
    return Literal(plain, f"decimal({precision},{scale})")
