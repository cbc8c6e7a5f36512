"""How a shard holds many rows and a batch moves few: runs that never change, from which newer runs take rows.

A batch takes the rows it needs out of all runs; what is left of them becomes a new run. Runs of like size become one,
so that a row is written a few times and not with every batch.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Generic

import numpy as np

from penstock.engine.state.codec import other_columns
from penstock.engine.state.parts import Part, Stored, T
from penstock.engine.windows.due import Finder, Wanted, due, first_due, first_wake, since, touched, touched_share, woken
from penstock.engine.windows.lifecycle import Clock
from penstock.engine.windows.partials import concat_cells
from penstock.engine.windows.table import Windows, concat_windows
from penstock.types.timestamps import MAX_TIME, MIN_TIME

SMALL = 2_048  # a run of so few rows goes through each batch as a whole
SHARE = 4  # so does one of which arrivals touch one row in so many
ALIKE = 4  # so many runs of like size become one
LARGEST = 1 << 20  # runs of so many rows are not made one; a batch that leaves more than twice as many is cut

Takes = dict[int, list[np.ndarray]]


@dataclass(frozen=True, slots=True, eq=False)
class Run(Generic[T]):
    """A part and what is known of it without looking: how much of it is left, where it reaches, when it is due.

    `took` numbers the runs that it took rows from; `taken` says which of its own are gone, once that was asked for.
    """

    number: int
    part: Part[T]
    rows: int
    live: int
    records: int
    low: int
    high: int
    due_at: int
    wake_at: int
    took: tuple[int, ...] = ()
    taken: np.ndarray | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Extract(Generic[T]):
    """Rows taken out of the runs, the runs without them, and what a new run must say it took."""

    rows: list[T]
    left: tuple[Run[T], ...]
    takes: Takes
    runs: tuple[Run[T], ...]

    def joined(self, none: T) -> T:
        """The rows as one; refused where they are not laid out as `none`, the rows of no keys that the plan keeps."""
        wanted, parts = _layout(none), [*self.rows, none]
        for part in parts:
            if (found := _layout(part)) != wanted:
                raise other_columns(found, wanted)
        return joined(parts)


def extract(finder: Finder, runs: tuple[Run[T], ...], wanted: Wanted, before: Clock, clock: Clock) -> Extract[T]:
    """Take out what a batch needs; a run with nothing due and out of the arrivals' reach is not looked at."""
    rows: list[T] = []
    left: list[Run[T]] = []
    takes: Takes = {}
    for run in runs:
        stored, places, run = _needed(finder, (runs, run), wanted, before, clock)
        if stored is None or not (len(places) or run.live == 0):
            left.append(run)
            continue
        rows.append(_taken(stored.rows, places))
        if len(places) == run.live:
            _add(takes, stored.takes)
            continue
        gone = _gone(runs, run).copy()
        gone[places] = True
        records = run.records - int(stored.rows.records[places].sum())
        left.append(replace(run, live=run.live - len(places), records=records, taken=gone))
        _add(takes, {run.number: places.astype(np.int32)})
    return Extract(rows, tuple(left), takes, runs)


def _needed(
    finder: Finder, one: tuple[Sequence[Run[T]], Run[T]], wanted: Wanted, before: Clock, clock: Clock
) -> tuple[Stored[T] | None, np.ndarray, Run[T]]:
    """What is in the run if it was looked at, the places of the rows that are needed, and when it is due next."""
    runs, run = one
    near, small = _near(run, wanted), run.live <= SMALL
    is_due, is_awake = run.due_at <= clock.watermark, run.wake_at <= clock.now
    if not (near or is_due or is_awake or (small and len(wanted.numbers))):
        return None, np.empty(0, dtype=np.int64), run
    stored = run.part.get()
    gone = _gone(runs, run)
    if small or (near and run.live <= SHARE * len(wanted.numbers)):
        live = np.flatnonzero(~gone)
        if small or SHARE * touched_share(finder, stored, live, wanted) >= 1:
            return stored, live, run
    found: list[np.ndarray] = [touched(finder, stored, wanted)] if near else []
    due_at, wake_at = run.due_at, run.wake_at
    if is_due:
        reached, due_at = due(finder, stored, since(before, run.due_at), clock.watermark)
        found += reached
    if is_awake:
        awake, wake_at = woken(finder, stored, before.now, clock.now)
        found += awake
    needed = np.zeros(run.rows, dtype=bool)
    for places in found:
        needed[places] = True
    return stored, np.flatnonzero(needed & ~gone), replace(run, taken=gone, due_at=due_at, wake_at=wake_at)


def grown(finder: Finder, extracted: Extract[T], rows: T, clock: Clock) -> tuple[Run[T], ...]:
    """The runs with what a batch leaves as a new one, those of like size made one, and thin ones written anew."""
    left, runs = extracted.left, extracted.runs
    takes = {number: list(places) for number, places in extracted.takes.items()}
    if not len(rows) and not takes and not any(map(_thin, left)):
        return left
    merged: list[Run[T]] = _like(left, len(rows))
    alone: list[Run[T]] = [run for run in left if _thin(run) and run not in merged]
    lasting: list[Run[T]] = [run for run in left if run not in merged and run not in alone]
    for run in (*merged, *alone):
        _add(takes, run.part.get().takes)
    pieces: list[T] = [_live_rows(runs, run) for run in alone]
    pieces += _pieces(joined([*(_live_rows(runs, run) for run in merged), rows]))
    numbers = {run.number for run in lasting}
    kept = {number: np.concatenate(takes[number]) for number in sorted(numbers & takes.keys())}
    made: list[Run[T]] = []
    for piece in pieces:
        taken = kept if piece is pieces[-1] else {}
        if len(piece) or taken:
            made.append(_new_run(finder, max(numbers, default=0) + 1 + len(made), piece, taken, clock))
    return (*lasting, *made)


def _like(left: Sequence[Run[T]], size: int) -> list[Run[T]]:
    """The runs to be made one with so many new rows: thin ones that are no larger, and all of like size once many."""
    chosen = [run for run in left if _thin(run) and run.live <= size]
    chosen = _fitting(chosen, size)
    size += sum(run.live for run in chosen)
    while True:
        peers = [run for run in left if run not in chosen and not _thin(run) and _tier(run.live) <= _tier(size)]
        more = _fitting(peers, size) if len(peers) >= ALIKE - 1 else []
        if not more:
            return sorted(chosen, key=lambda run: run.number)
        chosen += more
        size += sum(run.live for run in more)


def _fitting(runs: Iterable[Run[T]], size: int) -> list[Run[T]]:
    """As many of the runs, the smaller first, as make no run that is too large."""
    fitting = []
    for run in sorted(runs, key=lambda run: (run.live, run.number)):
        size += run.live
        if size <= LARGEST:
            fitting.append(run)
    return fitting


def _near(run: Run[T], wanted: Wanted) -> bool:
    """Whether arrivals may touch a row of it."""
    return bool(len(wanted.numbers)) and run.low <= wanted.high and run.high >= wanted.low


def _tier(rows: int) -> int:
    """Runs of like size: of one tier, each up to four times as large as the one before."""
    return max(0, rows.bit_length() - SMALL.bit_length() + 1) // 2


def _thin(run: Run[T]) -> bool:
    """Whether more than half of its rows are gone."""
    return 2 * run.live < run.rows


def _gone(runs: Sequence[Run[T]], run: Run[T]) -> np.ndarray:
    """Which rows of a run others have taken."""
    if run.taken is not None:
        return run.taken
    gone = np.zeros(run.rows, dtype=bool)
    for other in runs:
        if run.number in other.took:
            gone[other.part.get().takes[run.number]] = True
    return gone


def _live_rows(runs: Sequence[Run[T]], run: Run[T]) -> T:
    return _taken(run.part.get().rows, np.flatnonzero(~_gone(runs, run)))


def _taken(rows: T, places: np.ndarray) -> T:
    return rows if len(places) == len(rows) else rows.take(places)


def _add(takes: Takes, more: Mapping[int, np.ndarray]) -> None:
    for number, places in more.items():
        takes.setdefault(number, []).append(places)


def joined(parts: Sequence[T]) -> T:
    """Rows of several as one."""
    several: list[Any] = [part for part in parts if len(part)]
    if len(several) < 2:
        return several[0] if several else parts[0]
    made: Any = concat_windows(*several) if isinstance(several[0], Windows) else concat_cells(several)
    return made


def _layout(rows: Any) -> str:
    """The types of the keys and of each group of columns; plain numbers lie alike in all."""
    groups = [rows.keys, *rows.held]
    if isinstance(rows, Windows):
        groups += [rows.trigger, *rows.shown, rows.last]
    key, *columns = [f"({', '.join(_type(column) for column in group)})" for group in groups]
    return f"the key {key} and the columns {' '.join(columns)}"


def _type(column: Any) -> str:
    return "number" if isinstance(column, np.ndarray) else str(column.type)


def _pieces(rows: T) -> list[T]:
    """Rows in pieces, none much too large for a run."""
    if len(rows) <= 2 * LARGEST:
        return [rows]
    return [rows.take(np.arange(at, min(at + LARGEST, len(rows)))) for at in range(0, len(rows), LARGEST)]


def _new_run(finder: Finder, number: int, rows: T, takes: dict[int, np.ndarray], clock: Clock) -> Run[T]:
    rows = rows.settled()
    n = len(rows)
    return Run(
        number,
        Part(Stored(rows, takes)),
        n,
        n,
        int(rows.records.sum()),
        int(rows.start.min()) if n else MAX_TIME,
        int(rows.end.max()) if n else MIN_TIME,
        first_due(finder, rows, clock.watermark),
        first_wake(finder, rows, clock.now),
        tuple(sorted(takes)),
        np.zeros(n, dtype=bool),
    )
