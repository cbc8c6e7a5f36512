"""Windows with a state: expire, take a batch's cells, look at each once, show panes."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.engine.cells import (
    Cells,
    concat_arrays,
    pair_held,
    put_column,
    put_held,
    take_arrays,
    take_held,
    zero_held,
)
from penstock.engine.compiled import Compiled
from penstock.engine.expression import evaluate
from penstock.engine.keys import equal, side_by_side
from penstock.engine.panes import pane_table
from penstock.engine.table import EARLY, LATE, ON_TIME, Windows, concat_windows, new_windows
from penstock.engine.trigger import Sight, fired, ready
from penstock.errors import DataError
from penstock.expression import EvaluationError
from penstock.instant import MIN_TIME
from penstock.trigger import When
from penstock.window import Global


@dataclass(frozen=True, slots=True)
class Clock:
    """The two times of a batch."""

    watermark: int
    now: int


def expire(compiled: Compiled, windows: Windows, clock: Clock) -> tuple[Windows, list[pa.Table], int]:
    """Windows that have expired leave; each shows a last pane if one is due or something is unshown."""
    if not len(windows) or clock.watermark == MIN_TIME:
        return windows, [], 0
    gone = compiled.expires_at(windows.end) <= clock.watermark
    if not gone.any():
        return windows, [], 0
    leaving = windows.take(gone)
    sight = look(compiled, leaving, clock)
    due = (leaving.unshown > 0) | ready(compiled.plan.trigger, leaving.trigger, sight)
    panes, _ = show(compiled, leaving.take(due), clock, final=True)
    return windows.take(~gone), panes, int(leaving.records.sum())


def put(compiled: Compiled, windows: Windows, cells: Cells, clock: Clock) -> Windows:
    """Add a batch's cells, one for each (key, window), to the windows they belong to."""
    if not len(cells):
        return windows
    found = match(windows, cells)
    fresh = new_windows(compiled, cells.take(found < 0), clock.watermark, clock.now)
    hits = np.flatnonzero(found >= 0)
    if len(hits):
        at, taken = found[hits], cells.take(hits) if len(hits) < len(cells) else cells
        windows = replace(
            windows,
            held=put_held(windows.held, at, pair_held(take_held(windows.held, at), taken.held, compiled.accumulators)),
            records=_added(windows.records, at, taken.records),
            held_records=_added(windows.held_records, at, taken.records),
            first_unshown=put_column(
                windows.first_unshown, at, np.where(windows.unshown[at] == 0, clock.now, windows.first_unshown[at])
            ),
            unshown=_added(windows.unshown, at, taken.records),
            newest=put_column(windows.newest, at, np.maximum(windows.newest[at], taken.newest)),
        )
    return concat_windows(windows, fresh)


def evaluate_all(compiled: Compiled, windows: Windows, clock: Clock) -> tuple[Windows, list[pa.Table]]:
    """Look at each window once; it shows one pane at most."""
    if not len(windows):
        return windows, []
    sight = look(compiled, windows, clock)
    fire = ready(compiled.plan.trigger, windows.trigger, sight)
    if not fire.any():
        return windows, []
    windows = replace(windows, trigger=fired(compiled.plan.trigger, windows.trigger, sight, fire))
    rows = np.flatnonzero(fire)
    showing = windows if len(rows) == len(windows) else windows.take(rows)
    panes, values = show(compiled, showing, clock, final=False)
    return _after(compiled, windows, rows, showing, values, clock), panes


def look(compiled: Compiled, windows: Windows, clock: Clock) -> Sight:
    """What the triggers see."""
    complete = compiled.complete_at(windows.end) <= clock.watermark
    due = complete & ~windows.born_late & ~windows.on_time_shown
    holds = {}
    whens = [part for part in compiled.plan.trigger.walk() if isinstance(part, When)]
    if whens:
        new = windows.unshown > 0
        values = compiled.results(take_held(windows.held, new), windows.held_records[new])
        for part in whens:
            holds[part] = np.zeros(len(windows), dtype=bool)
            holds[part][new] = _holds(compiled, part, values, int(new.sum()))
    return Sight(clock.now, windows.unshown, windows.first_unshown, complete, due, holds)


def show(
    compiled: Compiled, windows: Windows, clock: Clock, final: bool
) -> tuple[list[pa.Table], tuple[pa.Array, ...]]:
    """The panes of windows that fire: withdrawals first, then what they show, which is also given back."""
    n = len(windows)
    values = compiled.results(windows.held, windows.held_records)
    if n == 0:
        return [], values
    panes = []
    gone = windows.withdrawn
    if len(gone):
        order = np.lexsort((gone.end, gone.start, gone.owner))
        gone = gone.take(order)
        keys = take_arrays(windows.keys, gone.owner)
        shown = (gone.index, gone.timing, gone.event_time)
        panes.append(pane_table(compiled, keys, (gone.start, gone.end), gone.values, shown, (False, -1)))
    if compiled.plan.shown_mode == "retracting":
        again = np.flatnonzero(windows.index > 0)
        if len(again):
            old = windows.take(again)
            shown = (old.index - 1, old.last_timing, old.last_event_time)
            panes.append(pane_table(compiled, old.keys, (old.start, old.end), old.last, shown, (False, -1)))
    shown = (windows.index, timing(compiled, windows, clock), event_time(compiled, windows))
    panes.append(pane_table(compiled, windows.keys, (windows.start, windows.end), values, shown, (final, 1)))
    return panes, values


def timing(compiled: Compiled, windows: Windows, clock: Clock) -> np.ndarray:
    """Early, on time or late, for each window that fires now."""
    complete = compiled.complete_at(windows.end) <= clock.watermark
    after = np.where(windows.born_late | windows.on_time_shown, LATE, ON_TIME)
    return np.where(complete, after, EARLY).astype(np.int8)


def event_time(compiled: Compiled, windows: Windows) -> np.ndarray:
    """The event time of a window's panes: its last instant, or in the global window its newest record."""
    if isinstance(compiled.plan.window, Global):
        return windows.newest
    return windows.end if compiled.plan.window.closed else windows.end - (windows.end != np.iinfo(np.int64).max)


def match(windows: Windows, cells: Cells) -> np.ndarray:
    """The window of each cell, or -1 where it has none yet; by hash, and checked by the keys themselves."""
    if not len(windows):
        return np.full(len(cells), -1)
    ours, theirs = _identity(windows.hash, windows.start, windows.end), _identity(cells.hash, cells.start, cells.end)
    found = pc.index_in(pa.array(ours), pa.array(theirs)) if len(cells) <= len(windows) else None
    if found is not None:
        rows = np.flatnonzero(found.is_valid().to_numpy(zero_copy_only=False))
        of = found.take(pa.array(rows)).to_numpy().astype(np.int64)
    else:
        found = pc.index_in(pa.array(theirs), pa.array(ours))
        of = np.flatnonzero(found.is_valid().to_numpy(zero_copy_only=False))
        rows = found.take(pa.array(of)).to_numpy().astype(np.int64)
    same = (windows.start[rows] == cells.start[of]) & (windows.end[rows] == cells.end[of])
    if same.all() and windows.keys:
        same = equal(take_arrays(windows.keys, rows), take_arrays(cells.keys, of))
    if not same.all() or len(np.unique(theirs)) < len(theirs) or len(np.unique(rows)) < len(rows):
        return exact_match(windows, cells)
    places = np.full(len(cells), -1)
    places[of] = rows
    return places


def exact_match(windows: Windows, cells: Cells) -> np.ndarray:
    """The same without the hash: for the day two keys have one."""
    keys = concat_arrays([windows.keys, cells.keys])
    bounds = [np.concatenate([windows.start, cells.start]), np.concatenate([windows.end, cells.end])]
    order, starts = side_by_side([*keys, *(pa.array(bound) for bound in bounds)])
    group = np.empty(len(order), dtype=np.int64)
    group[order] = np.repeat(np.arange(len(starts)), np.diff(np.append(starts, len(order))))
    place = np.full(len(starts), -1)
    place[group[: len(windows)]] = np.arange(len(windows))
    return place[group[len(windows) :]]


def _identity(key_hash: np.ndarray, start: np.ndarray, end: np.ndarray) -> np.ndarray:
    mixed = key_hash ^ (start.view(np.uint64) * np.uint64(0x9E3779B97F4A7C15))
    mixed ^= end.view(np.uint64) * np.uint64(0xC2B2AE3D27D4EB4F)
    return mixed.view(np.int64)


def _after(
    compiled: Compiled, windows: Windows, rows: np.ndarray, showing: Windows, values: tuple[pa.Array, ...],
    clock: Clock,
) -> Windows:  # fmt: skip
    """The windows after those rows have shown a pane."""
    when = timing(compiled, showing, clock)
    held, held_records, shown = windows.held, windows.held_records, windows.shown
    if compiled.plan.shown_mode == "discarding":
        if shown:
            shown = put_held(shown, rows, pair_held(showing.shown, showing.held, compiled.accumulators))
        held = put_held(held, rows, zero_held(len(rows), compiled.accumulators))
        held_records = put_column(held_records, rows, 0)
    kept = ~np.isin(windows.withdrawn.owner, rows)
    return replace(
        windows, held=held, held_records=held_records, shown=shown,
        index=put_column(windows.index, rows, showing.index + 1),
        unshown=put_column(windows.unshown, rows, 0),
        on_time_shown=put_column(windows.on_time_shown, rows, showing.on_time_shown | (when == ON_TIME)),
        last_timing=put_column(windows.last_timing, rows, when),
        last_event_time=put_column(windows.last_event_time, rows, event_time(compiled, showing)),
        last=tuple(put_column(old, rows, new) for old, new in zip(windows.last, values, strict=True))
        if windows.last else (),
        withdrawn=windows.withdrawn.take(kept),
    )  # fmt: skip


def _holds(compiled: Compiled, part: When, values: tuple[pa.Array, ...], rows: int) -> np.ndarray:
    schema = compiled.plan.result_schema
    batch = pa.RecordBatch.from_arrays(list(values), names=list(schema.names))
    try:
        return evaluate(part.predicate, batch, schema).fill_null(False).to_numpy(zero_copy_only=False)
    except EvaluationError as error:
        raise DataError(
            f"the trigger's predicate cannot be computed: {error}",
            "it is evaluated over the columns of the pane that would be shown",
            'guard it, such as ps.when("if(plays = 0, false, points / plays > 2)")',
        ) from None


def _added(column: np.ndarray, rows: np.ndarray, more: np.ndarray) -> np.ndarray:
    changed = column.copy()
    changed[rows] += more
    return changed

