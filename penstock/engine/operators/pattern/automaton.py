"""A pattern as an automaton: states and the ways out of them as numbers, and what is kept of the events taken.

A partial match is a state, which of the state's ways are still open, and registers: the last price, how many, the
sum. No list of events is kept, so a partial match costs the same however many events it has taken.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import pyarrow as pa

from penstock.engine.operators.pattern.conditions import Code, Kept, condition_code, function_code, kept_code
from penstock.plan.operators.match import Match, Test, refs_of
from penstock.plan.operators.measures import Read, Ref
from penstock.plan.operators.pattern import Contiguity, Step
from penstock.plan.stages import Side
from penstock.types.arrow import arrow_schema, arrow_type
from penstock.types.schema import INTEGERS

STRICT, RELAXED, ANY = range(3)
LOOP = 1  # the bit of the way back into the same step; it is always the first
_KEEPS: dict[Contiguity, int] = {"strict": STRICT, "relaxed": RELAXED, "any": ANY}
_ONCE = ("first", "first_at")


class Asked(NamedTuple):
    """A condition: the bit of an event that says whether it fits, or code where it must be asked beside a match."""

    bit: int
    code: Code | None


class Bar(NamedTuple):
    """What may not come on a way, or (`near`) not right after the last event that was taken."""

    bit: int
    code: Code | None
    near: bool


class Way(NamedTuple):
    """A way on: its bit, its condition, how it bears events that do not fit, where it leads, what that changes.

    `target` is -1 for the end of a pattern that ends by `without`: no event takes it, the time does. `eager`: what is
    taken on this way, those to later steps do not get.
    """

    open: int
    bit: int
    code: Code | None
    keeps: int
    target: int
    kept: Kept | None
    bars: tuple[Bar, ...]
    eager: bool


class State(NamedTuple):
    """The ways out in order of the steps they lead to, all their bits, the end's, whether a match is whole here."""

    ways: tuple[Way, ...]
    all: int
    end: int
    whole: bool


class Register(NamedTuple):
    """One thing kept of the events of a step."""

    kind: str
    step: str
    column: str | None


@dataclass(frozen=True)
class Automaton:
    """A pattern made ready for one stream."""

    rule: Match
    side: Side

    @cached_property
    def tests(self) -> tuple[Test, ...]:
        return self.rule.tests(self.side)

    @cached_property
    def refs(self) -> tuple[Ref, ...]:
        """What the measures say of a match."""
        return refs_of([one for _, one in self.rule.measures(self.side)])

    @cached_property
    def registers(self) -> tuple[Register, ...]:
        """All that is kept of a partial match, each once."""
        found: dict[Register, None] = {}
        for ref in (*self.refs, *refs_of([test.read for test in self.tests])):
            found.update(dict.fromkeys(registers_of(ref)))
        if any(test.function is not None and not test.plain for test in self.tests):
            found.update({Register("events", step.name, None): None for step in self.rule.pattern.taken})
        skip = self.rule.skip
        if skip.name is not None:
            found[Register("first_at" if skip.kind == "to_first" else "last_at", skip.name, None)] = None
        return tuple(found)

    @cached_property
    def empty(self) -> tuple[Any, ...]:
        """The registers of no events."""
        zero = {"count": 0, "rows": 0, "events": ()}
        return tuple(zero.get(register.kind) for register in self.registers)

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The columns that a partial match is asked about, or keeps something of."""
        asked = {register.column for register in self.registers if register.column is not None}
        for test in self.tests:
            if test.read is not None and not test.plain:
                asked |= test.read.columns - {ref.name for ref in test.read.refs}
        return tuple(name for name in self.side.schema.names if name in asked)

    @cached_property
    def users(self) -> bool:
        """Whether whole events are shown to functions of the user."""
        return any(register.kind == "events" for register in self.registers)

    @cached_property
    def register_types(self) -> tuple[pa.DataType, ...]:
        """How the registers lie at rest."""
        return tuple(map(self._type, self.registers))

    @cached_property
    def numbers(self) -> dict[tuple[int, int], int]:
        """The number of each state: a step, and how many events it has, as far as that matters."""
        found: dict[tuple[int, int], int] = {}
        for at, step in enumerate(self.rule.pattern.taken):
            for count in range(1, (step.most or step.least) + 1):
                found[at, count] = len(found)
        return found

    @cached_property
    def states(self) -> tuple[State, ...]:
        return tuple(self._state(at, count) for at, count in self.numbers)

    @cached_property
    def starts(self) -> tuple[Way, ...]:
        """The ways into a new match."""
        ways = [self._way(1 << n, None, step) for n, step in enumerate(self.rule.pattern.reached(-1))]
        return tuple(way._replace(bars=()) for way in ways)

    @cached_property
    def start_bits(self) -> int | None:
        """The bits by which an event may begin a match, or None where any may."""
        if any(way.code is not None for way in self.starts):
            return None
        return sum(way.bit for way in self.starts)

    def value(self, ref: Ref) -> tuple[int, ...]:
        """The places of the registers that a reference is made of."""
        return tuple(self.registers.index(register) for register in registers_of(ref))

    def _state(self, at: int, count: int) -> State:
        taken, ends = self.rule.pattern.taken, bool(self.rule.pattern.bars[-1])
        step, ways, whole = taken[at], [], False
        if step.most is None or count < step.most:
            ways.append(self._way(LOOP, at, at, count))
        if count >= step.least:
            for number in self.rule.pattern.reached(at):
                whole = whole or (number == len(taken) and not ends)
                if number < len(taken) or ends:
                    ways.append(self._way(2 << len(ways), at, number))
        end = sum(way.open for way in ways if way.target < 0)
        return State(tuple(ways), sum(way.open for way in ways), end, whole)

    def _way(self, bit: int, at: int | None, number: int, count: int = 0) -> Way:
        taken, bars = self.rule.pattern.taken, self.rule.pattern.bars
        between = () if count or at is None else [bar for gap in bars[at + 1 : number + 1] for bar in gap]
        barred = tuple(Bar(*self.asked[bar], bar.contiguity == "strict") for bar in between)
        if number == len(taken):
            return Way(bit, 0, None, ANY, -1, None, barred, eager=False)
        step = taken[number]
        most = step.most or step.least
        target = self.numbers[number, min(count + 1, most)]
        keeps = _KEEPS[step.inner if count else step.contiguity]
        kept = self._kept(step.name, again=count > 0)
        return Way(bit, *self.asked[step], keeps, target, kept, barred, step.eager)

    @cached_property
    def asked(self) -> dict[Step, Asked]:
        """How each condition is asked."""
        return {test.step: Asked(1 << n, self._code(test)) for n, test in enumerate(self.tests)}

    def _code(self, test: Test) -> Code | None:
        if test.plain:
            return None
        if test.function is not None:
            events = {name: self.registers.index(Register("events", name, None)) for name in self._names}
            return function_code(test.function, events, len(self.columns))
        assert isinstance(test.read, Read)
        schema = test.read.schema(self.side.schema, "match")
        places = {name: n for n, name in enumerate(self.columns)}
        return condition_code(test.read, schema, places, {ref: self.value(ref) for ref in test.read.refs})

    @property
    def _names(self) -> list[str]:
        return [step.name for step in self.rule.pattern.taken]

    def _kept(self, step: str, again: bool) -> Kept | None:
        """How taking an event changes the registers; None where it does not."""
        changes = {
            slot: (one.kind, self._place(one))
            for slot, one in enumerate(self.registers)
            if one.step == step and not (again and one.kind in _ONCE)
        }
        return kept_code(len(self.registers), changes) if changes else None

    def _place(self, register: Register) -> int:
        """The place of the column that a register is of; whole events come after all columns."""
        return len(self.columns) if register.column is None else self.columns.index(register.column)

    def _type(self, register: Register) -> pa.DataType:
        if register.kind == "events":
            return pa.list_(pa.struct(list(arrow_schema(self.side.schema))))
        if register.column is None or register.kind == "count":
            return pa.int64()
        kind = self.side.schema.type_of(register.column, "match")
        if register.kind == "sum" and kind in INTEGERS:
            # Whole numbers may add up to more than 64 bits and come back.
            return pa.decimal128(38, 0)
        return arrow_type(kind)


def registers_of(ref: Ref) -> tuple[Register, ...]:
    """What must be kept to answer a reference."""
    if ref.column is None:
        return (Register("rows", ref.step, None),)
    if ref.function == "avg":
        return (Register("sum", ref.step, ref.column), Register("count", ref.step, ref.column))
    return (Register(ref.function, ref.step, ref.column),)
