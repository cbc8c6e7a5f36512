"""Are these the same rows: a number of a table that does not depend on the order of its rows."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.connectors.text_values import json_texts
from penstock.diagnostics.user_functions import MARK
from penstock.engine.columns.keys import hashes

_WRAP = 2**64
_SAMPLE = 16  # of so many rows one is looked at, to see whether texts come again
_FEW = 1_024  # and of fewer rows none


def fingerprint(table: pa.Table | pa.RecordBatch) -> int:
    """The sum, modulo 2^64, of the hashes of all rows, over all columns in order; a text counts by its own hash."""
    batches = [table] if isinstance(table, pa.RecordBatch) else table.to_batches()
    return combined(_of_batch(batch) for batch in batches if batch.num_rows)


def fingerprint_of(kind: str, table: pa.Table) -> int:
    """The fingerprint of a stream's rows; where a function failed is no part of it, for editing its file moves that."""
    if kind == "quarantine":
        place = table.schema.get_field_index("reason")
        reasons = pc.replace_substring_regex(table.column(place), f"(?s){MARK}.*", "")
        table = table.set_column(place, table.schema.field(place), reasons)
    return fingerprint(table)


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
    """A column of one number each: nested values and decimals count by their texts, texts by their hashes."""
    if pa.types.is_dictionary(column.type):
        return _flat(column.dictionary_decode())
    if pa.types.is_nested(column.type):
        return _of_texts(json_texts(column))
    if pa.types.is_decimal(column.type):
        return _of_texts(column.cast(pa.string()))
    return column if pa.types.is_primitive(column.type) else _of_texts(column)


def _of_texts(column: pa.Array) -> pa.Array:
    if _come_again(column):
        found = column.dictionary_encode()
        return _of_each(found.dictionary).take(found.indices)
    return _of_each(column)


def _of_each(texts: pa.Array) -> pa.Array:
    nothing = texts.is_null().to_numpy(zero_copy_only=False) if texts.null_count else None
    return pa.array(hashes((texts,), len(texts)).view(np.int64), mask=nothing)


def _come_again(texts: pa.Array) -> bool:
    """Whether many rows have a text that another has, too, as those of a join: then each is looked at once."""
    if len(texts) < _FEW or texts.null_count == len(texts):
        return False
    some = texts.take(pa.array(np.arange(0, len(texts), _SAMPLE)))
    return bool(4 * pc.count_distinct(some, mode="all").as_py() < 3 * len(some))
