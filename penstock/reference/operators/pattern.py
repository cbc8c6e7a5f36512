"""Patterns, one event at a time: every partial match is a list of the events it has taken.

A partial match waits at a step. Each event that comes may be taken by it in several ways, each of which goes on as a
partial match of its own; it stays as it is too, for as long as a way is left to go on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from penstock.diagnostics.user_functions import user_error
from penstock.errors import EvaluationError
from penstock.expressions.nodes import LONG_MAX, LONG_MIN
from penstock.plan.operators.match import TIMEOUTS, Match, Test, refs_of, too_many, unmeasurable
from penstock.plan.operators.measures import Ref
from penstock.plan.operators.pattern import Step
from penstock.plan.stages import MAIN, Side
from penstock.reference.aggregates import Record, canonical, order
from penstock.reference.expressions import evaluator
from penstock.reference.operators.protocol import Bad, Emitted, Out
from penstock.types.timestamps import MAX_TIME, plus
from penstock.types.validate import for_users, reason_of

Key = tuple[Any, ...]
LOOP = "loop"


@dataclass(frozen=True)
class Taken:
    """An event in a partial match: its number among the key's events, its time, its row, and the step it is."""

    number: int
    time: int
    row: dict[str, Any]
    step: int


@dataclass(frozen=True)
class Partial:
    """The events taken so far, which ways to go on are open, and whether the last event seen was taken.

    A way is LOOP or the number of a step; one more than the last step is the end, for a pattern that ends by
    `without`. `given`: what it has taken is a match already.
    """

    events: tuple[Taken, ...]
    ways: tuple[Any, ...]
    near: bool = True
    given: bool = False


@dataclass(frozen=True)
class Whole:
    """A match and its event time."""

    events: tuple[Taken, ...]
    time: int


@dataclass
class Of:
    """What is remembered of a key: partial matches in order of their first event, and matches that wait for those."""

    partial: list[Partial] = field(default_factory=list)
    waiting: list[Whole] = field(default_factory=list)
    seen: int = 0


@dataclass
class Memory:
    """Events that W has not passed, and what is remembered of each key."""

    events: list[Record] = field(default_factory=list)
    keys: dict[Key, Of] = field(default_factory=dict)


class Matching:
    """A pattern looked for in a stream."""

    def __init__(self, rule: Match, side: Side) -> None:
        self.rule, self.side, self.memory = rule, side, Memory()
        self.steps, self.bars = rule.pattern.taken, rule.pattern.bars
        self.tests = {test.step: _tester(test, side, self.steps) for test in rule.tests(side)}
        self.plain = [test.step for test in rule.tests(side) if test.plain]
        self.refs = refs_of([one for _, one in rule.measures(side)])
        measured = rule.measured(side)
        self.measures = [(name, evaluator(one.node, measured)) for name, one in rule.measures(side)]

    def step(self, arrivals: Sequence[Sequence[Record]], watermark: int, now: int) -> Emitted:
        self.out = Emitted()
        horizon = plus(watermark, -self.rule.lateness)
        for record in arrivals[0]:
            if record.time < horizon:
                self.out.late.append((0, record))
            elif self._fits_all(record):
                self.memory.events.append(record)
        ready = [record for record in self.memory.events if record.time < horizon]
        self.memory.events = [record for record in self.memory.events if record.time >= horizon]
        for record in sorted(ready, key=lambda record: (record.time, record.partition, record.offset)):
            self._see(record)
        for key, of in list(self.memory.keys.items()):
            self._expire(key, of, horizon)
            if not of.partial and not of.waiting:
                del self.memory.keys[key]
        waiting = [match.time for of in self.memory.keys.values() for match in of.waiting]
        self.out.hold = min([*waiting, horizon if self.rule.lateness else MAX_TIME])
        return self.out

    def held(self) -> int:
        return len(self.memory.events) + sum(len(of.partial) + len(of.waiting) for of in self.memory.keys.values())

    def _fits_all(self, record: Record) -> bool:
        """Whether the conditions that look at the event alone can be computed for it; they are asked as it arrives."""
        try:
            for step in self.plain:
                self.tests[step](record.row, ())
        except Exception as error:
            self.out.bad.append(Bad(0, record, "match", reason_of(error)))
            return False
        return True

    def _see(self, record: Record) -> None:
        key = tuple(canonical(record.row[name]) for name in self.side.keys)
        of = self.memory.keys.setdefault(key, Of())
        self._expire(key, of, record.time)
        try:
            partial, whole = self._moved(of, record)
        except Exception as error:
            self.out.bad.append(Bad(0, record, "match", reason_of(error)))
            return
        of.partial = partial
        of.seen += 1
        self._settle(key, of, whole)
        if len(of.partial) + len(of.waiting) > self.rule.limit:
            raise too_many(self.rule, key)

    def _moved(self, of: Of, record: Record) -> tuple[list[Partial], list[Whole]]:
        """The partial matches after an event, and the matches that it makes whole."""
        partial: list[Partial] = []
        whole: list[Whole] = []
        for one in of.partial:
            taken, left = self._on(one, record)
            for step in taken:
                self._take(one.events, Taken(of.seen, record.time, record.row, step), partial, whole)
            if left is not None:
                partial.append(left)
        for step in self.rule.pattern.reached(-1):
            if self.tests[self.steps[step]](record.row, ()):
                self._take((), Taken(of.seen, record.time, record.row, step), partial, whole)
                if self.steps[step].eager:
                    break
        return partial, whole

    def _on(self, one: Partial, record: Record) -> tuple[list[int], Partial | None]:
        """As which steps a partial match takes an event, and what is left of it where it does not."""
        now = one.events[-1].step
        taken, left = [], []
        for way in one.ways:
            if self._barred(one, way, record):
                continue
            if way == len(self.steps):
                left.append(way)
                continue
            step = now if way == LOOP else way
            contiguity = self.steps[now].inner if way == LOOP else self.steps[step].contiguity
            fits = self.tests[self.steps[step]](record.row, one.events)
            if fits:
                taken.append(step)
            if contiguity == "any" or (contiguity == "relaxed" and not fits):
                left.append(way)
            if fits and self.steps[step].eager:
                break  # what could be taken by a greedy step is left to no later one
        return taken, Partial(one.events, tuple(left), False, one.given) if left else None

    def _barred(self, one: Partial, way: Any, record: Record) -> bool:
        """Whether an event is one that may not come on this way."""
        if way == LOOP:
            return False
        between = [bar for gap in self.bars[one.events[-1].step + 1 : way + 1] for bar in gap]
        return any(
            self.tests[bar](record.row, one.events) for bar in between if one.near or bar.contiguity == "relaxed"
        )

    def _take(self, before: tuple[Taken, ...], event: Taken, partial: list[Partial], whole: list[Whole]) -> None:
        events, step = (*before, event), self.steps[event.step]
        count = sum(one.step == event.step for one in events)
        ways: list[Any] = [LOOP] if step.most is None or count < step.most else []
        given = False
        if count >= step.least:
            ways += self.rule.pattern.reached(event.step)
            if ways[-1] == len(self.steps) and not self.bars[-1]:
                ways.pop()
                given = True
                whole.append(Whole(events, event.time))
        if ways:
            partial.append(Partial(events, tuple(ways), True, given))

    def _expire(self, key: Key, of: Of, upto: int) -> None:
        """Partial matches whose time is over leave, those of the same instant together."""
        while of.partial and self._deadline(of.partial[0]) <= upto:
            first, end = of.partial[0].events[0].time, len(self.steps)
            over = [one for one in of.partial if one.events[0].time == first]
            of.partial = [one for one in of.partial if one.events[0].time != first or end not in one.ways]
            self._settle(key, of, [Whole(one.events, self._deadline(one)) for one in over if end in one.ways])
            over = [one for one in of.partial if one.events[0].time == first]
            of.partial = [one for one in of.partial if one.events[0].time != first]
            for one in over:
                if self.rule.timeouts and not one.given:
                    self._give(TIMEOUTS, key, one.events, self._deadline(one))
            self._settle(key, of, [])

    def _deadline(self, one: Partial) -> int:
        length = self.rule.pattern.length
        return MAX_TIME if length is None else plus(one.events[0].time, length)

    def _settle(self, key: Key, of: Of, whole: list[Whole]) -> None:
        """Give matches, the one that begins first before the others; what a match rules out leaves."""
        if self.rule.skip.kind == "no_skip":
            for match in whole:
                self._give(MAIN, key, match.events, match.time)
            return
        of.waiting = sorted([*of.waiting, *whole], key=lambda match: match.events[0].number)
        while of.waiting and (not of.partial or of.waiting[0].events[0].number <= of.partial[0].events[0].number):
            match = of.waiting.pop(0)
            self._give(MAIN, key, match.events, match.time)
            onward = self._onward(match.events)
            of.partial = [one for one in of.partial if one.events[0].number >= onward]
            of.waiting = [one for one in of.waiting if one.events[0].number >= onward]

    def _onward(self, events: tuple[Taken, ...]) -> int:
        """The number of the first event with which another match may begin."""
        skip = self.rule.skip
        if skip.kind == "to_next":
            return events[0].number + 1
        if skip.kind == "past_last":
            return events[-1].number + 1
        named = [one.number for one in events if self.steps[one.step].name == skip.name]
        if not named:
            return 0
        return named[0] if skip.kind == "to_first" else named[-1]

    def _give(self, output: str, key: Key, events: tuple[Taken, ...], time: int) -> None:
        row = dict(zip(self.side.keys, key, strict=True))
        try:
            held = {**row, **{ref.name: value_of(ref, events, self.steps) for ref in self.refs}}
            row.update({name: measure(held) for name, measure in self.measures})
        except EvaluationError as error:
            raise unmeasurable(error) from None
        row.update(match_start=events[0].time, match_end=events[-1].time)
        self.out.rows.append(Out(output, row, time))


def value_of(ref: Ref, events: Sequence[Taken], steps: Sequence[Step]) -> Any:
    """What is said of the events of a step."""
    rows = [one.row for one in events if steps[one.step].name == ref.step]
    if ref.column is None:
        return len(rows)
    values = [row[ref.column] for row in rows]
    if ref.function in ("first", "last"):
        return None if not values else values[0] if ref.function == "first" else values[-1]
    values = [value for value in values if value is not None]
    if ref.function == "count":
        return len(values)
    if not values:
        return None
    if ref.function in ("min", "max"):
        return (min if ref.function == "min" else max)(values, key=order)
    total = values[0]
    for value in values[1:]:
        total += value
    if ref.function == "avg":
        return total / len(values)
    if isinstance(total, int) and not LONG_MIN <= total <= LONG_MAX:
        raise EvaluationError(f"overflow in {ref.name}")
    return total


def _tester(test: Test, side: Side, steps: Sequence[Step]) -> Callable[[Mapping[str, Any], Sequence[Taken]], bool]:
    """Whether an event fits a step, beside the events that a partial match has taken."""
    if test.function is not None:
        function = test.function

        def asked(row: Mapping[str, Any], events: Sequence[Taken]) -> bool:
            event = for_users(row, side.schema)
            match = {
                step.name: [for_users(one.row, side.schema) for one in events if one.step == number]
                for number, step in enumerate(steps)
            }
            try:
                return bool(function(event) if test.plain else function(event, match))
            except Exception as error:
                raise user_error(error, function, for_users(row, side.schema)) from error

        return asked
    if test.read is None:
        return lambda row, events: True
    refs, evaluate = test.read.refs, evaluator(test.read.node, test.read.schema(side.schema, "match"))
    return lambda row, events: evaluate({**row, **{ref.name: value_of(ref, events, steps) for ref in refs}}) is True
