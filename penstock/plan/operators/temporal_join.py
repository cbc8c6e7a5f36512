"""Which version of a table was valid at a row's own time: an order at the rate of its moment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from penstock.plan.operators.join_schema import check_deleted, check_how, check_keys, check_prefix, joined_schema
from penstock.plan.stages import MAIN, Operator, Side
from penstock.types.durations import Duration, not_negative, words
from penstock.types.schema import Schema

TemporalHow = Literal["inner", "left"]
UNMATCHED = "unmatched"


@dataclass(frozen=True, slots=True)
class TemporalJoin(Operator):
    """A row waits until W has passed it, and then meets the version of its key that was valid at its time, once."""

    how: TemporalHow
    lateness: int
    deleted: str | None
    prefix: str

    def __str__(self) -> str:
        return f"{self.how} join with the version that was valid at a row's own time"

    def check(self, sides: Sequence[Side]) -> tuple[str, ...]:
        _, right = check_keys("temporal_join", sides)
        check_deleted(self.deleted, right, "temporal_join")
        self.outputs(sides)
        return ()

    def outputs(self, sides: Sequence[Side]) -> dict[str, Schema]:
        left, right = sides
        without = () if self.deleted is None else (self.deleted,)
        joined = joined_schema("temporal_join", left, right, self.prefix, without=without)
        return {MAIN: joined} if self.how == "left" else {MAIN: joined, UNMATCHED: left.schema}

    def holds(self, sides: Sequence[Side]) -> tuple[str, ...]:
        left, right = sides
        behind = f" less {words(self.lateness)}" if self.lateness else ""
        return (
            f"rows of {left.name} until W has passed their time",
            f"of each key the version of {right.name} that was valid at W{behind}, and all later ones",
        )

    def binding(self, sides: Sequence[Side]) -> dict[str, str]:
        left, right = sides
        return {
            "temporal_join": self.deleted or "",
            "left": str(left.schema),
            "right": str(right.schema),
            "on": ", ".join(f"{a} = {b}" for a, b in zip(left.keys, right.keys, strict=True)),
        }


def temporal_rule(
    *, how: TemporalHow = "inner", lateness: Duration = "0", deleted: str | None = None, prefix: str = ""
) -> TemporalJoin:
    """The rule of a temporal join.

    >>> temporal_rule(how="left").how
    'left'
    """
    check_how(how, get_args(TemporalHow), "temporal_join")
    check_prefix(prefix, "temporal_join")
    return TemporalJoin(how, not_negative(lateness, "lateness"), deleted, prefix)
