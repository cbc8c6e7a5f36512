"""What does a table say now: rows meet it as it stands, kept from a stream of changes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import get_args

from penstock.errors import PlanError
from penstock.plan.operators.join_schema import check_deleted, check_how, check_keys, check_prefix, joined_schema
from penstock.plan.operators.temporal_join import UNMATCHED, TemporalHow
from penstock.plan.stages import MAIN, Operator, Side
from penstock.plan.tables import until_gone
from penstock.types.schema import Schema


@dataclass(frozen=True, slots=True)
class TableJoin(Operator):
    """The right side is a table: its last row of a key counts, until one says that it is deleted."""

    how: TemporalHow
    deleted: str | None
    prefix: str
    broadcast: bool = False

    def __str__(self) -> str:
        return f"{self.how} join with a table as it stands" + (", which is on every shard" if self.broadcast else "")

    def check(self, sides: Sequence[Side]) -> tuple[str, ...]:
        _, right = check_keys("join_table", sides)
        check_deleted(self.deleted, right, "join_table")
        self.outputs(sides)
        if self.deleted is None:
            return (f"nothing is ever deleted from {right.name}: its memory grows with its keys",)
        return ()

    def outputs(self, sides: Sequence[Side]) -> dict[str, Schema]:
        left, right = sides
        without = () if self.deleted is None else (self.deleted,)
        joined = joined_schema("join_table", left, right, self.prefix, without=without)
        return {MAIN: joined} if self.how == "left" else {MAIN: joined, UNMATCHED: left.schema}

    def holds(self, sides: Sequence[Side]) -> tuple[str, ...]:
        _, right = sides
        where = ", on every shard" if self.broadcast else ""
        return (f"of each key the last row of {right.name}{where}, {until_gone(self.deleted)}",)

    def binding(self, sides: Sequence[Side]) -> dict[str, str]:
        _, right = sides
        # Where a table lies is said under an old name, so that older checkpoints, which have it by key, bind too.
        kept = f"{self.deleted or ''} on every shard" if self.broadcast else self.deleted or ""
        return {"join_table": kept, "right": str(right.schema), "on": ", ".join(right.keys)}


def table_rule(
    *, how: TemporalHow = "inner", deleted: str | None = None, prefix: str = "", broadcast: bool = False
) -> TableJoin:
    """The rule of a join with a table.

    >>> table_rule(how="left", deleted="gone").deleted
    'gone'
    """
    check_how(how, get_args(TemporalHow), "join_table")
    check_prefix(prefix, "join_table")
    if not isinstance(broadcast, bool):
        raise PlanError(
            f"broadcast is {broadcast!r}",
            "broadcast=True keeps the whole table on every shard, broadcast=False each key on one",
            "write broadcast=True, or leave it out",
        )
    return TableJoin(how, deleted, prefix, broadcast)
