"""`count`: one word for two questions, told apart by what it is given."""

from __future__ import annotations

from typing import overload

from penstock import aggregate, trigger
from penstock.aggregate import Aggregate, Predicate
from penstock.trigger import Count


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
        return aggregate.count(what, where=where)
    return trigger.count(what)
