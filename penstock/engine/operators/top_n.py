"""The best rows of a key, in columns: those held and those that came in one order, and which ranks have changed."""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from penstock.engine.columns.arrays import plus
from penstock.engine.columns.constants import constant, different, is_constant
from penstock.engine.columns.keys import canonical, hashes, key_codes
from penstock.engine.columns.sorting import in_order, order_codes
from penstock.engine.ingest.pre_aggregate import Rows
from penstock.engine.operators.netting import left_over
from penstock.engine.operators.protocol import Emitted, Outgoing
from penstock.engine.state.operator_codec import Runs, named_parts, restored_runs, saved_runs
from penstock.engine.state.runs import extract, grown, joined
from penstock.engine.state.snapshot import Saved
from penstock.engine.windows.assignment import bounds
from penstock.engine.windows.due import Finder, wanted_keys
from penstock.engine.windows.lifecycle import Clock
from penstock.engine.windows.partials import Cells, take_arrays
from penstock.plan.operators.top_n import Top
from penstock.plan.stages import MAIN, Side
from penstock.types.arrow import arrow_schema
from penstock.types.timestamps import MAX_TIME, MIN_TIME

_NOBODY = np.empty(0, dtype=np.int64)
_INSTANT = pa.timestamp("us", tz="UTC")


@dataclass(frozen=True, slots=True)
class Memory:
    """The rows of keys, or of keys and windows, that are among the best or may yet be."""

    kept: Runs
    clock: Clock


class TopOperator:
    """The best rows made ready for columns. A kept row is a cell: its columns, and its time, partition and offset."""

    def __init__(self, rule: Top, sides: Sequence[Side]) -> None:
        self.rule, (self.side,) = rule, sides
        self.schema = arrow_schema(rule.outputs(sides)[MAIN])
        self.lateness = rule.lateness or 0
        self.finder = Finder(by_key=True, delays=(self.lateness,))

    def start(self) -> Memory:
        """A memory of nothing."""
        return Memory((), Clock(MIN_TIME, MIN_TIME))

    def step(self, memory: Memory, arrivals: Sequence[Rows], clock: Clock) -> Emitted:
        """Windows that have expired give their answer; what came changes the others."""
        (rows,) = arrivals
        behind = np.zeros(len(rows), dtype=bool)
        if self.rule.window is not None:
            behind = plus(self._bounds(rows.times)[1], self.lateness) <= clock.watermark
        ranked = rows.batch.column(self.rule.by).is_valid().to_numpy(zero_copy_only=False) & ~behind
        came = rows if ranked.all() else rows.take(ranked)
        new = self._cells(came)
        taken = extract(self.finder, memory.kept, wanted_keys(new.hash), memory.clock, clock)
        held = taken.joined(new.take(_NOBODY))
        over = plus(held.end, self.lateness) <= clock.watermark if self.rule.window is not None else _NOBODY > 0
        answers = self._answers(held.take(over)) if over.any() else None
        left, changes = self._changed(held.take(~over) if over.any() else held, new, came.signs)
        given = changes if self.rule.window is None else answers
        if clock.watermark == MAX_TIME:
            left = left.take(_NOBODY)
        runs = grown(self.finder, taken, left, clock)
        outputs = {} if given is None else {MAIN: given}
        late = rows.take(behind) if behind.any() else None
        return Emitted(Memory(runs, clock), outputs, (late,), (), MAX_TIME)

    def chosen(self, rows: Rows) -> np.ndarray:
        """Those that are among the best of the rows given, and those without a rank, which are counted as kept."""
        if self.side.signed or self.rule.window is not None:
            return np.arange(len(rows))  # what is withdrawn makes room for others, and what is late is given out
        ranked = rows.batch.column(self.rule.by).is_valid().to_numpy(zero_copy_only=False)
        cells = self._cells(rows)
        order, place = self._in_order(cells, _groups(cells), np.flatnonzero(ranked))
        return np.sort(np.concatenate([order[place < self.rule.n], np.flatnonzero(~ranked)]))

    def saved(self, memory: Memory, known: Container[str] = ()) -> Saved:
        """The memory as bytes."""
        return saved_runs({"clock": [memory.clock.watermark, memory.clock.now]}, {"kept": memory.kept}, known)

    def parts(self, head: bytes) -> tuple[str, ...]:
        """The names of all parts that a head speaks of."""
        return named_parts(head)

    def restored(self, head: bytes, fetch: Callable[[str], bytes]) -> Memory:
        """The memory that was saved."""
        said, runs = restored_runs(head, fetch)
        return Memory(runs["kept"], Clock(*said["clock"]))

    def held(self, memory: Memory) -> int:
        """How many rows are kept."""
        return sum(run.live for run in memory.kept)

    def _bounds(self, times: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The window of each row; without windows all lie in one that does not end."""
        rule = self.rule.window
        if rule is None:
            return constant(0, len(times)), constant(MAX_TIME, len(times))
        return bounds(rule, times)

    def _cells(self, rows: Rows) -> Cells:
        keys = tuple(canonical(rows.batch.column(name)) for name in self.side.keys)
        n, (start, end) = len(rows), self._bounds(rows.times)
        held = (tuple(rows.batch.columns), (rows.times, rows.partitions, rows.offsets))
        return Cells(keys, hashes(keys, n), start, end, constant(1, n), constant(0, n), constant(0, n), held)

    def _changed(self, held: Cells, new: Cells, signs: np.ndarray) -> tuple[Cells, Outgoing]:
        """What is kept of rows held and new, and which rows have taken or lost a rank."""
        every, m, n = joined([held, new]), len(held), self.rule.n
        groups = _groups(every)
        order, place = self._in_order(every, groups, np.arange(m))
        stood = order[place < n], place[place < n]
        left = np.arange(len(every))
        if self.side.signed:
            left = _left(every, groups, np.concatenate([np.ones(m, dtype=np.int64), signs]))
        order, place = self._in_order(every, groups, left)
        stands = order[place < n], place[place < n]
        kept = np.sort(order if self.side.signed else stands[0])
        sizes = (stood, stands)
        slots = different(np.concatenate([groups[rows] * n + ranks for rows, ranks in sizes]))
        were, are = (np.full(len(slots), -1), np.full(len(slots), -1))
        for at, (rows, ranks) in zip((were, are), sizes, strict=True):
            at[np.searchsorted(slots, groups[rows] * n + ranks)] = rows
        places = np.stack([were, are], axis=1)[were != are].ravel()
        ranks = np.repeat(slots[were != are] % n, 2)
        ops = np.tile(np.array([-1, 1], dtype=np.int8), len(places) // 2)
        some = places >= 0
        return every.take(kept), self._rows(every.take(places[some]), ranks[some], ops[some])

    def _answers(self, cells: Cells) -> Outgoing:
        """The best rows of windows that are over."""
        order, place = self._in_order(cells, _groups(cells), np.arange(len(cells)))
        best = place < self.rule.n
        return self._rows(cells.take(order[best]), place[best], None)

    def _in_order(self, cells: Cells, groups: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Some rows, the best of each group first, and the place of each in its group."""
        by = canonical(cells.held[0][self.side.schema.names.index(self.rule.by)].take(pa.array(rows)))
        codes = order_codes(by)
        codes = codes if self.rule.best == "least" else ~codes
        group = groups[rows]
        order = in_order(group, [codes])
        same = (np.diff(group[order]) == 0) & (np.diff(codes[order]) == 0)
        if same.any():
            # Times and places are looked at only where they settle something.
            tied = np.append(same, False) | np.append(False, same)
            among = order[tied]
            times, partitions, offsets = take_arrays(cells.held[1], rows[among])
            order[tied] = among[np.lexsort((offsets, order_codes(partitions), times, codes[among], group[among]))]
        found = group[order]
        return rows[order], np.arange(len(rows)) - np.searchsorted(found, found)

    def _rows(self, cells: Cells, ranks: np.ndarray, ops: np.ndarray | None) -> Outgoing:
        columns, times = [*cells.held[0], pa.array(ranks + 1, pa.int64())], cells.held[1][0]
        if self.rule.window is not None:
            columns += [pa.array(bound).cast(_INSTANT) for bound in (cells.start, cells.end)]
            times = cells.end - 1
        return Outgoing(pa.RecordBatch.from_arrays(columns, schema=self.schema), np.asarray(times), ops)


def _groups(cells: Cells) -> np.ndarray:
    """A number for each different key and window."""
    codes = key_codes(cells.keys, cells.hash)
    if is_constant(cells.start):
        return codes
    starts, ranks = np.unique(cells.start, return_inverse=True)
    return codes * len(starts) + ranks


def _left(cells: Cells, groups: np.ndarray, signs: np.ndarray) -> np.ndarray:
    """The rows that are left: of equal ones as many less as were withdrawn, the last of them."""
    times, partitions, offsets = cells.held[1]
    columns = [pa.array(groups), pa.array(times), *cells.held[0]]
    left = left_over(columns, signs, (offsets, order_codes(partitions)))
    return left[signs[left] > 0]
