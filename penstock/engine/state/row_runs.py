"""How a side of a join holds many rows and a batch moves few: runs that never change, with marks beside them.

A mark says of a row that it has met a partner, or that it is gone. Runs of like size become one, and one of which
less than half is left is written anew, so that a row is written a few times and not with every batch.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from penstock.engine.columns.constants import different
from penstock.engine.state.rows import MARKS, ROWS, Part, Stored, concat_stored
from penstock.types.timestamps import MAX_TIME

SMALL = 4_096  # runs of so few rows are all of one size
ALIKE = 4  # so many runs of like size become one
LARGEST = 1 << 20  # but not one of more rows than this

_SAID = ("rows", "live", "first", "last", "due", "end", "hold")


@dataclass(frozen=True, slots=True, eq=False)
class Run:
    """Rows and what is known of them without looking: how many are left, between which times, when the next leaves.

    `due` and `end` are the first and the last instant until which a row is needed, `hold` is the least time of a row
    that is not marked.
    """

    part: Part[Stored]
    marks: Part[np.ndarray] | None
    rows: int
    live: int
    first: int
    last: int
    due: int
    end: int
    hold: int

    def marked(self) -> np.ndarray:
        """Which rows have a mark."""
        return np.zeros(self.rows, dtype=bool) if self.marks is None else self.marks.get()

    def near(self, low: int, high: int) -> bool:
        """Whether a row of it may have a time in this range."""
        return self.first <= high and self.last >= low


@dataclass(frozen=True, slots=True)
class Shelf:
    """The rules of a side: whether a row with a mark is gone, and whether anyone asks for rows without one."""

    marked_leave: bool
    holds: bool = False

    def run(self, stored: Stored, marks: np.ndarray | None = None) -> Run:
        """A new run, all of whose rows are needed."""
        kept = stored.kept
        part = None if marks is None or not marks.any() else Part(MARKS, marks)
        times = kept.times if part is None or marks is None else kept.times[~marks]
        hold = int(times.min()) if self.holds and len(times) else MAX_TIME
        return Run(
            Part(ROWS, stored),
            part,
            len(kept),
            len(kept),
            int(kept.times.min()),
            int(kept.times.max()),
            int(kept.until.min()),
            int(kept.until.max()),
            hold,
        )

    def mark(self, run: Run, rows: np.ndarray, bound: int) -> Run:
        """The run with a mark at some of the rows that are needed."""
        old = run.marked()
        new = different(rows[~old[rows]])
        if not len(new):
            return run
        marks = old.copy()
        marks[new] = True
        live = run.live - len(new) if self.marked_leave else run.live
        run = replace(run, marks=Part(MARKS, marks), live=live)
        kept = run.part.get().kept
        if self.holds and bool((kept.times[new] == run.hold).any()):
            run = replace(run, hold=_least(kept.times[(kept.until >= bound) & ~marks]))
        return run

    def leave(self, run: Run, before: int, bound: int) -> tuple[Run | None, np.ndarray]:
        """The run without the rows that are needed no more, and those of them that have no mark."""
        nothing = np.empty(0, dtype=np.int64)
        if run.due >= bound:
            return (run if run.live else None), nothing
        if run.end < bound and not self.holds:
            return None, nothing
        kept, marks = run.part.get().kept, run.marked()
        going = (kept.until >= before) & (kept.until < bound) & ~marks
        left = kept.until >= bound
        unmarked = left & ~marks
        if self.marked_leave:
            left = unmarked
        live = int(np.count_nonzero(left))
        if not live:
            return None, np.flatnonzero(going)
        hold = _least(kept.times[unmarked]) if self.holds else MAX_TIME
        return replace(run, live=live, due=int(kept.until[left].min()), hold=hold), np.flatnonzero(going)

    def tidy(self, runs: Sequence[Run], bound: int) -> tuple[Run, ...]:
        """The runs with those of like size made one, and thin ones written anew."""
        kept = [run for run in runs if run.live]
        kept = [run if 2 * run.live >= run.rows else self._merged([run], bound) for run in kept]
        while True:
            alike = _alike(kept)
            if not alike:
                return tuple(kept)
            kept = [run for run in kept if run not in alike] + [self._merged(alike, bound)]

    def _merged(self, runs: Sequence[Run], bound: int) -> Run:
        parts, marks = [], []
        for run in runs:
            stored, marked = run.part.get(), run.marked()
            left = stored.kept.until >= bound
            rows = np.flatnonzero(left & ~marked if self.marked_leave else left)
            parts.append(stored if len(rows) == run.rows else stored.take(rows))
            marks.append(marked[rows])
        made = parts[0] if len(parts) == 1 else concat_stored(parts)
        return self.run(made, None if self.marked_leave else np.concatenate(marks))


def run_parts(runs: Sequence[Run]) -> Iterator[Part[Any]]:
    """All parts of some runs."""
    for run in runs:
        yield run.part
        if run.marks is not None:
            yield run.marks


def run_said(run: Run) -> list[Any]:
    """A run as it stands in a head; its parts must have been written."""
    marks = None if run.marks is None else run.marks.name
    return [run.part.name, marks, *(getattr(run, name) for name in _SAID)]


def run_read(said: Sequence[Any], fetch: Callable[[str], bytes]) -> Run:
    """The run that stands in a head."""
    name, marks, *numbers = said
    return Run(
        Part(ROWS, name=name, fetch=fetch),
        None if marks is None else Part(MARKS, name=marks, fetch=fetch),
        **dict(zip(_SAID, numbers, strict=True)),
    )


def run_names(said: Sequence[Sequence[Any]]) -> tuple[str, ...]:
    """The names of all parts of the runs of a head."""
    return tuple(name for run in said for name in run[:2] if name is not None)


def written(parts: Iterable[Part[Any]], known: Container[str]) -> dict[str, bytes]:
    """The bytes of the parts that are not known yet, by name."""
    new: dict[str, bytes] = {}
    for part in parts:
        if part.name is None or part.name not in known:
            name, data = part.written()
            if name not in known:
                new[name] = data
    return new


def _alike(runs: Sequence[Run]) -> list[Run]:
    """Runs of like size, if there are many: the smallest ones that are."""
    tiers: dict[int, list[Run]] = {}
    for run in runs:
        tiers.setdefault(max(0, run.live.bit_length() - SMALL.bit_length() + 1) // 2, []).append(run)
    for tier in sorted(tiers):
        several = tiers[tier][:ALIKE]
        if len(several) == ALIKE and sum(run.live for run in several) <= LARGEST:
            return several
    return []


def _least(times: np.ndarray) -> int:
    return int(times.min()) if len(times) else MAX_TIME
