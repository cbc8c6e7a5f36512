"""What, one record at a time: zero, add, combine and result of every aggregate, on plain values."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, NamedTuple

from penstock.model.aggregates import LISTS, SKETCHES, ZERO_WHEN_EMPTY, Aggregate, overflow
from penstock.model.folds import NOTHING, fold_added, fold_combined, fold_result
from penstock.model.sketches import new_sketch, sketch_result, union_sketches, update_sketch


class Record(NamedTuple):
    """A row with its event time and the place it came from, which settles ties; `op` is -1 where it is withdrawn."""

    time: int
    partition: str
    offset: int
    row: dict[str, Any]
    op: int = 1


def zero(aggregate: Aggregate) -> Any:
    """The accumulator of no records."""
    match aggregate.kind:
        case "rows" | "count":
            return 0
        case "sum" | "mean":
            return [0, 0]
        case "variance":
            return [0, Fraction(0), Fraction(0)]
        case "min" | "max":
            return None
        case "distinct":
            return set()
        case "fold":
            return NOTHING
        case "approx_distinct" | "approx_quantile":
            return new_sketch(aggregate)
    return []


def add(aggregate: Aggregate, held: Any, record: Record) -> Any:
    """The accumulator with one more record, which `where` has let through."""
    if aggregate.column is None:
        return held + 1
    value = canonical(record.row[aggregate.column])
    if value is None:
        return held
    match aggregate.kind:
        case "count":
            return held + 1
        case "sum" | "mean":
            return [held[0] + value, held[1] + 1]
        case "variance":
            exact = Fraction(value) if math.isfinite(value) else math.nan
            return [held[0] + 1, held[1] + exact, held[2] + exact * exact]
        case "min" | "max":
            return value if held is None else _better(aggregate, held, value)
        case "distinct":
            return held | {value}
        case "fold":
            return fold_added(aggregate, held, [value])
    return _ordered(aggregate, held, record, value)


def add_all(aggregate: Aggregate, records: list[Record]) -> Any:
    """The accumulator of a batch's records."""
    if aggregate.kind in SKETCHES or aggregate.kind == "fold":
        values = [canonical(record.row[aggregate.column or ""]) for record in records]
        counted = [value for value in values if value is not None]
        if aggregate.kind == "fold":
            return fold_added(aggregate, NOTHING, counted)
        return update_sketch(aggregate, new_sketch(aggregate), counted)
    held = zero(aggregate)
    for record in records:
        held = add(aggregate, held, record)
    return held


def combine(aggregate: Aggregate, left: Any, right: Any) -> Any:
    """The accumulator of both."""
    match aggregate.kind:
        case "rows" | "count":
            return left + right
        case "sum" | "mean":
            return [left[0] + right[0], left[1] + right[1]]
        case "variance":
            return [a + b for a, b in zip(left, right, strict=True)]
        case "min" | "max":
            if left is None or right is None:
                return right if left is None else left
            return _better(aggregate, left, right)
        case "distinct":
            return left | right
        case "fold":
            return fold_combined(aggregate, left, right)
        case "approx_distinct" | "approx_quantile":
            return union_sketches(aggregate, left, right)
    return sorted([*left, *right], key=lambda item: item[:3])[: _limit(aggregate)]


def result(aggregate: Aggregate, held: Any, records: int) -> Any:
    """The answer; a pane of no records at all is empty, one whose values are all null is as in SQL."""
    if records == 0:
        return 0 if aggregate.kind in ZERO_WHEN_EMPTY else [] if aggregate.kind in LISTS else None
    match aggregate.kind:
        case "rows" | "count" | "min" | "max":
            return held
        case "sum":
            return held[0] if held[1] else None
        case "mean":
            return held[0] / held[1] if held[1] else None
        case "variance":
            n, total, squares = held
            return float((squares - total * total / n) / (n - 1)) if n > 1 else None
        case "distinct":
            return len(held)
        case "fold":
            return fold_result(aggregate, held)
        case "approx_distinct" | "approx_quantile":
            return sketch_result(aggregate, held)
        case "top_k" | "collect":
            return [item[3] for item in held]
    return held[0][3] if held else None


def refuse_overflow(name: str, aggregate: Aggregate, answer: Any) -> None:
    """Stop where a pane would show an integer sum that 64 bits cannot hold."""
    if aggregate.kind == "sum" and isinstance(answer, int) and not -(2**63) <= answer < 2**63:
        raise overflow(name, aggregate)


def canonical(value: Any) -> Any:
    """One zero and one NaN among the floats; all else as it is."""
    if isinstance(value, float):
        return math.nan if math.isnan(value) else value + 0.0
    return value


def order(value: Any) -> Any:
    """A value that sorts as the column does: NaN above every number."""
    if isinstance(value, float) and math.isnan(value):
        return (1, 0.0)
    return (0, value)


def _better(aggregate: Aggregate, left: Any, right: Any) -> Any:
    low, high = sorted((left, right), key=order)
    return low if aggregate.kind == "min" else high


class Descending:
    """Turns an order around, for what is best first."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __lt__(self, other: Descending) -> bool:
        return bool(other.value < self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Descending) and bool(self.value == other.value)


def _ordered(aggregate: Aggregate, held: list[Any], record: Record, value: Any) -> list[Any]:
    if aggregate.kind in ("first", "last", "collect"):
        rank: Any = (0, record.time)
    else:
        by = canonical(record.row[aggregate.by or aggregate.column or ""])
        if by is None:
            return held
        rank = order(by)
    if aggregate.kind in ("last", "arg_max", "top_k"):
        rank = Descending(rank)
    item = (rank, record.partition, record.offset, value)
    return sorted([*held, item], key=lambda entry: entry[:3])[: _limit(aggregate)]


def _limit(aggregate: Aggregate) -> int:
    return aggregate.size or 1
