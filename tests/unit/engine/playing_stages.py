"""Batches for an operator of one side, written as tuples, and what came of them, in seconds."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from typing import Any

from penstock.engine.operators.deduplicate import Deduplicated
from penstock.engine.operators.enrich import Enriching
from penstock.engine.operators.process.step import Keyed
from penstock.engine.state.cache import CACHE
from penstock.engine.windows.lifecycle import Clock
from penstock.plan.operators.deduplicate import Dedup
from penstock.plan.operators.enrich import Enrich
from penstock.plan.operators.process import Process
from penstock.plan.stages import Side
from penstock.reference.aggregates import Record
from penstock.reference.operators.deduplicate import DedupMachine
from penstock.reference.operators.enrich import EnrichMachine
from penstock.reference.operators.process import KeyedMachine
from penstock.types.arrow import from_arrow
from penstock.types.timestamps import MAX_TIME, MIN_TIME
from tests.properties.one_side import SECOND as SECOND, arrived


class Played:
    """A rule in progress; rows are tuples of seconds, the columns, and perhaps a partition."""

    def __init__(self, side: Side) -> None:
        self.side = side
        self.watermark, self.now, self.offset, self.hold = MIN_TIME, 0, 0, MAX_TIME
        self.given: list[tuple[str, int, dict[str, Any]]] = []
        self.late: list[dict[str, Any]] = []
        self.bad: list[tuple[dict[str, Any], str, str]] = []

    def batch(self, rows: Sequence[tuple[Any, ...]], watermark: int | None = None, now: int | None = None) -> None:
        """Play one batch."""
        self.watermark = self.watermark if watermark is None else max(MIN_TIME, min(watermark * SECOND, MAX_TIME))
        self.now = self.now if now is None else now * SECOND
        names, records = self.side.schema.names, []
        for time, *values in rows:
            partition = values[len(names)] if len(values) > len(names) else "p"
            row = dict(zip(names, values, strict=False))
            records.append(Record(time * SECOND, f"s/{partition}", self.offset, row))
            self.offset += 1
        self.play(sorted(records, key=lambda record: (record.partition, record.offset)))

    def rows(self, output: str = "rows") -> list[tuple[int, dict[str, Any]]]:
        """The rows of an output, each with its event time."""
        return [(time // SECOND, row) for name, time, row in self.given if name == output]

    def play(self, records: list[Record]) -> None:
        raise NotImplementedError

    def held(self) -> int:
        raise NotImplementedError

    def restart(self) -> None:
        raise NotImplementedError


class OnReference(Played):
    """One row at a time."""

    def __init__(self, machine: Any, side: Side) -> None:
        super().__init__(side)
        self.machine = machine

    def play(self, records: list[Record]) -> None:
        out = self.machine.step((records,), self.watermark, self.now)
        self.given += [(row.output, row.time, row.row) for row in out.rows]
        self.late += [record.row for _, record in out.late]
        self.bad += [(bad.record.row, bad.step, bad.reason) for bad in out.bad]
        self.hold = out.hold

    def held(self) -> int:
        return self.machine.held()

    def restart(self) -> None:
        self.machine.memory = deepcopy(self.machine.memory)


class InColumns(Played):
    """In columns."""

    def __init__(self, operator: Any, side: Side) -> None:
        super().__init__(side)
        self.operator, self.memory = operator, operator.start()

    def play(self, records: list[Record]) -> None:
        rows = arrived(records, self.side.schema)
        out = self.operator.step(self.memory, (rows,), Clock(self.watermark, self.now))
        schemas = self.operator.rule.outputs((self.side,))
        for name, given in out.outputs.items():
            made = zip(given.times.tolist(), from_arrow(given.batch, schemas[name]), strict=True)
            self.given += [(name, time, row) for time, row in made]
        self.late += [] if out.late[0] is None else from_arrow(out.late[0].batch, self.side.schema)
        waited = getattr(out, "waited", (None,))[0]
        known = from_arrow(rows.batch, self.side.schema)
        known += [] if waited is None else from_arrow(waited.batch, self.side.schema)
        self.bad += [(known[bad.row], bad.step, bad.reason) for bad in out.bad]
        self.memory, self.hold = out.memory, out.hold

    def held(self) -> int:
        return self.operator.held(self.memory)

    def restart(self) -> None:
        saved = self.operator.saved(self.memory)
        CACHE.clear()
        self.memory = self.operator.restored(saved.head, saved.parts.__getitem__)


def player(engine: str, rule: Process | Dedup | Enrich, side: Side) -> Played:
    """A rule on one of the implementations."""
    rule.check((side,))
    of: tuple[Any, Any]
    if isinstance(rule, Process):
        of = (KeyedMachine(rule, (side,)), Keyed(rule, (side,)))
    elif isinstance(rule, Enrich):
        of = (EnrichMachine(rule, (side,)), Enriching(rule, side))
    else:
        of = (DedupMachine(rule, (side,)), Deduplicated(rule, (side,)))
    return OnReference(of[0], side) if engine == "reference" else InColumns(of[1], side)
