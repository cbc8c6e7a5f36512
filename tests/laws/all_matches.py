"""Which matches does a pattern have: every row of events is tried, and asked whether it may be one.

Nothing is played here event by event. A row of events is a match if each of its events may follow the one before it, by
the rules of docs/patterns.md, looked at from outside: what lies between them, and what does not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from penstock.pattern import Pattern, Skip, Step

Event = dict[str, Any]
Condition = Callable[[Event, dict[str, list[Event]]], bool]
LOOP, END = -1, -2


@dataclass(frozen=True)
class Found:
    """The events of a match and the step of each; `time` is its event time."""

    events: tuple[int, ...]
    steps: tuple[int, ...]
    time: int

    @property
    def order(self) -> tuple[int, int]:
        """The one that begins first comes first, and of those the one that is whole first."""
        return self.events[0], self.time


class Searched:
    """A pattern and all events of a key, in order of time."""

    def __init__(self, asked: Pattern, events: Sequence[Event], conditions: Mapping[str, Condition]) -> None:
        self.steps, self.bars, self.length = asked.taken, asked.bars, asked.length
        self.events, self.conditions = events, conditions

    def matches(self) -> list[Found]:
        """All matches."""
        return [one for row in self.rows() for one in self.whole(*row)]

    def timeouts(self) -> list[Found]:
        """All rows of events that were no match and could still go on when their time was over."""
        return [Found(taken, steps, self.over(taken)) for taken, steps in self.rows() if self.left(taken, steps)]

    def rows(self) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
        """All beginnings of matches."""
        for begin in range(len(self.events)):
            for step in self.ways((), ()):
                if step != END and self.fits(self.steps[step], begin, (), ()):
                    yield from self.onward((begin,), (step,))

    def onward(self, taken: tuple[int, ...], steps: tuple[int, ...]) -> Iterator[Any]:
        yield taken, steps
        for event in self.in_time(taken):
            for way in self.ways(taken, steps):
                if way != END and self.follows(taken, steps, way, event):
                    yield from self.onward((*taken, event), (*steps, steps[-1] if way == LOOP else way))

    def ways(self, taken: tuple[int, ...], steps: tuple[int, ...]) -> list[int]:
        """As what the next event may be taken: one more of the same step, or a later step."""
        found: list[int] = []
        if steps:
            here, count = self.steps[steps[-1]], steps.count(steps[-1])
            found += [LOOP] if here.most is None or count < here.most else []
            if count < here.least:
                return found
        for later in range(steps[-1] + 1 if steps else 0, len(self.steps)):
            found.append(later)
            if not self.steps[later].may_lack:
                return found
        return [*found, END]

    def follows(self, taken: tuple[int, ...], steps: tuple[int, ...], way: int, event: int) -> bool:
        """Whether an event may be the next one on a way."""
        step = self.steps[steps[-1] if way == LOOP else way]
        return (
            self.fits(step, event, taken, steps)
            and self.open(taken, steps, way, event)
            and not self.barred(taken, steps, way, event)
            and (way == LOOP or not self.eaten(taken, steps, event))
        )

    def open(self, taken: tuple[int, ...], steps: tuple[int, ...], way: int, event: int) -> bool:
        """Whether what lies between the last event and this one leaves a way open."""
        between = range(taken[-1] + 1, event)
        if any(self.barred(taken, steps, way, one) for one in between):
            return False
        if way != LOOP and any(self.eaten(taken, steps, one) for one in between):
            return False
        if way == END:
            return True
        step = self.steps[steps[-1] if way == LOOP else way]
        contiguity = step.inner if way == LOOP else step.contiguity
        if contiguity == "strict":
            return not between
        return contiguity == "any" or not any(self.fits(step, one, taken, steps) for one in between)

    def eaten(self, taken: tuple[int, ...], steps: tuple[int, ...], event: int) -> bool:
        """Whether a greedy step has this event, so that no later step may."""
        if not self.steps[steps[-1]].eager or LOOP not in self.ways(taken, steps):
            return False
        return self.follows(taken, steps, LOOP, event)

    def barred(self, taken: tuple[int, ...], steps: tuple[int, ...], way: int, event: int) -> bool:
        """Whether this is an event that may not come on this way."""
        if way == LOOP:
            return False
        upto = len(self.steps) if way == END else way
        bars = [bar for gap in self.bars[steps[-1] + 1 : upto + 1] for bar in gap]
        return any(
            self.fits(bar, event, taken, steps) and (bar.contiguity == "relaxed" or event == taken[-1] + 1)
            for bar in bars
        )

    def whole(self, taken: tuple[int, ...], steps: tuple[int, ...]) -> list[Found]:
        """A row of events that is a match: with its last event, or when its time is over."""
        if END not in self.ways(taken, steps):
            return []
        if not self.bars[-1]:
            return [Found(taken, steps, self.events[taken[-1]]["at"])]
        return [Found(taken, steps, self.over(taken))] if self.open(taken, steps, END, self.end(taken)) else []

    def left(self, taken: tuple[int, ...], steps: tuple[int, ...]) -> bool:
        """Whether a way was open when the time was over, on which it had not become a match."""
        end, ways = self.end(taken), self.ways(taken, steps)
        if END in ways and (not self.bars[-1] or self.open(taken, steps, END, end)):
            return False
        return any(self.still(taken, steps, way, end) for way in ways if way != END)

    def still(self, taken: tuple[int, ...], steps: tuple[int, ...], way: int, end: int) -> bool:
        if way == LOOP and self.steps[steps[-1]].eager:
            return self.open(taken, steps, way, end) and not any(
                self.eaten(taken, steps, one) for one in range(taken[-1] + 1, end)
            )
        return self.open(taken, steps, way, end)

    def in_time(self, taken: tuple[int, ...]) -> list[int]:
        """The events after the last one that come before the time is over."""
        rest = range(taken[-1] + 1, len(self.events))
        return [one for one in rest if self.length is None or self.events[one]["at"] < self.over(taken)]

    def end(self, taken: tuple[int, ...]) -> int:
        """One more than the last event that comes before the time is over."""
        return max([*self.in_time(taken), taken[-1]]) + 1

    def over(self, taken: tuple[int, ...]) -> int:
        assert self.length is not None
        return int(self.events[taken[0]]["at"]) + self.length

    def fits(self, step: Step, event: int, taken: tuple[int, ...], steps: tuple[int, ...]) -> bool:
        match = {
            one.name: [self.events[at] for at, of in zip(taken, steps, strict=True) if of == number]
            for number, one in enumerate(self.steps)
        }
        return self.conditions[step.name](self.events[event], match)


def refused(given: Sequence[Found], every: Sequence[Found], skip: Skip, asked: Pattern) -> str | None:
    """Why these matches, in the order in which they begin, are not what a skip strategy leaves of all of them."""
    left = list(every)
    for match in given:
        first = min((one.order for one in left), default=None)
        if match not in left or match.order != first:
            return f"{match} is given, and {first} was next of {left}"
        left.remove(match)
        begin = onward(match, skip, asked)
        left = [one for one in left if one.events[0] >= begin]
    return f"not given: {left}" if left else None


def onward(match: Found, skip: Skip, asked: Pattern) -> int:
    """The first event with which another match may begin."""
    if skip.kind == "no_skip":
        return 0
    if skip.kind == "to_next":
        return match.events[0] + 1
    if skip.kind == "past_last":
        return match.events[-1] + 1
    named = [at for at, step in zip(match.events, match.steps, strict=True) if asked.taken[step].name == skip.name]
    return 0 if not named else named[0] if skip.kind == "to_first" else named[-1]
