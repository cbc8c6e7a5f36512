"""Are these the same rows: a number of a table that does not depend on the order of its rows."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pyarrow as pa

from penstock.engine.keys import hashes
from penstock.sinks.writing.values import json_texts

_WRAP = 2**64


def fingerprint(table: pa.Table | pa.RecordBatch) -> int:
    """The sum, modulo 2^64, of the hashes of all rows over all columns in their order."""
    batches = [table] if isinstance(table, pa.RecordBatch) else table.to_batches()
    return combined(_of_batch(batch) for batch in batches if batch.num_rows)


def combined(prints: Iterable[int]) -> int:
    """The fingerprint of tables put together, from those of each."""
    return sum(prints) % _WRAP


def shown(fingerprint: int) -> str:
    """A fingerprint as 16 hexadecimal digits."""
    return f"{fingerprint % _WRAP:016x}"


def _of_batch(batch: pa.RecordBatch) -> int:
    flat = tuple(_flat(column) for column in batch.columns)
    return int(np.sum(hashes(flat, batch.num_rows), dtype=np.uint64))


def _flat(column: pa.Array) -> pa.Array:
    """A column that can be hashed in one go: nested ones as JSON texts, decimals as their digits."""
    if pa.types.is_nested(column.type):
        return json_texts(column)
    if pa.types.is_decimal(column.type):
        return column.cast(pa.string())
    return column
