"""The calls of a batch: timers and events of all keys, each key's in their order, and what came of them."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from penstock.diagnostics.user_functions import failure
from penstock.engine.operators.process.state import Timers
from penstock.engine.windows.lifecycle import Clock
from penstock.plan.operators.process import KINDS, Field, KeyedFunction, Process, TimeKind, Timer
from penstock.runtime.process_context import Cancel, Context, Emit, moment, timer_failed
from penstock.runtime.process_state import forget, undo
from penstock.types.timestamps import MAX_TIME, MIN_TIME

Waiting = list[tuple[int, str]]


class Calls:
    """The calls of one batch; keys are known by their place among the cells.

    A key's order does not depend on the other keys, so all keys take each part of the order together.
    """

    def __init__(
        self,
        rule: Process,
        fields: Mapping[str, Field],
        context: Context,
        clock: Clock,
        cells: Sequence[KeyedFunction],
        keys: Sequence[Any],
    ) -> None:
        self.rule, self.fields, self.context, self.clock = rule, fields, context, clock
        self.cells, self.keys = cells, keys
        self.timers: Timers = {kind: {} for kind in KINDS}
        self.deferred: Timers = {kind: {} for kind in KINDS}
        self.given: dict[str, tuple[list[dict[str, Any]], list[int]]] = {}
        self.bad: list[tuple[int, str]] = []
        self.hold = MAX_TIME
        self.lasting = {
            kind: any(field.ttl is not None and field.ttl_by == kind for field in fields.values()) for kind in KINDS
        }

    def play(self, times: np.ndarray, of: np.ndarray, events: Iterable[dict[str, Any]]) -> None:
        """All calls, and then what a clock has outlived leaves."""
        watermark, now = self.clock.watermark, self.clock.now
        self.context.batch(watermark, now)
        if self.lasting["processing"]:
            for cell in self.cells:
                forget(cell, self.fields, "processing", now)
        if self.rule.ordered:
            self._line(times, of, events)
            self._fire("event", watermark)
        else:
            self._forget(watermark)
            self._fire("event", watermark)
            self._events(times, of, events)
        self._fire("processing", now)
        self._fire("event", watermark)
        if self.rule.ordered or watermark == MAX_TIME:  # else what was written counts from W, and lasts longer
            self._forget(watermark)
        self._put_off()

    def _events(self, times: np.ndarray, of: np.ndarray, events: Iterable[dict[str, Any]]) -> None:
        """Events as they came."""
        context, effects, journal = self.context, self.context.effects, self.context.journal
        cells, keys = self.cells, self.keys
        stamps = np.maximum(times, self.clock.watermark).tolist()
        places = zip(times.tolist(), stamps, of.tolist(), events, strict=True)
        for row, (time, stamp, place, event) in enumerate(places):
            context._time, context._stamp = time, stamp  # what `context.call` does, without a call for each event
            try:
                cells[place].on_event(event, keys[place], context)
            except Exception as error:
                self._throw(row, event, error)
                continue
            if journal:
                journal.clear()
            if effects:
                self._done(place, time, None)

    def _line(self, times: np.ndarray, of: np.ndarray, events: Iterable[dict[str, Any]]) -> None:
        """Events in order of event time, after the timers that come before them."""
        context, effects, journal = self.context, self.context.effects, self.context.journal
        cells, keys, timers, lasting = self.cells, self.keys, self.timers["event"], self.lasting["event"]
        for row, (time, place, event) in enumerate(zip(times.tolist(), of.tolist(), events, strict=True)):
            waiting = timers.get(place)
            if waiting and waiting[0][0] <= time:
                self._fire_one("event", place, time)
            cell = cells[place]
            if lasting and cell.__dict__.get("@", MAX_TIME) <= time:
                forget(cell, self.fields, "event", time)
            context._time = context._stamp = time
            try:
                cell.on_event(event, keys[place], context)
            except Exception as error:
                self._throw(row, event, error)
                continue
            if journal:
                journal.clear()
            if effects:
                self._done(place, time, None)

    def _throw(self, row: int, event: dict[str, Any], error: Exception) -> None:
        undo(self.context)
        self.bad.append((row, failure(error, self.rule.function.on_event, event)))

    def _fire(self, kind: TimeKind, upto: int) -> None:
        """The timers of all keys that a clock has reached."""
        timers = self.timers[kind]
        for place in sorted(place for place, waiting in timers.items() if waiting and waiting[0][0] <= upto):
            self._fire_one(kind, place, upto)

    def _fire_one(self, kind: TimeKind, place: int, upto: int) -> None:
        """The timers of a key that a clock has reached, in order of time and name."""
        context, cell, watermark, ordered = self.context, self.cells[place], self.clock.watermark, self.rule.ordered
        waiting = self.timers[kind][place]
        while waiting and waiting[0][0] <= upto:
            at, name = waiting.pop(0)
            time = at
            if kind == "processing":
                time = self.clock.now if watermark == MIN_TIME else watermark
            if ordered and self.lasting["event"]:
                clock = at if kind == "event" else watermark
                if cell.__dict__.get("@", MAX_TIME) <= clock:
                    forget(cell, self.fields, "event", clock)
            context.call(time, time if ordered else max(time, watermark))
            timer = Timer(moment(at), name, kind)
            try:
                cell.on_timer(timer, self.keys[place], context)
            except Exception as error:
                undo(context)
                raise timer_failed(self.rule, self.keys[place], timer, error) from error
            context.journal.clear()
            self._done(place, time, (kind, at))

    def _done(self, place: int, time: int, by: tuple[TimeKind, int] | None) -> None:
        """What a call wanted besides writing."""
        for effect in self.context.effects:
            if isinstance(effect, Emit):
                rows, times = self.given.setdefault(effect.output, ([], []))
                rows.append(effect.row)
                times.append(time)
            elif isinstance(effect, Cancel):
                for held in (self.timers, self.deferred):
                    waiting = held[effect.kind].get(place)
                    if waiting:
                        waiting[:] = [
                            one for one in waiting if one[1] != effect.name or effect.time not in (None, one[0])
                        ]
            else:
                self._set(place, effect.kind, (effect.time, effect.name), by)
        self.context.effects.clear()

    def _set(self, place: int, kind: TimeKind, timer: tuple[int, str], by: tuple[TimeKind, int] | None) -> None:
        """Set a timer; what a timer sets at or before its own time, or without end, waits for the next batch."""
        waiting = self.timers[kind].setdefault(place, [])
        later = self.deferred[kind].get(place, [])
        if _among(waiting, timer) or _among(later, timer):
            return
        endless = kind == "event" and self.clock.watermark == MAX_TIME
        if by is not None and by[0] == kind and (timer[0] <= by[1] or endless):
            insort(self.deferred[kind].setdefault(place, later), timer)
        else:
            insort(waiting, timer)

    def _put_off(self) -> None:
        """Timers that were put off wait among the others for the next batch."""
        for kind in KINDS:
            for place, later in self.deferred[kind].items():
                if later and kind == "event":
                    self.hold = min(self.hold, later[0][0])
                self.timers[kind][place] = sorted([*self.timers[kind].get(place, []), *later])

    def _forget(self, watermark: int) -> None:
        """What W has outlived leaves."""
        if self.lasting["event"]:
            for cell in self.cells:
                if cell.__dict__.get("@", MAX_TIME) <= watermark:
                    forget(cell, self.fields, "event", watermark)


def _among(waiting: Waiting, timer: tuple[int, str]) -> bool:
    at = bisect_left(waiting, timer)
    return at < len(waiting) and waiting[at] == timer
