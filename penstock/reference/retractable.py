"""What, of records that may be withdrawn: the values that are left, each with how often it is there.

An aggregate of what is left is that of as many records; of equal ranks the least value is first, for which of equal
records came first is not known of those that are left.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

from penstock.model.aggregates import LISTS, ZERO_WHEN_EMPTY, Aggregate
from penstock.reference import aggregates
from penstock.reference.aggregates import Record, canonical, order

Left = Counter[tuple[int, Any, Any]]


def left_of(aggregate: Aggregate, records: list[Record]) -> Left:
    """The values of a batch's records, with the sum of their signs."""
    left: Left = Counter()
    for record in records:
        value = True if aggregate.column is None else canonical(record.row[aggregate.column])
        by = None if aggregate.by is None else canonical(record.row[aggregate.by])
        if value is None or (aggregate.by is not None and by is None):
            continue
        left[record.time, True if aggregate.kind in ("rows", "count") else value, by] += record.op
    return _without_zeros(left)


def both(left: Left, right: Left) -> Left:
    """What is left of both."""
    made = left.copy()
    made.update(right)
    return _without_zeros(made)


def result(aggregate: Aggregate, left: Left, records: int, pieces: bool) -> Any:
    """The answer over what is left of `records` records; a piece may take back more than it brings."""
    if pieces:
        return _piece(aggregate, left)
    if records <= 0:
        return 0 if aggregate.kind in ZERO_WHEN_EMPTY else [] if aggregate.kind in LISTS else None
    if aggregate.kind in ("rows", "count"):
        return sum(left.values())
    made: list[Record] = []
    for (time, value, by), times in sorted(left.items(), key=lambda item: order(item[0][1])):
        row = {aggregate.column or "": value} | ({} if aggregate.by is None else {aggregate.by: by})
        made += [Record(time, "", len(made) + i, row) for i in range(times)]
    return aggregates.result(aggregate, aggregates.add_all(aggregate, made), records)


def _piece(aggregate: Aggregate, left: Left) -> Any:
    if aggregate.kind in ("rows", "count"):
        return sum(left.values())
    if any(isinstance(value, float) and not math.isfinite(value) for _, value, _ in left):
        return math.nan
    return sum(value * times for (_, value, _), times in left.items())


def _without_zeros(left: Left) -> Left:
    return Counter({item: times for item, times in left.items() if times})
