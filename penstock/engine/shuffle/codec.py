"""Tables as bytes and back: a mark, a small JSON head, and one Arrow stream for each table; never a pickle."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from penstock.errors import DataError

FORMAT = 1
_MAGIC = b"PSTW"
_ALIGNED = 64
# Spark copies what travels about eight times; what is this large is cheaper compressed first.
_LARGE = 64 << 10
_COMPRESSED = pa.ipc.IpcWriteOptions(compression="lz4")


def packed(head: Mapping[str, Any], tables: Mapping[str, pa.Table | pa.RecordBatch]) -> bytes:
    """A head and tables as bytes; equal ones give equal bytes."""
    bodies = {name: _stream(table) for name, table in tables.items()}
    said = json.dumps(
        {"format": FORMAT, "head": dict(head), "parts": [[name, body.size] for name, body in bodies.items()]}
    ).encode()
    said += b" " * (-(len(said) + 8) % _ALIGNED)
    return b"".join([_MAGIC, struct.pack("<I", len(said)), said, *bodies.values()])


def unpacked(data: bytes) -> tuple[dict[str, Any], dict[str, pa.Table]]:
    """The head and the tables that were packed."""
    if bytes(data[:4]) != _MAGIC:
        raise DataError(
            "these bytes are no packed table",
            "packed tables begin with a mark, and these do not",
            "run driver and workers with one version of Penstock",
        )
    (length,) = struct.unpack_from("<I", data, 4)
    said = json.loads(bytes(data[8 : 8 + length]))
    if said["format"] != FORMAT:
        raise DataError(
            f"a packed table has the format {said['format']}",
            f"this version of Penstock reads the format {FORMAT}",
            "run driver and workers with one version of Penstock",
        )
    buffer, at, tables = pa.py_buffer(data), 8 + length, {}
    for name, size in said["parts"]:
        tables[name] = pa.ipc.open_stream(buffer.slice(at, size)).read_all()
        at += size
    return said["head"], tables


def _stream(table: pa.Table | pa.RecordBatch) -> pa.Buffer:
    sink = pa.BufferOutputStream()
    whole = table if isinstance(table, pa.RecordBatch) else None
    options = _COMPRESSED if table.nbytes > _LARGE else None
    with pa.ipc.new_stream(sink, table.schema, options=options) as writer:
        if whole is not None:
            writer.write_batch(whole)
        else:
            for batch in table.combine_chunks().to_batches():
                writer.write_batch(batch)
    return sink.getvalue()
