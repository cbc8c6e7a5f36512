"""The best rows of a key, one row at a time: they come, are withdrawn, and the best that are left stand in order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from penstock.model.windows import Window
from penstock.plan.operators.top_n import RANK, WINDOW, Top
from penstock.plan.stages import MAIN, Side
from penstock.reference.aggregates import Descending, Record, canonical, order
from penstock.reference.operators.protocol import Emitted, Out
from penstock.types.timestamps import MAX_TIME, plus

Group = tuple[tuple[Any, ...], Window | None]


class TopMachine:
    """The best rows in progress; the memory has the rows of each key, or key and window."""

    def __init__(self, rule: Top, sides: Sequence[Side]) -> None:
        self.rule, (self.side,) = rule, sides
        self.memory: dict[Group, list[Record]] = {}

    def step(self, arrivals: Sequence[Sequence[Record]], watermark: int, now: int) -> Emitted:
        """Windows that have expired give their answer; what came changes the others."""
        emitted = Emitted()
        for group in [group for group in self.memory if self._expired(group[1], watermark)]:
            emitted.rows += [
                self._out(group[1], rank, record, 1)
                for rank, record in enumerate(self._best(self.memory.pop(group)), 1)
            ]
        stood: dict[Group, list[Record]] = {}
        for record in sorted(arrivals[0], key=lambda record: -record.op):
            window = None if self.rule.window is None else self.rule.window.assign(record.time)[0]
            if self._expired(window, watermark):
                emitted.late.append((0, record))
            elif canonical(record.row[self.rule.by]) is not None:
                group = (tuple(canonical(record.row[name]) for name in self.side.keys), window)
                stood.setdefault(group, self._best(self.memory.get(group, [])))
                self._put(self.memory.setdefault(group, []), record)
        for group, before in stood.items():
            if not self.side.signed:
                self.memory[group] = self._best(self.memory[group])
            if self.rule.window is None:
                emitted.rows += self._changes(before, self._best(self.memory[group]))
            if not self.memory[group]:
                del self.memory[group]
        if watermark == MAX_TIME:
            self.memory = {}
        return emitted

    def held(self) -> int:
        """How many rows are kept."""
        return sum(map(len, self.memory.values()))

    def _expired(self, window: Window | None, watermark: int) -> bool:
        return window is not None and watermark >= plus(window.end, self.rule.lateness or 0)

    def _put(self, rows: list[Record], record: Record) -> None:
        """A row more, or of those that are equal to it, the last one less."""
        if record.op > 0:
            rows.append(record)
            return
        same = [one for one in rows if one.time == record.time and _values(one) == _values(record)]
        if same:
            rows.remove(max(same, key=lambda one: (one.partition, one.offset)))

    def _best(self, rows: list[Record]) -> list[Record]:
        def place(record: Record) -> tuple[Any, ...]:
            rank = order(canonical(record.row[self.rule.by]))
            first = rank if self.rule.best == "least" else Descending(rank)
            return first, record.time, record.partition, record.offset

        return sorted(rows, key=place)[: self.rule.n]

    def _changes(self, before: list[Record], after: list[Record]) -> list[Out]:
        """For each rank that another row has now: the old one is withdrawn, the new one comes."""
        made = []
        for rank in range(max(len(before), len(after))):
            old, new = (rows[rank] if rank < len(rows) else None for rows in (before, after))
            if old is not new:
                made += [self._out(None, rank + 1, one, op) for one, op in ((old, -1), (new, 1)) if one is not None]
        return made

    def _out(self, window: Window | None, rank: int, record: Record, op: int) -> Out:
        if window is None:
            return Out(MAIN, {**record.row, RANK: rank}, record.time, op)
        bounds = dict(zip(WINDOW, window, strict=True))
        return Out(MAIN, {**record.row, RANK: rank, **bounds}, window.end - 1, op)


def _values(record: Record) -> tuple[Any, ...]:
    return tuple(map(canonical, record.row.values()))
