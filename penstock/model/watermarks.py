"""Event time: which clock stamps a row, and how the watermark follows it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

from penstock.errors import PlanError, did_you_mean
from penstock.expressions.builder import Col, Node, expression, show
from penstock.types.durations import Duration, not_negative, positive, words

Basis = Literal["event", "ingestion", "processing", "derived"]
WhenIdle = Literal["hold", "advance"]

REMEMBERED_DELAYS = 100_000
DELAYS_A_CHUNK = 10_000
EXACT_DELAYS = 512


@dataclass(frozen=True, slots=True, kw_only=True)
class Watermark:
    """What every watermark rule has: when a silent partition steps aside, and which events come from the future."""

    idle: int | None
    when_idle: WhenIdle
    max_skew: int | None

    def waits(self) -> str:
        """The part of the explanation that is the same for every rule."""
        silent = "waits for a silent partition for ever"
        if self.idle is not None:
            silent = f"a partition silent for {words(self.idle)} steps aside"
        skew = "any event from the future is believed"
        if self.max_skew is not None:
            skew = f"an event more than {words(self.max_skew)} ahead of the processing clock is quarantined"
        return f"{silent}; when all are silent the watermark {self.when_idle}s; {skew}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounded(Watermark):
    """Newest event time less a fixed delay."""

    delay: int

    def __str__(self) -> str:
        return f"newest event time less {words(self.delay)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Percentile(Watermark):
    """Newest event time less a quantile of the delays seen lately."""

    p: float
    floor: int
    ceiling: int

    def __str__(self) -> str:
        return (
            f"newest event time less the {self.p:g} quantile of the last {REMEMBERED_DELAYS:,} delays, "
            f"at least {words(self.floor)} and at most {words(self.ceiling)}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class FromColumn(Watermark):
    """The greatest value of a column in which the source says its watermark."""

    column: str

    def __str__(self) -> str:
        return f"what the column {self.column} says"


@dataclass(frozen=True, slots=True, kw_only=True)
class Punctuated(Watermark):
    """The event time of the newest row for which a predicate holds."""

    mark: Node

    def __str__(self) -> str:
        return f"the event time of rows where {show(self.mark)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ByHand(Watermark):
    """Set from outside: by a test, or by whoever drives the pipeline."""

    def __str__(self) -> str:
        return "set by hand"


@dataclass(frozen=True, slots=True)
class TimeBase:
    """Which clock stamps a row: a column of its own, or the processing clock."""

    basis: Basis
    column: str | None
    unit: str | None
    watermark: Watermark


def quantile_rank(p: float, values: int) -> int:
    """Which of so many values, in order, is the first that a share `p` does not exceed; by whole numbers, not floats.

    >>> quantile_rank(0.07, 100)
    7
    """
    return max(math.ceil(Fraction(repr(p)) * values), 1)


def coarse(delay: int) -> int:
    """A delay rounded up to eight significant bits: at most 0.8 % too long, by integers alone.

    >>> coarse(255), coarse(1001)
    (255, 1004)
    """
    low = max(delay.bit_length() - 8, 0)
    return -((-delay) >> low) << low


def bounded(
    delay: Duration,
    *,
    idle: Duration | None = "1 minute",
    when_idle: WhenIdle = "hold",
    max_skew: Duration | None = "1 hour",
) -> Bounded:
    """W is the newest event time less `delay`.

    >>> str(bounded("2 minutes"))
    'newest event time less 2 minutes'
    """
    return Bounded(delay=not_negative(delay, "delay"), **_waiting(idle, when_idle, max_skew))


def ascending(
    *, idle: Duration | None = "1 minute", when_idle: WhenIdle = "hold", max_skew: Duration | None = "1 hour"
) -> Bounded:
    """W is the newest event time: each partition brings its events in order."""
    return bounded("0", idle=idle, when_idle=when_idle, max_skew=max_skew)


def percentile(
    p: float,
    floor: Duration = "0",
    ceiling: Duration = "1 hour",
    *,
    idle: Duration | None = "1 minute",
    when_idle: WhenIdle = "hold",
    max_skew: Duration | None = "1 hour",
) -> Percentile:
    """W follows the observed delays: a share `p` of the events is expected to be no later."""
    if isinstance(p, bool) or not isinstance(p, (int, float)) or not 0 < p <= 1:
        raise PlanError(
            f"percentile of {p!r} is not a share",
            "p is the share of events to wait for, above 0 and up to 1",
            "write ps.percentile(0.99) for the 99th percentile",
        )
    low, high = not_negative(floor, "floor"), not_negative(ceiling, "ceiling")
    if low > high:
        raise PlanError(
            f"percentile has the floor {words(low)} above the ceiling {words(high)}",
            "the delay is kept between the two",
            f'write floor="{words(high)}", ceiling="{words(low)}"',
        )
    return Percentile(p=float(p), floor=low, ceiling=high, **_waiting(idle, when_idle, max_skew))


def from_column(
    column: str,
    *,
    idle: Duration | None = "1 minute",
    when_idle: WhenIdle = "hold",
    max_skew: Duration | None = "1 hour",
) -> FromColumn:
    """W is what the source says in a column of its rows."""
    return FromColumn(column=column, **_waiting(idle, when_idle, max_skew))


def punctuated(
    mark: str | Col | Node,
    *,
    idle: Duration | None = "1 minute",
    when_idle: WhenIdle = "hold",
    max_skew: Duration | None = "1 hour",
) -> Punctuated:
    """W is the event time of the newest row that is a mark: one for which the predicate holds."""
    return Punctuated(mark=expression(mark), **_waiting(idle, when_idle, max_skew))


def by_hand(*, max_skew: Duration | None = "1 hour") -> ByHand:
    """W is set from outside and moves only then."""
    return ByHand(**_waiting(None, "hold", max_skew))


def _waiting(idle: Duration | None, when_idle: WhenIdle, max_skew: Duration | None) -> dict[str, Any]:
    if when_idle not in ("hold", "advance"):
        raise PlanError(
            f"when_idle is {when_idle!r}",
            "when every partition is silent the watermark can hold or advance with the processing clock",
            did_you_mean(str(when_idle), ("hold", "advance")),
        )
    if when_idle == "advance" and idle is None:
        raise PlanError(
            'when_idle="advance" with idle=None never advances',
            "without idle no partition is ever called silent",
            'write idle="1 minute", when_idle="advance"',
        )
    return {
        "idle": None if idle is None else positive(idle, "idle"),
        "when_idle": when_idle,
        "max_skew": None if max_skew is None else not_negative(max_skew, "max_skew"),
    }
