"""Two columns of accumulators as one, each row of the right behind its row of the left."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from penstock.engine.aggregates.protocol import Columns


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
