"""Dedup over columns: rows and what is kept of their ids side by side in event time, and which of them are near."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from penstock.engine.columns import arrays as saturate
from penstock.engine.columns.constants import constant
from penstock.engine.columns.keys import canonical, hashes, key_codes
from penstock.engine.ingest.pre_aggregate import Rows
from penstock.engine.operators.protocol import Emitted, Outgoing
from penstock.engine.state.operator_codec import Runs, named_parts, restored_runs, saved_runs
from penstock.engine.state.runs import extract, grown, joined
from penstock.engine.state.snapshot import Saved
from penstock.engine.windows.due import Finder, wanted_keys
from penstock.engine.windows.lifecycle import Clock
from penstock.engine.windows.partials import Cells, concat_arrays
from penstock.plan.operators.deduplicate import DUPLICATES, Dedup
from penstock.plan.stages import MAIN, Side
from penstock.types.arrow import arrow_schema
from penstock.types.timestamps import MAX_TIME, MIN_TIME, plus

ROUNDS = 32  # so often the first row of every chain is chosen for all chains at once; long chains are walked then


@dataclass(frozen=True, slots=True)
class Memory:
    """What is kept of ids, one row for each row given or each chain, and the least end in each run."""

    kept: Runs
    holds: tuple[int, ...]
    clock: Clock


class Deduplicated:
    """Dedup made ready for columns."""

    def __init__(self, rule: Dedup, sides: Sequence[Side]) -> None:
        (self.side,) = sides
        self.rule = rule
        self.finder = Finder(by_key=True, delays=(rule.reach + 1,))

    def start(self) -> Memory:
        """A memory of nothing."""
        return Memory((), (), Clock(MIN_TIME, MIN_TIME))

    def step(self, memory: Memory, arrivals: Sequence[Rows], clock: Clock) -> Emitted:
        """Play one batch."""
        (rows,) = arrivals
        behind = rows.times < plus(clock.watermark, -self.rule.lateness)
        late = rows.take(behind) if behind.any() else None
        rows = rows if late is None else rows.take(~behind)
        new = self._cells(rows)
        low, high = (int(rows.times.min()), int(rows.times.max())) if len(rows) else (MAX_TIME, MIN_TIME)
        wanted = wanted_keys(new.hash, plus(low, -self.rule.within), plus(high, self.rule.within))
        taken = extract(self.finder, memory.kept, wanted, memory.clock, clock)
        held = taken.joined(new.take(np.empty(0, dtype=np.int64)))
        if self.rule.keep == "first":
            given = self._first(held, new)
            outputs = {MAIN: _outgoing(rows, given), DUPLICATES: _outgoing(rows, ~given)}
            left = joined([held, new.take(given)])
            left = left.take(saturate.plus(left.end, self.rule.reach) >= clock.watermark)
        else:
            left, outputs = self._last(held, new, clock)
        runs = grown(self.finder, taken, left, clock)
        holds = self._holds(memory, runs) if self.rule.keep == "last" else ()
        outputs = {name: out for name, out in outputs.items() if out.batch.num_rows}
        return Emitted(Memory(runs, holds, clock), outputs, (late,), (), min(holds, default=MAX_TIME))

    def saved(self, memory: Memory, known: Container[str] = ()) -> Saved:
        """The memory as bytes."""
        said = {"clock": [memory.clock.watermark, memory.clock.now], "holds": memory.holds}
        return saved_runs(said, {"kept": memory.kept}, known)

    def parts(self, head: bytes) -> tuple[str, ...]:
        """The names of all parts that a head speaks of."""
        return named_parts(head)

    def restored(self, head: bytes, fetch: Callable[[str], bytes]) -> Memory:
        """The memory that was saved."""
        said, runs = restored_runs(head, fetch)
        return Memory(runs["kept"], tuple(said["holds"]), Clock(*said["clock"]))

    def held(self, memory: Memory) -> int:
        """How many ids, or chains, are held."""
        return sum(run.live for run in memory.kept)

    def _cells(self, rows: Rows) -> Cells:
        """Rows as they would be kept; a chain has its last row with it."""
        keys = tuple(canonical(rows.batch.column(name)) for name in self.side.keys)
        n = len(rows)
        held = (tuple(rows.batch.columns),) if self.rule.keep == "last" else ()
        one, zero = constant(1, n), constant(0, n)
        return Cells(keys, hashes(keys, n), rows.times, rows.times, one, zero, zero, held)

    def _first(self, held: Cells, new: Cells) -> np.ndarray:
        """Which of the new rows are given out: none that is near one given before it."""
        codes, within = _codes(held, new), self.rule.within
        m = len(held)
        times = np.concatenate([held.end, new.end])
        alone = _alone(codes)
        given = alone[m:].copy()
        several = np.flatnonzero(~alone)
        order = several[np.lexsort((times[several], codes[several]))]
        near = _near_held(codes[order], times[order], order < m, within)
        fresh = order[~near & (order >= m)]
        if not len(fresh):
            return given
        chain = np.cumsum(_breaks(codes[fresh], times[fresh], times[fresh], within))
        # Side by side by chain, and in a chain as they came.
        rows = fresh - m
        sort = np.lexsort((rows, chain))
        rows, chain = rows[sort], chain[sort]
        for _ in range(ROUNDS):
            if not len(rows):
                return given
            starts = np.flatnonzero(np.diff(chain, prepend=-1))
            given[rows[starts]] = True
            kept = np.repeat(new.end[rows[starts]], np.diff(np.append(starts, len(rows))))
            far = np.abs(new.end[rows] - kept) > within
            rows, chain = rows[far], chain[far]
        return _walked(given, rows, chain, new.end, within)

    def _last(self, held: Cells, new: Cells, clock: Clock) -> tuple[Cells, dict[str, Outgoing]]:
        """The chains that live on, and what is given out of those that have ended and dropped of all."""
        codes = _codes(held, new)
        every = joined([held, new])
        alone = _alone(codes)
        # Chains that were held come before rows of the same time, for they came earlier.
        order = np.flatnonzero(~alone)
        order = order[np.lexsort((every.start[order], codes[order]))]
        chains, lost = self._chained(every.take(order), codes[order], order)
        chains = joined([every.take(alone), chains])
        over = saturate.plus(chains.end, self.rule.reach) < clock.watermark
        given = chains.take(over)
        given = given.take(np.argsort(given.end, kind="stable"))
        return chains.take(~over), {MAIN: self._rows(given), DUPLICATES: self._rows(lost)}

    def _chained(self, rows: Cells, codes: np.ndarray, came: np.ndarray) -> tuple[Cells, Cells]:
        """Rows in order of id and time as chains, each with its last row, and the rows that are not the last."""
        if not len(rows):
            return rows, rows
        chain = np.cumsum(_breaks(codes, rows.start, _running_end(codes, rows.end), self.rule.within)) - 1
        starts = np.flatnonzero(np.diff(chain, prepend=-1))
        newest = np.lexsort((came, rows.end, chain))[np.append(starts[1:], len(rows)) - 1]
        lost = np.ones(len(rows), dtype=bool)
        lost[newest] = False
        places = np.flatnonzero(lost)
        places = places[np.lexsort((came[places], rows.end[places]))]
        return replace(rows.take(newest), start=rows.start[starts]), rows.take(places)

    def _rows(self, chains: Cells) -> Outgoing:
        """The last rows of chains."""
        batch = pa.RecordBatch.from_arrays(list(chains.held[0]), schema=arrow_schema(self.side.schema))
        return Outgoing(batch, np.ascontiguousarray(chains.end))

    def _holds(self, memory: Memory, runs: Runs) -> tuple[int, ...]:
        """The least end in each run; one that was not looked at has the one it had."""
        known = {id(run): least for run, least in zip(memory.kept, memory.holds, strict=True)}
        holds = []
        for run in runs:
            least = known.get(id(run))
            if least is None:
                assert run.taken is not None
                ends = run.part.get().rows.end[~run.taken]
                least = int(ends.min()) if len(ends) else MAX_TIME
            holds.append(least)
        return tuple(holds)


def _codes(held: Cells, new: Cells) -> np.ndarray:
    """A number for each id of both."""
    return key_codes(concat_arrays([held.keys, new.keys]), np.concatenate([held.hash, new.hash]))


def _alone(codes: np.ndarray) -> np.ndarray:
    """Which rows are the only one of their id, and near no other."""
    return np.bincount(codes)[codes] == 1


def _near_held(codes: np.ndarray, times: np.ndarray, held: np.ndarray, within: int) -> np.ndarray:
    """Which rows, in order of id and time, have a held one of their id near, before or after them."""
    n = len(codes)
    near = np.zeros(n, dtype=bool)
    if not held.any():
        return near
    places = np.arange(n)
    before = np.maximum.accumulate(np.where(held, places, -1))
    after = np.minimum.accumulate(np.where(held, places, n)[::-1])[::-1]
    for other, there in ((before, before >= 0), (after, after < n)):
        at = np.where(there, other, 0)
        near |= there & (codes[at] == codes) & (np.abs(times - times[at]) <= within)
    return near


def _breaks(codes: np.ndarray, first: np.ndarray, last: np.ndarray, within: int) -> np.ndarray:
    """Where, in order of id and time, a new chain begins: another id, or too far from all before."""
    begins = np.ones(len(codes), dtype=bool)
    begins[1:] = (codes[1:] != codes[:-1]) | (first[1:] - last[:-1] > within)
    return begins


def _running_end(codes: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """The latest end so far of each id, in order of id; ids are lifted apart so that one pass does for all."""
    rank = np.cumsum(np.diff(codes, prepend=codes[0]) != 0)
    different, place = np.unique(ends, return_inverse=True)
    lifted = np.maximum.accumulate(rank * len(different) + place)
    return different[lifted - rank * len(different)]


def _walked(given: np.ndarray, rows: np.ndarray, chain: np.ndarray, times: np.ndarray, within: int) -> np.ndarray:
    """The rows of long chains one by one: given if none that was given is near."""
    last = -1
    kept: list[int] = []
    for row, of, time in zip(rows.tolist(), chain.tolist(), times[rows].tolist(), strict=True):
        if of != last:
            last, kept = of, []
        at = bisect_left(kept, time)
        if (at and time - kept[at - 1] <= within) or (at < len(kept) and kept[at] - time <= within):
            continue
        insort(kept, time)
        given[row] = True
    return given


def _outgoing(rows: Rows, mask: np.ndarray) -> Outgoing:
    places = np.flatnonzero(mask)
    return Outgoing(rows.batch.take(pa.array(places)), rows.times[places])
