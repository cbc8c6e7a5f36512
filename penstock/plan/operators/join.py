"""Which rows of two streams belong together: those of one key whose times are near, or in one window, or all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from penstock.errors import PlanError
from penstock.expressions.builder import Col, Name
from penstock.model.windows import Calendar, Sliding, WindowRule
from penstock.plan.operators.join_schema import check_how, check_keys, check_prefix, joined_schema
from penstock.plan.stages import MAIN, Operator, Side, refuse_lists
from penstock.types.durations import Duration, microseconds, not_negative, words
from penstock.types.schema import Column, Schema
from penstock.types.timestamps import MAX_TIME

How = Literal["inner", "left", "right", "full", "semi", "anti"]
Limit = Duration | Col | Name | None

# A row that waits for ever waits until then: one instant short of the end of input, which no row outlives.
FOREVER = MAX_TIME - 1
WINDOW_COLUMNS = (Column("window_start", "timestamp"), Column("window_end", "timestamp"))


@dataclass(frozen=True, slots=True)
class Bound:
    """A limit of the right row's time, itself included: so far from the left row's time, or from a column of it."""

    shift: int
    column: str | None = None

    @property
    def binding(self) -> str:
        """What a checkpoint has of it."""
        if self.column is None:
            return words(self.shift)
        return self.column if self.shift == 0 else f"{self.column} {words(self.shift)}"

    def __str__(self) -> str:
        of = "the left's" if self.column is None else f"the instant in the left row's {self.column}"
        if self.shift == 0:
            return of
        return f"{words(abs(self.shift))} {'after' if self.shift > 0 else 'before'} {of}"


@dataclass(frozen=True, slots=True)
class Within:
    """The right row's time lies between two limits; None is no limit."""

    low: Bound | None
    high: Bound | None

    @property
    def binding(self) -> str:
        """What a checkpoint has of it: a limit that is a column by its bare name, as older ones have it."""
        low, high = ("no limit" if one is None else one.binding for one in (self.low, self.high))
        return f"right time from {low} to {high} after the left's"

    def __str__(self) -> str:
        if all(one is None or one.column is None for one in (self.low, self.high)):
            return self.binding
        low, high = ("no limit" if one is None else str(one) for one in (self.low, self.high))
        return f"right time from {low} to {high}"


@dataclass(frozen=True, slots=True)
class Together:
    """Both rows lie in the same window."""

    window: Sliding | Calendar

    @property
    def binding(self) -> str:
        """What a checkpoint has of it: these words stay as they are."""
        return f"both in one of the {self.window}"

    def __str__(self) -> str:
        return f"both in one window: {self.window}"


@dataclass(frozen=True, slots=True)
class Join(Operator):
    """Rows of two sides with one key whose times fit; `lateness` is how long behind W a row still takes part."""

    how: How
    reach: Within | Together
    lateness: int
    prefix: str

    def __str__(self) -> str:
        late = f", up to {words(self.lateness)} behind W" if self.lateness else ""
        return f"{self.how} join: {self.reach}{late}"

    @property
    def pads(self) -> tuple[bool, bool]:
        """Of which sides a row that found no partner is given once none can come."""
        return self.how in ("left", "full", "anti"), self.how in ("right", "full")

    @property
    def once(self) -> bool:
        """Whether a left row leaves with its first partner."""
        return self.how in ("semi", "anti")

    @property
    def forever(self) -> tuple[bool, bool]:
        """Which sides' rows are kept for ever, because a partner may always come."""
        if isinstance(self.reach, Together):
            return False, False
        return self.reach.high is None, self.reach.low is None or self.reach.low.column is not None

    @property
    def columns(self) -> tuple[str, ...]:
        """The left columns that say how far a row reaches."""
        if isinstance(self.reach, Together):
            return ()
        return tuple(b.column for b in (self.reach.low, self.reach.high) if b is not None and b.column is not None)

    def check(self, sides: Sequence[Side]) -> tuple[str, ...]:
        left, right = check_keys("join", sides)
        for column in self.columns:
            found = left.schema.type_of(column, "join(between=)")
            if found != "timestamp":
                raise PlanError(
                    f"join(between=) names {column!r}, a {found}",
                    "a limit that is a column is an instant, against which the right row's time is held",
                    f"write .with_columns({column}=...) with a timestamp on the left first",
                )
        refuse_lists("join", sides)
        self.outputs(sides)
        said = [
            f"the join keeps every row of {side.name} for ever: its memory grows with the stream"
            for side, forever in zip((left, right), self.forever, strict=True)
            if forever
        ]
        if "high" in self._by_column():
            said.append(f"how long a row of {left.name} is kept is said by its own column: the data bounds the memory")
        return tuple(said)

    def outputs(self, sides: Sequence[Side]) -> dict[str, Schema]:
        left, right = sides
        more = WINDOW_COLUMNS if isinstance(self.reach, Together) else ()
        if self.once:
            nothing = Side(right.name, Schema(()), ())
            return {MAIN: joined_schema("join", left, nothing, "", more=more)}
        return {MAIN: joined_schema("join", left, right, self.prefix, more=more)}

    def corrects(self, sides: Sequence[Side]) -> bool:
        """An inner join gives -1 for every pair of a row that is withdrawn; a padded row is never taken back."""
        return self.how == "inner"

    def judges(self, sides: Sequence[Side]) -> tuple[bool, ...]:
        """Of which sides a row may be late.

        What corrects all that it ever gave (a running top, a global window) does so at the times of the rows it takes
        back, however old: where both sides are kept for ever, such a row finds what it is about.
        """
        return tuple(not (all(self.forever) and side.signed) for side in sides)

    def holds(self, sides: Sequence[Side]) -> tuple[str, ...]:
        left, right = sides
        behind = f" less {words(self.lateness)}" if self.lateness else ""
        reach, high, low = self.reach, "the end of its window", "the end of its window"
        if isinstance(reach, Within):
            high = _limit(reach.high, "+")
            low = _limit(None if reach.low is None or reach.low.column else Bound(-reach.low.shift), "+")
        said = [
            f"rows of {left.name} until W{behind} has passed {high}",
            f"rows of {right.name} until W{behind} has passed {low}",
        ]
        if self.once:
            said[0] += ", or until their first partner"
        if "high" in self._by_column():
            said[0] += ": bounded by the data"
        padded = [side.name for side, pads in zip((left, right), self.pads, strict=True) if pads]
        if padded:
            said.append(f"a row of {' or '.join(padded)} that found no partner is given when it leaves, once")
        return tuple(said)

    def binding(self, sides: Sequence[Side]) -> dict[str, str]:
        left, right = sides
        return {
            "join": self.how,
            "reach": self.reach.binding,
            "left": str(left.schema),
            "right": str(right.schema),
            "on": ", ".join(f"{a} = {b}" for a, b in zip(left.keys, right.keys, strict=True)),
        }

    def _by_column(self) -> tuple[str, ...]:
        """Which limits are columns."""
        if isinstance(self.reach, Together):
            return ()
        limits = (("low", self.reach.low), ("high", self.reach.high))
        return tuple(name for name, bound in limits if bound is not None and bound.column is not None)


def join_rule(
    *,
    between: tuple[Limit, Limit] | None = None,
    window: WindowRule | None = None,
    how: How = "inner",
    keep: str | None = None,
    inclusive: tuple[bool, bool] = (True, True),
    prefix: str = "",
    lateness: Duration = "0",
) -> Join:
    """The rule of a join.

    >>> join_rule(between=("0", "5 minutes"), how="left").pads
    (True, False)
    """
    check_how(how, get_args(How), "join")
    check_prefix(prefix, "join")
    if window is not None:
        reach: Within | Together = _together(window, between, inclusive)
    else:
        reach = Within(None, None) if between is None else _within(between, inclusive)
    rule = Join(how, reach, not_negative(lateness, "lateness"), prefix)
    _check_keep(rule, keep)
    return rule


def _check_keep(rule: Join, keep: str | None) -> None:
    if keep not in (None, "forever"):
        raise PlanError(
            f"join was given keep={keep!r}",
            "rows are kept for as long as a partner may come, or for ever",
            'write between=("0", "5 minutes"), or keep="forever"',
        )
    if any(rule.forever) and keep is None:
        which = "rows of both sides" if all(rule.forever) else f"rows of the {'left' if rule.forever[0] else 'right'}"
        raise PlanError(
            f"join would keep {which} for ever",
            "nothing says after how long a partner can no longer come, so that its memory only grows",
            'write between=("0", "5 minutes"), or say keep="forever" if that is meant',
        )
    if keep == "forever" and not any(rule.forever):
        raise PlanError(
            'join was given keep="forever" and limits on both sides',
            "rows are let go when the watermark rules a partner out, so that nothing is kept for ever",
            "leave keep out, or leave between out",
        )


def _together(window: object, between: object, inclusive: tuple[bool, bool]) -> Together:
    if between is not None or inclusive != (True, True):
        raise PlanError(
            "join was given a window and limits",
            "rows meet in the same window, or within limits around the left row's time",
            'write window=ps.tumbling("10 seconds"), or between=("0", "5 minutes")',
        )
    if not isinstance(window, (Sliding, Calendar)):
        raise PlanError(
            f"join cannot meet in {window}",
            "rows are joined in windows that follow one another",
            'write window=ps.tumbling("10 seconds") or window=ps.calendar("day")',
        )
    if isinstance(window, Sliding) and window.size != window.slide:
        raise PlanError(
            f"join cannot meet in {window}",
            "these windows overlap, so that two rows would be joined once for each window they share",
            f'write window=ps.tumbling("{words(window.slide)}"), or between=("-{words(window.size)}", '
            f'"{words(window.size)}")',
        )
    return Together(window)


def _within(between: object, inclusive: object) -> Within:
    if not isinstance(between, (tuple, list)) or len(between) != 2:
        raise PlanError(
            f"join was given between={between!r}",
            "it is a pair: the least and the greatest time of the right row less that of the left",
            'write between=("0", "5 minutes")',
        )
    if not isinstance(inclusive, (tuple, list)) or len(inclusive) != 2 or not all(type(x) is bool for x in inclusive):
        raise PlanError(
            f"join was given inclusive={inclusive!r}",
            "it is a pair that says whether each limit itself belongs to the range",
            "write inclusive=(True, False)",
        )
    low, high = _bound(between[0], 0 if inclusive[0] else 1), _bound(between[1], 0 if inclusive[1] else -1)
    plain = low is not None and high is not None and low.column is None and high.column is None
    if plain and low is not None and high is not None and low.shift > high.shift:
        raise PlanError(
            f"join was given between={tuple(between)!r}, in which no time lies",
            "the first limit is the least time of the right row less that of the left, the second the greatest",
            "turn the two around, or let the limits belong to the range",
        )
    return Within(low, high)


def _bound(limit: object, off: int) -> Bound | None:
    """One limit; a word that is no number and unit is the name of a column."""
    if limit is None:
        return None
    node = limit.node if isinstance(limit, Col) else limit
    if isinstance(node, Name):
        return Bound(off, node.column)
    if isinstance(node, str) and node.isidentifier():
        return Bound(off, node)
    return Bound(microseconds(node, "between") + off)  # type: ignore[arg-type]


def _limit(bound: Bound | None, sign: str) -> str:
    """A limit in words, from the row's own time or from an instant that it carries."""
    if bound is None:
        return "the end of input"
    of = "its time" if bound.column is None else f"the instant in its {bound.column}"
    if bound.shift == 0:
        return of
    return f"{of} {sign} {words(bound.shift)}" if bound.shift > 0 else f"{of} - {words(-bound.shift)}"
