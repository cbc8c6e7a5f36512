"""Accumulators that only functions can read: one text or blob for each window, empty where nothing counted."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.engine.aggregates.protocol import Grouped
from penstock.engine.columns.plain import plain_values

Combine = Callable[[Any, Any], Any]


def partial_each(rows: Grouped, kind: pa.DataType, added: Callable[[list[Any]], Any]) -> pa.Array:
    """What `added` makes of the values of each group."""
    counted = np.concatenate([[0], np.cumsum(rows.values.is_valid().to_numpy(zero_copy_only=False))])
    values = plain_values(rows.values)
    bounds = counted[np.append(rows.starts, len(rows.values))].tolist()
    return pa.array([added(values[a:b]) for a, b in pairwise(bounds)], kind)


def grouped_each(held: pa.Array, starts: np.ndarray, combined: Combine) -> pa.Array:
    """The accumulators of each group, combined from left to right."""
    if len(starts) == len(held):
        return held
    states, bounds = held.to_pylist(), [*starts.tolist(), len(held)]
    return pa.array([reduce(combined, states[a:b]) for a, b in pairwise(bounds)], held.type)


def pairwise_each(left: pa.Array, right: pa.Array, combined: Combine) -> pa.Array:
    """The accumulators of both, row by row."""
    return pa.array([combined(a, b) for a, b in zip(left.to_pylist(), right.to_pylist(), strict=True)], left.type)
