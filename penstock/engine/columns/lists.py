"""Lists of values as one flat column and the length of each."""

from __future__ import annotations

import numpy as np
import pyarrow as pa


def lists_of(values: pa.Array, lengths: np.ndarray) -> pa.ListArray:
    """The values cut into lists of these lengths."""
    return pa.ListArray.from_arrays(pa.array(np.concatenate([[0], np.cumsum(lengths)]), pa.int32()), values)


def parents_of(lists: pa.ListArray) -> np.ndarray:
    """For each value of the flattened lists, the row it lies in."""
    return np.repeat(np.arange(len(lists)), lists.value_lengths().to_numpy(zero_copy_only=False))
