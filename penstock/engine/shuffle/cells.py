"""From a task to the shards: what was ingested, split by the hash of its keys, as bytes and back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.engine.columns.constants import compressed, is_constant
from penstock.engine.columns.keys import hashes, whole
from penstock.engine.ingest.pre_aggregate import Rows, concat_rows, keys_of
from penstock.engine.ingest.windows import Blob, Report
from penstock.engine.shuffle.codec import packed, unpacked
from penstock.engine.windows.compiled import Compiled
from penstock.engine.windows.partials import CELL_NUMBERS, Cells, concat_cells, empty_cells
from penstock.engine.windows.regroup import fold_runs
from penstock.model.watermarks import Percentile
from penstock.model.windows import Session
from penstock.plan.stages import Input
from penstock.types.arrow import one_batch


def combined_blob(compiled: Compiled, blobs: Sequence[Blob]) -> Blob | None:
    """Blobs of one task as one, combined once more before the shuffle."""
    if not blobs:
        return None
    filled = [blob.cells for blob in blobs if len(blob.cells)]
    suspects = [blob.suspects for blob in blobs if blob.suspects is not None and len(blob.suspects)]
    if not filled:
        cells = empty_cells(compiled.key_types, compiled.accumulators)
    elif isinstance(compiled.plan.window, Session) or len(filled) == 1:
        cells = concat_cells(filled)
    else:
        cells = fold_runs(filled, compiled.accumulators)
    return Blob(blobs[0].origin, cells, concat_rows(suspects) if suspects else None)


def short_report(one: Input, report: Report) -> Report:
    """What the watermark rule needs of a report: a quantile of delays every stamp, the others the newest one."""
    assert one.time is not None
    if isinstance(one.time.watermark, Percentile) or len(report.times) <= 1:
        return report
    return Report(report.source, report.partition, report.times.max(keepdims=True), report.given)


def by_shard(compiled: Compiled, blob: Blob, shards: int) -> Iterator[tuple[int, Blob]]:
    """The part of a blob that belongs to each shard; a shard that gets nothing is left out."""
    cells = dealt(blob.cells.hash, shards)
    rows: dict[int, np.ndarray] = {}
    if blob.suspects is not None:
        rows = dealt(hashes(keys_of(compiled, blob.suspects), len(blob.suspects)), shards)
    nothing = np.empty(0, dtype=np.int64)
    for shard in sorted(cells.keys() | rows.keys()):
        suspects = blob.suspects.take(rows[shard]) if blob.suspects is not None and shard in rows else None
        yield shard, Blob(blob.origin, blob.cells.take(cells.get(shard, nothing)), suspects)


def dealt(hashed: np.ndarray, shards: int) -> dict[int, np.ndarray]:
    """The places of the rows of each shard, in their order."""
    if not len(hashed):
        return {}
    if shards == 1:
        return {0: np.arange(len(hashed))}
    shard = (hashed % np.uint64(shards)).astype(np.int64)
    order = np.argsort(shard, kind="stable")
    bounds = np.searchsorted(shard[order], np.arange(shards + 1))
    return {i: order[bounds[i] : bounds[i + 1]] for i in range(shards) if bounds[i] < bounds[i + 1]}


def written_blob(blob: Blob) -> bytes:
    """A blob as bytes."""
    head: dict[str, Any] = {"origin": list(blob.origin), "rows": len(blob.cells)}
    head["same"] = {}
    columns: dict[str, Any] = {}
    for name in CELL_NUMBERS:
        column = getattr(blob.cells, name)
        if is_constant(column):
            head["same"][name] = int(column[0])
        else:
            columns[name] = column
    columns |= {f"key.{i}": column for i, column in enumerate(blob.cells.keys)}
    columns |= {f"held.{i}.{j}": column for i, group in enumerate(blob.cells.held) for j, column in enumerate(group)}
    tables = {"cells": _batch(columns)}
    if blob.suspects is not None:
        rows = blob.suspects
        tables["suspects"] = rows.batch
        tables["places"] = _batch({"times": rows.times, "place": rows.partitions, "offset": rows.offsets})
    return packed(head, tables)


def read_blob(compiled: Compiled, data: bytes) -> Blob:
    """The blob that was written."""
    head, tables = unpacked(data)
    table, n, same = tables["cells"], head["rows"], head["same"]
    model = empty_cells(compiled.key_types, compiled.accumulators)

    def number(name: str) -> np.ndarray:
        kind = getattr(model, name).dtype
        if name in same:
            return np.broadcast_to(np.array(same[name], dtype=kind), n)
        return compressed(_column(table, name).to_numpy(zero_copy_only=False))

    held = tuple(
        tuple(_like(_column(table, f"held.{i}.{j}"), one) for j, one in enumerate(group))
        for i, group in enumerate(model.held)
    )
    keys = tuple(_column(table, f"key.{i}") for i in range(len(model.keys)))
    cells = Cells(keys, **{name: number(name) for name in CELL_NUMBERS}, held=held)
    suspects = None
    if "suspects" in tables:
        places = tables["places"]
        suspects = Rows(
            one_batch(tables["suspects"]),
            _column(places, "times").to_numpy(),
            _column(places, "place"),
            _column(places, "offset").to_numpy(),
        )
    source, partition, offset = head["origin"]
    return Blob((source, partition, offset), cells, suspects)


def _batch(columns: dict[str, Any]) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array(column) for column in columns.values()], names=list(columns))


def _column(table: pa.Table, name: str) -> pa.Array:
    return whole(table.column(name))


def _like(column: pa.Array, model: Any) -> Any:
    return compressed(column.to_numpy(zero_copy_only=False)) if isinstance(model, np.ndarray) else column


def written_reports(reports: Sequence[tuple[int, Report]]) -> bytes:
    """Time reports as bytes, each with the first offset it speaks of."""
    head = {"reports": [[one.source, one.partition, first, one.given, len(one.times)] for first, one in reports]}
    stamps = np.concatenate([one.times for _, one in reports]) if reports else np.empty(0, np.int64)
    return packed(head, {"times": _batch({"times": stamps})})


def read_reports(data: bytes) -> list[tuple[int, Report]]:
    """The reports that were written."""
    head, tables = unpacked(data)
    stamps = _column(tables["times"], "times").to_numpy()
    made, at = [], 0
    for source, partition, first, given, count in head["reports"]:
        made.append((first, Report(source, partition, stamps[at : at + count], given)))
        at += count
    return made
