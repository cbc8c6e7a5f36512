"""What a key's events do to its partial matches: the one loop that runs event by event, over numbers and tuples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from penstock.engine.operators.pattern.automaton import ANY, STRICT, Automaton, Bar, Register, Way
from penstock.plan.operators.match import too_many
from penstock.types.timestamps import MAX_TIME, plus
from penstock.types.validate import reason_of

Key = tuple[Any, ...]
Registers = tuple[Any, ...]


class Partial(NamedTuple):
    """A partial match: where it is, which ways are open, its first and last event by number and time.

    `near`: the last event seen was taken. `given`: what it has taken is a match already.
    """

    state: int
    open: int
    near: bool
    start: int
    tail: int
    first: int
    last: int
    given: bool
    held: Registers


class Whole(NamedTuple):
    """A match: the number of its first event, and of the first with which another may begin, its times."""

    start: int
    onward: int
    first: int
    last: int
    time: int
    held: Registers


class Of(NamedTuple):
    """What is remembered of a key: partial matches in order of their first event, and matches that wait for those."""

    hash: int
    partial: Sequence[Partial] = ()
    waiting: Sequence[Whole] = ()

    @property
    def size(self) -> int:
        """How many there are of both."""
        return len(self.partial) + len(self.waiting)


Some = Sequence[Partial]
Done = Sequence[Whole]


@dataclass(frozen=True, slots=True)
class Events:
    """Events in hand, key by key in order of time: when, their number, which conditions they fit, their columns."""

    times: list[int]
    numbers: list[int]
    bits: list[int]
    columns: list[list[Any]]


@dataclass
class Play:
    """One batch: what the keys give, and the events that could not be used, each with the reason."""

    automaton: Automaton
    events: Events
    matches: list[tuple[Key, Whole]] = field(default_factory=list)
    timeouts: list[tuple[Key, Whole]] = field(default_factory=list)
    bad: list[tuple[int, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        rule, states = self.automaton.rule, self.automaton.states
        self.length, self.skip, self.limit, self.tells = rule.pattern.length, rule.skip, rule.limit, rule.timeouts
        self.ahead = self._ahead()
        self.ends = any(state.end for state in states)

    def seen(self, key: Key, partial: Some, waiting: Done, low: int, high: int) -> tuple[Some, Done]:
        """What a key remembers after its events from one place to another."""
        times, all_bits, begin = self.events.times, self.events.bits, self.automaton.start_bits
        length, limit, moved = self.length, self.limit, self._moved
        for row in range(low, high):
            bits = all_bits[row]
            if partial:
                if length is not None and partial[0].first <= times[row] - length:
                    partial, waiting = self.expired(key, partial, waiting, times[row])
            elif begin is not None and not bits & begin:
                continue
            try:
                partial, whole = moved(partial, row, bits)
            except Exception as error:
                self.bad.append((row, reason_of(error)))
                continue
            if whole or waiting:
                partial, waiting = self._settled(key, partial, waiting, whole)
            if len(partial) + len(waiting) > limit:
                raise too_many(self.automaton.rule, key)
        return partial, waiting

    def expired(self, key: Key, partial: Some, waiting: Done, upto: int) -> tuple[Some, Done]:
        """What is left when the time of partial matches is over; those of the same instant leave together."""
        states = self.automaton.states
        while partial and self._due(partial[0].first, upto):
            first = partial[0].first
            if self.ends:
                over = [one for one in partial if one.first == first and one.open & states[one.state].end]
                partial = [one for one in partial if one.first != first or not one.open & states[one.state].end]
                ended = [self._whole(one, self._deadline(first)) for one in over]
                partial, waiting = self._settled(key, partial, waiting, ended)
            if self.tells:
                gone = [one for one in partial if one.first == first and not one.given]
                self.timeouts += [(key, self._whole(one, self._deadline(first))) for one in gone]
            partial = [one for one in partial if one.first != first]
            if waiting:
                partial, waiting = self._settled(key, partial, waiting, [])
        return partial, waiting

    def _moved(self, before: Some, row: int, bits: int) -> tuple[list[Partial], list[Whole]]:
        """The partial matches after an event, and the matches that it makes whole."""
        states, columns, take = self.automaton.states, self.events.columns, self._take
        partial: list[Partial] = []
        whole: list[Whole] = []
        for one in before:
            state, is_open, near, _, _, _, _, _, held = one
            ways, _, _, _ = states[state]
            left = 0
            for way in ways:
                here, bit, code, keeps, target, _, bars, eager = way
                if not is_open & here or (bars and self._barred(bars, near, row, bits, held)):
                    continue
                if target < 0:
                    left |= here
                elif bits & bit if code is None else code(row, held, columns):
                    take(one, way, row, partial, whole)
                    if keeps == ANY:
                        left |= here
                    if eager:
                        break
                elif keeps != STRICT:
                    left |= here
            if left:
                partial.append(one if left == is_open and not near else one._replace(open=left, near=False))
        for way in self.automaton.starts:
            if bits & way.bit if way.code is None else way.code(row, self.automaton.empty, columns):
                take(None, way, row, partial, whole)
                if way.eager:
                    break
        return partial, whole

    def _barred(self, bars: Sequence[Bar], near: bool, row: int, bits: int, held: Registers) -> bool:
        columns = self.events.columns
        for bit, code, only_near in bars:
            if (near or not only_near) and (bits & bit if code is None else code(row, held, columns)):
                return True
        return False

    def _take(self, one: Partial | None, way: Way, row: int, partial: list[Partial], whole: list[Whole]) -> None:
        """A partial match that takes an event: it goes on, is whole, or both."""
        _, _, _, _, target, kept, _, _ = way
        events = self.events
        number, time, held = events.numbers[row], events.times[row], self.automaton.empty if one is None else one.held
        if kept is not None:
            held = kept(row, held, events.columns, number)
        start, first = (number, time) if one is None else (one.start, one.first)
        _, ways, _, done = self.automaton.states[target]
        # A third of the price of Partial(...), and this is where a batch's time goes.
        made = tuple.__new__(Partial, (target, ways, True, start, number, first, time, done, held))
        if done:
            whole.append(self._whole(made, time))
        if ways:
            partial.append(made)

    def _settled(self, key: Key, partial: Some, waiting: Done, whole: list[Whole]) -> tuple[Some, Done]:
        """Give matches, the one that begins first before the others; what a match rules out leaves."""
        if self.skip.kind == "no_skip":
            self.matches += [(key, match) for match in whole]
            return partial, waiting
        left = sorted([*waiting, *whole], key=_start) if waiting else whole
        while left and (not partial or left[0].start <= partial[0].start):
            match = left[0]
            self.matches.append((key, match))
            partial = [one for one in partial if one.start >= match.onward]
            left = [one for one in left[1:] if one.start >= match.onward]
        return partial, left

    def _whole(self, one: Partial, time: int) -> Whole:
        ahead = self.ahead
        if ahead is None:
            onward = one.start + 1 if self.skip.kind == "to_next" else one.tail + 1
        else:
            onward = 0 if one.held[ahead] is None else one.held[ahead]
        return Whole(one.start, onward, one.first, one.last, time, one.held)

    def _ahead(self) -> int | None:
        """The register that says from which event on another match may begin, where a step says it."""
        if self.skip.name is None:
            return None
        kind = "first_at" if self.skip.kind == "to_first" else "last_at"
        return self.automaton.registers.index(Register(kind, self.skip.name, None))

    def _due(self, first: int, upto: int) -> bool:
        return upto == MAX_TIME or (self.length is not None and first + self.length <= upto)

    def _deadline(self, first: int) -> int:
        return MAX_TIME if self.length is None else plus(first, self.length)


def _start(match: Whole) -> int:
    return match.start
