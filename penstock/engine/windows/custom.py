"""Windows of the user's making that merge: assigned for each different time, mapped from old to new for each key."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from penstock.engine.columns.keys import hashes, key_codes, numbered, side_by_side
from penstock.engine.ingest.pre_aggregate import Rows, combine_rows, keys_of
from penstock.engine.windows.compiled import Compiled
from penstock.engine.windows.index import among
from penstock.engine.windows.late import LateRows
from penstock.engine.windows.lifecycle import Clock
from penstock.engine.windows.partials import concat_arrays, empty_cells
from penstock.engine.windows.sessions import merge
from penstock.engine.windows.table import Windows, concat_windows, new_windows
from penstock.model.windows import Custom, Window


@dataclass(frozen=True, slots=True)
class _Placed:
    """Where rows go: row `of[i]` to the window from `start[i]` to `end[i]`, which a live one becomes where `known`."""

    of: np.ndarray
    start: np.ndarray
    end: np.ndarray
    known: np.ndarray


def merge_custom(
    compiled: Compiled, windows: Windows, rows: Rows | None, clock: Clock
) -> tuple[Windows, LateRows | None, int, int]:
    """Rows into windows, windows into windows; gives the late rows and how many placements were made and missed."""
    if rows is None or not len(rows):
        return windows, None, 0, 0
    row_keys = keys_of(compiled, rows)
    row_hash = hashes(row_keys, len(rows))
    touched = among(windows.hash, row_hash)
    live = windows.take(touched)
    codes = key_codes(concat_arrays([live.keys, row_keys]), np.concatenate([live.hash, row_hash]))
    targets, placed = _places(compiled, live, codes[: len(live)], codes[len(live) :], rows.times)
    alive = placed.known | (compiled.expires_at(placed.end) > clock.watermark)
    taken = np.zeros(len(rows), dtype=bool)
    taken[placed.of[alive]] = True
    late = None
    if not taken.all():
        lost = ~taken[placed.of]
        number = np.cumsum(~taken) - 1
        late = LateRows(rows.take(~taken), number[placed.of[lost]], placed.start[lost], placed.end[lost])
    missed = int((~alive & taken[placed.of]).sum())
    cells = empty_cells(compiled.key_types, compiled.accumulators)
    if alive.any():
        cells = combine_rows(compiled, rows.take(placed.of[alive]), placed.start[alive], placed.end[alive])
    several = concat_windows(live, new_windows(compiled, cells, clock.watermark, clock.now))
    start = np.concatenate([targets[0], cells.start])
    end = np.concatenate([targets[1], cells.end])
    order, starts = side_by_side([*several.keys, pa.array(start), pa.array(end)])
    merged = merge(compiled, several, numbered(order, starts), (start[order[starts]], end[order[starts]]), clock)
    return concat_windows(windows.take(~touched), merged), late, int(cells.records.sum()), missed


def _places(
    compiled: Compiled, live: Windows, live_codes: np.ndarray, row_codes: np.ndarray, times: np.ndarray
) -> tuple[tuple[np.ndarray, np.ndarray], _Placed]:
    """What each live window becomes, and where each row goes; the user's functions see each key and time once."""
    rule = compiled.plan.window
    assert isinstance(rule, Custom)
    different, rank = np.unique(times, return_inverse=True)
    pairs, of_pair = np.unique(row_codes * len(different) + rank, return_inverse=True)
    pair_codes, pair_times = pairs // len(different), different[pairs % len(different)]
    assigned = {time: rule.assign(time) for time in different.tolist()}
    owned = list(zip(live_codes.tolist(), map(Window, live.start.tolist(), live.end.tolist()), strict=True))
    asked = [
        (code, window)
        for code, time in zip(pair_codes.tolist(), pair_times.tolist(), strict=True)
        for window in assigned[time]
    ]
    goes = _mapped(rule, [*owned, *asked])
    becomes = [goes[place] for place in owned]
    becoming = {(code, window) for (code, _), window in zip(owned, becomes, strict=True)}
    ends = [
        [(code, window) for window in sorted({goes[code, old] for old in assigned[time]})]
        for code, time in zip(pair_codes.tolist(), pair_times.tolist(), strict=True)
    ]
    counts = np.array([len(given) for given in ends], dtype=np.int64)
    flat = _bounds([window for given in ends for _, window in given])
    known = np.array([place in becoming for given in ends for place in given], dtype=bool)
    copies = counts[of_pair]
    of = np.repeat(np.arange(len(times)), copies)
    step = np.arange(len(of)) - np.repeat(np.cumsum(copies) - copies, copies)
    at = np.repeat((np.cumsum(counts) - counts)[of_pair], copies) + step
    return _bounds(becomes), _Placed(of, flat[0][at], flat[1][at], known[at])


def _mapped(rule: Custom, places: list[tuple[int, Window]]) -> dict[tuple[int, Window], Window]:
    """Where each window of each key goes."""
    of_key: dict[int, set[Window]] = {}
    for code, window in places:
        of_key.setdefault(code, set()).add(window)
    goes = {}
    for code, windows in of_key.items():
        mapped = rule.merge(sorted(windows))
        goes.update({(code, old): new for old, new in mapped.items()})
    return goes


def _bounds(windows: list[Window]) -> tuple[np.ndarray, np.ndarray]:
    bounds = np.array(windows, dtype=np.int64).reshape(-1, 2)
    return bounds[:, 0].copy(), bounds[:, 1].copy()
