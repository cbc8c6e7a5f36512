"""Windows made by the events, as in Kafka Streams: each event closes one and opens the next.

Remembered events lie in cells of one instant; a new window is put together from those it spans.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from penstock.engine.columns.arrays import plus
from penstock.engine.columns.keys import hashes, key_codes
from penstock.engine.ingest.pre_aggregate import Rows, combine_rows, keys_of
from penstock.engine.windows.compiled import Compiled
from penstock.engine.windows.index import among
from penstock.engine.windows.late import LateRows
from penstock.engine.windows.lifecycle import Clock, put
from penstock.engine.windows.partials import Cells, concat_arrays, concat_cells
from penstock.engine.windows.regroup import combine_cells
from penstock.engine.windows.slice_sums import fold_spans, line, rank
from penstock.engine.windows.table import Windows
from penstock.model.windows import EventPair


def take_pairs(
    compiled: Compiled, windows: Windows, events: Cells, arrived: Cells, suspects: Rows | None, clock: Clock
) -> tuple[Windows, Cells, LateRows | None, int]:
    """Put a batch's events into the windows around them, and make the windows they make."""
    if not len(arrived) and suspects is None:
        return windows, events, None, 0
    rows_hash = np.empty(0, np.uint64) if suspects is None else hashes(keys_of(compiled, suspects), len(suspects))
    hashed = np.concatenate([arrived.hash, rows_hash])
    near = among(events.hash, hashed)
    known, others = events.take(near), events.take(~near)
    late = None
    if suspects is not None:
        taken = _rescued(compiled, concat_cells([known, arrived]), suspects, clock)
        if not taken.all():
            lost = suspects.take(~taken)
            start = plus(lost.times, -_rule(compiled).distance)
            late = LateRows(lost, np.arange(len(lost)), start, lost.times)
        if taken.any():
            mine = suspects.take(taken)
            arrived = concat_cells([arrived, combine_rows(compiled, mine, mine.times, mine.times)])
            arrived = combine_cells(arrived, compiled.accumulators)
    if not len(arrived):
        return windows, events, late, 0
    remembered = combine_cells(concat_cells([known, arrived]), compiled.accumulators)
    contributions = _contributions(compiled, windows, remembered, arrived, clock)
    placed = int(contributions.records.sum())
    return put(compiled, windows, contributions, clock), concat_cells([others, remembered]), late, placed


def forget(compiled: Compiled, events: Cells, clock: Clock) -> Cells:
    """Let go of events that no window can need any more."""
    needed = compiled.expires_at(plus(events.start, 1 + _rule(compiled).distance)) > clock.watermark
    return events if needed.all() else events.take(needed)


def _rule(compiled: Compiled) -> EventPair:
    rule = compiled.plan.window
    assert isinstance(rule, EventPair)
    return rule


def _rescued(compiled: Compiled, makers: Cells, suspects: Rows, clock: Clock) -> np.ndarray:
    """Which events behind W lie in a window that is alive and made by another event."""
    far, m = _rule(compiled).distance, len(makers)
    taken = np.zeros(len(suspects), dtype=bool)
    if not m:
        return taken
    theirs = keys_of(compiled, suspects)
    hashed = np.concatenate([makers.hash, hashes(theirs, len(suspects))])
    codes = key_codes(concat_arrays([makers.keys, theirs]), hashed)
    lined, mine = line(codes[:m], rank(makers.start)), codes[m:]
    times = makers.start[lined.order]
    # The newest maker within reach is the one most alive: it closes a window over the event, or opened one before it.
    for low, high, shift in (
        (suspects.times, plus(suspects.times, far), 0),
        (plus(suspects.times, -far - 1), plus(suspects.times, -1), far + 1),
    ):
        first, last = lined.first(mine, low), lined.beyond(mine, high) - 1
        newest = times[np.maximum(last, 0)]
        taken |= (last >= first) & (compiled.expires_at(plus(newest, shift)) > clock.watermark)
    return taken


def _contributions(compiled: Compiled, windows: Windows, remembered: Cells, arrived: Cells, clock: Clock) -> Cells:
    """What each window gets: an old one the arrivals it spans, a new one every remembered event it spans."""
    far = _rule(compiled).distance
    touched = np.flatnonzero(among(windows.hash, remembered.hash))
    r, e = len(remembered), len(touched)
    old_keys = tuple(column.take(pa.array(touched)) for column in windows.keys)
    hashed = np.concatenate([remembered.hash, arrived.hash, windows.hash[touched]])
    codes = key_codes(concat_arrays([remembered.keys, arrived.keys, old_keys]), hashed)
    of_remembered, of_arrived, of_old = codes[:r], codes[r : r + len(arrived)], codes[r + len(arrived) :]
    start = np.concatenate([plus(remembered.start, -far), plus(remembered.start, 1)])
    end = np.concatenate([remembered.start, plus(remembered.start, 1 + far)])
    maker = np.tile(np.arange(r), 2)
    live = compiled.expires_at(end) > clock.watermark
    start, end, maker = start[live], end[live], maker[live]
    bounds = np.stack(
        [
            np.concatenate([of_old, of_remembered[maker]]),
            np.concatenate([windows.start[touched], start]),
            np.concatenate([windows.end[touched], end]),
        ]
    )
    _, first = np.unique(bounds, axis=1, return_index=True)
    made = np.sort(first[first >= e])
    new = (bounds[0][made], bounds[1][made], bounds[2][made])
    old = (of_old, windows.start[touched], windows.end[touched])
    whole = _spanned(compiled, remembered, of_remembered, new)
    more = _spanned(compiled, arrived, of_arrived, old)
    return concat_cells([more, whole])


def _spanned(
    compiled: Compiled, cells: Cells, codes: np.ndarray, windows: tuple[np.ndarray, np.ndarray, np.ndarray]
) -> Cells:
    """For each window of a key, all cells within it as one; windows that span none are left out."""
    code, start, end = windows
    if not len(cells):
        return cells
    lined = line(codes, rank(cells.start))
    span = (lined.first(code, start), lined.beyond(code, end))
    return fold_spans(cells, lined, span, (start, end), compiled.accumulators)
