"""The rows of a table that is read whole: from a file or in hand, as the bytes that are kept of it, and as changes."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from penstock.connectors.files.errors import not_of_its_format
from penstock.connectors.files.source import Directory
from penstock.connectors.formats.chunks import fitted
from penstock.connectors.formats.csv import header_of
from penstock.connectors.formats.limits import DEFAULT, Limits
from penstock.connectors.source import Chunk, Undecoded
from penstock.engine.shuffle.codec import packed, unpacked
from penstock.engine.state.codec import name_of
from penstock.errors import DataError
from penstock.plan.tables import REMOVED
from penstock.storage.listing import opened, stat
from penstock.types.arrow import arrow_schema, from_arrow, one_batch, to_arrow
from penstock.types.schema import Column, Schema
from penstock.types.spark import column_type
from penstock.types.validate import decode

VERSION = 2**36  # offsets of one reading: what it withdraws, then what it has
_WORDS = {
    "bool": "boolean",
    "large_string": "string",
    "string_view": "string",
    "halffloat": "float",
    "float": "float",
    "large_binary": "binary",
    "date32[day]": "date",
    "date64[ms]": "date",
    "int8": "int",
    "int16": "int",
    "int32": "int",
    "uint8": "int",
    "uint16": "int",
    "uint32": "long",
    "int64": "long",
}


def of_file(
    place: tuple[str, str], schema: Schema, format: str | None, header: bool, limits: Limits = DEFAULT
) -> bytes:
    """All rows of a file, by its directory and its name."""
    reader = Directory(place[0], schema, format, header=header, limits=limits)
    size, written = stat(*place)
    if not size:
        raise _unusable(place, "it is empty: a file without rows still has a header, a footer or a line end")
    kind = reader.format_of(place[1])
    missing = [name for name in schema.names if name not in _columns(place, kind, header, schema)]
    if missing:
        raise _unusable(place, f"it has no column {missing[0]!r}")
    chunks = list(reader.read({"files": [[place[1], size, written, 0, 0, 1]]}))
    if stat(*place) != (size, written):
        raise _unusable(place, "it was changed while it was read")
    rows = pa.Table.from_batches([chunk.rows for chunk in chunks], arrow_schema(schema))
    undecoded = [bad for chunk in chunks for bad in chunk.undecoded]
    if undecoded and not rows.num_rows:
        raise _unusable(place, f"none of its rows can be used: {undecoded[0].reason}")
    return _kept(rows, undecoded)


def of_rows(given: Any, schema: Schema, where: str) -> bytes:
    """All rows that are in hand: dicts, or an Arrow table."""
    if not isinstance(given, pa.Table):
        decoded = [decode(row, schema) for row in given]
        bad = [Undecoded(at, repr(row), why) for at, (row, why) in enumerate(decoded) if why is not None]
        return _kept(pa.Table.from_batches([to_arrow([row for row, why in decoded if why is None], schema)]), bad)
    if not given.num_rows:
        return _kept(arrow_schema(schema).empty_table(), ())
    piece = fitted(one_batch(given), schema, np.arange(given.num_rows), where)
    return _kept(pa.Table.from_batches([piece.rows]), piece.undecoded)


def in_hand(given: Any) -> pa.Table:
    """A DataFrame as an Arrow table."""
    if hasattr(given, "toArrow"):
        return given.toArrow()
    if isinstance(given, pa.RecordBatch):
        return pa.Table.from_batches([given])
    if isinstance(given, pa.Table):
        return given
    return pa.Table.from_pandas(given, preserve_index=False) if hasattr(given, "iloc") else pa.table(given)


def schema_of(columns: pa.Schema) -> Schema:
    """The columns of an Arrow table, as types of ours."""
    return Schema(tuple(Column(one.name, _type(one)) for one in columns))


def file_schema(place: tuple[str, str]) -> Schema:
    """The columns that a Parquet file says it has."""
    return schema_of(_parquet_schema(place))


def name_of_content(data: bytes) -> str:
    """What tells one content from another."""
    return name_of(data)


def rows_of(data: bytes, schema: Schema) -> list[dict[str, Any]]:
    """What was kept, as decoded rows."""
    return from_arrow(unpacked(data)[1]["rows"], schema)


def changes(schema: Schema, version: int, after: bytes, before: bytes | None) -> Chunk:
    """What one reading makes of the one before: all that was there is withdrawn, then comes all that is there."""
    head, tables = unpacked(after)
    rows = [_marked(tables["rows"], None)]
    if before is not None:
        rows.insert(0, _marked(unpacked(before)[1]["rows"], True))
    first = version * VERSION
    bad = tuple(Undecoded(first + at, raw, why) for at, raw, why in head["undecoded"])
    places = first + len(bad) + np.arange(sum(part.num_rows for part in rows))
    return Chunk("0", places, one_batch(pa.concat_tables(rows)), bad)


def _kept(rows: pa.Table, undecoded: Sequence[Undecoded]) -> bytes:
    bad = [[at, one.raw, one.reason] for at, one in enumerate(undecoded)]
    return packed({"undecoded": bad}, {"rows": rows.combine_chunks()})


def _marked(rows: pa.Table, removed: bool | None) -> pa.Table:
    return rows.append_column(REMOVED, pa.array([removed] * rows.num_rows, pa.bool_()))


def _columns(place: tuple[str, str], kind: str, header: bool, schema: Schema) -> Sequence[str]:
    """The columns that a file has; lines of JSON each have their own."""
    if kind == "parquet":
        names: list[str] = _parquet_schema(place).names
        return names
    if kind == "json" or not header:
        return schema.names
    with opened(*place, *stat(*place), seekable=False) as stream:
        return header_of(stream.read(1 << 20), schema, os.path.join(*place))[0]


def _parquet_schema(place: tuple[str, str]) -> pa.Schema:
    with opened(*place, *stat(*place), seekable=True) as stream:
        try:
            return pq.read_schema(stream)
        except (pa.ArrowException, OSError) as error:
            raise not_of_its_format(os.path.join(*place), "Parquet", error) from None


def _type(field: Any) -> str:
    word = str(field.type)
    if word.startswith("timestamp"):
        return "timestamp"
    return column_type(_WORDS.get(word, word.replace("decimal128", "decimal")), field.name)


def _unusable(place: tuple[str, str], why: str) -> DataError:
    return DataError(
        f"{os.path.join(*place)} cannot be used: {why}",
        "a table is read whole, and a part of it would pass for all of it",
        "write the file under another name, and rename it when it is whole",
    )
