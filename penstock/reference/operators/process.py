"""Keyed functions, one call at a time: which call comes when, what it may see, and what is left of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from penstock.diagnostics.user_functions import failure
from penstock.plan.operators.process import Field, KeyedFunction, Process, TimeKind, Timer, fields_of, has_timers
from penstock.plan.stages import Side
from penstock.reference.aggregates import Record, canonical
from penstock.reference.operators.protocol import Bad, Emitted, Out
from penstock.runtime.broadcast_rules import Rules
from penstock.runtime.process_context import Cancel, Context, Emit, SetTimer, moment, timer_failed
from penstock.runtime.process_state import remembering, undo, view
from penstock.types.timestamps import MAX_TIME, MIN_TIME
from penstock.types.validate import for_users

Key = tuple[Any, ...]
Waiting = tuple[TimeKind, int, str]


class KeyedMachine:
    """A keyed function in progress.

    The memory has for each key its state, a list of (entry, value, until) for each field, and its timers; and the
    rows that wait to be in order. Where there are rules it has them by id, each with its batch, and counts batches.
    """

    def __init__(self, rule: Process, sides: Sequence[Side]) -> None:
        self.side, self.ruling = sides[0], [*sides[1:]]
        self.rule, self.fields = rule, fields_of(rule.function)
        self.context = Context(rule.outputs(sides), has_timers(rule.function), bool(self.ruling))
        self.cell = remembering(rule.function, self.context)
        self.memory: dict[str, Any] = {"state": {}, "timers": {}, "rows": [], "rules": {}, "batch": 0}

    def step(self, arrivals: Sequence[Sequence[Record]], watermark: int, now: int) -> Emitted:
        """Play one batch."""
        rows = arrivals[0]
        self.watermark, self.now, self.out = watermark, now, Emitted()
        self.deferred: set[tuple[Key, Waiting]] = set()
        self.context.batch(watermark, now)
        for side, changes in zip(self.ruling, arrivals[1:], strict=True):
            self.change_rules(side, changes)
        self.memory["batch"] += 1
        self.forget("processing", now)
        if self.rule.ordered:
            self.take(rows)
            ready = [row for row in self.memory["rows"] if row.time < watermark]
            self.memory["rows"] = [row for row in self.memory["rows"] if row.time >= watermark]
        else:
            self.forget("event", watermark)
            ready = list(rows)
        keys = {self.key_of(row) for row in ready} | self.memory["timers"].keys()
        for key in sorted(keys, key=repr):
            self.play(key, [row for row in ready if self.key_of(row) == key])
        self.forget("event", watermark)
        for key, timer in self.deferred:
            self.memory["timers"].setdefault(key, set()).add(timer)
        self.memory["timers"] = {key: timers for key, timers in self.memory["timers"].items() if timers}
        self.out.hold = min((t for _, (kind, t, _) in self.deferred if kind == "event"), default=MAX_TIME)
        return self.out

    def held(self) -> int:
        """How many entries, timers, rows and rules are held."""
        entries = sum(len(field) for state in self.memory["state"].values() for field in state.values())
        waiting = len(self.memory["rows"]) + len(self.memory["rules"])
        return entries + sum(map(len, self.memory["timers"].values())) + waiting

    def change_rules(self, side: Side, changes: Sequence[Record]) -> None:
        """What the last word of a batch on each rule makes of it: a rule said again as it was is no change."""
        words: dict[Key, dict[str, Any] | None] = {}
        for record in changes:
            row = {name: value for name, value in record.row.items() if name != self.rule.deleted}
            key = tuple(canonical(row[name]) for name in side.keys)
            words.pop(key, None)
            words[key] = None if record.row.get(self.rule.deleted or "") is True else row
        rules = self.memory["rules"]
        for key, word in words.items():
            if word is None:
                rules.pop(key, None)
            elif key not in rules or _plain(rules[key][0]) != _plain(word):
                rules.pop(key, None)
                rules[key] = (word, self.memory["batch"])
        self.context.ruled(
            Rules((self.user_key(key, side), for_users(row, side.schema), batch) for key, (row, batch) in rules.items())
        )

    def take(self, rows: Sequence[Record]) -> None:
        """Rows that can still be in order wait; those behind W are late."""
        for row in rows:
            if row.time < self.watermark:
                self.out.late.append((0, row))
            else:
                self.memory["rows"].append(row)

    def play(self, key: Key, rows: list[Record]) -> None:
        """All calls of a batch for one key."""
        if self.rule.ordered:
            for row in sorted(rows, key=lambda row: (row.time, row.partition, row.offset)):
                self.fire(key, "event", row.time)
                self.on_event(key, row)
            self.fire(key, "event", self.watermark)
        else:
            self.fire(key, "event", self.watermark)
            for row in rows:
                self.on_event(key, row)
        self.fire(key, "processing", self.now)
        self.fire(key, "event", self.watermark)

    def fire(self, key: Key, kind: TimeKind, upto: int) -> None:
        """The timers of a kind that a clock has reached, in order of time and name."""
        while due := sorted(t for t in self.memory["timers"].get(key, ()) if t[0] == kind and t[1] <= upto):
            self.memory["timers"][key].remove(due[0])
            self.on_timer(key, due[0])

    def on_event(self, key: Key, row: Record) -> None:
        event = for_users(row.row, self.side.schema)
        try:
            self.call(key, row.time, row.time, None, lambda cell, of: cell.on_event(event, of, self.context))
        except Exception as error:
            undo(self.context)
            self.out.bad.append(Bad(0, row, "process", failure(error, self.rule.function.on_event, event)))

    def on_timer(self, key: Key, waiting: Waiting) -> None:
        kind, at, name = waiting
        timer = Timer(moment(at), name, kind)
        time = at
        if kind == "processing":
            time = self.now if self.watermark == MIN_TIME else self.watermark
        clock = at if kind == "event" else self.watermark
        try:
            self.call(key, time, clock, waiting, lambda cell, of: cell.on_timer(timer, of, self.context))
        except Exception as error:
            raise timer_failed(self.rule, self.user_key(key), timer, error) from error

    def call(
        self, key: Key, time: int, clock: int, by: Waiting | None, function: Callable[[KeyedFunction, Any], None]
    ) -> None:
        """One call: the key's state, without what has run out, before; what was written, emitted and set, after."""
        if self.rule.ordered:
            self.forget("event", clock, [key])
        self.context.call(time, time if self.rule.ordered else max(time, self.watermark))
        cell = self.loaded(self.memory["state"].get(key, {}))
        function(cell, self.user_key(key))
        state = self.dumped(cell)
        self.memory["state"].pop(key, None)
        if state:
            self.memory["state"][key] = state
        for effect in self.context.effects:
            match effect:
                case Emit(output, row):
                    self.out.rows.append(Out(output, row, time))
                case SetTimer():
                    self.set_timer(key, tuple(effect), by)
                case Cancel():
                    self.cancel(key, effect)
        self.context.effects.clear()
        self.context.journal.clear()

    def set_timer(self, key: Key, timer: Any, by: Waiting | None) -> None:
        """What a timer sets at or before its own time, or without end, waits for the next batch."""
        timers = self.memory["timers"].setdefault(key, set())
        if timer in timers or (key, timer) in self.deferred:
            return
        endless = timer[0] == "event" and self.watermark == MAX_TIME
        if by is not None and by[0] == timer[0] and (timer[1] <= by[1] or endless):
            self.deferred.add((key, timer))
        else:
            timers.add(timer)

    def cancel(self, key: Key, what: Cancel) -> None:
        def meant(timer: Waiting) -> bool:
            return (timer[0], timer[2]) == (what.kind, what.name) and what.time in (None, timer[1])

        timers = self.memory["timers"].get(key, set())
        timers -= {timer for timer in timers if meant(timer)}
        self.deferred -= {(of, timer) for of, timer in self.deferred if of == key and meant(timer)}

    def forget(self, kind: TimeKind, clock: int, keys: Sequence[Key] | None = None) -> None:
        """Entries that a clock has outlived leave."""
        states = self.memory["state"]
        for key in [key for key in (list(states) if keys is None else keys) if key in states]:
            for name in [name for name in states[key] if self.lasts(self.fields[name], kind)]:
                states[key][name] = [entry for entry in states[key][name] if entry[2] > clock]
            states[key] = {name: entries for name, entries in states[key].items() if entries}
            if not states[key]:
                del states[key]

    def lasts(self, field: Field, kind: TimeKind) -> bool:
        return field.ttl is not None and field.ttl_by == kind

    def loaded(self, state: dict[str, list[tuple[Any, Any, int]]]) -> KeyedFunction:
        """A cell with a key's state."""
        cell: KeyedFunction = object.__new__(self.cell)
        for name, entries in state.items():
            field = self.fields[name]
            if field.shape == "value":
                ((_, cell.__dict__[name], cell.__dict__[f"@{name}"]),) = entries
            else:
                made = view(cell, name, field, self.context)
                for entry, held, until in entries:
                    if field.shape == "items":
                        made.values_.append(held)
                        made.until.append(until)
                    else:
                        made.values_[entry], made.until[entry] = held, until
        return cell

    def dumped(self, cell: KeyedFunction) -> dict[str, list[tuple[Any, Any, int]]]:
        """A cell's state as plain values."""
        state = {}
        for name, field in self.fields.items():
            held = cell.__dict__.get(name)
            if held is None or (field.shape != "value" and not held):
                continue
            match field.shape:
                case "value":
                    state[name] = [(None, held, cell.__dict__.get(f"@{name}", MAX_TIME))]
                case "items":
                    state[name] = [(None, *entry) for entry in zip(held.values_, held.until, strict=True)]
                case "mapping":
                    state[name] = [(key, value, held.until[key]) for key, value in held.values_.items()]
        return state

    def key_of(self, row: Record) -> Key:
        return tuple(canonical(row.row[name]) for name in self.side.keys)

    def user_key(self, key: Key, side: Side | None = None) -> Any:
        """A key as the function sees it: of one column its value."""
        of = side or self.side
        seen = tuple(for_users(dict(zip(of.keys, key, strict=True)), of.key_schema).values())
        return seen[0] if len(seen) == 1 else seen


def _plain(row: dict[str, Any]) -> Key:
    """What a rule says, to be compared: there is one NaN."""
    return tuple(map(canonical, row.values()))
