"""Which sequences of events are looked for: steps with a condition each, how they follow one another, how often."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from penstock.diagnostics.unknown_names import explained, unknown_name
from penstock.errors import PlanError
from penstock.expressions.builder import Col, Node
from penstock.plan.operators.measures import said, shown
from penstock.types.durations import Duration, positive, words

Event = dict[str, Any]
Condition = Node | Callable[[Event], Any] | Callable[[Event, dict[str, list[Event]]], Any]
Contiguity = Literal["strict", "relaxed", "any"]
MOST_STEPS = 60


@dataclass(frozen=True, slots=True)
class Step:
    """One step: what an event must be, how it follows the event before it, and how many are taken.

    A negated step takes no event: it says what may not come in between, or (`strict`) not right after.
    """

    name: str
    condition: Condition | None
    contiguity: Contiguity = "strict"
    negated: bool = False
    least: int = 1
    most: int | None = 1
    may_lack: bool = False
    eager: bool = False
    inner: Contiguity = "relaxed"

    def __str__(self) -> str:
        shape = f"{self.name}{_times(self.least, self.most)}{'?' if self.may_lack else ''}{'!' if self.eager else ''}"
        inner = "" if self.most == 1 or self.inner == "relaxed" else f" ({self.inner} inside)"
        return f"{shape}{inner}{_says(self.condition)}"


@explained
@dataclass(frozen=True, slots=True)
class Pattern:
    """Steps in order, and how long a whole match may last; every method returns a new pattern.

    >>> str(pattern("high", "price > 100").one_or_more().next("low", "price < high.price").within("5 minutes"))
    'high+ (price > 100) next low (price < high.price) within 5 minutes'
    """

    steps: tuple[Step, ...]
    length: int | None = None

    if not TYPE_CHECKING:
        __getattr__ = unknown_name

    def next(self, name: str, condition: Any = None) -> Pattern:
        """A step that the very next event of the key must be."""
        return self._with(name, condition, "strict")

    def then(self, name: str, condition: Any = None) -> Pattern:
        """A step that the next event which fits is; events in between are skipped."""
        return self._with(name, condition, "relaxed")

    def then_any(self, name: str, condition: Any = None) -> Pattern:
        """A step that every later event which fits may be, each in a match of its own."""
        return self._with(name, condition, "any")

    def without(self, name: str, condition: Any = None) -> Pattern:
        """No such event before the next step; at the end of the pattern: until `within` is over."""
        return self._with(name, condition, "relaxed", negated=True)

    def not_next(self, name: str, condition: Any = None) -> Pattern:
        """The very next event is not such a one."""
        return self._with(name, condition, "strict", negated=True)

    def times(self, least: int, most: int | None = None) -> Pattern:
        """The last step so many times, or from so many to so many."""
        most = least if most is None else most
        whole = all(isinstance(n, int) and not isinstance(n, bool) for n in (least, most))
        if not whole or not 1 <= least <= most:
            raise PlanError(
                f"the step {self.steps[-1].name!r} is asked for {least!r} to {most!r} times",
                "a step is taken at least once, and at most as often as is said last; none at all is .optional()",
                "write .times(2) or .times(1, 3)",
            )
        return self._changed("times", least=least, most=most)

    def one_or_more(self) -> Pattern:
        """The last step once or more."""
        return self._changed("one_or_more", least=1, most=None)

    def optional(self) -> Pattern:
        """The last step as often as it says, or not at all."""
        return self._changed("optional", may_lack=True)

    def greedy(self) -> Pattern:
        """The last step takes every event that it can before a later one is tried."""
        return self._changed("greedy", eager=True)

    def consecutive(self) -> Pattern:
        """The events of the last step follow right upon one another."""
        return self._changed("consecutive", inner="strict")

    def allow_combinations(self) -> Pattern:
        """The events of the last step may be any of those that fit, in every combination."""
        return self._changed("allow_combinations", inner="any")

    def within(self, length: Duration) -> Pattern:
        """From the first event to the last it takes less than this."""
        return replace(self, length=positive(length, "within"))

    @property
    def taken(self) -> tuple[Step, ...]:
        """The steps that take events."""
        return tuple(step for step in self.steps if not step.negated)

    @property
    def bars(self) -> tuple[tuple[Step, ...], ...]:
        """The negated steps before each of those, and after the last."""
        found: list[list[Step]] = [[]]
        for step in self.steps:
            if step.negated:
                found[-1].append(step)
            else:
                found.append([])
        return tuple(map(tuple, found))

    @property
    def single(self) -> bool:
        """Whether every match is one event, so that nothing is ever waited for."""
        return len(self.steps) == 1 and self.steps[0].most == 1

    def reached(self, after: int) -> tuple[int, ...]:
        """The steps that may come next after one is done, by number; one more than the last is the end."""
        taken, found = self.taken, []
        for number in range(after + 1, len(taken)):
            found.append(number)
            if not taken[number].may_lack:
                return tuple(found)
        return (*found, len(taken))

    def __str__(self) -> str:
        parts = [str(self.steps[0])]
        verbs = {"strict": "next", "relaxed": "then", "any": "then any"}
        for step in self.steps[1:]:
            verb = {"strict": "not next", "relaxed": "without"}[step.contiguity] if step.negated else None
            parts.append(f"{verb or verbs[step.contiguity]} {step}")
        return " ".join(parts) + ("" if self.length is None else f" within {words(self.length)}")

    def _with(self, name: str, condition: Any, contiguity: Contiguity, negated: bool = False) -> Pattern:
        if any(step.name == name for step in self.steps):
            raise PlanError(
                f"two steps are called {name!r}",
                "conditions and outputs speak of a step by its name",
                "give each step a name of its own",
            )
        if len(self.steps) == MOST_STEPS:
            raise PlanError(
                f"the pattern has more than {MOST_STEPS} steps",
                "the answers to all conditions are kept side by side in one number for each event",
                "write .times(n) for steps that are alike",
            )
        return replace(self, steps=(*self.steps, _step(name, condition, contiguity, negated)))

    def _changed(self, what: str, **changes: Any) -> Pattern:
        last = self.steps[-1]
        if last.negated:
            raise PlanError(
                f".{what}() on the negated step {last.name!r}",
                "a negated step takes no events, so there is nothing to count",
                f"write .{what}() right after the step that it is meant for",
            )
        return replace(self, steps=(*self.steps[:-1], replace(last, **changes)))


def pattern(name: str, condition: Any = None) -> Pattern:
    """A pattern that begins with this step; without a condition every event fits."""
    return Pattern((_step(name, condition, "strict", negated=False),))


@dataclass(frozen=True, slots=True)
class Skip:
    """From where the search goes on after a match."""

    kind: Literal["no_skip", "to_next", "past_last", "to_first", "to_last"]
    name: str | None = None

    def __str__(self) -> str:
        return self.kind if self.name is None else f"{self.kind}({self.name})"


def no_skip() -> Skip:
    """Every match is given."""
    return Skip("no_skip")


def to_next() -> Skip:
    """No other match that begins with the same event."""
    return Skip("to_next")


def past_last() -> Skip:
    """No other match that begins before the match's last event is over."""
    return Skip("past_last")


def to_first(name: str) -> Skip:
    """No other match that begins before the first event of a step."""
    return Skip("to_first", _step_name(name, "to_first"))


def to_last(name: str) -> Skip:
    """No other match that begins before the last event of a step."""
    return Skip("to_last", _step_name(name, "to_last"))


def _step_name(name: object, where: str) -> str:
    if not isinstance(name, str):
        raise PlanError(
            f"ps.{where} was given {name!r}, which is not the name of a step",
            "the search goes on from an event that this step of the match has taken",
            f'write the name in quotes, as in skip=ps.{where}("high")',
        )
    return name


def _step(name: str, condition: Any, contiguity: Contiguity, negated: bool) -> Step:
    if not isinstance(name, str) or not name.isidentifier():
        raise PlanError(
            f"a step cannot be called {name!r}",
            "conditions speak of a step by its name, as in last(high.price)",
            'write a plain word, as in ps.pattern("high", "price > 100")',
        )
    if negated and condition is None:
        raise PlanError(
            f"the negated step {name!r} has no condition",
            "without one every event fits, and none could come in between",
            "say what may not come, or use .next() for what must come at once",
        )
    if condition is None or (callable(condition) and not isinstance(condition, (Col, Node))):
        return Step(name, condition, contiguity, negated)
    return Step(name, said(condition), contiguity, negated)


def _times(least: int, most: int | None) -> str:
    if most is None:
        return "+"
    return "" if (least, most) == (1, 1) else f"{{{least}}}" if least == most else f"{{{least},{most}}}"


def _says(condition: Condition | None) -> str:
    if condition is None:
        return ""
    return f" ({shown(condition) if isinstance(condition, Node) else getattr(condition, '__name__', 'function')})"
