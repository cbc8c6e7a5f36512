"""Joins, in columns: arrivals meet what is held and one another, then what W rules out is padded and leaves.

Left rows look for right ones: each new left row among all right rows, each held left row that a new right row may
reach among the new ones. So no more pairs are built than are given, also where a key is hot.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from penstock.engine.columns.keys import equal
from penstock.engine.ingest.pre_aggregate import Rows
from penstock.engine.operators.join_bounds import Reach, left_reach, right_reach
from penstock.engine.operators.join_output import Given, Joined
from penstock.engine.operators.netting import left_over
from penstock.engine.operators.protocol import Emitted
from penstock.engine.state.codec import framed, unframed
from penstock.engine.state.row_runs import Run, Shelf, run_names, run_parts, run_read, run_said, written
from penstock.engine.state.rows import Stored, concat_stored, kept_rows
from penstock.engine.state.snapshot import Saved
from penstock.engine.state.time_index import expanded, united
from penstock.engine.windows.lifecycle import Clock
from penstock.engine.windows.partials import take_column
from penstock.plan.operators.join import Join, Together
from penstock.plan.operators.join_schema import right_columns
from penstock.plan.stages import MAIN, Side
from penstock.types.timestamps import MAX_TIME, MIN_TIME, plus

Runs = tuple[Run, ...]


@dataclass(frozen=True, slots=True)
class Memory:
    """The rows of both sides that wait, and the bound behind which rows are late."""

    sides: tuple[Runs, Runs]
    bound: int


@dataclass(frozen=True, slots=True)
class _Fresh:
    """A side's arrivals that are not late, with how far each reaches, which have met a partner, and their signs."""

    stored: Stored
    low: np.ndarray
    high: np.ndarray
    met: np.ndarray
    ops: np.ndarray | None = None


class JoinOperator:
    """A join made ready for columns."""

    def __init__(self, rule: Join, sides: Sequence[Side]) -> None:
        self.rule, self.left, self.right = rule, *sides
        named = {} if rule.once else right_columns(self.right, rule.prefix)
        together = rule.reach if isinstance(rule.reach, Together) else None
        self.judges = rule.judges(sides)
        self.joined = Joined(sides, rule.outputs(sides)[MAIN], named, together)
        # Left rows of a semi or anti join are gone with their first partner, rows that may be withdrawn when they are;
        # elsewhere a mark says "has met one".
        self.shelves = (Shelf(rule.once or self.left.signed, rule.pads[0]), Shelf(self.right.signed, rule.pads[1]))

    def start(self) -> Memory:
        """No rows."""
        return Memory(((), ()), MIN_TIME)

    def step(self, memory: Memory, arrivals: Sequence[Rows], clock: Clock) -> Emitted:
        """Judge, match, then pad and let go."""
        bound = max(memory.bound, plus(clock.watermark, -self.rule.lateness))
        late, fresh = [], []
        for number, rows in enumerate(arrivals):
            behind = rows.times < (bound if self.judges[number] else MIN_TIME)
            late.append(rows.take(behind) if behind.any() else None)
            fresh.append(self._fresh(number, rows.take(~behind) if behind.any() else rows))
        left, right = fresh
        given: list[Given] = list(self._new_left(memory, left, right))
        lefts = self._held_left(memory, right, given, bound)
        rights = self._mark_right(memory, given, right, bound)
        left, lefts = self._withdrawn(0, left, lefts, bound)
        right, rights = self._withdrawn(1, right, rights, bound)
        kept = tuple(
            self._left_over(number, one, runs, memory.bound, bound, given)
            for number, (one, runs) in enumerate(((left, lefts), (right, rights)))
        )
        hold = min((run.hold for runs in kept for run in runs), default=MAX_TIME)
        made = Memory((kept[0], kept[1]), bound)
        return Emitted(made, {MAIN: self.joined.outgoing(given)}, tuple(late), (), hold)

    def saved(self, memory: Memory, known: Container[str] = ()) -> Saved:
        """The memory as bytes."""
        parts = written(run_parts([*memory.sides[0], *memory.sides[1]]), known)
        said = {"bound": memory.bound, "sides": [[run_said(run) for run in runs] for runs in memory.sides]}
        return Saved(framed(said), parts)

    def parts(self, head: bytes) -> tuple[str, ...]:
        """The names of all parts that a head speaks of."""
        left, right = unframed(head)[0]["sides"]
        return (*run_names(left), *run_names(right))

    def restored(self, head: bytes, fetch: Callable[[str], bytes]) -> Memory:
        """The memory that was saved."""
        said, _ = unframed(head)
        left, right = (tuple(run_read(run, fetch) for run in runs) for runs in said["sides"])
        return Memory((left, right), said["bound"])

    def held(self, memory: Memory) -> int:
        """How many rows wait."""
        return sum(run.live for runs in memory.sides for run in runs)

    def _fresh(self, number: int, rows: Rows) -> _Fresh:
        reach = self._reach(number, rows.batch, rows.times)
        stored = Stored(kept_rows(rows, reach.until), (self.left, self.right)[number].keys)
        return _Fresh(stored, reach.low, reach.high, np.zeros(len(rows), dtype=bool), rows.ops)

    def _reach(self, number: int, batch: pa.RecordBatch, times: np.ndarray) -> Reach:
        return right_reach(self.rule, times) if number else left_reach(self.rule, batch, times)

    def _new_left(self, memory: Memory, left: _Fresh, right: _Fresh) -> Iterator[Given]:
        """What new left rows and all right rows give."""
        rows = left.stored.index.rows
        if not len(rows):
            return
        low, high = left.low[rows], left.high[rows]
        reached = [run for run in memory.sides[1] if run.near(int(low.min()), int(high.max()))]
        others = [right.stored, *(run.part.get() for run in reached)]
        if self.rule.once:
            first = np.full(len(left.stored), MAX_TIME)
            for other in others:
                first[rows] = np.minimum(first[rows], self._first(left.stored, rows, low, high, other))
            yield from self._once(left, first)
            return
        for other, run in zip(others, (None, *reached), strict=True):
            mine, theirs = self._pairs(left.stored, rows, low, high, other)
            if run is not None and run.marks is not None and self.shelves[1].marked_leave:
                there = ~run.marked()[theirs]
                mine, theirs = mine[there], theirs[there]
            left.met[mine] = True
            ops = _product((left.ops, mine), (right.ops if run is None else None, theirs))
            yield Given(left.stored, mine, other, theirs, right_run=run, ops=ops)

    def _once(self, left: _Fresh, first: np.ndarray) -> Iterator[Given]:
        left.met[:] = first < MAX_TIME
        if self.rule.how == "semi":
            rows = np.flatnonzero(left.met)
            yield Given(left.stored, rows, None, None, np.maximum(first[rows], left.stored.kept.times[rows]))

    def _held_left(self, memory: Memory, right: _Fresh, given: list[Given], bound: int) -> list[Run]:
        """What held left rows and new right rows give, and the runs with the marks of those that met one."""
        rows, runs = right.stored.index.rows, []
        if not len(rows):
            return list(memory.sides[0])
        sought = (right.stored.hash[rows], right.low[rows], right.high[rows])
        lowest, highest = int(sought[1].min()), int(sought[2].max())
        for run in memory.sides[0]:
            if not run.near(lowest, highest):
                runs.append(run)
                continue
            stored = run.part.get()
            near = stored.index.rows[united(stored.index.ranges(*sought))]
            near = near[stored.kept.until[near] >= bound]
            if self.shelves[0].marked_leave and run.marks is not None:
                near = near[~run.marked()[near]]
            if len(near):
                met = self._met(stored, near, right, given)
                run = self.shelves[0].mark(run, met, bound) if self.rule.pads[0] or self.rule.once else run
            runs.append(run)
        return runs

    def _met(self, stored: Stored, near: np.ndarray, right: _Fresh, given: list[Given]) -> np.ndarray:
        """Which of some held left rows meet a new right one, and what that gives."""
        own, limits = stored.kept.times[near], stored.kept.batch.select(list(self.rule.columns))
        reach = left_reach(self.rule, take_column(limits, near) if self.rule.columns else limits, own)
        if not self.rule.once:
            mine, theirs = self._pairs(stored, near, reach.low, reach.high, right.stored)
            given.append(Given(stored, mine, right.stored, theirs, ops=_product((right.ops, theirs))))
            return mine
        first = self._first(stored, near, reach.low, reach.high, right.stored)
        some = first < MAX_TIME
        if self.rule.how == "semi":
            times = np.maximum(first[some], own[some])
            given.append(Given(stored, near[some], None, None, times))
        return near[some]

    def _pairs(
        self, left: Stored, rows: np.ndarray, low: np.ndarray, high: np.ndarray, right: Stored
    ) -> tuple[np.ndarray, np.ndarray]:
        """Which of some left rows meets which right row."""
        of, at = expanded(right.index.ranges(left.hash[rows], low, high))
        mine, theirs = rows[of], right.index.rows[at]
        same = equal(left.keys_of(mine), right.keys_of(theirs))
        return (mine, theirs) if same.all() else (mine[same], theirs[same])

    def _first(self, left: Stored, rows: np.ndarray, low: np.ndarray, high: np.ndarray, right: Stored) -> np.ndarray:
        """The time of the first right row that each of some left rows meets; MAX_TIME where it meets none."""
        first, last = right.index.ranges(left.hash[rows], low, high)
        when = np.full(len(rows), MAX_TIME)
        some = np.flatnonzero(last > first)
        theirs = right.index.rows[first[some]]
        if equal(left.keys_of(rows[some]), right.keys_of(theirs)).all():
            when[some] = right.kept.times[theirs]
            return when
        # Keys that share a hash: all that a hash finds is looked at.
        of, at = expanded((first, last))
        theirs = right.index.rows[at]
        same = equal(left.keys_of(rows[of]), right.keys_of(theirs))
        np.minimum.at(when, of[same], right.kept.times[theirs[same]])
        return when

    def _mark_right(self, memory: Memory, given: list[Given], right: _Fresh, bound: int) -> list[Run]:
        """The runs of the right with the marks of rows that met a partner, if anyone asks."""
        if not self.rule.pads[1]:
            return list(memory.sides[1])
        met: dict[int, list[np.ndarray]] = {}
        for one in given:
            assert one.right_rows is not None
            if one.right_run is None:
                right.met[one.right_rows] = True
            else:
                met.setdefault(id(one.right_run), []).append(one.right_rows)
        shelf = self.shelves[1]
        return [
            shelf.mark(run, np.concatenate(met[id(run)]), bound) if id(run) in met else run for run in memory.sides[1]
        ]

    def _withdrawn(self, number: int, fresh: _Fresh, runs: list[Run], bound: int) -> tuple[_Fresh, list[Run]]:
        """Rows that are withdrawn take those that are equal to them with them: new ones, and held ones."""
        if fresh.ops is None or not (fresh.ops < 0).any():
            return fresh, runs
        rows = np.flatnonzero((fresh.ops < 0) & fresh.stored.keyed)
        times = fresh.stored.kept.times[rows]
        kept, taken = [], []
        for run in runs:
            if len(rows) and run.near(int(times.min()), int(times.max())):
                stored = run.part.get()
                found = stored.index.rows[united(stored.index.ranges(fresh.stored.hash[rows], times, times))]
                found = found[(stored.kept.until[found] >= bound) & ~run.marked()[found]]
                if len(found):
                    taken.append(stored.take(found))
                    run = self.shelves[number].mark(run, found, bound)
            kept.append(run)
        whole = concat_stored([*taken, fresh.stored])
        signs = np.concatenate([np.ones(len(whole) - len(fresh.ops), np.int8), fresh.ops])
        ties = (whole.kept.offsets, whole.kept.place)
        left = left_over([pa.array(whole.kept.times), *whole.kept.batch.columns], signs, ties)
        stored = whole.take(left[signs[left] > 0])
        reach = self._reach(number, stored.kept.batch, stored.kept.times)
        return _Fresh(stored, reach.low, reach.high, np.zeros(len(stored), dtype=bool)), kept

    def _left_over(
        self, number: int, fresh: _Fresh, runs: Sequence[Run], before: int, bound: int, given: list[Given]
    ) -> Runs:
        """Rows that no partner can reach any more leave, padded if they had none; the rest are held."""
        shelf, pads, kept = self.shelves[number], self.rule.pads[number], []
        for run in runs:
            still, leaving = shelf.leave(run, before, bound)
            if pads and len(leaving):
                given.append(_padded(number, run.part.get(), leaving))
            if still is not None:
                kept.append(still)
        waits = fresh.stored.kept.until >= bound
        if pads:
            leaving = np.flatnonzero(~waits & ~fresh.met)
            if len(leaving):
                given.append(_padded(number, fresh.stored, leaving))
        elif len(waits):
            # What can match nothing is held only to be padded.
            waits &= fresh.stored.keyed & (fresh.low <= fresh.high)
        if self.rule.once and number == 0:
            waits &= ~fresh.met
        stay = np.flatnonzero(waits)
        if len(stay):
            stored = fresh.stored if len(stay) == len(waits) else fresh.stored.take(stay)
            kept.append(shelf.run(stored, fresh.met[stay] if pads else None))
        return shelf.tidy(kept, bound)


def _product(*signed: tuple[np.ndarray | None, np.ndarray]) -> np.ndarray | None:
    """The signs of pairs: those of what both sides have; None where no side can be withdrawn."""
    signs = [ops[rows] for ops, rows in signed if ops is not None]
    return np.prod(signs, axis=0, dtype=np.int8) if signs else None


def _padded(number: int, stored: Stored, rows: np.ndarray) -> Given:
    times = stored.kept.times[rows]
    return Given(stored, rows, None, None, times) if number == 0 else Given(None, None, stored, rows, times)
