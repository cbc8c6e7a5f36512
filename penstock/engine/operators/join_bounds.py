"""How far does a row of a join reach, in columns: which right times a left row meets, and until when it waits."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa

from penstock.engine.columns.arrays import plus
from penstock.engine.columns.constants import constant
from penstock.engine.windows.assignment import bounds
from penstock.plan.operators.join import FOREVER, Bound, Join, Together
from penstock.types.timestamps import MAX_TIME, MIN_TIME


class Reach(NamedTuple):
    """From which to which time of the other side each row reaches, and until when a partner may come."""

    low: np.ndarray
    high: np.ndarray
    until: np.ndarray


def left_reach(rule: Join, batch: pa.RecordBatch, times: np.ndarray) -> Reach:
    """The right times that left rows meet, exactly; a row with a null limit meets none."""
    if isinstance(rule.reach, Together):
        return _window(rule.reach, times)
    low, unlimited = _instants(rule.reach.low, batch, times, MIN_TIME)
    high, endless = _instants(rule.reach.high, batch, times, FOREVER)
    until = np.minimum(high, FOREVER)
    if unlimited is not None or endless is not None:
        none = np.zeros(len(times), dtype=bool)
        for nulls in (unlimited, endless):
            none = none if nulls is None else none | nulls
        low, high, until = np.where(none, MAX_TIME, low), np.where(none, MIN_TIME, high), np.where(none, times, until)
    return Reach(low, high, until)


def right_reach(rule: Join, times: np.ndarray) -> Reach:
    """The left times that right rows may meet; where a limit is a column the left rows have the last word."""
    if isinstance(rule.reach, Together):
        return _window(rule.reach, times)
    nearest, furthest = rule.reach.low, rule.reach.high
    n = len(times)
    low = constant(MIN_TIME, n) if furthest is None or furthest.column else plus(times, -furthest.shift)
    if nearest is None or nearest.column:
        return Reach(low, constant(MAX_TIME, n), constant(FOREVER, n))
    high = plus(times, -nearest.shift)
    return Reach(low, high, np.minimum(high, FOREVER))


def _window(reach: Together, times: np.ndarray) -> Reach:
    start, end = bounds(reach.window, times)
    return Reach(start, end - 1, end - 1)


def _instants(
    bound: Bound | None, batch: pa.RecordBatch, times: np.ndarray, unlimited: int
) -> tuple[np.ndarray, np.ndarray | None]:
    """Where a limit lies for each left row, and for which it is null, if for any."""
    if bound is None:
        return constant(unlimited, len(times)), None
    if bound.column is None:
        return plus(times, bound.shift), None
    column = batch.column(bound.column)
    nulls = column.is_null().to_numpy(zero_copy_only=False) if column.null_count else None
    instants = column.cast(pa.timestamp("us", tz="UTC")).view(pa.int64()).fill_null(0).to_numpy()
    return plus(instants, bound.shift), nulls
