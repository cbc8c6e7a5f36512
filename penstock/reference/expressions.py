"""What an expression is worth for one row, as plainly as it can be said.

A timestamp is an int of microseconds, a date is a `date`, a decimal a `Decimal`, binary is bytes, and null is None.
All operands are always evaluated: an error in a branch that is not taken is an error.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

from penstock.expressions.inference import Typed, infer
from penstock.expressions.nodes import LONG_MAX, LONG_MIN, Call, Literal, Name, Node, failed
from penstock.types import timestamps
from penstock.types.schema import INTEGERS, Schema
from penstock.types.text import EXACT, by_value, fits

Evaluator = Callable[[Mapping[str, object]], object]
_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def evaluator(node: Node, schema: Schema, where: str = "expression") -> Evaluator:
    """The function from a row to the value of an expression; it raises EvaluationError for a row that has none."""
    return _compiled(infer(node, schema, where))


def evaluate(node: Node, row: Mapping[str, object], schema: Schema) -> object:
    """The value of an expression for one row."""
    return evaluator(node, schema)(row)


def _compiled(typed: Typed) -> Evaluator:
    if isinstance(typed.node, Name) and typed.op == "column":
        column = typed.node.column
        return lambda row: row[column]
    if isinstance(typed.node, Literal) and typed.op == "literal":
        value = typed.node.value
        return lambda row: value
    parts = [_compiled(arg) for arg in typed.args]
    compute = _THREE_VALUED.get(typed.op)
    if compute is not None:
        logic = compute
        return lambda row: logic([part(row) for part in parts])
    strict = _strict(typed)

    def evaluated(row: Mapping[str, object]) -> object:
        values = [part(row) for part in parts]
        return None if None in values else strict(*values)

    return evaluated


def _and(values: list[Any]) -> bool | None:
    return False if False in values else None if None in values else True


def _or(values: list[Any]) -> bool | None:
    return True if True in values else None if None in values else False


def _in(values: list[Any]) -> bool | None:
    operand, *choices = values
    if operand is None:
        return None
    return _or([None if choice is None else operand == choice for choice in choices])


def _case(values: list[Any]) -> object:
    *pairs, otherwise = values
    for test, value in zip(pairs[::2], pairs[1::2], strict=True):
        if test:
            return value
    return otherwise


_THREE_VALUED: dict[str, Callable[[list[Any]], object]] = {
    "and": _and,
    "or": _or,
    "in": _in,
    "case": _case,
    "is_null": lambda values: values[0] is None,
    "is_not_null": lambda values: values[0] is not None,
    "coalesce": lambda values: next((value for value in values if value is not None), None),
}


def _strict(typed: Typed) -> Callable[..., object]:
    """The operation on values that are all there."""
    op = typed.op
    if op in _COMPARE:
        return _COMPARE[op]
    if op in ("+", "-", "*", "/", "%", "negate", "abs"):
        return _arithmetic(typed)
    if op == "cast":
        return _cast(typed)
    if op in ("substring", "like", "starts_with", "ends_with", "contains", "round"):
        assert isinstance(typed.node, Call)
        constants = [arg.value for arg in typed.node.args[1:] if isinstance(arg, Literal)]
        return _WITH_CONSTANTS[op](*constants)
    return _PLAIN[op]


def _arithmetic(typed: Typed) -> Callable[..., object]:
    node = typed.node
    if typed.type.startswith("decimal"):
        exact: dict[str, Callable[..., object]] = {
            "+": EXACT.add,
            "-": EXACT.subtract,
            "negate": EXACT.minus,
            "abs": EXACT.abs,
        }
        return exact[typed.op]
    compute = _NUMBERS[typed.op]

    def computed(*values: Any) -> object:
        if typed.op in "/%" and values[1] == 0:
            raise failed("division by zero", node)
        found = compute(*values)
        if isinstance(found, int) and not LONG_MIN <= found <= LONG_MAX:
            raise failed("overflow", node)
        return found

    return computed


def _remainder(left: Any, right: Any) -> Any:
    if isinstance(left, int):
        return abs(left) % abs(right) * (-1 if left < 0 else 1)
    return math.nan if math.isinf(left) else math.fmod(left, right)


_NUMBERS: dict[str, Callable[..., Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "%": _remainder,
    "negate": operator.neg,
    "abs": abs,
}


def _cast(typed: Typed) -> Callable[[Any], object]:
    source, target, node = typed.args[0].type, typed.type, typed.node
    convert: Callable[[Any], object]
    if source == "string" or "decimal" in source + target:
        convert = by_value(source, target)
    elif target == "string":
        convert = lambda value: str(value).lower()  # noqa: E731
    elif target in INTEGERS:
        convert = lambda value: fits(math.trunc(value), target)  # noqa: E731
    else:
        convert = {"timestamp": _to_timestamp, "date": _to_date}[target]
    problem = "unreadable value" if source == "string" else "value out of range"

    def converted(value: object) -> object:
        try:
            return convert(value)
        except (ValueError, OverflowError, ArithmeticError):
            raise failed(problem, node) from None

    return converted


def _to_timestamp(day: Any) -> int:
    return timestamps.from_datetime(datetime(day.year, day.month, day.day, tzinfo=UTC))


def _to_date(moment: Any) -> date:
    found = timestamps.to_datetime(moment)
    if found is None:
        raise ValueError("outside the years 1 to 9999")
    return found.date()


def _whole(rounded: Callable[[float], int]) -> Callable[[float], float]:
    # copysign keeps the sign of a zero, as the processor's own instruction does.
    return lambda value: math.copysign(float(rounded(value)), value) if math.isfinite(value) else value


def _round(digits: int = 0) -> Callable[[float], float]:
    scale = 10.0**digits

    def rounded(value: float) -> float:
        moved = value * scale
        if not math.isfinite(moved):
            return value
        whole = math.copysign(float(math.trunc(moved)), moved)
        return (whole + math.copysign(1.0, moved) if abs(moved - whole) >= 0.5 else whole) / scale

    return rounded


def _like(pattern: str) -> Callable[[str], bool]:
    letters = {"%": ".*", "_": "."}
    compiled = re.compile("".join(letters.get(letter) or re.escape(letter) for letter in pattern), re.DOTALL)
    return lambda text: compiled.fullmatch(text) is not None


def _substring(start: int, length: int | None = None) -> Callable[[str], str]:
    return lambda text: text[start - 1 : None if length is None else start - 1 + length]


def _extreme(better: Callable[[Any, Any], bool]) -> Callable[..., Any]:
    def chosen(first: Any, *rest: Any) -> Any:
        for value in rest:
            # A NaN on either side is the answer, whatever the order of the operands.
            first = first if better(first, value) or first != first else value
        return first

    return chosen


_WITH_CONSTANTS: dict[str, Callable[..., Callable[..., object]]] = {
    "substring": _substring,
    "like": _like,
    "round": _round,
    "starts_with": lambda start: lambda text: text.startswith(start),
    "ends_with": lambda end: lambda text: text.endswith(end),
    "contains": lambda inner: lambda text: inner in text,
}
_PLAIN: dict[str, Callable[..., object]] = {
    "not": operator.not_,
    "same": lambda value: value,
    "widen": float,
    "to_decimal": Decimal,
    "floor": _whole(math.floor),
    "ceil": _whole(math.ceil),
    "lower": str.lower,
    "upper": str.upper,
    "length": len,
    "trim": lambda text: text.strip(" "),
    "concat": lambda *texts: "".join(texts),
    "least": _extreme(operator.le),
    "greatest": _extreme(operator.ge),
}
