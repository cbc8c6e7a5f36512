"""What leaves the engine: the tables that sinks are given, one kind for panes, late rows and quarantine each."""

from __future__ import annotations

import json
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.engine.columns.keys import whole
from penstock.engine.ingest.row_steps import Bad, SourceBatch
from penstock.plan.graph import AnyStage
from penstock.plan.output_schemas import output_schema, quarantine_schema
from penstock.types.timestamps import EARLIEST, LATEST

INSTANT = pa.timestamp("us", tz="UTC")


def shown_panes(panes: pa.Table) -> pa.Table:
    """Panes as people see them: without the engine's own columns."""
    shown = panes.select([name for name in panes.column_names if not name.startswith("@")])
    place = shown.schema.get_field_index("pane_timing")
    return shown.set_column(place, "pane_timing", shown.column(place).cast(pa.string()))


def shown_late(stage: AnyStage, entry: int, late: pa.Table) -> pa.Table:
    """Late rows as people see them: instants as timestamps, null where infinite."""
    shown = [
        _instants(late.column("@event_time")),
        _instants(late.column("@watermark")),
        late.column("@late_by"),
        late.column("@partition"),
        late.column("@offset"),
    ]
    if "@windows" in late.column_names:
        windows = whole(late.column("@windows"))
        bounds = [_instants(windows.values.field(name)) for name in ("start", "end")]
        shown.append(pa.ListArray.from_arrays(windows.offsets, pa.StructArray.from_arrays(bounds, ["start", "end"])))
    if "@op" in late.column_names:
        shown.append(late.column("@op"))
    names = stage.entries[entry].schema.names
    row = [late.column(name) for name in names]
    return pa.Table.from_arrays([*row, *shown], schema=output_schema(stage, "late", stage.entries[entry].name))


def quarantined(given: SourceBatch, bad: Sequence[Bad]) -> pa.Table:
    """Rows of a batch that could not be used, each as it came, with the step and the reason."""
    rows = given.rows.take(pa.array([one.row for one in bad], pa.int64())).to_pylist()
    return quarantine_table(
        given.source,
        given.partition,
        [
            (int(given.offsets[one.row]), one.step, one.reason, raw_text(row))
            for one, row in zip(bad, rows, strict=True)
        ],
    )


def quarantine_table(source: str, partition: str, rows: Sequence[tuple[int, str, str, str]]) -> pa.Table:
    """Quarantined rows of one partition: offset, step, reason and raw text of each."""
    offsets, steps, reasons, raws = zip(*rows, strict=True) if rows else ((), (), (), ())
    n = len(rows)
    return pa.table([[source] * n, [partition] * n, offsets, steps, reasons, raws], schema=quarantine_schema())


def raw_text(row: dict[str, object]) -> str:
    """A row as JSON, to be read by people and to be played again."""
    return json.dumps(row, default=_plain, ensure_ascii=False)


def _plain(value: object) -> str:
    return value.hex() if isinstance(value, bytes) else str(value)


def _instants(times: pa.Array | pa.ChunkedArray) -> pa.Array:
    numbers = np.asarray(times)
    outside = (numbers < EARLIEST) | (numbers > LATEST)
    return pc.cast(pa.array(numbers, mask=outside if outside.any() else None), INSTANT)
