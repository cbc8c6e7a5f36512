"""Time arithmetic on columns that saturates: the infinities stay where they are and nothing wraps."""

from __future__ import annotations

import numpy as np

from penstock.types.timestamps import MAX_TIME, MIN_TIME


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
