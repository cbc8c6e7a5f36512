"""Keyed functions over columns: which keys a batch calls, their state read, called through and written again."""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.engine.columns.constants import constant, different
from penstock.engine.columns.keys import canonical, hashes, key_codes
from penstock.engine.ingest.pre_aggregate import Rows
from penstock.engine.operators.process.calls import Calls
from penstock.engine.operators.process.rules import KeptRules
from penstock.engine.operators.process.state import StateColumns, user_keys, user_rows
from penstock.engine.operators.protocol import BadRow, Emitted, Outgoing
from penstock.engine.state.operator_codec import Runs, named_parts, restored_runs, saved_runs
from penstock.engine.state.runs import Extract, extract, grown, joined
from penstock.engine.state.snapshot import Saved
from penstock.engine.windows.due import NOBODY, Finder, Wanted, wanted_keys
from penstock.engine.windows.index import among
from penstock.engine.windows.lifecycle import Clock
from penstock.engine.windows.partials import Cells, concat_arrays, take_arrays
from penstock.plan.operators.process import Process, fields_of, has_timers
from penstock.plan.stages import Side
from penstock.runtime.process_context import Context
from penstock.runtime.process_state import remembering
from penstock.types.arrow import to_arrow
from penstock.types.timestamps import MAX_TIME, MIN_TIME

_STATE = Finder(by_key=True, delays=(0,))
_ALARMS = Finder(by_key=True, delays=(0,))
_WAITING = Finder(by_key=True, delays=(1,))


@dataclass(frozen=True, slots=True)
class Memory:
    """The state of each key, when to look at keys by the processing clock, and rows that wait to be in order.

    `rules` are those that hold on every shard; `batches` counts the batches, to say which of them brought a rule.
    """

    state: Runs
    alarms: Runs
    waiting: Runs
    clock: Clock
    rules: Runs = ()
    batches: int = 0


@dataclass(frozen=True, slots=True)
class _Chosen:
    """The keys that a batch calls: where the state of those that have one lies, and which key each event is of."""

    places: np.ndarray
    keys: tuple[pa.Array, ...]
    hashes: np.ndarray
    of_events: np.ndarray
    untouched: np.ndarray


class Keyed:
    """A keyed function made ready for columns."""

    def __init__(self, rule: Process, sides: Sequence[Side]) -> None:
        self.side = sides[0]
        self.rules = KeptRules(sides[1], rule.deleted) if len(sides) > 1 else None
        self.rule, self.outputs = rule, rule.outputs(sides)
        self.fields = fields_of(rule.function)
        self.context = Context(self.outputs, has_timers(rule.function), self.rules is not None)
        self.cell = remembering(rule.function, self.context)
        self.columns = StateColumns(self.fields, self.side.key_schema, self.context)

    def start(self) -> Memory:
        """A memory of nothing."""
        return Memory((), (), (), Clock(MIN_TIME, MIN_TIME))

    def step(self, memory: Memory, arrivals: Sequence[Rows], clock: Clock) -> Emitted:
        """Play one batch: the events that are ready, the keys that they and the clocks touch, and their calls."""
        rows = arrivals[0]
        rules = self._ruled(memory, arrivals)
        events, late, waiting = rows, None, memory.waiting
        if self.rule.ordered:
            events, late, waiting = self._in_line(memory, rows, clock)
        keys = tuple(canonical(events.batch.column(name)) for name in self.side.keys)
        hashed = hashes(keys, len(events))
        alarms, awake, asleep = _alarmed(memory, clock)
        wanted = wanted_keys(different(np.concatenate([hashed, awake])))
        taken = extract(_STATE, memory.state, wanted, memory.clock, clock)
        held = taken.joined(self.columns.none())
        chosen = _chosen(held, keys, hashed, awake, clock)
        calls = self._calls(held, chosen, clock)
        # Key by key, so that what lies together in memory is called together; each key's events stay in order.
        order = np.argsort(chosen.of_events, kind="stable")
        batch = events.batch.take(pa.array(order))
        calls.play(events.times[order], chosen.of_events[order], user_rows(batch))
        calls.bad = sorted((int(order[row]), why) for row, why in calls.bad)
        state, soonest = self.columns.written(chosen.keys, chosen.hashes, calls.cells, calls.timers)
        before = np.full(len(state), MAX_TIME)
        before[: len(chosen.places)] = held.newest[chosen.places]
        before[before <= clock.now] = MAX_TIME
        state = replace(state, newest=np.minimum(before, soonest))
        early = np.flatnonzero((soonest < before) & (state.records > 0))
        new_alarms = _only_times(soonest[early], state.hash[early])
        left = joined([held.take(chosen.untouched), state.take(np.flatnonzero(state.records > 0))])
        return Emitted(
            Memory(
                grown(_STATE, taken, left, clock),
                grown(_ALARMS, alarms, joined([asleep, new_alarms]), Clock(clock.now, 0)),
                waiting,
                clock,
                rules,
                memory.batches + 1,
            ),
            self._given(calls),
            (late, None)[: len(arrivals)],
            self._bad(calls, len(rows)),
            calls.hold,
            (
                events.take(np.array([row for row, _ in calls.bad], dtype=np.int64))
                if self.rule.ordered and calls.bad
                else None,
            ),
        )

    def saved(self, memory: Memory, known: Container[str] = ()) -> Saved:
        """The memory as bytes."""
        groups = {"state": memory.state, "alarms": memory.alarms, "waiting": memory.waiting}
        said: dict[str, Any] = {"clock": [memory.clock.watermark, memory.clock.now]}
        if self.rules is not None:
            groups["rules"] = memory.rules
            said["batches"] = memory.batches
        return saved_runs(said, groups, known)

    def parts(self, head: bytes) -> tuple[str, ...]:
        """The names of all parts that a head speaks of."""
        return named_parts(head)

    def restored(self, head: bytes, fetch: Callable[[str], bytes]) -> Memory:
        """The memory that was saved."""
        said, runs = restored_runs(head, fetch)
        return Memory(
            runs["state"],
            runs["alarms"],
            runs["waiting"],
            Clock(*said["clock"]),
            runs.get("rules", ()),
            said.get("batches", 0),
        )

    def held(self, memory: Memory) -> int:
        """How many entries, timers, waiting rows and rules are held."""
        return sum(run.records for run in (*memory.state, *memory.waiting, *memory.rules))

    def everywhere(self, memory: Memory) -> int:
        """How many rules are held: every shard has them all."""
        return sum(run.records for run in memory.rules)

    def _ruled(self, memory: Memory, arrivals: Sequence[Rows]) -> Runs:
        """The rules that hold in this batch, which its calls are shown."""
        if self.rules is None:
            return ()
        runs = self.rules.changed(memory.rules, arrivals[1], memory.batches)
        self.context.ruled(self.rules.shown(runs))
        return runs

    def _calls(self, held: Cells, chosen: _Chosen, clock: Clock) -> Calls:
        """Cells with the state of the chosen keys, ready to be called."""
        new, kind = object.__new__, self.cell
        cells = [new(kind) for _ in range(len(chosen.hashes))]
        calls = Calls(self.rule, self.fields, self.context, clock, cells, user_keys(chosen.keys))
        upto = MAX_TIME if self.rule.ordered else clock.watermark  # without order nothing more runs out in the batch
        self.columns.read(held.take(chosen.places), cells[: len(chosen.places)], calls.timers, upto)
        return calls

    def _in_line(self, memory: Memory, rows: Rows, clock: Clock) -> tuple[Rows, Rows | None, Runs]:
        """The events that W has passed, in order, those that came too late, and what waits from now on."""
        behind = rows.times < clock.watermark
        late = rows.take(behind) if behind.any() else None
        new = self._kept(rows if late is None else rows.take(~behind))
        found = extract(_WAITING, memory.waiting, Wanted(NOBODY), memory.clock, clock)
        held = found.joined(self._kept(rows.take(np.empty(0, dtype=np.int64))))
        ready = held.end < clock.watermark
        waiting = grown(_WAITING, found, joined([held.take(~ready), new]), clock)
        events = self._rows(held.take(ready))
        partitions = events.partitions.dictionary_encode()
        rank = np.argsort(np.argsort(np.array(partitions.dictionary.to_pylist(), dtype=object)))
        place = rank[partitions.indices.to_numpy()] if len(rank) else np.empty(0, dtype=np.int64)
        return events.take(np.lexsort((events.offsets, place, events.times))), late, waiting

    def _kept(self, rows: Rows) -> Cells:
        """Rows as they wait."""
        held = ((*rows.batch.columns, rows.partitions, rows.offsets),)
        return replace(_only_times(rows.times, np.broadcast_to(np.uint64(0), len(rows))), held=held)

    def _rows(self, kept: Cells) -> Rows:
        *columns, partitions, offsets = kept.held[0]
        names = self.side.schema.names
        return Rows(pa.RecordBatch.from_arrays(columns, names=list(names)), kept.end, partitions, offsets)

    def _given(self, calls: Calls) -> dict[str, Outgoing]:
        """What was emitted, output by output."""
        made = {}
        for name, (rows, times) in calls.given.items():
            made[name] = Outgoing(to_arrow(rows, self.outputs[name]), np.array(times, dtype=np.int64))
        return made

    def _bad(self, calls: Calls, arrived: int) -> tuple[BadRow, ...]:
        """The events on which the function threw; those that had waited are counted on after the arrivals."""
        numbers = range(arrived, arrived + len(calls.bad)) if self.rule.ordered else [row for row, _ in calls.bad]
        return tuple(BadRow(0, row, "process", why) for row, (_, why) in zip(numbers, calls.bad, strict=True))


def _only_times(times: np.ndarray, hashed: np.ndarray) -> Cells:
    """Rows of which no more is known than a time and a hash."""
    zero = constant(0, len(times))
    return Cells((), hashed, times, times, constant(1, len(times)), zero, zero, ())


def _alarmed(memory: Memory, clock: Clock) -> tuple[Extract[Cells], np.ndarray, Cells]:
    """The alarms that the processing clock has reached: the hashes of their keys, and those that are to come."""
    none = _only_times(np.empty(0, dtype=np.int64), NOBODY)
    alarms = extract(_ALARMS, memory.alarms, Wanted(NOBODY), Clock(memory.clock.now, 0), Clock(clock.now, 0))
    found = alarms.joined(none)
    due = found.end <= clock.now
    return alarms, found.hash[due], found.take(~due)


def _chosen(held: Cells, keys: tuple[pa.Array, ...], hashed: np.ndarray, awake: np.ndarray, clock: Clock) -> _Chosen:
    """Which keys are called: those of events, those with something due, those an alarm has woken."""
    m, n = len(held), len(hashed)
    both = concat_arrays([held.keys, keys])
    all_hashes = np.concatenate([held.hash, hashed])
    codes = key_codes(both, all_hashes)
    first = np.full(int(codes.max(initial=-1)) + 1, m + n)
    first[codes[::-1]] = np.arange(m + n)[::-1]
    touched = np.zeros(len(first), dtype=bool)
    touched[codes[m:]] = True
    due = (held.end <= clock.watermark) & (held.end < MAX_TIME)
    touched[codes[:m][due | among(held.hash, awake)]] = True
    rows = np.sort(first[touched])
    slot = np.empty(len(first), dtype=np.int64)
    slot[codes[rows]] = np.arange(len(rows))
    untouched = np.flatnonzero(~touched[codes[:m]])
    return _Chosen(rows[rows < m], take_arrays(both, rows), all_hashes[rows], slot[codes[m:]], untouched)
