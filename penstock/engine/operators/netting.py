"""Which rows are left of some that come and some that are withdrawn: a -1 takes away one that is equal to it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from penstock.engine.columns.keys import canonical, numbered, side_by_side


def left_over(columns: Sequence[pa.Array], signs: np.ndarray, ties: Sequence[np.ndarray] = ()) -> np.ndarray:
    """The places of rows that no equal row of the other sign takes away; the last of equal ones goes first.

    `ties` put equal rows in order, the least important first; without them they are in the order in which they lie.
    """
    if not len(signs):
        return np.empty(0, dtype=np.int64)
    same = numbered(*side_by_side([canonical(column) for column in columns]))
    kind = same * 2 + (signs < 0)
    order = np.lexsort((*ties, kind))
    found = kind[order]
    place = np.arange(len(order)) - np.searchsorted(found, found)
    count = np.bincount(kind, minlength=2 * len(signs))
    gone = np.minimum(count[0::2], count[1::2])
    return np.sort(order[place < count[found] - gone[found // 2]])
