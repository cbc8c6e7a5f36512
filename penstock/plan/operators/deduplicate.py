"""Which rows say the same twice: those of one id, near one another in event time; one of them is kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from penstock.errors import PlanError, did_you_mean
from penstock.plan.stages import MAIN, Operator, Side
from penstock.types.durations import Duration, not_negative, words
from penstock.types.schema import Schema

Keep = Literal["first", "last"]
KEEPS = ("first", "last")
DUPLICATES = "duplicates"


def duplicates_of(rule: Operator, given: Mapping[str, int]) -> int:
    """How many duplicates a stage found, by how many rows it gave to each output."""
    return given.get(DUPLICATES, 0) if isinstance(rule, Dedup) else 0


@dataclass(frozen=True, slots=True)
class Dedup(Operator):
    """One row of each id within a horizon: the first that came, at once, or the last of a chain, when it has ended."""

    within: int
    keep: Keep = "first"
    lateness: int = 0

    @property
    def reach(self) -> int:
        """How long after a row's time W must be beyond it before the row is let go of."""
        return self.within + self.lateness

    def check(self, sides: Sequence[Side]) -> tuple[str, ...]:
        """Refuse a stream without an id; warn of chains that need not end."""
        if not sides[0].keys:
            raise PlanError(
                "dedup does not say by which columns",
                "rows of the same id are the same row twice, so the id must be named",
                f'write .dedup("{sides[0].schema.names[0]}", within="1 hour")',
            )
        if self.keep == "last":
            return ('keep="last" shows an id only once no row of it came for so long as `within` says',)
        return ()

    def outputs(self, sides: Sequence[Side]) -> dict[str, Schema]:
        """The rows that are kept, and those that were dropped."""
        return {MAIN: sides[0].schema, DUPLICATES: sides[0].schema}

    def holds(self, sides: Sequence[Side]) -> tuple[str, ...]:
        """Ids and times, or whole rows."""
        what = "the id and the time of each row given" if self.keep == "first" else "the last row of each chain"
        return (f"{what}, until W is more than {words(self.reach)} past it",)

    def binding(self, sides: Sequence[Side]) -> dict[str, str]:
        """The id, and what is kept of it; the horizon may change."""
        bound = {"operator": "dedup", "key": str(sides[0].key_schema), "keep": self.keep}
        return bound if self.keep == "first" else {**bound, "rows": str(sides[0].schema)}

    def __str__(self) -> str:
        return f"the {self.keep} of rows that are equal in the key and at most {words(self.within)} apart"


def dedup_rule(*, within: Duration | None = None, keep: str = "first", lateness: Duration = "0") -> Dedup:
    """The rule of `.dedup(columns, within=…, keep=…, lateness=…)`."""
    if within is None:
        raise PlanError(
            "dedup does not say within which time",
            "without a horizon every id would be kept for ever",
            'write .dedup("id", within="1 hour")',
        )
    if keep not in KEEPS:
        raise PlanError(
            f"keep is {keep!r}",
            "of rows that say the same, the first or the last is kept",
            did_you_mean(str(keep), KEEPS, 'write keep="first" or keep="last"'),
        )
    return Dedup(
        not_negative(within, "within"), "first" if keep == "first" else "last", not_negative(lateness, "lateness")
    )
