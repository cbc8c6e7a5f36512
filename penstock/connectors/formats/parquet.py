"""Rows of a Parquet file: the declared columns alone, some or all of its row groups, in as few batches as may be."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from penstock.connectors.files.errors import not_of_its_format
from penstock.connectors.formats.chunks import Piece, fitted
from penstock.connectors.source import MAX_BYTES, MAX_ROWS
from penstock.types.schema import Schema


def row_count(stream: Any, where: str) -> int:
    """How many rows a file says it has."""
    try:
        return int(pq.read_metadata(stream).num_rows)
    except (pa.ArrowException, OSError) as error:
        raise not_of_its_format(where, "Parquet", error) from None


def parquet_pieces(stream: Any, schema: Schema, where: str, part: tuple[int, int], first: int) -> Iterator[Piece]:
    """The rows of a file, or of the k-th of n parts of its row groups; offsets count from `first`."""
    try:
        file = pq.ParquetFile(stream, pre_buffer=True, coerce_int96_timestamp_unit="us")
    except (pa.ArrowException, OSError) as error:
        raise not_of_its_format(where, "Parquet", error) from None
    sizes = [file.metadata.row_group(group).num_rows for group in range(file.num_row_groups)]
    starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    widths = [file.metadata.row_group(group).total_byte_size for group in range(file.num_row_groups)]
    k, n = part
    low, high = len(sizes) * k // n, len(sizes) * (k + 1) // n
    there = set(file.schema_arrow.names)
    columns = [name for name in schema.names if name in there]
    while low < high:
        upto, size = low + 1, widths[low]
        while upto < high and starts[upto + 1] - starts[low] <= MAX_ROWS and size + widths[upto] <= MAX_BYTES:
            size += widths[upto]
            upto += 1
        try:
            table = file.read_row_groups(list(range(low, upto)), columns=columns, use_threads=False)
        except (pa.ArrowException, OSError) as error:
            raise not_of_its_format(where, "Parquet", error) from None
        offsets = first + np.arange(starts[low], starts[upto], dtype=np.int64)
        yield fitted(_one(table, len(offsets)), schema, offsets, where)
        low = upto


def _one(table: pa.Table, rows: int) -> pa.RecordBatch:
    """A table as one batch; a file that has none of the columns still has its rows."""
    if not table.num_columns:
        return pa.RecordBatch.from_struct_array(pa.array([{}] * rows, pa.struct([])))
    arrays = [_joined(column) for column in table.columns]
    return pa.RecordBatch.from_arrays(arrays, names=table.schema.names)


def _joined(column: pa.ChunkedArray) -> pa.Array:
    if pa.types.is_dictionary(column.type):
        column = column.unify_dictionaries()
    made = column.combine_chunks()
    return made if not isinstance(made, pa.ChunkedArray) else pa.concat_arrays(made.chunks)
