"""Panes as a table: what is shown in a batch, withdrawals before what replaces them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from penstock.engine.windows.compiled import Compiled
from penstock.types.timestamps import EARLIEST, LATEST

TIMINGS = pa.array(["early", "on_time", "late"])
_INSTANT = pa.timestamp("us", tz="UTC")


def pane_table(
    compiled: Compiled,
    keys: Sequence[pa.Array],
    window: tuple[np.ndarray, np.ndarray],
    values: Sequence[pa.Array],
    shown: tuple[np.ndarray, np.ndarray, np.ndarray],
    last: tuple[bool, int],
) -> pa.Table:
    """Rows of panes: `shown` is index, timing and event time, `last` is whether they are final and their op."""
    n = len(window[0])
    index, timing, event_time = shown
    final, op = last
    columns = [
        *keys,
        _instants(window[0]),
        _instants(window[1]),
        *values,
        pa.array(index),
        pa.DictionaryArray.from_arrays(pa.array(timing.astype(np.int8)), TIMINGS),
        pa.repeat(pa.scalar(final), n),
        pa.repeat(pa.scalar(op, pa.int8()), n),
        pa.array(event_time),
        pa.array(window[0]),
        pa.array(window[1]),
    ]
    return pa.Table.from_arrays(columns, schema=compiled.pane_schema)


def no_panes(compiled: Compiled) -> pa.Table:
    """Nothing shown."""
    return compiled.pane_schema.empty_table()


def _instants(times: np.ndarray) -> pa.Array:
    """Instants as timestamps, the infinities as nulls."""
    if len(times) and (times.min() < EARLIEST or times.max() > LATEST):
        return pa.array(times, mask=(times < EARLIEST) | (times > LATEST)).cast(_INSTANT)
    return pa.array(times).cast(_INSTANT)
