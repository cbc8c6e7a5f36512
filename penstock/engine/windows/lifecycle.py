"""Windows with a state: expire, take a batch's cells, look at each once, show panes."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from penstock.engine.expressions import evaluate
from penstock.engine.triggers import Sight, fired, ready
from penstock.engine.windows.compiled import Compiled
from penstock.engine.windows.index import match
from penstock.engine.windows.panes import pane_table
from penstock.engine.windows.partials import (
    Cells,
    pair_held,
    put_column,
    put_held,
    take_arrays,
    take_held,
    zero_held,
)
from penstock.engine.windows.table import (
    EARLY,
    LATE,
    ON_TIME,
    Windows,
    concat_windows,
    keeps_last,
    keeps_shown,
    new_windows,
    withdrawals,
)
from penstock.errors import EvaluationError
from penstock.model.triggers import When, uncomputable
from penstock.model.windows import Global
from penstock.types.timestamps import MIN_TIME


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
    # Only these can show something; the others leave without a look.
    near = gone & ((windows.unshown > 0) | on_time_due(compiled, windows, clock))
    near[windows.withdrawn.owner] |= gone[windows.withdrawn.owner]
    leaving = windows.take(near)
    due = (leaving.unshown > 0) | ready(compiled.plan.trigger, leaving.trigger, look(compiled, leaving, clock))
    due[leaving.withdrawn.owner] = True
    showing = leaving.take(due)
    panes, _ = show(compiled, showing, timing(compiled, showing, clock), final=True)
    return windows.take(~gone), panes, int(windows.records[gone].sum())


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
            held_records=_added(windows.held_records, at, taken.records)
            if compiled.plan.shown_mode == "discarding"
            else windows.held_records,
            first_unshown=put_column(
                windows.first_unshown, at, np.where(windows.unshown[at] == 0, clock.now, windows.first_unshown[at])
            ),
            unshown=_added(windows.unshown, at, taken.records),
            newest=put_column(windows.newest, at, np.maximum(windows.newest[at], taken.newest)),
            signs=(_added(windows.signs[0], at, withdrawals(taken)), windows.signs[1]) if compiled.signed else (),
        )
    return concat_windows(windows, fresh)


def evaluate_all(compiled: Compiled, windows: Windows, clock: Clock) -> tuple[Windows, list[pa.Table]]:
    """Look at each window once; it shows one pane at most."""
    # No trigger is ready over a window that has nothing new and no on-time pane to show.
    near = np.flatnonzero((windows.unshown > 0) | on_time_due(compiled, windows, clock))
    if not len(near):
        return windows, []
    seen = windows if len(near) == len(windows) else windows.take(near)
    sight = look(compiled, seen, clock)
    fire = ready(compiled.plan.trigger, seen.trigger, sight)
    if not fire.any():
        return windows, []
    state = fired(compiled.plan.trigger, seen.trigger, sight, fire)
    windows = replace(
        windows, trigger=tuple(put_column(old, near, new) for old, new in zip(windows.trigger, state, strict=True))
    )
    showing = seen if fire.all() else seen.take(fire)
    when = timing(compiled, showing, clock)
    panes, values = show(compiled, showing, when, final=False)
    return _after(compiled, windows, near[fire], showing, values, when), panes


def on_time_due(compiled: Compiled, windows: Windows, clock: Clock) -> np.ndarray:
    """Which windows are complete, lived before that, and have not shown it."""
    if clock.watermark == MIN_TIME:
        return np.zeros(len(windows), dtype=bool)
    return (compiled.complete_at(windows.end) <= clock.watermark) & ~(windows.born_late | windows.on_time_shown)


def look(compiled: Compiled, windows: Windows, clock: Clock) -> Sight:
    """What the triggers see."""
    complete = compiled.complete_at(windows.end) <= clock.watermark
    due = on_time_due(compiled, windows, clock)
    holds = {}
    whens = [part for part in compiled.plan.trigger.walk() if isinstance(part, When)]
    if whens:
        new = windows.unshown > 0
        values = compiled.results(take_held(windows.held, new), windows.held_records[new])
        for part in whens:
            holds[part] = np.zeros(len(windows), dtype=bool)
            holds[part][new] = _holds(compiled, part, values)
    return Sight(clock.now, windows.unshown, windows.came, windows.first_unshown, complete, due, holds)


def show(
    compiled: Compiled, windows: Windows, when: np.ndarray, final: bool
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
        again = np.flatnonzero(windows.signs[1] if compiled.signed else windows.index > 0)
        if len(again):
            old = windows.take(again)
            shown = (old.index - 1, old.last_timing, old.last_event_time)
            panes.append(pane_table(compiled, old.keys, (old.start, old.end), old.last, shown, (False, -1)))
    shows = np.flatnonzero(_shows(compiled, windows)) if compiled.signed else None
    showing = windows if shows is None else windows.take(shows)
    if len(showing):
        when, seen = (when, values) if shows is None else (when[shows], take_arrays(values, shows))
        shown = (showing.index, when, event_time(compiled, showing))
        panes.append(pane_table(compiled, showing.keys, (showing.start, showing.end), seen, shown, (final, 1)))
    return panes, values


def _shows(compiled: Compiled, windows: Windows) -> np.ndarray:
    """Which windows show a pane: those with a record left, and once more one whose pane stands and is now empty.

    Where panes are withdrawn, the withdrawal says as much.
    """
    filled = ~compiled.emptied(windows.held)
    return filled if compiled.plan.shown_mode == "retracting" else filled | windows.signs[1]


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


def _after(
    compiled: Compiled,
    windows: Windows,
    rows: np.ndarray,
    showing: Windows,
    values: tuple[pa.Array, ...],
    when: np.ndarray,
) -> Windows:
    """The windows after those rows have shown a pane, early, on time or late."""
    shows_again = keeps_last(compiled) or keeps_shown(compiled)
    held, held_records, shown = windows.held, windows.held_records, windows.shown
    if compiled.plan.shown_mode == "discarding":
        if shown:
            shown = put_held(shown, rows, pair_held(showing.shown, showing.held, compiled.accumulators))
        held = put_held(held, rows, zero_held(len(rows), compiled.accumulators))
        held_records = put_column(held_records, rows, 0)
    kept = ~np.isin(windows.withdrawn.owner, rows)
    signs, steps = windows.signs, 1 if not compiled.signed else _shows(compiled, showing)
    if compiled.signed:
        stands = ~compiled.emptied(showing.held) & (not compiled.plan.pieces)
        signs = put_column(signs[0], rows, 0), put_column(signs[1], rows, stands)
    return replace(
        windows,
        held=held,
        held_records=held_records,
        shown=shown,
        signs=signs,
        index=put_column(windows.index, rows, showing.index + steps),
        unshown=put_column(windows.unshown, rows, 0),
        on_time_shown=put_column(windows.on_time_shown, rows, showing.on_time_shown | (when == ON_TIME)),
        last_timing=put_column(windows.last_timing, rows, when) if shows_again else windows.last_timing,
        last_event_time=put_column(windows.last_event_time, rows, event_time(compiled, showing))
        if shows_again
        else windows.last_event_time,
        last=tuple(put_column(old, rows, new) for old, new in zip(windows.last, values, strict=True))
        if windows.last
        else (),
        withdrawn=windows.withdrawn.take(kept),
    )


def _holds(compiled: Compiled, part: When, values: tuple[pa.Array, ...]) -> np.ndarray:
    schema = compiled.plan.result_schema
    batch = pa.RecordBatch.from_arrays(list(values), names=list(schema.names))
    try:
        return evaluate(part.predicate, batch, schema).fill_null(False).to_numpy(zero_copy_only=False)
    except EvaluationError as error:
        raise uncomputable(error) from None


def _added(column: np.ndarray, rows: np.ndarray, more: np.ndarray) -> np.ndarray:
    changed = column.copy()
    changed[rows] += more
    return changed
