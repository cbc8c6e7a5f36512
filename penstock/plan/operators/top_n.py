"""Which rows of a key are the best: so many, by a column; as they stand now, or of each window once it is over."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from penstock.errors import PlanError, did_you_mean
from penstock.model.windows import Calendar, Sliding
from penstock.plan.stages import MAIN, Operator, Side, refuse_lists
from penstock.types.durations import words
from penstock.types.schema import Column, Schema

Best = Literal["greatest", "least"]
RANK = "rank"
WINDOW = ("window_start", "window_end")


@dataclass(frozen=True, slots=True)
class Top(Operator):
    """The `n` rows of a key with the greatest or least values; of equal ones the earliest, then by place.

    Without a window a change of the answer is given with the batch that brought it; with one, the answer when the
    window expires. `lateness` is of windows.
    """

    n: int
    by: str
    best: Best = "greatest"
    window: Sliding | Calendar | None = None
    lateness: int | None = None

    def check(self, sides: Sequence[Side]) -> tuple[str, ...]:
        """Refuse what has no order or no room; warn of what is kept for ever."""
        (side,) = sides
        if not side.keys:
            raise PlanError(
                "top over a stream that has no key",
                "the best rows are those of a key, which lies on one shard",
                f'write .key_by(...).top({self.n}, by="{self.by}"); for one answer over all rows, '
                '.with_columns(all="1").key_by("all")',
            )
        held = side.schema.type_of(self.by, "top")
        if held == "binary" or held.startswith("array<"):
            raise PlanError(
                f"top orders by the column {self.by!r} of type {held}",
                "bytes and lists have no order that means anything",
                "order by a number, a text, a date or a time",
            )
        for name in (RANK, *(WINDOW if self.window is not None else ())):
            if name in side.schema.names:
                raise PlanError(
                    f"top gives a column {name!r}, and the stream has one",
                    "each row is given with the place it has among the best of its key",
                    f"rename it: .select(..., {name}_given='{name}')",
                )
        refuse_lists("top", sides)
        if self.window is None:
            return (f"top keeps {self._kept(side)} of every key until the input ends",)
        return ()

    def outputs(self, sides: Sequence[Side]) -> dict[str, Schema]:
        """The row, its rank from 1 on, and the window where there is one."""
        window = () if self.window is None else tuple(Column(name, "timestamp") for name in WINDOW)
        return {MAIN: Schema((*sides[0].schema.columns, Column(RANK, "long"), *window))}

    def corrects(self, sides: Sequence[Side]) -> bool:
        return True

    def withdraws(self, sides: Sequence[Side]) -> bool:
        """What stands is replaced; the answer of a window is given once."""
        return self.window is None

    def identity(self, sides: Sequence[Side]) -> tuple[str, ...]:
        """One row stands for each rank of a key."""
        return (*sides[0].keys, RANK) if self.window is None else ()

    def holds(self, sides: Sequence[Side]) -> tuple[str, ...]:
        if self.window is None:
            return (f"{self._kept(sides[0])} of every key, until the input ends",)
        late = f" and {words(self.lateness)} more" if self.lateness else ""
        return (f"{self._kept(sides[0])} of every key and window, until W is at its end{late}",)

    def binding(self, sides: Sequence[Side]) -> dict[str, str]:
        """The rows, how many are kept, and what puts them in order."""
        window = "none" if self.window is None else f"{self.window}, lateness {words(self.lateness or 0)}"
        kept = f"{self._kept(sides[0])}, {self.best} {self.by}"
        return {"operator": "top", "rows": str(sides[0].schema), "kept": kept, "window": window}

    def __str__(self) -> str:
        where = "" if self.window is None else f", in {self.window}"
        return f"the {self.n} rows with the {self.best} {self.by}{where}"

    def _kept(self, side: Side) -> str:
        return "all rows" if side.signed else f"the {self.n} best rows"


def top_rule(n: int, *, by: str | None, best: str = "greatest", window: object = None, lateness: int = 0) -> Top:
    """The rule of `.top(n, by=…, best=…, window=…)`."""
    if isinstance(n, bool) or not isinstance(n, int) or n < 1:
        raise PlanError(f"top was asked for {n!r} rows", "it is a whole number from 1 on", "write .top(10, by=...)")
    if not isinstance(by, str):
        raise PlanError(f"top by {by!r}", "by names the column that puts rows in order", 'write .top(10, by="price")')
    if best not in get_args(Best):
        raise PlanError(
            f"top was given best={best!r}",
            "the best rows are those with the greatest values, or with the least",
            did_you_mean(str(best), get_args(Best), 'write best="greatest" or best="least"'),
        )
    if window is not None and not _in_a_row(window):
        raise PlanError(
            f"top of {window}",
            "the best rows are those of windows that follow one another",
            'write window=ps.tumbling("10 minutes") or window=ps.calendar("day")',
        )
    assert window is None or isinstance(window, (Sliding, Calendar))
    chosen: Best = "greatest" if best == "greatest" else "least"
    return Top(n, by, chosen, window, None if window is None else lateness)


def _in_a_row(window: object) -> bool:
    """Whether windows follow one another, so that a row is in one."""
    return isinstance(window, Calendar) or (isinstance(window, Sliding) and window.size == window.slide)
