"""What is the answer now: of panes in order, the last of each key and window, or that it was withdrawn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.engine.columns.keys import canonical, whole


class Net(NamedTuple):
    """What to write over, without `op`, and which keys and windows to delete."""

    upserts: pa.Table
    deletes: pa.Table


def net(panes: pa.Table, keys: Sequence[str]) -> Net:
    """The last row of each key and window: an upsert if it is a +1, a delete if it is a -1.

    A window's -1 comes before its +1, and later parts come after earlier ones: applied in turn, the nets of the parts
    of a batch are the net of the batch.
    """
    last = panes.take(_last_rows(panes, keys))
    shown = pc.greater(last["op"], 0)
    return Net(last.filter(shown).drop_columns(["op"]), last.filter(pc.invert(shown)).select(list(keys)))


def current(panes: pa.Table, keys: Sequence[str]) -> pa.Table:
    """The current answer of all panes there were, in order: one row per key and window."""
    return net(panes, keys).upserts


def near(rows: pa.Table, keys: Sequence[str]) -> pa.Table:
    """Rows in the order of an index, so that those of one page come together: half the cost in a large table."""
    first = pa.table([rows[key] for key in keys[:2]], names=["0", "1"][: len(keys)])
    return rows.take(pc.sort_indices(first, [(name, "ascending") for name in first.column_names]))


def _last_rows(panes: pa.Table, keys: Sequence[str]) -> pa.Array:
    """The number of the last row of each key and window, ascending."""
    if not keys or not panes.num_rows:
        return pa.array(np.arange(panes.num_rows)[-1:], pa.int64())
    # Names of the user's columns may hold anything, our numbers cannot collide.
    names = [str(number) for number in range(len(keys))]
    columns = [canonical(whole(panes[key])) for key in keys]
    numbered = pa.table([*columns, pa.array(np.arange(panes.num_rows))], names=[*names, "row"])
    last = numbered.group_by(names, use_threads=False).aggregate([("row", "max")])["row_max"]
    return pa.array(np.sort(last.to_numpy()))
