"""Temporal joins, one row at a time: versions are put in their place, then rows that W has passed find theirs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from penstock.plan.operators.join_schema import right_columns
from penstock.plan.operators.temporal_join import UNMATCHED, TemporalJoin
from penstock.plan.stages import MAIN, Side
from penstock.reference.aggregates import Record, canonical
from penstock.reference.operators.protocol import Emitted, Out
from penstock.types.timestamps import MAX_TIME, MIN_TIME, plus

Key = tuple[Any, ...]


@dataclass
class Memory:
    """The rows that wait, the versions of each key by the time from which they are valid, and the bound of lateness."""

    waiting: list[Record] = field(default_factory=list)
    versions: dict[Key, dict[int, dict[str, Any]]] = field(default_factory=dict)
    bound: int = MIN_TIME


class TemporalMachine:
    """A temporal join in progress."""

    def __init__(self, rule: TemporalJoin, sides: Sequence[Side]) -> None:
        self.rule, self.left, self.right = rule, *sides
        self.named = right_columns(self.right, rule.prefix, () if rule.deleted is None else (rule.deleted,))
        self.memory = Memory()

    def step(self, arrivals: Sequence[Sequence[Record]], watermark: int, now: int) -> Emitted:
        """Judge, put versions in place, join what W has passed, and let go of versions that no row can need."""
        emitted, memory = Emitted(), self.memory
        memory.bound = max(memory.bound, plus(watermark, -self.rule.lateness))
        for number, records in enumerate(arrivals):
            for record in records:
                if record.time < memory.bound:
                    emitted.late.append((number, record))
                elif number == 0:
                    memory.waiting.append(record)
                else:
                    self._put(record)
        passed = [record for record in memory.waiting if record.time < watermark]
        memory.waiting = [record for record in memory.waiting if record.time >= watermark]
        for record in sorted(passed, key=lambda record: (record.time, record.partition, record.offset)):
            emitted.rows += self._joined(record)
        self._forget()
        emitted.hold = min((record.time for record in memory.waiting), default=MAX_TIME)
        return emitted

    def held(self) -> int:
        return len(self.memory.waiting) + sum(map(len, self.memory.versions.values()))

    def _put(self, record: Record) -> None:
        """Of versions from one instant the last to arrive is kept; one with a null key meets nothing."""
        key = key_of(record, self.right.keys)
        if key is not None:
            self.memory.versions.setdefault(key, {})[record.time] = record.row

    def _joined(self, record: Record) -> list[Out]:
        key = key_of(record, self.left.keys)
        versions = {} if key is None else self.memory.versions.get(key, {})
        valid = max((time for time in versions if time <= record.time), default=None)
        version = None if valid is None or self._deletes(versions[valid]) else versions[valid]
        if version is None and self.rule.how == "inner":
            return [Out(UNMATCHED, record.row, record.time)]
        more = {new: None if version is None else version[name] for name, new in self.named.items()}
        return [Out(MAIN, {**record.row, **more}, record.time)]

    def _deletes(self, row: dict[str, Any]) -> bool:
        return self.rule.deleted is not None and row[self.rule.deleted] is True

    def _forget(self) -> None:
        """Rows that are not late have times from the bound on: of what was valid before, they need the last alone."""
        bound = self.memory.bound
        if bound == MAX_TIME:
            self.memory.versions.clear()
        for key, versions in list(self.memory.versions.items()):
            base = max((time for time in versions if time <= bound), default=MIN_TIME)
            left = {t: row for t, row in versions.items() if t > base or (t == base and not self._deletes(row))}
            self.memory.versions[key] = left
            if not left:
                del self.memory.versions[key]


def key_of(record: Record, names: Sequence[str]) -> Key | None:
    """The key, or None where a part of it is null: it meets nothing."""
    values = tuple(canonical(record.row[name]) for name in names)
    return None if None in values else values
