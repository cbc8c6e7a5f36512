"""Which version of a key is valid when: a table of versions, each from its time until just before the next one's.

A new version ends the one before it, which is written anew with its end; an equal time takes its place. A row that
says "deleted" is valid at no time: all it does is to end the one before.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from penstock.engine.columns.keys import equal, key_codes
from penstock.engine.state.row_runs import Run, Shelf
from penstock.engine.state.rows import Stored, concat_stored
from penstock.engine.state.time_index import expanded, united
from penstock.plan.operators.join import FOREVER
from penstock.types.timestamps import MAX_TIME, MIN_TIME

SHELF = Shelf(marked_leave=True)


@dataclass(frozen=True, slots=True)
class Table:
    """Versions that were held, some of them gone, and those of this batch with what they changed."""

    runs: tuple[Run, ...]
    fresh: Stored | None

    def find(self, asking: Stored, times: np.ndarray) -> list[tuple[np.ndarray, Stored, np.ndarray]]:
        """Which asking rows find a version that is valid at their times, in which table, and where in it."""
        rows = np.flatnonzero(asking.keyed)
        # In the order of their hashes they are looked up in a fraction of the time.
        rows = rows[np.argsort(asking.hash[rows])]
        found = []
        for run in self.runs:
            stored, gone = run.part.get(), None if run.marks is None else run.marked()
            found.append((stored, *_valid(stored, gone, asking, rows, times)))
        if self.fresh is not None:
            found.append((self.fresh, *_valid(self.fresh, None, asking, rows, times)))
        return [(mine, stored, theirs) for stored, mine, theirs in found if len(mine)]

    def left(self, before: int, bound: int) -> tuple[Run, ...]:
        """What is held on: versions that are valid at the bound or later."""
        kept = [still for run in self.runs for still in [SHELF.leave(run, before, bound)[0]] if still is not None]
        if self.fresh is not None:
            stay = np.flatnonzero(self.fresh.kept.until >= bound)
            if len(stay):
                kept.append(SHELF.run(self.fresh.take(stay) if len(stay) < len(self.fresh) else self.fresh))
        return SHELF.tidy(kept, bound)


def put(runs: Sequence[Run], news: Stored, deleted: np.ndarray | None, before: int, bound: int) -> Table:
    """The table with new versions, in the order of their arrival; `deleted` says which of them are no versions."""
    news = _ended(news, deleted)
    keyed = np.flatnonzero(news.keyed)
    if not len(keyed):
        return Table(tuple(runs), None)
    news = news if len(keyed) == len(news) else news.take(keyed)
    sought = _spans(news)
    left, taken = [], []
    for run in runs:
        stored = run.part.get()
        rows = _around(stored, *sought)
        rows = rows[(stored.kept.until[rows] >= before) & ~run.marked()[rows]]
        if len(rows):
            taken.append(stored.take(np.sort(rows)))
            run = SHELF.mark(run, rows, bound)
        left.append(run)
    return Table(tuple(left), _following(concat_stored([*taken, news])))


def _ended(news: Stored, deleted: np.ndarray | None) -> Stored:
    """New versions are valid for ever, deletions never."""
    until = np.full(len(news), FOREVER)
    if deleted is not None:
        until[deleted] = news.kept.times[deleted] - 1
    return Stored(replace(news.kept, until=until), news.keyed_by)


def _spans(news: Stored) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Each different hash with the first and the last time of its new versions."""
    order = news.index.rows
    hashed, times = news.hash[order], news.kept.times[order]
    first = np.flatnonzero(np.append(True, hashed[1:] != hashed[:-1]))
    return hashed[first], times[first], times[np.append(first[1:] - 1, len(order) - 1)]


def _around(stored: Stored, hashed: np.ndarray, first: np.ndarray, last: np.ndarray) -> np.ndarray:
    """The rows of each hash from the last before a time to the first after another."""
    index = stored.index
    ever = (np.full(len(hashed), MIN_TIME), np.full(len(hashed), MAX_TIME))
    begin, end = index.ranges(hashed, *ever)
    if not stored.shared:
        _, before = index.ranges(hashed, ever[0], first)
        _, after = index.ranges(hashed, ever[0], last)
        begin, end = np.maximum(begin, before - 1), np.minimum(end, after + 1)
    return index.rows[united((begin, end))]


def _following(versions: Stored) -> Stored:
    """The versions of each key one after the other: the last of equal times is kept, and each ends before the next."""
    kept = versions.kept
    codes = key_codes(versions.keys, versions.hash)
    order = np.lexsort((np.arange(len(kept)), kept.times, codes))
    codes, times = codes[order], kept.times[order]
    next_time = np.append(np.where(codes[1:] == codes[:-1], times[1:], MAX_TIME), MAX_TIME)
    lasts = next_time != times
    order, next_time = order[lasts], next_time[lasts]
    made = versions.take(order)
    until = np.minimum(made.kept.until, next_time - 1)
    return Stored(replace(made.kept, until=until), made.keyed_by)


def _valid(
    stored: Stored, gone: np.ndarray | None, asking: Stored, rows: np.ndarray, times: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Which of some asking rows find a version that is valid at their times, and where."""
    asked = times[rows]
    first, last = stored.index.ranges(asking.hash[rows], np.full(len(rows), MIN_TIME), asked)
    if not stored.shared:
        # Of the versions that began in time only the last can be valid still.
        first = np.maximum(first, last - 1)
    of, at = expanded((first, last))
    mine, theirs = rows[of], stored.index.rows[at]
    valid = stored.kept.until[theirs] >= asked[of]
    if gone is not None:
        valid &= ~gone[theirs]
    mine, theirs = mine[valid], theirs[valid]
    same = equal(asking.keys_of(mine), stored.keys_of(theirs))
    return mine[same], theirs[same]
