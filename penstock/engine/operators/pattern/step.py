"""Patterns in columns: events wait until W has passed them, and only those that can matter are looked at one by one.

Conditions that look at the event alone are asked once, of all arrivals together; their answers are bits that stay with
the event. Keys that have no partial match and no event that could begin one are never looked at.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Container, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.engine.columns.keys import canonical, hashes, key_codes
from penstock.engine.expressions import evaluator
from penstock.engine.ingest.pre_aggregate import Rows
from penstock.engine.operators.pattern.automaton import Automaton
from penstock.engine.operators.pattern.buffer import Due, due, piled
from penstock.engine.operators.pattern.conditions import answered, asking
from penstock.engine.operators.pattern.matcher import Events, Key, Of, Play, Whole
from penstock.engine.operators.pattern.state import Memory, Opened, Rest, listed, parts, shelves_of
from penstock.engine.operators.protocol import BadRow, Emitted, Outgoing
from penstock.engine.state.snapshot import Saved
from penstock.engine.windows.index import among
from penstock.engine.windows.lifecycle import Clock
from penstock.errors import EvaluationError
from penstock.expressions.nodes import LONG_MAX, LONG_MIN
from penstock.plan.operators.match import TIMEOUTS, Match, unmeasurable
from penstock.plan.operators.measures import Ref
from penstock.plan.stages import MAIN, Side
from penstock.types.arrow import arrow_schema, arrow_type
from penstock.types.schema import INTEGERS
from penstock.types.timestamps import MAX_TIME, plus

Matches = list[tuple[Key, Whole]]


class Giving:
    """How the matches of one pattern become rows."""

    def __init__(self, automaton: Automaton) -> None:
        rule, side = automaton.rule, automaton.side
        self.automaton, self.side, self.timeouts = automaton, side, rule.timeouts
        self.schema = arrow_schema(rule.outputs([side])[MAIN])
        # A batch of no columns would not say how many rows it has.
        self.measured = arrow_schema(rule.measured(side)).append(pa.field("@first", self.schema.types[-1]))
        self.measures = [evaluator(one.node, rule.measured(side), name) for name, one in rule.measures(side)]
        self.key_types = [arrow_type(column.type) for column in side.key_schema.columns]

    def outputs(self, play: Play) -> dict[str, Outgoing]:
        """The rows of each output."""
        made = {MAIN: self._rows(play.matches)}
        return {**made, TIMEOUTS: self._rows(play.timeouts)} if self.timeouts else made

    def _rows(self, matches: Matches) -> Outgoing:
        keys = [pa.array([key[n] for key, _ in matches], kind) for n, kind in enumerate(self.key_types)]
        first = pa.array([one.first for _, one in matches], self.schema.types[-1])
        last = pa.array([one.last for _, one in matches], self.schema.types[-1])
        try:
            said = [self._said(ref, matches) for ref in self.automaton.refs]
            batch = pa.RecordBatch.from_arrays([*keys, *said, first], schema=self.measured)
            measures = [measure(batch) for measure in self.measures]
        except EvaluationError as error:
            raise unmeasurable(error) from None
        times = np.array([one.time for _, one in matches], dtype=np.int64)
        return Outgoing(pa.RecordBatch.from_arrays([*keys, *measures, first, last], schema=self.schema), times)

    def _said(self, ref: Ref, matches: Matches) -> pa.Array:
        """The column of what a reference says of each match."""
        slot, *count = self.automaton.value(ref)
        kind = ref.type(self.side.schema, "output")
        values = [one.held[slot] for _, one in matches]
        if count:
            counts = [one.held[count[0]] for _, one in matches]
            values = [total / n if n else None for total, n in zip(values, counts, strict=True)]
        beyond = ref.function == "sum" and kind in INTEGERS
        if beyond and any(value is not None and not LONG_MIN <= value <= LONG_MAX for value in values):
            raise EvaluationError(f"overflow in {ref.name}")
        return pa.array(values, arrow_type(kind))


# Matches wait only for partial matches that began before them, so a key without those is not remembered.
NOTHING = Of(0)


@contextmanager
def uncollected() -> Iterator[None]:
    """Without the collector of cycles: partial matches are many small tuples without any, and it walks them all."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()


class Matching:
    """A pattern looked for in a stream."""

    def __init__(self, rule: Match, side: Side) -> None:
        self.rule, self.side = rule, side
        self.automaton = Automaton(rule, side)
        self.rest = Rest(self.automaton)
        self.asking = asking(self.automaton.tests, side.schema)
        self.giving = Giving(self.automaton)

    def start(self) -> Memory:
        return Memory()

    def saved(self, memory: Memory, known: Container[str] = ()) -> Saved:
        with uncollected():
            return self.rest.saved(memory, known)

    def parts(self, head: bytes) -> tuple[str, ...]:
        return parts(head)

    def restored(self, head: bytes, fetch: Callable[[str], bytes]) -> Memory:
        return self.rest.restored(head, fetch)

    def held(self, memory: Memory) -> int:
        return memory.held

    def step(self, memory: Memory, arrivals: Sequence[Rows], clock: Clock) -> Emitted:
        """Arrivals join the events that wait; those that W has passed are played, key by key, in order of time."""
        (rows,) = arrivals
        horizon = plus(clock.watermark, -self.rule.lateness)
        too_late = rows.times < horizon
        bits, bad = answered(self.asking, rows, np.flatnonzero(~too_late))
        piles = piled(self.rest, memory.piles, rows, np.flatnonzero(bits >= 0), bits)
        piles, ready = due(self.rest, piles, horizon)
        with uncollected():
            play, chosen, shelves, digits = self._played(memory, ready, horizon)
        after = Memory(piles, shelves, digits, memory.seen + len(ready))
        late = rows.take(too_late) if too_late.any() else None
        waited = ready.rows.take(chosen[[row for row, _ in play.bad]]) if play.bad else None
        bad += tuple(BadRow(0, row, "match", why) for row, (_, why) in enumerate(play.bad, len(rows)))
        hold = min(after.hold, horizon if self.rule.lateness else MAX_TIME)
        return Emitted(after, self.giving.outputs(play), (late,), bad, hold, (waited,))

    def _played(self, memory: Memory, ready: Due, horizon: int) -> tuple[Play, np.ndarray, dict[int, Any], int]:
        """The batch's events through the keys that they concern, and the shelves after it."""
        keys = tuple(canonical(ready.rows.batch.column(name)) for name in self.side.keys)
        hashed = hashes(keys, len(ready))
        chosen, bounds = self._chosen(memory, ready, hashed, keys)
        play = Play(self.automaton, self._in_hand(memory, ready, chosen))
        firsts = chosen[bounds[:-1]]
        columns = [listed(column.take(pa.array(firsts))) for column in keys]
        of_keys: list[Key] = list(zip(*columns, strict=True)) if columns else [()] * len(firsts)
        edges, numbers = bounds.tolist(), hashed[firsts].tolist()
        edge = self._edge(horizon)
        over = np.empty(0, dtype=np.uint64) if edge is None else self.rest.over(memory, edge)
        opened = self.rest.opened(memory, np.union1d(hashed[firsts], over))
        for n, key in enumerate(of_keys):
            keyed = opened.of(numbers[n])
            before = keyed.get(key, NOTHING)
            partial, waiting = play.seen(key, before.partial, before.waiting, edges[n], edges[n + 1])
            if partial:
                partial, waiting = play.expired(key, partial, waiting, horizon)
            if partial:
                keyed[key] = Of(numbers[n], partial, waiting)
            elif before is not NOTHING:
                del keyed[key]
        if edge is not None and len(over):
            _expire(opened, play, edge, horizon)
        return play, chosen, *self.rest.shelved(memory, opened)

    def _edge(self, horizon: int) -> int | None:
        """The time of partial matches that began no later is over; None if they have all the time there is."""
        length = self.rule.pattern.length
        return MAX_TIME if horizon == MAX_TIME else None if length is None else horizon - length

    def _chosen(
        self, memory: Memory, ready: Due, hashed: np.ndarray, keys: tuple[pa.Array, ...]
    ) -> tuple[np.ndarray, np.ndarray]:
        """The events to look at, key by key in order of time, and where each key's begin and the last one's end."""
        begin = self.automaton.start_bits
        can = np.ones(len(ready), dtype=bool) if begin is None else (ready.bits & begin) != 0
        live = self._live(memory, hashed)
        near = np.flatnonzero(can | live)
        if not len(near):
            return near, np.zeros(1, dtype=np.int64)
        codes = key_codes(keys, hashed)
        wanted = np.zeros(int(codes.max()) + 1, dtype=bool)
        wanted[codes[near]] = True
        rows = np.flatnonzero(wanted[codes])
        rows = rows[np.argsort(codes[rows], kind="stable")]
        first = np.flatnonzero(np.diff(codes[rows], prepend=-1))
        return rows, np.append(first, len(rows))

    def _live(self, memory: Memory, hashed: np.ndarray) -> np.ndarray:
        """Which events may be of a key that is remembered."""
        if not memory.shelves or not len(hashed):
            return np.zeros(len(hashed), dtype=bool)
        asked = np.unique(shelves_of(hashed, memory.digits)).tolist()
        known = [
            memory.shelves[number].piece.get().column("hash").to_numpy() for number in asked if number in memory.shelves
        ]
        return among(hashed, np.concatenate(known)) if known else np.zeros(len(hashed), dtype=bool)

    def _in_hand(self, memory: Memory, ready: Due, chosen: np.ndarray) -> Events:
        """The chosen events as lists: all that the loop over them needs, and no column more."""
        at = pa.array(chosen)
        columns = [listed(ready.rows.batch.column(name).take(at)) for name in self.automaton.columns]
        if self.automaton.users:
            columns.append(ready.rows.batch.take(at).to_pylist())
        times, bits = ready.rows.times[chosen].tolist(), ready.bits[chosen].tolist()
        return Events(times, (chosen + memory.seen).tolist(), bits, columns)


def _expire(opened: Opened, play: Play, edge: int, horizon: int) -> None:
    """Keys that no event came for, and whose time is over."""
    for number in sorted(opened.keyed):
        keyed = opened.keyed[number]
        over = [item for item in keyed.items() if item[1].partial[0].first <= edge]
        for key, of in sorted(over, key=lambda item: (item[1].hash, item[1].partial[0].start)):
            partial, waiting = play.expired(key, of.partial, of.waiting, horizon)
            del keyed[key]
            if partial:
                keyed[key] = Of(of.hash, partial, waiting)
