"""Calling a user's fold: its accumulators are kept as JSON, and whatever it throws becomes an error in three parts."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from decimal import InvalidOperation
from typing import Any

from penstock.diagnostics.user_functions import failure
from penstock.errors import DataError
from penstock.model.aggregates import Aggregate, Fold
from penstock.types.validate import decode_value

# The accumulator of no values is no text: a neutral element, whatever the user's combine does with zero.
NOTHING = ""


def fold_added(aggregate: Aggregate, held: str, values: Iterable[Any]) -> str:
    """The accumulator with these values, none of them null, added; still nothing if there are none."""
    values = list(values)
    if not values:
        return held
    accumulator, add, value = _read(aggregate, held), _function(aggregate).add, None
    try:
        for value in values:
            accumulator = add(accumulator, value)
    except Exception as error:
        raise _failed(aggregate, "add", add, error, value) from error
    return _written(aggregate, accumulator)


def fold_corrected(aggregate: Aggregate, values: Iterable[tuple[Any, int]]) -> str:
    """The accumulator of values that come with +1 and are taken back with -1; nothing if there are none."""
    values = list(values)
    if not values:
        return NOTHING
    function, held = _function(aggregate), _read(aggregate, NOTHING)
    for value, sign in values:
        method = "add" if sign > 0 else "retract"
        held = _called(aggregate, method, getattr(function, method), held, value)
    return _written(aggregate, held)


def fold_combined(aggregate: Aggregate, left: str, right: str) -> str:
    """The accumulator of both."""
    if not left or not right:
        return left or right
    both = _read(aggregate, left), _read(aggregate, right)
    return _written(aggregate, _called(aggregate, "combine", _function(aggregate).combine, *both))


def fold_result(aggregate: Aggregate, held: str) -> Any:
    """The answer, as a value of the type that was declared."""
    accumulator = _read(aggregate, held)
    answer = _called(aggregate, "result", _function(aggregate).result, accumulator)
    try:
        return None if answer is None else decode_value(answer, aggregate.type or "string")
    except (ValueError, InvalidOperation, OverflowError) as error:
        raise DataError(
            f"the fold over {aggregate.column!r} gave an answer that does not fit: {error}",
            f"its answer was declared as {aggregate.type}",
            f"return such a value from result, or declare another type: ps.fold({aggregate.column!r}, …, type=…)",
        ) from None


def _function(aggregate: Aggregate) -> Fold:
    assert aggregate.function is not None
    return aggregate.function


def _called(aggregate: Aggregate, method: str, call: Callable[..., Any], *values: Any) -> Any:
    try:
        return call(*values)
    except Exception as error:
        raise _failed(aggregate, method, call, error, values[-1] if method == "retract" else values) from error


def _failed(aggregate: Aggregate, method: str, call: Any, error: Exception, value: Any) -> DataError:
    values = {str(aggregate.column): value} if method in ("add", "retract") else value
    return DataError(
        f"the fold over {aggregate.column!r} failed in {method}: {failure(error, call, values)}",
        "a fold that stops halfway would give a wrong number, so the run stops",
        f"let {method} take whatever the column {aggregate.column!r} holds, or filter such rows before",
    )


def _read(aggregate: Aggregate, held: str) -> Any:
    if held == NOTHING:
        # Through JSON as well: what zero returns is often one object that add would change for every window.
        held = _written(aggregate, _called(aggregate, "zero", _function(aggregate).zero))
    return json.loads(held)


def _written(aggregate: Aggregate, accumulator: Any) -> str:
    try:
        text = json.dumps(accumulator, sort_keys=True, separators=(",", ":"))
        _refuse_other_keys(accumulator)
    except (TypeError, ValueError, RecursionError) as error:
        raise DataError(
            f"the accumulator of the fold over {aggregate.column!r} cannot be stored: {error}",
            "accumulators are JSON: None, booleans, numbers, text, lists, and dicts whose keys are text",
            "let zero, add and combine return such values, and make anything else of them in result",
        ) from None
    return text


def _refuse_other_keys(value: Any) -> None:
    if isinstance(value, dict):
        for key in value:
            if not isinstance(key, str):
                raise TypeError(f"the key {key!r} is not text")
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else ():
        _refuse_other_keys(inner)
