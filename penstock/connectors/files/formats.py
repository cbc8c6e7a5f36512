"""How a table lies in a file: as Parquet, or as one JSON object a line; and how all published rows are read."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.connectors.files.manifest import Epoch, last_epoch, manifests
from penstock.connectors.latest_answers import current as current_of
from penstock.connectors.sink_errors import torn
from penstock.connectors.text_values import from_json, json_column
from penstock.credentials import shown
from penstock.errors import PenstockError
from penstock.storage.files import Place, place_of

CHUNK = 50_000


def write_file(place: Place, name: str, format: str, table: pa.Table) -> None:
    """Write a table to a new file."""
    with place.sink(name) as stream:
        if format == "parquet":
            pq.write_table(table, stream)
            return
        for chunk in table.to_batches(max_chunksize=CHUNK):
            stream.write(_lines(chunk).encode())


def published_files(path: str) -> list[str]:
    """The files that are data, in order."""
    place = place_of(path)
    _epoch(place, path)
    return [place.full(one["file"]) for manifest in manifests(place) for one in manifest.files]


def published_rows(path: str, *, current: bool) -> pa.Table:
    """All published rows in order, or the last answer of each key and window."""
    place = place_of(path)
    epoch = _epoch(place, path)
    answers = epoch.kind == "panes" or (epoch.kind == "rows" and bool(epoch.keys))
    if current and (not answers or epoch.mode == "discarding"):
        raise PenstockError(
            f"{shown(path)} holds {epoch.mode + ' ' if epoch.kind == 'panes' else ''}{epoch.kind}, "
            "which have no current answer",
            "each row stands for itself, none replaces another",
            "leave current=True out; discarding panes add up to the answer",
        )
    schema = epoch.arrow_schema()
    tables = list(_tables(place, epoch, schema))
    whole = pa.concat_tables(tables) if tables else schema.empty_table()
    return current_of(whole, epoch.keys) if current else whole


def _tables(place: Place, epoch: Epoch, schema: pa.Schema) -> Iterator[pa.Table]:
    for manifest in manifests(place):
        rows = 0
        for one in manifest.files:
            table = _read_file(place.read(one["file"]), epoch.format, schema)
            rows += table.num_rows
            yield table
        if rows != manifest.rows:
            raise torn(place.full(""), manifest.batch, rows, manifest.rows)


def _epoch(place: Place, path: str) -> Epoch:
    epoch = last_epoch(place)
    if epoch is None:
        raise PenstockError(
            f"nothing was ever published in {shown(path)}",
            "a directory of ps.files has a folder _penstock with its manifests",
            "name the path that the pipeline writes to",
        )
    return epoch


def _read_file(content: bytes, format: str, schema: pa.Schema) -> pa.Table:
    if format == "parquet":
        return pq.read_table(io.BytesIO(content)).cast(schema)
    rows: list[dict[str, Any]] = [json.loads(line) for line in content.splitlines()]
    return pa.table([from_json([row[field.name] for row in rows], field.type) for field in schema], schema=schema)


def _lines(chunk: pa.RecordBatch) -> str:
    names, columns = chunk.schema.names, [json_column(column) for column in chunk.columns]
    written = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode
    return "".join(written(dict(zip(names, row, strict=True))) + "\n" for row in zip(*columns, strict=True))
