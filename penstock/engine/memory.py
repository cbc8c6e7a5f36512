"""A shard's memory as bytes and back: Arrow tables in one stream of named parts, with a format version; no pickle."""

from __future__ import annotations

import json
import struct
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.engine.cells import CELL_NUMBERS, Cells, Held, empty_cells
from penstock.engine.compiled import Compiled
from penstock.engine.keys import whole
from penstock.engine.numbers import compressed
from penstock.engine.slices import Slices
from penstock.engine.step import Memory
from penstock.engine.table import NUMBERS, Windows, Withdrawn, no_windows
from penstock.errors import DataError

FORMAT = 1
_MAGIC = b"PSTK"
_GONE = ("owner", "start", "end", "index", "timing", "event_time")


def written_memory(compiled: Compiled, memory: Memory) -> bytes:
    """The memory as bytes; equal memories give equal bytes."""
    parts = {
        "windows": _table(
            keys=memory.windows.keys, held=memory.windows.held, shown=memory.windows.shown, last=memory.windows.last,
            trigger=memory.windows.trigger, **{name: getattr(memory.windows, name) for name in NUMBERS},
        ),
        "withdrawn": _table(
            values=memory.windows.withdrawn.values,
            **{name: getattr(memory.windows.withdrawn, name) for name in _GONE},
        ),
        "events": _cells(memory.events),
    }  # fmt: skip
    for i, run in enumerate(memory.slices.runs):
        parts[f"run{i}"] = _cells(run)
    bodies = {name: _ipc(table) for name, table in parts.items()}
    head = {"format": FORMAT, "watermark": memory.slices.watermark, "runs": len(memory.slices.runs),
            "parts": [[name, len(body)] for name, body in bodies.items()]}  # fmt: skip
    said = json.dumps(head).encode()
    return b"".join([_MAGIC, struct.pack("<I", len(said)), said, *bodies.values()])


def read_memory(compiled: Compiled, data: bytes) -> Memory:
    """The memory that was written."""
    head, at = _head(data)
    tables = {}
    for name, length in head["parts"]:
        tables[name] = pa.ipc.open_stream(data[at : at + length]).read_all().combine_chunks()
        at += length
    model = no_windows(compiled)
    windows, gone = tables["windows"], tables["withdrawn"]
    held = Windows(
        keys=_columns(windows, "keys", model.keys),
        **{name: _numbers(windows, name) for name in NUMBERS},
        trigger=_columns(windows, "trigger", model.trigger),
        held=_nested(windows, "held", model.held),
        shown=_nested(windows, "shown", model.shown),
        last=_columns(windows, "last", model.last),
        withdrawn=Withdrawn(
            **{name: _numbers(gone, name) for name in _GONE},
            values=_columns(gone, "values", model.withdrawn.values),
        ),
    )
    runs = tuple(_read_cells(compiled, tables[f"run{i}"]) for i in range(head["runs"]))
    return Memory(held, Slices(runs, head["watermark"]), _read_cells(compiled, tables["events"]))


def _head(data: bytes) -> tuple[dict[str, Any], int]:
    if data[:4] != _MAGIC:
        raise DataError(
            "these bytes are not a shard's memory",
            "a memory begins with its mark, and this does not",
            "restore from an undamaged copy",
        )
    (length,) = struct.unpack_from("<I", data, 4)
    head = json.loads(data[8 : 8 + length])
    if head["format"] != FORMAT:
        raise DataError(
            f"this memory has the format {head['format']}",
            f"this version of Penstock reads the format {FORMAT}",
            "run it with the version that wrote it",
        )
    return head, 8 + length


def _table(**columns: Any) -> pa.Table:
    """Columns and groups of columns under names of their own."""
    flat: dict[str, Any] = {}
    for name, value in columns.items():
        if isinstance(value, tuple):
            for i, inner in enumerate(value):
                group = inner if isinstance(inner, tuple) else (inner,)
                flat.update({f"{name}.{i}.{j}": column for j, column in enumerate(group)})
        else:
            flat[name] = value
    return pa.table({name: pa.array(column) for name, column in flat.items()})


def _cells(cells: Cells) -> pa.Table:
    return _table(keys=cells.keys, held=cells.held, **{name: getattr(cells, name) for name in CELL_NUMBERS})


def _read_cells(compiled: Compiled, table: pa.Table) -> Cells:
    model = empty_cells(compiled.key_types, compiled.accumulators)
    return Cells(
        keys=_columns(table, "keys", model.keys),
        **{name: _numbers(table, name) for name in CELL_NUMBERS},
        held=_nested(table, "held", model.held),
    )


def _ipc(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        for batch in table.combine_chunks().to_batches():
            writer.write_batch(batch)
    return bytes(sink.getvalue())


def _numbers(table: pa.Table, name: str) -> np.ndarray:
    return compressed(_array(table, name).to_numpy(zero_copy_only=False))


def _columns(table: pa.Table, name: str, model: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(_like(table, f"{name}.{i}.0", column) for i, column in enumerate(model))


def _nested(table: pa.Table, name: str, model: Held) -> Held:
    return tuple(
        tuple(_like(table, f"{name}.{i}.{j}", column) for j, column in enumerate(group))
        for i, group in enumerate(model)
    )


def _like(table: pa.Table, name: str, model: Any) -> Any:
    return _numbers(table, name) if isinstance(model, np.ndarray) else _array(table, name)


def _array(table: pa.Table, name: str) -> pa.Array:
    return whole(table.column(name))
