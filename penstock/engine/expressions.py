"""What an expression is worth for each row of a batch, a column at a time."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.expressions.inference import Typed, infer
from penstock.expressions.nodes import Call, Literal, Name, Node, failed
from penstock.types import timestamps
from penstock.types.arrow import arrow_type
from penstock.types.durations import DAY
from penstock.types.schema import FLOATS, INTEGERS, Schema
from penstock.types.text import by_value

# An array with a value per row, or a scalar that stands for all rows.
Values = Any
Batch = Any
_COMPARE = {
    "=": pc.equal,
    "!=": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}
_LONGEST = 2**31 - 1


def evaluator(node: Node, schema: Schema, where: str = "expression") -> Callable[[Batch], pa.Array]:
    """The function from a batch to the column of an expression's values.

    It raises EvaluationError if some row has none; the caller bisects the batch to find which.
    """
    typed = infer(node, schema, where)

    def evaluated(batch: Batch) -> pa.Array:
        if batch.num_rows == 0:
            # A constant such as 1 / 0 fails for a row, and here is none.
            return pa.array([], arrow_type(typed.type))
        return _array(_value(typed, batch), batch.num_rows)

    return evaluated


def evaluate(node: Node, batch: Batch, schema: Schema) -> pa.Array:
    """The values of an expression for the rows of a batch."""
    return evaluator(node, schema)(batch)


def _value(typed: Typed, batch: Batch) -> Values:
    if isinstance(typed.node, Name) and typed.op == "column":
        column = batch.column(batch.schema.get_field_index(typed.node.column))
        whole = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
        kind = arrow_type(typed.type)
        return whole if whole.type == kind else whole.cast(kind)
    if isinstance(typed.node, Literal) and typed.op == "literal":
        return pa.scalar(typed.node.value, arrow_type(typed.type))
    args = [_value(arg, batch) for arg in typed.args]
    if typed.op in _COMPARE:
        return _compare(typed.op, args[0], args[1])
    return _OPERATIONS[typed.op](typed, args, batch.num_rows)


def _array(values: Values, rows: int) -> pa.Array:
    if isinstance(values, pa.ChunkedArray):
        return values.combine_chunks()
    return pa.repeat(values, rows) if isinstance(values, pa.Scalar) else values


def _compare(op: str, left: Values, right: Values) -> Values:
    if left.type != right.type:
        # Decimals of two scales: 76 digits hold both, where 38 may not.
        scale = max(left.type.scale, right.type.scale)
        left, right = (side.cast(pa.decimal256(76, scale)) for side in (left, right))
    return _COMPARE[op](left, right)


def _in(typed: Typed, args: list[Values], rows: int) -> Values:
    operand, *choices = args
    kinds = {arg.type for arg in typed.args}
    if len(kinds) > 1 or kinds & set(FLOATS) or not all(isinstance(choice, pa.Scalar) for choice in choices):
        # Not is_in: it would hash, and find NaN equal to NaN and -0.0 unequal to 0.0.
        found = _compare("=", operand, choices[0])
        for choice in choices[1:]:
            found = pc.or_kleene(found, _compare("=", operand, choice))
        return found
    operand = _array(operand, rows)
    values = [choice for choice in choices if choice.is_valid]
    among = pc.is_in(operand, pa.array(values, operand.type))
    unknown = pa.scalar(None, pa.bool_())
    if len(values) < len(choices):
        among = pc.if_else(among, among, unknown)
    return pc.if_else(pc.is_valid(operand), among, unknown)


def _arithmetic(typed: Typed, args: list[Values], rows: int) -> Values:
    if typed.op in "/%":
        return _divided(typed, _array(args[0], rows), _array(args[1], rows))
    name = {"+": "add", "-": "subtract", "*": "multiply"}.get(typed.op, typed.op)
    whole = typed.type in INTEGERS
    try:
        found = pc.call_function(f"{name}_checked" if whole else name, args)
    except pa.ArrowInvalid:
        raise failed("overflow", typed.node) from None
    kind = arrow_type(typed.type)
    return found if found.type == kind else found.cast(kind)


def _divided(typed: Typed, left: pa.Array, right: pa.Array) -> pa.Array:
    here = pc.and_(pc.is_valid(left), pc.is_valid(right))
    if pc.any(pc.and_(here, pc.equal(right, pa.scalar(0, right.type)))).as_py():
        raise failed("division by zero", typed.node)
    if typed.op == "/":
        return pc.divide(left, right)
    one = pa.scalar(1, right.type)
    # The remainder by -1 is that by 1; the processor traps on the smallest long.
    safe = pc.if_else(here, pc.if_else(pc.equal(right, pa.scalar(-1, right.type)), one, right), one)
    with np.errstate(invalid="ignore"):
        found = np.fmod(_numpy(left), _numpy(safe))
    return pa.array(found, right.type, mask=~_numpy(here))


def _numpy(values: pa.Array) -> Any:
    if values.null_count:
        values = values.fill_null(pa.scalar(0).cast(values.type))
    return values.to_numpy(zero_copy_only=False)


def _case(typed: Typed, args: list[Values], rows: int) -> Values:
    *pairs, found = args
    for test, value in zip(pairs[-2::-2], pairs[::-2], strict=True):
        found = pc.if_else(pc.fill_null(test, False), value, found)
    return found


def _extreme(typed: Typed, args: list[Values], rows: int) -> Values:
    op = "<=" if typed.op == "least" else ">="
    first, *rest = args
    for value in rest:
        # A NaN on either side is the answer, whatever the order of the operands.
        keeps = pc.or_(_compare(op, first, value), _compare("!=", first, first))
        first = pc.if_else(keeps, first, value)
    return first


def _cast(typed: Typed, args: list[Values], rows: int) -> Values:
    source, target, values = typed.args[0].type, typed.type, _array(args[0], rows)
    if source == "string" or "decimal" in source + target:
        problem = "unreadable value" if source == "string" else "value out of range"
        return _each_distinct(values, by_value(source, target), target, typed.node, problem)
    if target == "string" or target == "timestamp":
        return values.cast(arrow_type(target))
    numbers, missing = _numpy(values.cast(pa.int64()) if source == "timestamp" else values), _numpy(values.is_null())
    low, high = (timestamps.EARLIEST, timestamps.LATEST + 1) if target == "date" else _range(target)
    if target in INTEGERS:
        numbers = np.trunc(numbers)
    # Both bounds are exact as doubles, and NaN is within neither.
    within = (numbers >= low) & (numbers < high)
    if not (within | missing).all():
        raise failed("value out of range", typed.node)
    if target == "date":
        return pa.array((numbers // DAY).astype(np.int32), pa.int32(), mask=missing).cast(pa.date32())
    return pa.array(numbers.astype(np.int64), pa.int64(), mask=missing)


def _range(target: str) -> tuple[float, float]:
    bits = 31 if target == "int" else 63
    return -(2.0**bits), 2.0**bits


def _each_distinct(
    values: pa.Array, convert: Callable[[Any], object], target: str, node: Node, problem: str
) -> pa.Array:
    """A Python function over the distinct values only, so that both engines share it at a bearable price."""
    encoded = values.dictionary_encode()
    try:
        found = pa.array([convert(value) for value in encoded.dictionary.to_pylist()], arrow_type(target))
    except (ValueError, OverflowError, ArithmeticError):
        raise failed(problem, node) from None
    return found.take(encoded.indices)


def _letters(typed: Typed, args: list[Values], rows: int) -> Values:
    values = _array(args[0], rows)
    if pc.all(pc.string_is_ascii(values)).as_py() is not False:
        return pc.ascii_lower(values) if typed.op == "lower" else pc.ascii_upper(values)
    # Arrow changes letter by letter, but ß becomes SS and a final sigma is its own.
    return _each_distinct(values, str.lower if typed.op == "lower" else str.upper, "string", typed.node, "")


def _round(typed: Typed, args: list[Values], rows: int) -> Values:
    values = _array(args[0], rows)
    numbers, scale = _numpy(values), 10.0 ** (_constants(typed) or [0])[0]
    with np.errstate(over="ignore", invalid="ignore"):
        moved = numbers * scale
        whole = np.trunc(moved)
        whole = np.where(np.abs(moved - whole) >= 0.5, whole + np.copysign(1.0, moved), whole)
        found = np.where(np.isfinite(moved), whole / scale, numbers)
    return pa.array(found, pa.float64(), mask=_numpy(values.is_null()))


def _constants(typed: Typed) -> list[Any]:
    assert isinstance(typed.node, Call)
    return [arg.value for arg in typed.node.args[1:] if isinstance(arg, Literal)]


def _like(typed: Typed, args: list[Values], rows: int) -> Values:
    letters = {"%": ".*", "_": "."}
    pattern = "".join(letters.get(letter) or re.escape(letter) for letter in _constants(typed)[0])
    return pc.match_substring_regex(args[0], rf"(?s)\A{pattern}\z")


def _substring(typed: Typed, args: list[Values], rows: int) -> Values:
    start, *length = _constants(typed)
    stop = min(start - 1 + length[0], _LONGEST) if length else None
    return pc.utf8_slice_codeunits(args[0], min(start - 1, _LONGEST), stop)


_OPERATIONS: dict[str, Callable[[Typed, list[Values], int], Values]] = {
    **dict.fromkeys(("+", "-", "*", "/", "%", "negate", "abs"), _arithmetic),
    "and": lambda typed, args, rows: pc.and_kleene(*args),
    "or": lambda typed, args, rows: pc.or_kleene(*args),
    "not": lambda typed, args, rows: pc.invert(*args),
    "is_null": lambda typed, args, rows: pc.is_null(*args),
    "is_not_null": lambda typed, args, rows: pc.is_valid(*args),
    "in": _in,
    "case": _case,
    "coalesce": lambda typed, args, rows: pc.coalesce(*args),
    "least": _extreme,
    "greatest": _extreme,
    "same": lambda typed, args, rows: args[0],
    "widen": lambda typed, args, rows: pc.cast(args[0], pa.float64(), safe=False),
    "to_decimal": lambda typed, args, rows: pc.cast(args[0], arrow_type(typed.type)),
    "cast": _cast,
    "lower": _letters,
    "upper": _letters,
    "length": lambda typed, args, rows: pc.cast(pc.utf8_length(args[0]), pa.int64()),
    "trim": lambda typed, args, rows: pc.utf8_trim(args[0], characters=" "),
    "concat": lambda typed, args, rows: pc.binary_join_element_wise(*args, "", null_handling="emit_null"),
    "substring": _substring,
    "like": _like,
    "starts_with": lambda typed, args, rows: pc.starts_with(args[0], _constants(typed)[0]),
    "ends_with": lambda typed, args, rows: pc.ends_with(args[0], _constants(typed)[0]),
    "contains": lambda typed, args, rows: pc.match_substring(args[0], _constants(typed)[0]),
    "floor": lambda typed, args, rows: pc.floor(args[0]),
    "ceil": lambda typed, args, rows: pc.ceil(args[0]),
    "round": _round,
}
