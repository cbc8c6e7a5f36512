"""A stage in progress, whatever its kind: a batch's records in; panes, rows, late and unusable rows out."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from penstock.model.panes import Given, Late, Pane, Quarantined
from penstock.plan.graph import AnyStage
from penstock.plan.operators.deduplicate import duplicates_of
from penstock.plan.stages import PANES, Plan, RowStage
from penstock.reference.aggregates import Record
from penstock.reference.operators.protocol import Bad
from penstock.reference.operators.registry import machine_of
from penstock.reference.window_assignment import forget, take
from penstock.reference.windows import Machine
from penstock.runtime.batch import Counts
from penstock.types.timestamps import MAX_TIME


@dataclass
class Played:
    """What a batch gave in a stage; `hold` is the least event time that it may still give behind its watermark."""

    panes: list[Pane] = field(default_factory=list)
    rows: list[Given] = field(default_factory=list)
    late: list[Late] = field(default_factory=list)
    bad: list[Quarantined] = field(default_factory=list)
    counts: Counts = field(default_factory=Counts)
    hold: int = MAX_TIME

    def given(self, plan: AnyStage) -> list[Given]:
        """What the next stage is given: rows, or panes as rows."""
        return [_row(plan, pane) for pane in self.panes] if isinstance(plan, Plan) else self.rows


class WindowStage:
    """Windows, one record at a time."""

    def __init__(self, plan: Plan) -> None:
        self.machine = Machine(plan)

    def step(self, arrivals: Sequence[list[Record]], watermark: int, now: int) -> Played:
        """Play one batch."""
        machine = self.machine
        machine.begin(watermark, now)
        machine.expire()
        take(machine, arrivals[0])
        machine.evaluate()
        forget(machine)
        return Played(panes=machine.panes, late=machine.late, counts=machine.counts)

    def open_records(self) -> int:
        """How many records lie in windows that are still held."""
        return sum(open_.records for windows in self.machine.windows.values() for open_ in windows.values())

    def held(self) -> int:
        """How many windows are held."""
        return sum(len(windows) for windows in self.machine.windows.values())

    def snapshot(self) -> Any:
        """All that is remembered."""
        return copy.deepcopy((self.machine.windows, self.machine.events))

    def restore(self, snapshot: Any) -> None:
        """Go on from what was remembered."""
        self.machine = Machine(self.machine.plan)
        self.machine.windows, self.machine.events = copy.deepcopy(snapshot)


class OperatorStage:
    """Any other stage, one record at a time."""

    def __init__(self, stage: RowStage) -> None:
        self.rule, self.machine = stage.operator, machine_of(stage)

    def step(self, arrivals: Sequence[list[Record]], watermark: int, now: int) -> Played:
        """Play one batch."""
        ordered = [sorted(side, key=lambda one: (one.partition, one.offset)) for side in arrivals]
        made = self.machine.step(ordered, watermark, now)
        late = [_late(record, watermark) for _, record in made.late]
        bad = [_bad(one) for one in made.bad]
        kept = sum(map(len, arrivals)) - len(late) - len(bad)
        rows = [Given(one.output, one.row, one.time, one.op) for one in made.rows]
        again = duplicates_of(self.rule, Counter(one.output for one in rows))
        counts = Counts(late=len(late), kept=kept, deduplicated=again)
        return Played(rows=rows, late=late, bad=bad, counts=counts, hold=made.hold)

    def open_records(self) -> int:
        """Only windows hold records."""
        return 0

    def held(self) -> int:
        """How many rows, entries and timers are held."""
        return self.machine.held()

    def snapshot(self) -> Any:
        """All that is remembered."""
        return copy.deepcopy(self.machine.memory)

    def restore(self, snapshot: Any) -> None:
        """Go on from what was remembered."""
        self.machine.memory = copy.deepcopy(snapshot)


def started(stage: AnyStage) -> WindowStage | OperatorStage:
    """A stage that remembers nothing yet."""
    return WindowStage(stage) if isinstance(stage, Plan) else OperatorStage(stage)


def _row(plan: Plan, pane: Pane) -> Given:
    """A pane as the row that the next stage sees."""
    row = {
        **dict(zip(plan.keys, pane.key, strict=True)),
        "window_start": pane.window.start,
        "window_end": pane.window.end,
        **pane.values,
        "pane_index": pane.index,
        "pane_timing": pane.timing,
        "pane_final": pane.final,
    }
    return Given(PANES, row, pane.event_time, pane.op)


def _bad(one: Bad) -> Quarantined:
    source, partition = one.record.partition.split("/", 1)
    return Quarantined(one.record.row, source, partition, one.record.offset, one.step, one.reason)


def _late(record: Record, watermark: int) -> Late:
    behind = min(watermark - record.time, MAX_TIME)
    source, partition = record.partition.split("/", 1)
    return Late(record.row, record.time, watermark, behind, source, partition, (), record.op)
