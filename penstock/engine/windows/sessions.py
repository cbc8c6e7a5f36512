"""Windows that merge: sessions become one another, and what they had shown is withdrawn."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa

from penstock.engine.columns.arrays import plus
from penstock.engine.columns.constants import constant
from penstock.engine.columns.keys import hashes, key_codes, side_by_side
from penstock.engine.ingest.pre_aggregate import Rows, group_rows, keys_of
from penstock.engine.triggers import normalized
from penstock.engine.windows.compiled import Compiled
from penstock.engine.windows.index import among
from penstock.engine.windows.late import LateRows
from penstock.engine.windows.lifecycle import Clock
from penstock.engine.windows.partials import (
    Cells,
    Held,
    concat_cells,
    group_held,
    pair_held,
    put_held,
    take_arrays,
    take_column,
    take_held,
    zero_held,
)
from penstock.engine.windows.table import (
    Windows,
    Withdrawn,
    concat_windows,
    concat_withdrawn,
    keeps_last,
    keeps_shown,
    new_windows,
)
from penstock.model.windows import Session
from penstock.types.timestamps import MAX_TIME


def bursts(compiled: Compiled, rows: Rows, gap: int) -> Cells:
    """Rows to sessions: sorted by key and time, cut where more than a gap lies between two."""
    cells, _ = bursts_with_rows(compiled, rows, gap)
    return cells


def bursts_with_rows(compiled: Compiled, rows: Rows, gap: int) -> tuple[Cells, np.ndarray]:
    """Rows to sessions, and the session of each row."""
    keys = keys_of(compiled, rows)
    order, starts = side_by_side([*keys] or [pa.array(np.zeros(len(rows), dtype=np.int8))])
    times = rows.times[order]
    cut = np.zeros(len(order), dtype=bool)
    cut[starts] = True
    if (np.diff(times)[~cut[1:]] < 0).any():
        inner = _by_time(np.cumsum(cut) - 1, times)
        order, times = order[inner], times[inner]
    cut[1:] |= times[1:] - times[:-1] > gap
    starts = np.flatnonzero(cut)
    ends = np.append(starts[1:], len(times)) - 1
    number = np.empty(len(order), dtype=np.int64)
    number[order] = np.cumsum(cut) - 1
    found = take_arrays(keys, order[starts])
    if not compiled.numeric:
        order = np.argsort(number, kind="stable")
    cells = Cells(
        found,
        hashes(found, len(starts)),
        times[starts],
        plus(times[ends], gap),
        ends - starts + 1,
        constant(0, len(starts)),
        constant(0, len(starts)),
        group_rows(compiled, rows, order, starts),
    )
    return cells, number


def _by_time(codes: np.ndarray, times: np.ndarray) -> np.ndarray:
    """The order of rows by key, then time: by one number for both where that fits."""
    span = int(times.max()) - int(times.min()) + 1
    if span * (int(codes[-1]) + 1) < MAX_TIME:
        return np.argsort(codes * span + (times - times.min()))
    return np.lexsort((times, codes))


def merge_sessions(
    compiled: Compiled, windows: Windows, arrived: Cells, suspects: Rows | None, clock: Clock
) -> tuple[Windows, LateRows | None, int]:
    """Connected components of live sessions and arrivals; a component lives if its end does."""
    rule = compiled.plan.window
    assert isinstance(rule, Session)
    behind, burst_of = (None, None) if suspects is None else bursts_with_rows(compiled, suspects, rule.gap)
    cells = arrived if behind is None else concat_cells([arrived, behind])
    if not len(cells):
        return windows, None, 0
    touched = among(windows.hash, cells.hash)
    fresh = new_windows(compiled, cells, clock.watermark, clock.now)
    several = concat_windows(windows.take(touched), fresh)
    old = int(touched.sum())
    codes = key_codes(several.keys, several.hash)
    order = np.lexsort((several.end, several.start, codes))
    cut = _cuts(codes[order], several.start[order], several.end[order])
    starts = np.flatnonzero(cut)
    component = np.empty(len(order), dtype=np.int64)
    component[order] = np.cumsum(cut) - 1
    start, end = several.start[order][starts], np.maximum.reduceat(several.end[order], starts)
    lives = np.zeros(len(starts), dtype=bool)
    lives[component[:old]] = True
    lives |= compiled.expires_at(end) > clock.watermark
    late = None
    if suspects is not None and burst_of is not None:
        of_row = component[old + len(arrived) + burst_of]
        dead = ~lives[of_row]
        if dead.any():
            where = of_row[dead]
            late = LateRows(suspects.take(dead), np.arange(int(dead.sum())), start[where], end[where])
    alive = lives[component]
    number = np.cumsum(lives) - 1
    merged = merge(compiled, several.take(alive), number[component[alive]], (start[lives], end[lives]), clock)
    placed = int(fresh.records[alive[old:]].sum())
    return concat_windows(windows.take(~touched), merged), late, placed


def merge(
    compiled: Compiled, several: Windows, group: np.ndarray, bounds: tuple[np.ndarray, np.ndarray], clock: Clock
) -> Windows:
    """One window for each group; those that were shown and are no more are withdrawn with its first pane."""
    start, end = bounds
    if not len(several):
        return several
    lasting = (several.start == start[group]) & (several.end == end[group])
    going = ~lasting & (several.index > 0)
    withdrawn = _withdrawn(compiled, several, group, going)
    several = _given_back(compiled, several, going)
    order = np.lexsort((several.end, several.start, group))
    starts = np.searchsorted(group[order], np.arange(len(start)))
    survivor = np.full(len(start), -1)
    shown_first = np.flatnonzero(lasting)[::-1]
    survivor[group[shown_first]] = shown_first
    stays = survivor >= 0
    first = order[starts]

    def kept(column: np.ndarray, otherwise: np.ndarray | int) -> np.ndarray:
        return np.where(stays, column[survivor], otherwise).astype(column.dtype)

    def total(column: np.ndarray) -> np.ndarray:
        return np.add.reduceat(column[order], starts)

    waiting = np.where(several.unshown > 0, several.first_unshown, MAX_TIME)
    state = tuple(np.maximum.reduceat(column[order], starts) for column in several.trigger)
    return Windows(
        take_arrays(several.keys, first),
        several.hash[first],
        start,
        end,
        total(several.records),
        total(several.held_records) if compiled.plan.shown_mode == "discarding" else constant(1, len(start)),
        total(several.unshown),
        np.minimum.reduceat(waiting[order], starts),
        constant(0, len(start)),
        kept(several.index, 0),
        kept(several.born_late, compiled.complete_at(end) <= clock.watermark),
        kept(several.on_time_shown, 0),
        kept(several.last_timing, 0),
        kept(several.last_event_time, 0),
        normalized(compiled.plan.trigger, state),
        group_held(take_held(several.held, order), starts, compiled.accumulators),
        _shown(compiled, several, survivor) if keeps_shown(compiled) else (),
        tuple(take_column(column, np.where(stays, survivor, first)) for column in several.last)
        if keeps_last(compiled)
        else (),
        withdrawn,
    )


def _shown(compiled: Compiled, several: Windows, survivor: np.ndarray) -> Held:
    rows = np.flatnonzero(survivor >= 0)
    shown = zero_held(len(survivor), compiled.accumulators)
    return put_held(shown, rows, take_held(several.shown, survivor[rows]))


def _given_back(compiled: Compiled, several: Windows, going: np.ndarray) -> Windows:
    """In discarding mode what a withdrawn window had shown is held again, to be shown with the merged one."""
    rows = np.flatnonzero(going)
    if not keeps_shown(compiled) or not len(rows):
        return several
    held = pair_held(take_held(several.held, rows), take_held(several.shown, rows), compiled.accumulators)
    records = several.held_records.copy()
    records[rows] = several.records[rows]
    return replace(several, held=put_held(several.held, rows, held), held_records=records)


def _withdrawn(compiled: Compiled, several: Windows, group: np.ndarray, going: np.ndarray) -> Withdrawn:
    """What is to be withdrawn by each group: what its windows still owed, and what they themselves had shown."""
    owed = replace(several.withdrawn, owner=group[several.withdrawn.owner])
    rows = np.flatnonzero(going)
    if not len(rows):
        return owed
    gone = several.take(rows)
    values = gone.last if keeps_last(compiled) else compiled.results(gone.shown, gone.records - gone.held_records)
    new = Withdrawn(
        group[rows], gone.start, gone.end, gone.index - 1, gone.last_timing, gone.last_event_time, tuple(values)
    )
    return concat_withdrawn([owed, new])


def _cuts(codes: np.ndarray, start: np.ndarray, end: np.ndarray) -> np.ndarray:
    """Where a new component begins: another key, or a start beyond every end of the key so far."""
    different, ranks = np.unique(end, return_inverse=True)
    reached = np.maximum.accumulate(codes * len(end) + ranks)
    furthest = different[reached - codes * len(end)]
    cut = np.ones(len(codes), dtype=bool)
    cut[1:] = (codes[1:] != codes[:-1]) | (start[1:] > furthest[:-1])
    return cut
