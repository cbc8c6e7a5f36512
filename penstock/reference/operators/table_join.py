"""Joins with a table, one row at a time: its changes first, then the rows that meet it as it stands."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from penstock.plan.operators.join_schema import right_columns
from penstock.plan.operators.table_join import TableJoin
from penstock.plan.operators.temporal_join import UNMATCHED
from penstock.plan.stages import MAIN, Side
from penstock.reference.aggregates import Record
from penstock.reference.operators.protocol import Emitted, Out
from penstock.reference.operators.temporal_join import Key, key_of


class TableMachine:
    """A join with a table in progress; the memory is the table."""

    def __init__(self, rule: TableJoin, sides: Sequence[Side]) -> None:
        self.rule, self.left, self.right = rule, *sides
        self.named = right_columns(self.right, rule.prefix, () if rule.deleted is None else (rule.deleted,))
        self.memory: dict[Key, dict[str, Any]] = {}

    def step(self, arrivals: Sequence[Sequence[Record]], watermark: int, now: int) -> Emitted:
        """Change the table, then join."""
        emitted = Emitted()
        for record in arrivals[1]:
            key = key_of(record, self.right.keys)
            if key is None:
                continue
            if self.rule.deleted is not None and record.row[self.rule.deleted] is True:
                self.memory.pop(key, None)
            else:
                self.memory[key] = record.row
        for record in sorted(arrivals[0], key=lambda record: (record.time, record.partition, record.offset)):
            key = key_of(record, self.left.keys)
            found = None if key is None else self.memory.get(key)
            if found is None and self.rule.how == "inner":
                emitted.rows.append(Out(UNMATCHED, record.row, record.time))
                continue
            more = {new: None if found is None else found[name] for name, new in self.named.items()}
            emitted.rows.append(Out(MAIN, {**record.row, **more}, record.time))
        return emitted

    def held(self) -> int:
        return len(self.memory)
