"""Rows at rest: a table and the places it took as bytes and back, by Arrow, with a format version and no pickle."""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.engine.columns.constants import is_constant
from penstock.engine.columns.keys import whole
from penstock.engine.windows.partials import Cells
from penstock.engine.windows.table import Windows, Withdrawn
from penstock.errors import DataError

FORMAT = 2
_MAGIC = b"PSTK"
_START = 8 + 16
# What is at rest keeps these names, whatever the code calls its classes and fields: the kinds of tables, and of each
# the columns, in the order of the fields.
_KINDS: dict[str, type[Windows | Cells | Withdrawn]] = {"windows": Windows, "cells": Cells, "withdrawn": Withdrawn}
_COLUMNS: dict[str, tuple[str, ...]] = {
    "windows": (
        "keys",
        "hash",
        "start",
        "end",
        "records",
        "held_records",
        "unshown",
        "first_unshown",
        "newest",
        "index",
        "born_late",
        "on_time_shown",
        "last_timing",
        "last_event_time",
        "trigger",
        "held",
        "shown",
        "last",
        "withdrawn",
        "signs",
    ),
    "cells": ("keys", "hash", "start", "end", "records", "newest", "since", "held"),
    "withdrawn": ("owner", "start", "end", "index", "timing", "event_time", "values"),
}
_FIELDS = {
    kind: dict(zip(names, (field.name for field in fields(_KINDS[kind])), strict=True))
    for kind, names in _COLUMNS.items()
}
_BESIDE = "withdrawn"  # a table of its own, behind the one of whose windows it is
_MAY_LACK = "signs"  # a column that is written only where it has something
_OPTIONS = pa.ipc.IpcWriteOptions(compression="lz4")


def encoded(rows: Any, takes: Mapping[int, np.ndarray]) -> bytes:
    """The rows as bytes; equal rows give equal bytes, and a column that is one value costs one."""
    tables: list[tuple[str, Any]] = [("windows" if isinstance(rows, Windows) else "cells", rows)]
    if isinstance(rows, Windows):
        tables.append(("withdrawn", rows.withdrawn))
    described, bodies = [], []
    for kind, table in tables:
        said, body = _table(kind, table)
        described.append({"kind": kind, "rows": len(table), "bytes": len(body), **said})
        bodies.append(body)
    numbers = sorted(takes)
    places = [takes[number].astype("<i4").tobytes() for number in numbers]
    counted = [[number, len(takes[number])] for number in numbers]
    return framed({"tables": described, "takes": counted}, [*bodies, *places])


def decoded(data: bytes) -> tuple[Any, dict[int, np.ndarray]]:
    """The rows that were encoded, and the places they took by the number of the run."""
    head, at = unframed(data)
    view, made = pa.py_buffer(data), []
    for said in head["tables"]:
        made.append(_read(said, view.slice(at, said["bytes"])))
        at += said["bytes"]
    takes = {}
    for number, count in head["takes"]:
        takes[number] = np.frombuffer(data, dtype="<i4", count=count, offset=at)
        at += 4 * count
    kind, columns = made[0]
    if len(made) > 1:
        columns[_BESIDE] = _table_of(*made[1])
    return _table_of(kind, columns), takes


def name_of(data: bytes) -> str:
    """The name of these bytes: their hash."""
    return hashlib.blake2b(data, digest_size=16).hexdigest()


def checked(name: str, data: bytes) -> bytes:
    """The bytes, which must be those of the name."""
    if name_of(data) != name:
        raise DataError(
            f"the part {name} of a shard's memory is damaged",
            "its bytes are not those that were written under this name",
            "restore from an undamaged copy",
        )
    return data


def framed(head: Mapping[str, Any], bodies: Sequence[bytes] = ()) -> bytes:
    """A head that can be read and checked by itself, then the bodies, aligned."""
    said = json.dumps({"format": FORMAT, **head}, separators=(",", ":")).encode()
    said += b" " * (-(_START + len(said)) % 64)
    check = hashlib.blake2b(said, digest_size=16).digest()
    return b"".join([_MAGIC, struct.pack("<I", len(said)), check, said, *bodies])


def unframed(data: bytes) -> tuple[dict[str, Any], int]:
    """The head, and where the bodies begin."""
    if data[:4] != _MAGIC or len(data) < _START:
        raise _damaged("a memory begins with its mark, and this does not")
    (length,) = struct.unpack_from("<I", data, 4)
    said = data[_START : _START + length]
    if data[8:_START] != hashlib.blake2b(said, digest_size=16).digest():
        # The first format had no check: its head began where this one has it.
        raise _damaged("their head does not fit its checksum: they were damaged, or written by an older version")
    head = json.loads(said)
    if head["format"] != FORMAT:
        raise DataError(
            f"this memory has the format {head['format']}",
            f"this version of Penstock reads the format {FORMAT}",
            "run it with the version that wrote it",
        )
    return head, _START + length


def other_columns(found: str, wanted: str) -> DataError:
    """The error of a part that was written for another plan."""
    return DataError(
        "a part of a shard's memory does not fit the plan",
        f"it has {found}, and the plan keeps {wanted}",
        "change the plan back, or run it with a new checkpoint (and a new table)",
    )


def _damaged(why: str) -> DataError:
    return DataError("these bytes are not a shard's memory", why, "restore from an undamaged copy")


def _table_of(kind: str, columns: Mapping[str, Any]) -> Any:
    """A table of a kind, of columns as they are called at rest."""
    return _KINDS[kind](**{_FIELDS[kind][name]: column for name, column in columns.items()})


def _table(kind: str, table: Any) -> tuple[dict[str, Any], bytes]:
    """What is said of a table's columns, and those that are no single value as an Arrow stream."""
    flat, shape = _flat(kind, table)
    kinds: dict[str, Any] = {}
    arrays = {}
    for name, column in flat.items():
        if isinstance(column, np.ndarray) and is_constant(column):
            kinds[name] = [column.dtype.str, column[:1].tobytes().hex()]
            continue
        kinds[name] = "numpy" if isinstance(column, np.ndarray) else "arrow"
        arrays[name] = pa.array(column)
    if not arrays:
        return {"shape": shape, "columns": kinds}, b""
    batch = pa.RecordBatch.from_arrays(list(arrays.values()), names=list(arrays))
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema, options=_OPTIONS) as writer:
        writer.write_batch(batch)
    body = sink.getvalue().to_pybytes()
    return {"shape": shape, "columns": kinds}, body + b"\0" * (-len(body) % 64)


def _flat(kind: str, table: Any) -> tuple[dict[str, Any], dict[str, list[int] | None]]:
    """Columns under names of their own, and how they are grouped: -1 for a column, else how many a group has."""
    flat: dict[str, Any] = {}
    shape: dict[str, list[int] | None] = {}
    for name, field in _FIELDS[kind].items():
        value = getattr(table, field)
        if name == _BESIDE or (name == _MAY_LACK and not value):
            continue
        if not isinstance(value, tuple):
            flat[name], shape[name] = value, None
            continue
        shape[name] = [len(inner) if isinstance(inner, tuple) else -1 for inner in value]
        for i, inner in enumerate(value):
            group = inner if isinstance(inner, tuple) else (inner,)
            flat.update({f"{name}.{i}.{j}": column for j, column in enumerate(group)})
    return flat, shape


def _read(said: dict[str, Any], body: pa.Buffer) -> tuple[str, dict[str, Any]]:
    """The kind of a table, and its columns as they were."""
    table = pa.ipc.open_stream(body).read_all() if said["bytes"] else None
    flat: dict[str, Any] = {}
    for name, kind in said["columns"].items():
        if isinstance(kind, list):
            flat[name] = np.broadcast_to(np.frombuffer(bytes.fromhex(kind[1]), dtype=kind[0])[0], said["rows"])
            continue
        assert table is not None
        column = whole(table.column(name))
        flat[name] = column.to_numpy(zero_copy_only=False) if kind == "numpy" else column
    made: dict[str, Any] = {}
    for name, groups in said["shape"].items():
        made[name] = (
            flat[name]
            if groups is None
            else tuple(
                flat[f"{name}.{i}.0"] if size < 0 else tuple(flat[f"{name}.{i}.{j}"] for j in range(size))
                for i, size in enumerate(groups)
            )
        )
    return said["kind"], made
