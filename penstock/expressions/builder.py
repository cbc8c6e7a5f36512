"""How a row expression is written: as SQL text, or in Python with `col` and `lit`.

What both engines promise: whole numbers are 64 bits and an overflow is an error; `/` gives a double; dividing by zero
is an error; `%` takes the sign of the dividend; a whole number beside a double becomes a double first; NaN equals
nothing; a null operand gives null and never an error. CASE, IF, COALESCE, AND, OR and IN evaluate all their operands,
so an error in a branch that is not taken is still an error.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from penstock.diagnostics.unknown_names import explained, not_rows, unknown_name
from penstock.errors import PlanError
from penstock.expressions.inference import FUNCTIONS, Typed, infer, type_of
from penstock.expressions.nodes import (
    And,
    Arithmetic,
    Call,
    Case,
    Cast,
    Compare,
    In,
    IsNull,
    Literal,
    Name,
    Negate,
    Node,
    Not,
    Or,
    children,
    columns_of,
    literal,
    show,
)
from penstock.expressions.parser import parse
from penstock.types.schema import canonical_type

__all__ = [
    "FUNCTIONS",
    "And",
    "Arithmetic",
    "Call",
    "Case",
    "Cast",
    "Col",
    "Compare",
    "In",
    "IsNull",
    "Literal",
    "Name",
    "Negate",
    "Node",
    "Not",
    "Or",
    "Typed",
    "call",
    "col",
    "columns_of",
    "expression",
    "infer",
    "lit",
    "show",
    "type_of",
]

# Every walk of the tree is a recursion of a few frames per level, and Python's stack is 1,000 deep.
_DEEPEST = 100


@explained
class Col:
    """An expression under construction: its operators build nodes instead of computing."""

    # A comparison gives an expression, not a boolean, so the equality of rule 3 cannot be a dataclass's own.
    __slots__ = ("node",)
    __hash__ = None  # type: ignore[assignment]

    if not TYPE_CHECKING:
        __getattr__, __getitem__ = unknown_name, not_rows

    def __init__(self, node: Node) -> None:
        self.node = node

    def __repr__(self) -> str:
        return f"Col({show(self.node)})"

    def __bool__(self) -> bool:
        raise PlanError(
            f"the expression {show(self.node)} is used as if it were true or false",
            "it has a value for each row, and Python's and, or, not, in and a < b < c ask for one now",
            "write & for and, | for or, ~ for not, .is_in([...]) for in, .between(a, b) for a range",
        )

    def __eq__(self, other: object) -> Col:  # type: ignore[override]
        return _compare("=", self, other)

    def __ne__(self, other: object) -> Col:  # type: ignore[override]
        return _compare("!=", self, other)

    def __lt__(self, other: object) -> Col:
        return _compare("<", self, other)

    def __le__(self, other: object) -> Col:
        return _compare("<=", self, other)

    def __gt__(self, other: object) -> Col:
        return _compare(">", self, other)

    def __ge__(self, other: object) -> Col:
        return _compare(">=", self, other)

    def __add__(self, other: object) -> Col:
        return _arithmetic("+", self, other)

    def __radd__(self, other: object) -> Col:
        return _arithmetic("+", other, self)

    def __sub__(self, other: object) -> Col:
        return _arithmetic("-", self, other)

    def __rsub__(self, other: object) -> Col:
        return _arithmetic("-", other, self)

    def __mul__(self, other: object) -> Col:
        return _arithmetic("*", self, other)

    def __rmul__(self, other: object) -> Col:
        return _arithmetic("*", other, self)

    def __truediv__(self, other: object) -> Col:
        return _arithmetic("/", self, other)

    def __rtruediv__(self, other: object) -> Col:
        return _arithmetic("/", other, self)

    def __mod__(self, other: object) -> Col:
        return _arithmetic("%", self, other)

    def __rmod__(self, other: object) -> Col:
        return _arithmetic("%", other, self)

    def __neg__(self) -> Col:
        return Col(Negate(self.node))

    def __and__(self, other: object) -> Col:
        return Col(And(self.node, _node(other)))

    def __rand__(self, other: object) -> Col:
        return Col(And(_node(other), self.node))

    def __or__(self, other: object) -> Col:
        return Col(Or(self.node, _node(other)))

    def __ror__(self, other: object) -> Col:
        return Col(Or(_node(other), self.node))

    def __invert__(self) -> Col:
        return Col(Not(self.node))

    def is_null(self) -> Col:
        """Whether the value is null."""
        return Col(IsNull(self.node))

    def is_not_null(self) -> Col:
        """Whether the value is there."""
        return Col(IsNull(self.node, negated=True))

    def is_in(self, choices: Iterable[object]) -> Col:
        """Whether the value equals one of the choices."""
        listed = isinstance(choices, Iterable) and not isinstance(choices, str)
        nodes = tuple(_node(choice) for choice in choices) if listed else ()
        if not nodes:
            raise PlanError(
                f"is_in gives {show(self.node)} no list to choose from",
                "no value is in an empty list, and text is one value and not a list",
                "give at least one choice, as in .is_in([1, 2])",
            )
        return Col(In(self.node, nodes))

    def between(self, low: object, high: object) -> Col:
        """Whether the value is from `low` to `high`, both included."""
        return (self >= low) & (self <= high)

    def cast(self, type_name: str) -> Col:
        """The value as another type."""
        return Col(Cast(self.node, canonical_type(type_name)))


def col(name: str) -> Col:
    """The value of a column.

    >>> show(((col("points") + 1) > 3).node)
    'points + 1 > 3'
    """
    return Col(Name(name))


def lit(value: object) -> Col:
    """A constant."""
    return Col(literal(value))


def call(function: str, *args: object) -> Col:
    """A function by its SQL name, as in `call("lower", col("team"))`."""
    return Col(Call(function.lower(), tuple(_node(arg) for arg in args)))


def expression(source: str | Col | Node) -> Node:
    """The node of an expression in any form that Penstock takes; text is SQL."""
    if not isinstance(source, str | Col | Node):
        raise PlanError(
            f"{source!r} is not an expression",
            "an expression is SQL text, or made with col and lit",
            'write it as in "points + 1" or col("points") + 1; a constant is lit(3)',
        )
    node = parse(source) if isinstance(source, str) else _node(source)
    level, depth = [node], 0
    while level:
        level, depth = [child for part in level for child in children(part)], depth + 1
    if depth > _DEEPEST:
        raise PlanError(
            f"the expression is nested {depth} levels deep",
            f"the deepest that Penstock evaluates is {_DEEPEST}",
            "split it over several columns, or write a long list of ors as team in ('a', 'b')",
        )
    return node


def _node(value: object) -> Node:
    if isinstance(value, Col):
        return value.node
    return value if isinstance(value, Node) else literal(value)


def _compare(op: str, left: object, right: object) -> Col:
    return Col(Compare(op, _node(left), _node(right)))


def _arithmetic(op: str, left: object, right: object) -> Col:
    return Col(Arithmetic(op, _node(left), _node(right)))
