"""Which (key, window) of one set is which of another: by hash, and checked by the keys themselves."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.engine.columns.keys import Keys, equal, numbered, side_by_side
from penstock.engine.windows.partials import concat_arrays, take_arrays


class Identified(Protocol):
    """Rows that are each of one key and window."""

    @property
    def keys(self) -> Keys: ...
    @property
    def hash(self) -> np.ndarray: ...
    @property
    def start(self) -> np.ndarray: ...
    @property
    def end(self) -> np.ndarray: ...
    def __len__(self) -> int: ...


def match(ours: Identified, theirs: Identified) -> np.ndarray:
    """For each of theirs the place of ours with the same key and window, or -1; each set has none twice."""
    if not len(ours) or not len(theirs):
        return np.full(len(theirs), -1)
    near = np.flatnonzero((ours.start >= theirs.start.min()) & (ours.start <= theirs.start.max()))
    here, there = _identity(ours, near), _identity(theirs, None)
    if len(theirs) <= len(near):
        found = pc.index_in(here, there)
        rows = np.flatnonzero(found.is_valid().to_numpy(zero_copy_only=False))
        of = found.take(pa.array(rows)).to_numpy().astype(np.int64)
    else:
        found = pc.index_in(there, here)
        of = np.flatnonzero(found.is_valid().to_numpy(zero_copy_only=False))
        rows = found.take(pa.array(of)).to_numpy()
    rows = near[rows]
    same = (ours.start[rows] == theirs.start[of]) & (ours.end[rows] == theirs.end[of])
    if same.all() and ours.keys:
        same = equal(take_arrays(ours.keys, rows), take_arrays(theirs.keys, of))
    # Rows that share a hash without being the same show here: the first of them is all that a hash can find.
    if not same.all():
        return exact_match(ours, theirs)
    places = np.full(len(theirs), -1)
    places[of] = rows
    return places


def exact_match(ours: Identified, theirs: Identified) -> np.ndarray:
    """The same without the hash: for the day two keys have one."""
    keys = concat_arrays([ours.keys, theirs.keys])
    bounds = [np.concatenate([ours.start, theirs.start]), np.concatenate([ours.end, theirs.end])]
    order, starts = side_by_side([*keys, *(pa.array(bound) for bound in bounds)])
    group = numbered(order, starts)
    place = np.full(len(starts), -1)
    place[group[: len(ours)]] = np.arange(len(ours))
    return place[group[len(ours) :]]


def among(hashes: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Which hashes are among the wanted ones."""
    if not len(hashes) or not len(wanted):
        return np.zeros(len(hashes), dtype=bool)
    return pc.is_in(pa.array(hashes), pa.array(wanted)).to_numpy(zero_copy_only=False)


def _identity(rows: Identified, near: np.ndarray | None) -> pa.Array:
    """One number for each key and window: all of them, or those that are near."""
    hashed, start, end = rows.hash, rows.start, rows.end
    if near is not None and len(near) < len(hashed):
        hashed, start, end = hashed[near], start[near], end[near]
    return pa.array(mixed(hashed, start, end).view(np.int64))


def mixed(hashed: np.ndarray, start: np.ndarray, end: np.ndarray) -> np.ndarray:
    """One number for each key's hash and window."""
    made = start.view(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    made ^= hashed
    made ^= end.view(np.uint64) * np.uint64(0xC2B2AE3D27D4EB4F)
    return made
