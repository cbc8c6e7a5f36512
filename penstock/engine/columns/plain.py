"""A column as the plain values that users' functions and sketches take."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from penstock.engine.columns.keys import canonical


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
