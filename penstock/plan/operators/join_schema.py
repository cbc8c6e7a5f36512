"""By which columns do two streams meet, and which columns of which side has a joined row?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from penstock.errors import PlanError, did_you_mean, not_a_column
from penstock.plan.stages import Side
from penstock.types.schema import Column, Schema

Keys = tuple[str, ...]


def on_columns(on: str | Sequence[str] | Mapping[str, str] | None, where: str = "join") -> tuple[Keys, Keys]:
    """The key columns of the left and of the right side.

    >>> on_columns({"id": "auction"})
    (('id',), ('auction',))
    """
    if isinstance(on, Mapping):
        left, right = tuple(on), tuple(on.values())
    elif on is None or isinstance(on, str):
        left = right = () if on is None else (on,)
    elif isinstance(on, Sequence):
        left = right = tuple(on)
    else:
        raise not_a_column(on, where, "ad")
    for name in (*left, *right):
        if not isinstance(name, str):
            raise not_a_column(name, where, "ad")
    if not left:
        raise PlanError(
            f"{where} does not say on which columns",
            "rows meet where their keys are equal",
            f'write {where}(..., on="ad") or on={{"left_name": "right_name"}}',
        )
    return left, right


def check_keys(where: str, sides: Sequence[Side]) -> tuple[Side, Side]:
    """The two sides of a join, which must be keyed by columns of the same types."""
    left, right = sides
    for side in sides:
        for name in side.keys:
            side.schema.type_of(name, where)
    pairs = zip(left.key_schema.columns, right.key_schema.columns, strict=True)
    for mine, other in pairs:
        if mine.type != other.type:
            raise PlanError(
                f"{where} compares {mine.name}, a {mine.type}, with {other.name}, a {other.type}",
                "keys meet where they are equal, and values of different types never are",
                f'write .with_columns({other.name}="cast({other.name} as {mine.type})") on the right first',
            )
    return left, right


def right_columns(right: Side, prefix: str, without: Sequence[str] = ()) -> dict[str, str]:
    """The columns of the right side that a joined row has, and their names there: all but the keys."""
    return {name: prefix + name for name in right.schema.names if name not in (*right.keys, *without)}


def joined_schema(
    where: str, left: Side, right: Side, prefix: str, *, without: Sequence[str] = (), more: Sequence[Column] = ()
) -> Schema:
    """The left's columns, then the right's without its keys, then some more; no name may be there twice."""
    named = right_columns(right, prefix, without)
    theirs = [Column(named[c.name], c.type) for c in right.schema.columns if c.name in named]
    columns = [*left.schema.columns, *theirs]
    for column in theirs:
        if column.name in left.schema.names:
            raise PlanError(
                f"{where} has two columns called {column.name!r}",
                f"{left.name} and {right.name} both have one, and a row can hold one value under a name",
                f'write prefix="{right.name}_" for the right\'s columns, or rename it with .select() first',
            )
    for column in more:
        if column.name in [other.name for other in columns]:
            raise PlanError(
                f"{where} has two columns called {column.name!r}",
                "rows that are joined by window say which, under this name",
                "rename it with .select() first",
            )
    return Schema((*columns, *more))


def check_how(how: str, known: Sequence[str], where: str) -> None:
    """Refuse a kind of join that there is not."""
    if how not in known:
        raise PlanError(
            f"{where} has no kind {how!r}",
            f"the kinds are: {', '.join(known)}",
            did_you_mean(str(how), known, f'write how="{known[0]}"'),
        )


def check_prefix(prefix: str, where: str) -> None:
    """Refuse what cannot stand before a name."""
    if not isinstance(prefix, str):
        raise PlanError(
            f"{where} was given the prefix {prefix!r}",
            "a prefix is the text before the names of the right's columns",
            'write prefix="click_"',
        )


def check_deleted(deleted: str | None, right: Side, where: str) -> None:
    """The column that says a row of a table is gone must be a boolean of the right side, and no key."""
    if deleted is None:
        return
    found = right.schema.type_of(deleted, f"{where}(deleted=)")
    if found != "boolean" or deleted in right.keys:
        raise PlanError(
            f"{where}(deleted={deleted!r}) names " + ("a key" if deleted in right.keys else f"a {found}"),
            "the column says of each row of the table whether it is gone",
            "name a column of booleans that is no key",
        )
