"""`count`: one word for two questions, told apart by what it is given."""

from __future__ import annotations

from typing import overload

from penstock.model import aggregates, triggers
from penstock.model.aggregates import Aggregate, Predicate
from penstock.model.triggers import Count


@overload
def count(what: int) -> Count: ...
@overload
def count(what: str, *, where: Predicate = None) -> Aggregate: ...


def count(what: int | str, *, where: Predicate = None) -> Count | Aggregate:
    """`count(100)` is the trigger: a hundred new records; `count("points")` the aggregate: rows that have a value.

    >>> str(count(3)), str(count("points"))
    ('once 3 records are new', 'count(points)')
    """
    if isinstance(what, str):
        return aggregates.count(what, where=where)
    return triggers.count(what)
