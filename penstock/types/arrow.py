"""Rows as Arrow and back: which Arrow type stands for which of ours. Imports pyarrow only when called."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from penstock.errors import DataError
from penstock.types.schema import Schema
from penstock.types.timestamps import from_datetime

if TYPE_CHECKING:
    import pyarrow as pa


def arrow_type(kind: str) -> pa.DataType:
    """The Arrow type of a column of ours; both integers are 64 bits wide, both floats too."""
    import pyarrow as pa

    if kind.startswith("array<"):
        return pa.list_(arrow_type(kind[6:-1]))
    if kind.startswith("decimal("):
        precision, scale = (int(part) for part in kind[8:-1].split(","))
        return pa.decimal128(precision, scale)
    return {
        "boolean": pa.bool_(),
        "int": pa.int64(),
        "long": pa.int64(),
        "float": pa.float64(),
        "double": pa.float64(),
        "string": pa.string(),
        "binary": pa.binary(),
        "date": pa.date32(),
        "timestamp": pa.timestamp("us", tz="UTC"),
    }[kind]


def arrow_schema(schema: Schema) -> pa.Schema:
    """The Arrow schema of a schema of ours."""
    import pyarrow as pa

    return pa.schema([(column.name, arrow_type(column.type)) for column in schema.columns])


def to_arrow(rows: Sequence[dict[str, Any]], schema: Schema) -> pa.RecordBatch:
    """Decoded rows as an Arrow batch."""
    import pyarrow as pa

    arrays = [pa.array([row[c.name] for row in rows], arrow_type(c.type)) for c in schema.columns]
    for column, array in zip(schema.columns, arrays, strict=True):
        if isinstance(array, pa.ChunkedArray):
            raise DataError(
                f"the column {column.name!r} holds more than 2 GB in one batch",
                "an Arrow column of texts or bytes is no larger",
                "play fewer rows a batch",
            )
    if not arrays:
        return pa.RecordBatch.from_struct_array(pa.array([{}] * len(rows), pa.struct([])))
    return pa.RecordBatch.from_arrays(arrays, schema=arrow_schema(schema))


def from_arrow(batch: pa.RecordBatch | pa.Table, schema: Schema) -> list[dict[str, Any]]:
    """An Arrow batch as decoded rows: timestamps are microseconds."""
    stamps = [column.name for column in schema.columns if column.type == "timestamp"]
    rows: list[dict[str, Any]] = batch.to_pylist()
    for row in rows:
        for name in stamps:
            row[name] = None if row[name] is None else from_datetime(row[name])
    return rows


def one_batch(rows: pa.Table) -> pa.RecordBatch:
    """A table as one batch; refused where a column has more text than one can hold, for Arrow would give several."""
    import pyarrow as pa

    batches = rows.combine_chunks().to_batches()
    if len(batches) > 1:
        raise _more_text_than_fits(rows.num_rows)
    return batches[0] if batches else pa.RecordBatch.from_pylist([], schema=rows.schema)


def gathered(batch: pa.RecordBatch, rows: pa.Array) -> pa.RecordBatch:
    """Rows of a batch by place, some perhaps often; refused as above where they have more text than it can hold."""
    import pyarrow as pa

    try:
        return batch.take(rows)
    except pa.ArrowInvalid as error:
        raise _more_text_than_fits(len(rows)) from error


def _more_text_than_fits(rows: int) -> DataError:
    return DataError(
        f"{rows:,} rows are more than one batch can hold",
        "one column of them has more than 2 GB of text",
        "give the pipeline fewer rows at a time (batch_rows=...) or more shards (shards=...)",
    )


def conforming_batch(made: Any, schema: Schema) -> pa.RecordBatch:
    """What a user's function gave, if it is a batch of the declared schema."""
    import pyarrow as pa

    if isinstance(made, pa.Table):
        made = one_batch(made)
    if not isinstance(made, pa.RecordBatch):
        raise ValueError(f"map_batches gave {type(made).__name__}, which is not an Arrow batch")
    wanted = arrow_schema(schema)
    if sorted(made.schema.names) != sorted(wanted.names):
        raise ValueError(f"map_batches gave the columns {made.schema.names}, not {wanted.names}")
    try:
        return made.select(wanted.names).cast(wanted)
    except pa.ArrowInvalid as error:
        raise ValueError(f"map_batches gave values that do not fit: {error}") from None
