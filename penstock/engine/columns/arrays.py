"""Two columns of accumulators as one, each row of the right behind its row of the left."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from penstock.engine.aggregates.protocol import Columns
from penstock.engine.columns.keys import canonical
from penstock.types.timestamps import MAX_TIME, MIN_TIME


def interleaved(left: Columns, right: Columns) -> tuple[Columns, np.ndarray]:
    """The pairs of rows, one behind the other, and where each pair starts."""
    n = len(left[0])
    places = np.arange(2 * n).reshape(2, n).T.ravel()
    both = tuple(_both(a, b, places) for a, b in zip(left, right, strict=True))
    return both, np.arange(0, 2 * n, 2)


def _both(left: Any, right: Any, places: np.ndarray) -> Any:
    if isinstance(left, np.ndarray):
        return np.concatenate([left, right])[places]
    return pa.concat_arrays([left, right]).take(pa.array(places))


def lists_of(values: pa.Array, lengths: np.ndarray) -> pa.ListArray:
    """The values cut into lists of these lengths."""
    return pa.ListArray.from_arrays(pa.array(np.concatenate([[0], np.cumsum(lengths)]), pa.int32()), values)


def parents_of(lists: pa.ListArray) -> np.ndarray:
    """For each value of the flattened lists, the row it lies in."""
    return np.repeat(np.arange(len(lists)), lists.value_lengths().to_numpy(zero_copy_only=False))


def plain_values(values: pa.Array) -> list[Any]:
    """The values without the nulls: one zero, one NaN, and times as microseconds."""
    counted = canonical(values.drop_null())
    if pa.types.is_timestamp(counted.type):
        counted = counted.view(pa.int64())
    if pa.types.is_integer(counted.type) or pa.types.is_floating(counted.type):
        listed: list[Any] = counted.to_numpy().tolist()
        return listed
    plain: list[Any] = counted.to_pylist()
    return plain


def plus(instants: np.ndarray, length: int) -> np.ndarray:
    """Instants moved by a length."""
    if length == 0 or not len(instants):
        return instants
    if length > 0:
        limit = MAX_TIME - length
        if instants.max() <= limit and instants.min() != MIN_TIME:
            return instants + length
        moved = np.where(instants > limit, MAX_TIME, np.minimum(instants, limit) + length)
        return np.where(instants == MIN_TIME, MIN_TIME, moved)
    limit = MIN_TIME - length
    if instants.min() >= limit and instants.max() != MAX_TIME:
        return instants + length
    moved = np.where(instants < limit, MIN_TIME, np.maximum(instants, limit) + length)
    return np.where(instants == MAX_TIME, MAX_TIME, moved)
