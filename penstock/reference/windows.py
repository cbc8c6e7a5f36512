"""Where and how, one record at a time: windows take records, merge, show panes and expire.

One batch, in order: judge arrivals by W; expired windows leave without them; add and merge the others; look at each
window once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from penstock.errors import EvaluationError
from penstock.model.panes import Late, Pane, Timing
from penstock.model.triggers import Trigger, When, uncomputable
from penstock.model.windows import Global, Window
from penstock.plan.stages import Plan
from penstock.reference import aggregates, retractable, triggers as when
from penstock.reference.aggregates import Record, canonical
from penstock.reference.expressions import evaluator
from penstock.runtime.batch import Counts
from penstock.types.timestamps import MAX_TIME, MIN_TIME, plus

Key = tuple[Any, ...]


@dataclass
class Open:
    """A window of a key that is still held; `last` is the pane that stands, `withdrawals` those among the unshown."""

    window: Window
    trigger: when.Memory
    held: list[Any]
    born_late: bool
    records: int = 0
    held_records: int = 0
    unshown: int = 0
    withdrawals: int = 0
    first_unshown_at: int = 0
    newest: int = MIN_TIME
    index: int = 0
    on_time_shown: bool = False
    last: Pane | None = None
    shown: list[Any] | None = None
    withdrawn: list[Pane] = field(default_factory=list)


@dataclass
class Machine:
    """The memory of all windows, and the rules by which a batch changes it."""

    plan: Plan
    windows: dict[Key, dict[Window, Open]] = field(default_factory=dict)
    events: dict[Key, dict[int, list[Record]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        schema, results = self.plan.schema, self.plan.result_schema
        self.signed = self.plan.signed
        self.doubles = {column.name for column in results.columns if column.type == "double"}
        self.wheres: list[Callable[..., object] | None] = [
            None if a.where is None else evaluator(a.where, schema) for _, a in self.plan.aggregates
        ]
        self.whens: dict[Trigger, Callable[..., object]] = {
            part: evaluator(part.predicate, results) for part in self.plan.trigger.walk() if isinstance(part, When)
        }

    def begin(self, watermark: int, now: int) -> None:
        """A new batch with its clock."""
        self.watermark, self.now = watermark, now
        self.panes: list[Pane] = []
        self.late: list[Late] = []
        self.counts = Counts()

    def complete(self, window: Window) -> bool:
        return self.watermark >= self.plan.window.complete_at(window.end)

    def expired(self, window: Window) -> bool:
        return self.watermark >= plus(self.plan.window.complete_at(window.end), self.plan.lateness)

    def key_of(self, record: Record) -> Key:
        return tuple(canonical(record.row[name]) for name in self.plan.keys)

    def expire(self) -> None:
        """Expired windows leave; each shows a last pane if one is due or something is unshown."""
        for key, windows in list(self.windows.items()):
            for window in [window for window in windows if self.expired(window)]:
                gone = windows.pop(window)
                if gone.unshown or gone.withdrawn or when.ready(self.plan.trigger, gone.trigger, self.sight(key, gone)):
                    self.fire(key, gone, final=True)
                self.counts += Counts(ended=gone.records)
            if not windows:
                del self.windows[key]

    def evaluate(self) -> None:
        """Look at each window once; it shows one pane at most."""
        for key, windows in self.windows.items():
            for open_ in windows.values():
                sight = self.sight(key, open_)
                if when.ready(self.plan.trigger, open_.trigger, sight):
                    open_.trigger = when.fired(self.plan.trigger, open_.trigger, sight)
                    self.fire(key, open_, final=False)

    def sight(self, key: Key, open_: Open) -> when.Sight:
        complete = self.complete(open_.window)
        due = complete and not open_.born_late and not open_.on_time_shown
        holds = {part: self._holds(test, open_) for part, test in self.whens.items()} if open_.unshown else {}
        came = open_.unshown - open_.withdrawals
        return when.Sight(self.now, open_.unshown, came, open_.first_unshown_at, complete, due, holds)

    def _holds(self, test: Callable[..., object], open_: Open) -> bool:
        try:
            return test(self.results(open_.held, open_.held_records)) is True
        except EvaluationError as error:
            raise uncomputable(error) from None

    def results(self, held: list[Any], records: int) -> dict[str, Any]:
        values = {
            name: retractable.result(aggregate, accumulator, records, self.plan.pieces)
            if self.signed
            else aggregates.result(aggregate, accumulator, records)
            for (name, aggregate), accumulator in zip(self.plan.aggregates, held, strict=True)
        }
        for name, aggregate in self.plan.aggregates:
            aggregates.refuse_overflow(name, aggregate, values[name])
        # An empty sum is the integer 0 whatever it sums; in a column of doubles it is a double.
        return {name: value * 1.0 if name in self.doubles and value == 0 else value for name, value in values.items()}

    def timing(self, open_: Open) -> Timing:
        if not self.complete(open_.window):
            return "early"
        return "late" if open_.born_late or open_.on_time_shown else "on_time"

    def fire(self, key: Key, open_: Open, final: bool) -> None:
        """Show a pane, after the withdrawal of what it replaces."""
        timing = self.timing(open_)
        self.panes += sorted(open_.withdrawn, key=lambda pane: pane.window)
        if self.plan.shown_mode == "retracting" and open_.last is not None:
            self.panes.append(_withdrawal(open_.last))
        # All of whose records were withdrawn: what stands is taken back, or shown empty once; else there is nothing.
        empty = self.signed and not self.plan.pieces and open_.held_records <= 0
        if not empty or (self.plan.shown_mode != "retracting" and open_.last is not None):
            pane = Pane(
                key,
                open_.window,
                self.results(open_.held, open_.held_records),
                open_.index,
                timing,
                final,
                1,
                open_.newest if isinstance(self.plan.window, Global) else self.plan.window.last_instant(open_.window),
            )
            self.panes.append(pane)
            open_.last = pane
            open_.index += 1
        open_.last, open_.withdrawn = None if empty else open_.last, []
        open_.unshown = open_.withdrawals = 0
        open_.on_time_shown = open_.on_time_shown or timing == "on_time"
        if self.plan.shown_mode == "discarding":
            open_.shown = self.combined(open_.shown or self.zeros(), open_.held)
            open_.held, open_.held_records = self.zeros(), 0

    def shown_pane(self, open_: Open) -> Pane | None:
        """What a window has shown so far, as one pane: the last, or in discarding mode the sum of all."""
        if open_.last is None or self.plan.shown_mode != "discarding":
            return open_.last
        assert open_.shown is not None
        values = self.results(open_.shown, open_.records - open_.held_records)
        last = open_.last
        return Pane(last.key, last.window, values, last.index, last.timing, False, 1, last.event_time)

    def new(self, window: Window) -> Open:
        return Open(window, when.fresh(self.plan.trigger), self.zeros(), self.complete(window))

    def put(self, open_: Open, records: list[Record]) -> None:
        """Add a batch's records to a window."""
        if not records:
            return
        partial = []
        for (_, aggregate), where in zip(self.plan.aggregates, self.wheres, strict=True):
            taken = [record for record in records if where is None or where(record.row) is True]
            partial.append(
                retractable.left_of(aggregate, taken) if self.signed else aggregates.add_all(aggregate, taken)
            )
        open_.held = self.combined(open_.held, partial)
        if open_.unshown == 0:
            open_.first_unshown_at = self.now
        open_.records += len(records)
        open_.held_records += sum(record.op for record in records)
        open_.unshown += len(records)
        open_.withdrawals += sum(record.op < 0 for record in records)
        open_.newest = max(open_.newest, *(record.time for record in records))
        self.counts += Counts(placed=len(records))

    def merge(self, window: Window, parts: list[Open]) -> Open:
        """One window made of several; what those had shown is withdrawn with its first pane."""
        survivor = next((part for part in parts if part.window == window and part.records), None)
        merged = self.new(window)
        merged.trigger = when.merged(self.plan.trigger, [part.trigger for part in parts])
        merged.first_unshown_at = min((p.first_unshown_at for p in parts if p.unshown), default=0)
        for part in sorted(parts, key=lambda part: part.window):
            merged.held = self.combined(merged.held, part.held)
            merged.held_records += part.held_records
            merged.records += part.records
            merged.unshown += part.unshown
            merged.newest = max(merged.newest, part.newest)
            merged.withdrawn += part.withdrawn
            shown = self.shown_pane(part)
            if part is not survivor and shown is not None:
                merged.withdrawn.append(_withdrawal(shown))
                if part.shown is not None:
                    merged.held = self.combined(merged.held, part.shown)
                    merged.held_records += part.records - part.held_records
        if survivor is not None:
            merged.index, merged.last, merged.shown = survivor.index, survivor.last, survivor.shown
            merged.on_time_shown, merged.born_late = survivor.on_time_shown, survivor.born_late
        return merged

    def reject(self, record: Record, windows: tuple[Window, ...]) -> None:
        """A record that no window takes any more."""
        source, partition = record.partition.split("/", 1)
        behind = min(self.watermark - record.time, MAX_TIME)
        late = Late(record.row, record.time, self.watermark, behind, source, partition, windows, record.op)
        self.late.append(late)
        self.counts += Counts(late=1)

    def zeros(self) -> list[Any]:
        return [Counter() if self.signed else aggregates.zero(aggregate) for _, aggregate in self.plan.aggregates]

    def combined(self, left: list[Any], right: list[Any]) -> list[Any]:
        return [
            retractable.both(a, b) if self.signed else aggregates.combine(aggregate, a, b)
            for (_, aggregate), a, b in zip(self.plan.aggregates, left, right, strict=True)
        ]


def _withdrawal(pane: Pane) -> Pane:
    return Pane(pane.key, pane.window, pane.values, pane.index, pane.timing, False, -1, pane.event_time)
