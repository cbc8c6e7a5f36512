"""Late rows: those that no window takes any more, with the windows they missed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from penstock.engine.ingest.pre_aggregate import Rows
from penstock.engine.windows.compiled import Compiled
from penstock.types.timestamps import MAX_TIME, MIN_TIME


@dataclass(frozen=True, slots=True)
class LateRows:
    """Late rows; window i, from `start[i]` to `end[i]`, was missed by row `of[i]`."""

    rows: Rows
    of: np.ndarray
    start: np.ndarray
    end: np.ndarray

    def __len__(self) -> int:
        return len(self.rows)


def late_table(compiled: Compiled, parts: Sequence[LateRows], watermark: int) -> pa.Table:
    """Late rows as a table, with W, how late each is, where it came from and what it missed."""
    tables = [_table(compiled, part, watermark) for part in parts if len(part.rows)]
    return pa.concat_tables(tables) if tables else compiled.late_schema.empty_table()


def _table(compiled: Compiled, late: LateRows, watermark: int) -> pa.Table:
    rows = late.rows
    order = np.argsort(late.of, kind="stable")
    offsets = np.searchsorted(late.of[order], np.arange(len(rows) + 1))
    windows = pa.StructArray.from_arrays(
        [pa.array(late.start[order]), pa.array(late.end[order])], names=["start", "end"]
    )
    columns = [
        *rows.batch.columns,
        pa.array(rows.times),
        pa.array(np.full(len(rows), watermark)),
        pa.array(behind(watermark, rows.times)),
        rows.partitions,
        pa.array(rows.offsets),
        pa.ListArray.from_arrays(pa.array(offsets.astype(np.int32)), windows),
        *([pa.array(rows.signs)] if compiled.signed else []),
    ]
    return pa.Table.from_arrays(columns, schema=compiled.late_schema)


def behind(watermark: int, times: np.ndarray) -> np.ndarray:
    """How far W is beyond each event time, saturating where W is infinite."""
    nearest = watermark - MAX_TIME if watermark > 0 else MIN_TIME
    return watermark - np.maximum(times, nearest)
