"""Joins, one row at a time: arrivals meet what is held and one another, then what W rules out is padded and leaves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from penstock.plan.operators.join import FOREVER, Bound, Join, Together
from penstock.plan.operators.join_schema import right_columns
from penstock.plan.stages import MAIN, Side
from penstock.reference.aggregates import Record, canonical
from penstock.reference.operators.protocol import Emitted, Out
from penstock.types.timestamps import MAX_TIME, MIN_TIME, plus

Key = tuple[Any, ...]
Place = tuple[str, int]
NOWHERE: Place = ("", -1)


@dataclass
class Held:
    """A row that waits for partners: its key, which right times it reaches, until when one may come."""

    record: Record
    key: Key | None
    low: int
    high: int
    until: int
    matched: bool = False

    @property
    def place(self) -> Place:
        return self.record.partition, self.record.offset


@dataclass
class Memory:
    """The rows of both sides that wait, and the bound behind which rows are late."""

    sides: tuple[list[Held], list[Held]] = field(default_factory=lambda: ([], []))
    bound: int = MIN_TIME


class JoinMachine:
    """A join in progress."""

    def __init__(self, rule: Join, sides: Sequence[Side]) -> None:
        self.rule, self.left, self.right = rule, *sides
        self.named = {} if rule.once else right_columns(self.right, rule.prefix)
        self.judges = rule.judges(sides)
        self.memory = Memory()

    def step(self, arrivals: Sequence[Sequence[Record]], watermark: int, now: int) -> Emitted:
        """Judge, match, then pad and let go."""
        emitted, memory = Emitted(), self.memory
        memory.bound = max(memory.bound, plus(watermark, -self.rule.lateness))
        fresh: tuple[list[Held], list[Held]] = ([], [])
        for number, make in enumerate((self._left, self._right)):
            for record in arrivals[number]:
                if self.judges[number] and record.time < memory.bound:
                    emitted.late.append((number, record))
                else:
                    fresh[number].append(make(record))
        found: list[tuple[tuple[int, Place, Place], Out]] = []
        old = memory.sides
        for left, rights in [(one, [*old[1], *fresh[1]]) for one in fresh[0]] + [(one, fresh[1]) for one in old[0]]:
            found += self._matched(left, rights)
        for number in (0, 1):
            found += self._leave(number, [*old[number], *fresh[number]])
        for number in (0, 1):
            self._withdraw(memory.sides[number])
        emitted.rows = _net([out for _, out in sorted(found, key=lambda one: one[0])])
        emitted.hold = min(
            (one.record.time for n in (0, 1) if self.rule.pads[n] for one in memory.sides[n] if not one.matched),
            default=MAX_TIME,
        )
        return emitted

    def held(self) -> int:
        return sum(map(len, self.memory.sides))

    def _matched(self, left: Held, rights: list[Held]) -> list[tuple[tuple[int, Place, Place], Out]]:
        """What a left row and its partners give."""
        partners = [
            one
            for one in rights
            if left.key is not None and one.key == left.key and left.low <= one.record.time <= left.high
        ]
        if self.rule.once:
            if left.matched or not partners:
                return []
            left.matched = True
            if self.rule.how == "anti":
                return []
            time = min(max(left.record.time, one.record.time) for one in partners)
            return [((time, left.place, NOWHERE), Out(MAIN, self._row(left, None), time))]
        given = []
        for right in partners:
            left.matched = right.matched = True
            time = max(left.record.time, right.record.time)
            out = Out(MAIN, self._row(left, right), time, left.record.op * right.record.op)
            given.append(((time, left.place, right.place), out))
        return given

    def _leave(self, number: int, rows: list[Held]) -> list[tuple[tuple[int, Place, Place], Out]]:
        """Rows that no partner can reach any more leave, padded if they had none; the rest are held."""
        pads, given, kept = self.rule.pads[number], [], []
        for one in rows:
            if self.rule.once and number == 0 and one.matched:
                continue
            if one.until >= self.memory.bound:
                # What can match nothing is held only to be padded.
                if pads or (one.key is not None and one.low <= one.high):
                    kept.append(one)
            elif pads and not one.matched:
                time = one.record.time
                places = (one.place, NOWHERE) if number == 0 else (NOWHERE, one.place)
                row = self._row(one, None) if number == 0 else self._row(None, one)
                given.append(((time, *places), Out(MAIN, row, time)))
        self.memory.sides[number][:] = kept
        return given

    def _withdraw(self, rows: list[Held]) -> None:
        """Rows that are withdrawn go, and take with them the last of those that are equal to them."""
        for gone in [one for one in rows if one.record.op < 0]:
            rows.remove(gone)
            same = [one for one in rows if one.record.op > 0 and _same(one.record, gone.record)]
            if same:
                rows.remove(max(same, key=lambda one: one.place))

    def _row(self, left: Held | None, right: Held | None) -> dict[str, Any]:
        """The joined row; where one side is missing its columns are null, but for the keys."""
        row: dict[str, Any] = dict.fromkeys(self.left.schema.names)
        if left is not None:
            row.update(left.record.row)
        elif right is not None:
            row.update(zip(self.left.keys, (right.record.row[name] for name in self.right.keys), strict=True))
        for name, new in self.named.items():
            row[new] = None if right is None else right.record.row[name]
        if isinstance(self.rule.reach, Together):
            one = left or right
            assert one is not None
            row["window_start"], row["window_end"] = self.rule.reach.window.assign(one.record.time)[0]
        return row

    def _key(self, record: Record, names: Sequence[str]) -> Key | None:
        """The key, or None where a part of it is null: it meets nothing."""
        values = tuple(canonical(record.row[name]) for name in names)
        return None if None in values else values

    def _left(self, record: Record) -> Held:
        key, reach = self._key(record, self.left.keys), self.rule.reach
        if isinstance(reach, Together):
            window = reach.window.assign(record.time)[0]
            return Held(record, key, window.start, window.end - 1, window.end - 1)
        low, high = _instant(reach.low, record, MIN_TIME), _instant(reach.high, record, FOREVER)
        if low is None or high is None:
            return Held(record, key, MAX_TIME, MIN_TIME, record.time)
        return Held(record, key, low, high, min(high, FOREVER))

    def _right(self, record: Record) -> Held:
        key, reach, time = self._key(record, self.right.keys), self.rule.reach, record.time
        if isinstance(reach, Together):
            return Held(record, key, time, time, reach.window.assign(time)[0].end - 1)
        if self.rule.forever[1]:
            return Held(record, key, time, time, FOREVER)
        assert reach.low is not None
        return Held(record, key, time, time, min(plus(time, -reach.low.shift), FOREVER))


def _same(one: Record, other: Record) -> bool:
    return one.time == other.time and _values(one.row) == _values(other.row)


def _values(row: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(map(canonical, row.values()))


def _net(rows: list[Out]) -> list[Out]:
    """Rows that come and are withdrawn in one batch are not given at all."""
    if all(row.op > 0 for row in rows):
        return rows
    left: list[Out] = []
    for row in rows:
        same = [
            one for one in left if one.op == -row.op and one.time == row.time and _values(one.row) == _values(row.row)
        ]
        if same:
            left.remove(same[-1])
        else:
            left.append(row)
    return left


def _instant(bound: Bound | None, record: Record, unlimited: int) -> int | None:
    """Where a limit lies for a left row; None where its column is null."""
    if bound is None:
        return unlimited
    if bound.column is None:
        return plus(record.time, bound.shift)
    value = record.row[bound.column]
    return None if value is None else plus(value, bound.shift)
