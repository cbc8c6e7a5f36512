"""Every match that a pattern has, by the definition in docs/patterns.md and by nothing else.

Nothing is played here. Every choice of events is written down with every way to give them to steps, and each is asked
whether the page calls it a match: what lies between two events that follow one another, and what does not.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, combinations_with_replacement
from typing import Any, NamedTuple

from penstock.plan.operators.pattern import Pattern, Skip

Event = dict[str, Any]
Condition = Callable[[Event, dict[str, list[Event]]], bool]
Instant = tuple[float, int, int]  # a time; 0 where a time is over and 1 for an event; which of those comes first


class Row(NamedTuple):
    """Some events of a key in order, by number, and the number of the step that has each."""

    events: tuple[int, ...]
    steps: tuple[int, ...]

    @property
    def last(self) -> int:
        """The step of the last event; -1 before the first."""
        return self.steps[-1] if self.steps else -1

    @property
    def rank(self) -> tuple[tuple[float, float], ...]:
        """Of two that are whole at once, the one that took an event, or the lesser step, where they part."""
        return (*zip(self.events, self.steps, strict=True), (math.inf, math.inf))


class Found(NamedTuple):
    """A row that is given, and its event time."""

    row: Row
    time: int


def choices(events: int, steps: int) -> Iterator[Row]:
    """All rows of so many events and steps, the shorter ones first; steps never go back."""
    for size in range(1, events + 1):
        for taken in combinations(range(events), size):
            for of in combinations_with_replacement(range(steps), size):
                yield Row(taken, of)


@dataclass
class Word:
    """A pattern, all events of one key in order, and what the condition of each step means."""

    pattern: Pattern
    events: Sequence[Event]
    conditions: Mapping[str, Condition]
    answers: dict[tuple[str, int, Row], bool] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.steps, self.bars = self.pattern.taken, self.pattern.bars
        self.end = len(self.steps)
        self.ends_by_time = bool(self.bars[-1])
        self.beginnings = self._beginnings()
        self.wholes = [row for row in self.beginnings if self._whole(row)]

    def _beginnings(self) -> list[Row]:
        """The rows in which every event follows those before it, whatever may come after them."""
        found = {Row((), ())}
        for row in choices(len(self.events), self.end):
            before = Row(row.events[:-1], row.steps[:-1])
            if before in found and self._follows(before, row.steps[-1], row.events[-1]) and self._in_time(row):
                found.add(row)
        return sorted(found - {Row((), ())}, key=lambda row: row.rank)

    def _follows(self, row: Row, step: int, event: int) -> bool:
        """Whether an event, taken by a step, is the next one of a row."""
        return self._may(row, step, event) and not self._left_out(row, step, event)

    def _may(self, row: Row, step: int, event: int) -> bool:
        """The same, whatever greedy steps there are."""
        return (
            self._counts(row, step)
            and self._fits(self.steps[step].name, event, row)
            and self._near_enough(row, step, event)
            and not self._barred(row, step, event)
        )

    def _counts(self, row: Row, step: int) -> bool:
        """Whether the steps up to this one have, or may lack, as many events as they say."""
        if step == row.last:
            most = self.steps[step].most
            return most is None or row.steps.count(step) < most
        enough = row.last < 0 or row.steps.count(row.last) >= self.steps[row.last].least
        return enough and all(self.steps[passed].may_lack for passed in range(row.last + 1, step))

    def _near_enough(self, row: Row, step: int, event: int) -> bool:
        """Whether the events that lie between may lie there."""
        wanted = self.steps[step].inner if step == row.last else self.steps[step].contiguity
        between = self._after(row, event)[:-1]
        if wanted == "strict":
            return not between
        return wanted == "any" or not any(self._fits(self.steps[step].name, other, row) for other in between)

    def _barred(self, row: Row, step: int, event: int) -> bool:
        """Whether a negated step on the way fits an event from the last one on up to this one."""
        if step == row.last or row.last < 0:
            return False
        after = self._after(row, event)
        return any(
            self._fits(bar.name, other, row)
            for gap in range(row.last + 1, step + 1)
            for bar in self.bars[gap]
            for other in (after if bar.contiguity == "relaxed" else after[:1])
        )

    def _left_out(self, row: Row, step: int, event: int) -> bool:
        """Whether a greedy step that is passed could have taken this event, or one between."""
        after = self._after(row, event)
        passed = [number for number in range(max(row.last, 0), step) if self.steps[number].eager]
        return any(self._may(row, greedy, other) for greedy in passed for other in after)

    def _whole(self, row: Row) -> bool:
        """Whether a row is a match."""
        if not self._counts(row, self.end):
            return False
        return not self.ends_by_time or self._still_open(row, self.end, self._newest(row))

    def _still_open(self, row: Row, step: int, event: int) -> bool:
        """Whether, once this event is seen, a later one could be taken by a step; or the end could come."""
        if not self._counts(row, step) or self._barred(row, step, event) or self._left_out(row, step, event):
            return False
        if step == self.end:
            return True
        wanted = self.steps[step].inner if step == row.last else self.steps[step].contiguity
        seen = self._after(row, event)
        if wanted == "strict":
            return not seen
        return wanted == "any" or not any(self._fits(self.steps[step].name, other, row) for other in seen)

    def _after(self, row: Row, event: int) -> range:
        """The events after the last one of a row up to this one; before the first none lies between."""
        return range(row.events[-1] + 1 if row.events else event, event + 1)

    def _in_time(self, row: Row) -> bool:
        return self._at(row.events[-1]) < self.over(row)

    def _newest(self, row: Row) -> int:
        """The last event of the key that comes before the time of a row is over."""
        return max(number for number in range(len(self.events)) if self._at(number) < self.over(row))

    def _at(self, event: int) -> int:
        return int(self.events[event]["at"])

    def over(self, row: Row) -> int:
        """When the time of a row is over."""
        assert self.pattern.length is not None
        return self._at(row.events[0]) + self.pattern.length

    def moment(self, row: Row) -> Instant:
        """When a match is whole: with its last event, or with the end of its time."""
        return (self.over(row), 0, 0) if self.ends_by_time else (self._at(row.events[-1]), 1, row.events[-1])

    def gone(self, row: Row) -> Instant:
        """When a row is over: nothing more could be taken, or its time is over."""
        if self.ends_by_time and row in self.wholes:
            return self.over(row), 0, 0
        last = self.end + 1 if self.ends_by_time else self.end
        for event in range(row.events[-1], self._newest(row) + 1):
            if not any(self._still_open(row, step, event) for step in range(row.last, last)):
                return self._at(event), 1, event
        return self.over(row), 0, 2

    def _fits(self, name: str, event: int, row: Row) -> bool:
        asked = (name, event, row)
        if asked not in self.answers:
            taken = {step.name: [self.events[at] for at, of in zip(*row, strict=True) if of == number]
                     for number, step in enumerate(self.steps)}  # fmt: skip
            self.answers[asked] = self.conditions[name](self.events[event], taken)
        return self.answers[asked]


def expected(word: Word, skip: Skip) -> tuple[list[Found], list[Found]]:
    """The matches that a skip strategy leaves, and the time-outs, each in the order in which they are given."""
    over = {row: word.gone(row) for row in word.beginnings}
    if skip.kind == "no_skip":
        chosen = sorted(word.wholes, key=lambda row: (word.moment(row), row.rank))
    else:
        chosen, left = [], sorted(word.wholes, key=lambda row: (row.events[0], word.moment(row), row.rank))
        while left:
            match = left[0]
            earlier = [over[row] for row in word.beginnings if row.events[0] < match.events[0]]
            moment, begin = max([word.moment(match), *earlier]), onward(match, skip, word.pattern)
            chosen.append(match)
            left = [row for row in left[1:] if row.events[0] >= begin]
            over.update({row: min(end, moment) for row, end in over.items() if row.events[0] < begin})
    late = [row for row in word.beginnings if row not in word.wholes and over[row] == (word.over(row), 0, 2)]
    timeouts = sorted(late, key=lambda row: (word.over(row), row.rank))
    return (
        [Found(row, int(word.moment(row)[0])) for row in chosen],
        [Found(row, word.over(row)) for row in timeouts],
    )


def onward(match: Row, skip: Skip, pattern: Pattern) -> int:
    """The first event with which another match may begin."""
    if skip.kind == "to_next":
        return match.events[0] + 1
    if skip.kind == "past_last":
        return match.events[-1] + 1
    named = [at for at, step in zip(*match, strict=True) if pattern.taken[step].name == skip.name]
    return 0 if not named else named[0] if skip.kind == "to_first" else named[-1]
