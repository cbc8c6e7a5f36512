"""When a pane is emitted: the triggers and how they compose. `docs/triggers.md` has the table of what each does."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from penstock.diagnostics.unknown_names import explained, unknown_name
from penstock.errors import DataError, PlanError
from penstock.expressions.builder import Col, Node, expression, show
from penstock.types.durations import Duration, microseconds, not_negative, positive, words


@explained
@dataclass(frozen=True, slots=True)
class Trigger:
    """Decides, once a batch, whether a window shows a pane."""

    if not TYPE_CHECKING:
        __getattr__ = unknown_name

    def __or__(self, other: Trigger) -> Either:
        return Either(self, _trigger(other))

    def __and__(self, other: Trigger) -> Both:
        return Both(self, _trigger(other))

    def __bool__(self) -> bool:
        raise PlanError(
            f"a trigger was asked whether it is true or false: {self}",
            "Python's `and`, `or` and `not` keep one of the two triggers and drop the other",
            "write a | b for either and a & b for both, each in parentheses; or `is not None`",
        )

    def then(self, other: Trigger) -> Then:
        """This trigger until it is finished, then the other."""
        return Then(self, _trigger(other))

    def until(self, other: Trigger) -> Until:
        """This trigger until the other fires, which is the last firing."""
        return Until(self, _trigger(other))

    @property
    def parts(self) -> tuple[Trigger, ...]:
        """The triggers this one is made of."""
        values = (getattr(self, field.name) for field in fields(self))
        return tuple(value for value in values if isinstance(value, Trigger))

    @property
    def can_finish(self) -> bool:
        """Whether a firing may be its last."""
        return False

    @property
    def only_at_expiry(self) -> bool:
        """Whether no window can show anything before it expires, whatever its lateness."""
        return False

    @property
    def may_stall(self) -> bool:
        """Whether it may stop being ready, without having finished, in a window that is never complete."""
        return False

    def walk(self) -> Iterator[Trigger]:
        """This trigger and all inside it, outermost first."""
        yield self
        for part in self.parts:
            yield from part.walk()


@dataclass(frozen=True, slots=True)
class AtWatermark(Trigger):
    """The on-time pane when the window is complete, with `early` panes before and `late` ones after."""

    early: Trigger | None
    late: Trigger | None

    @property
    def may_stall(self) -> bool:
        return self.early is None or self.early.may_stall

    def __str__(self) -> str:
        early = f", before that {self.early}" if self.early is not None else ""
        late = self.late if self.late is not None else "whenever something is new"
        return f"when the watermark passes the end{early}, after that {late}"


@dataclass(frozen=True, slots=True)
class Count(Trigger):
    """Ready when `n` records are unshown."""

    n: int

    @property
    def can_finish(self) -> bool:
        return True

    def __str__(self) -> str:
        return "once 1 record is new" if self.n == 1 else f"once {self.n} records are new"


@dataclass(frozen=True, slots=True)
class After(Trigger):
    """Ready when the first unshown record has waited for `delay` of processing time."""

    delay: int

    @property
    def can_finish(self) -> bool:
        return True

    def __str__(self) -> str:
        return f"{words(self.delay)} after the first new record"


@dataclass(frozen=True, slots=True)
class Every(Trigger):
    """Ready at each tick of processing time with something unshown from before it."""

    period: int
    offset: int

    def tick_after(self, now: int) -> int:
        """The first tick later than `now`."""
        return ((now - self.offset) // self.period + 1) * self.period + self.offset

    def __str__(self) -> str:
        return f"every {words(self.period)}"


@dataclass(frozen=True, slots=True)
class When(Trigger):
    """Ready while the pane it would show satisfies a predicate and something is new."""

    predicate: Node
    once: bool

    @property
    def can_finish(self) -> bool:
        return self.once

    def __str__(self) -> str:
        return f"{'once' if self.once else 'while'} {show(self.predicate)}"


@dataclass(frozen=True, slots=True)
class AtExpiry(Trigger):
    """One final answer when the window expires."""

    @property
    def can_finish(self) -> bool:
        return True

    @property
    def only_at_expiry(self) -> bool:
        return True

    @property
    def may_stall(self) -> bool:
        return True

    def __str__(self) -> str:
        return "when the window expires"


@dataclass(frozen=True, slots=True)
class Never(Trigger):
    """Not ready at any time; what is unshown when the window expires is shown then."""

    @property
    def only_at_expiry(self) -> bool:
        return True

    @property
    def may_stall(self) -> bool:
        return True

    def __str__(self) -> str:
        return "never"


@dataclass(frozen=True, slots=True)
class Pair(Trigger):
    """A trigger made of two."""

    first: Trigger
    second: Trigger


@dataclass(frozen=True, slots=True)
class Either(Pair):
    """Ready when one of the two is."""

    @property
    def can_finish(self) -> bool:
        return self.first.can_finish or self.second.can_finish

    @property
    def only_at_expiry(self) -> bool:
        return self.first.only_at_expiry and self.second.only_at_expiry

    @property
    def may_stall(self) -> bool:
        return self.first.may_stall and self.second.may_stall

    def __str__(self) -> str:
        return f"({self.first} or {self.second})"


@dataclass(frozen=True, slots=True)
class Both(Pair):
    """Ready when both are; a part that has finished has done its part."""

    @property
    def can_finish(self) -> bool:
        return self.first.can_finish and self.second.can_finish

    @property
    def only_at_expiry(self) -> bool:
        return self.first.only_at_expiry or self.second.only_at_expiry

    @property
    def may_stall(self) -> bool:
        return self.first.may_stall or self.second.may_stall

    def __str__(self) -> str:
        return f"({self.first} and {self.second})"


@dataclass(frozen=True, slots=True)
class Then(Pair):
    """The first until it is finished, then the second."""

    @property
    def can_finish(self) -> bool:
        return self.first.can_finish and self.second.can_finish

    @property
    def only_at_expiry(self) -> bool:
        return self.first.only_at_expiry

    @property
    def may_stall(self) -> bool:
        return self.first.may_stall or (self.first.can_finish and self.second.may_stall)

    def __str__(self) -> str:
        return f"({self.first}, then {self.second})"


@dataclass(frozen=True, slots=True)
class Until(Pair):
    """Ready when either is; finished once the second was."""

    @property
    def can_finish(self) -> bool:
        return not isinstance(self.second, Never)

    @property
    def only_at_expiry(self) -> bool:
        return self.first.only_at_expiry and self.second.only_at_expiry

    @property
    def may_stall(self) -> bool:
        return (self.first.may_stall or self.first.can_finish) and self.second.may_stall

    def __str__(self) -> str:
        return f"({self.first}, until {self.second})"


@dataclass(frozen=True, slots=True)
class Repeat(Trigger):
    """A trigger that starts anew when it is finished."""

    again: Trigger

    @property
    def only_at_expiry(self) -> bool:
        return self.again.only_at_expiry

    @property
    def may_stall(self) -> bool:
        return self.again.may_stall

    def __str__(self) -> str:
        return f"again and again {self.again}"


def at_watermark(*, early: Trigger | None = None, late: Trigger | None = None) -> AtWatermark:
    """The on-time pane when W passes the window's end; both parts repeat."""
    for name, part in (("early", early), ("late", late)):
        if part is not None and any(isinstance(inner, (AtWatermark, AtExpiry)) for inner in _trigger(part).walk()):
            raise PlanError(
                f"the {name} part of at_watermark holds another at_watermark or at_expiry",
                "the parts say what happens before and after the on-time pane, and cannot hold it",
                f"write ps.at_watermark({name}=ps.count(1))",
            )
    return AtWatermark(early, late)


def count(n: int) -> Count:
    """Once `n` records of the window are unshown."""
    if isinstance(n, bool) or not isinstance(n, int) or n < 1:
        raise PlanError(f"count({n!r}) can never be counted to", "n is a whole number from 1 on", "write ps.count(1)")
    return Count(n)


def after(delay: Duration) -> After:
    """A while after the first unshown record arrived."""
    return After(not_negative(delay, "delay"))


def every(period: Duration, *, offset: Duration = "0") -> Every:
    """At each multiple of `period` on the processing clock, all windows together."""
    length = positive(period, "period")
    return Every(length, microseconds(offset, "offset") % length)


def when(predicate: str | Col | Node, *, once: bool = False) -> When:
    """While a predicate over the aggregate's columns holds and something is new."""
    if not isinstance(once, bool):
        raise PlanError(
            f"once is {once!r}",
            "once=True lets the trigger finish with its first pane, once=False lets it go on",
            "write once=True, or leave it out",
        )
    return When(expression(predicate), once)


def at_expiry() -> AtExpiry:
    """One final answer, when lateness is over."""
    return AtExpiry()


def never() -> Never:
    """No pane but the last."""
    return Never()


def repeat(trigger: Trigger) -> Repeat:
    """Start a trigger anew each time it is finished."""
    return Repeat(_trigger(trigger))


def uncomputable(error: Exception) -> DataError:
    """The error for a `when` that cannot be computed."""
    return DataError(
        f"the trigger's predicate cannot be computed: {error}",
        "it is evaluated over the columns of the pane that would be shown",
        'guard it, such as ps.when("points / nullif(plays, 0) > 2")',
    )


def _trigger(value: object) -> Trigger:
    if isinstance(value, Trigger):
        return value
    raise PlanError(
        f"{value!r} is not a trigger",
        "triggers are composed of triggers",
        "write ps.count(100), ps.every('1 minute') or another of the triggers",
    )
