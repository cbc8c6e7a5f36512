"""What a sink is told of an output: its columns, what identifies a row, and how its panes relate."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.arrow import arrow_schema
from penstock.plan import Plan

if TYPE_CHECKING:
    import pyarrow as pa

    from penstock.sinks.sink import Target


def quarantine_schema() -> pa.Schema:
    """The columns of the quarantine, the same for every plan."""
    import pyarrow as pa

    return pa.schema([
        ("source", pa.string()), ("partition", pa.string()), ("offset", pa.int64()), ("step", pa.string()),
        ("reason", pa.string()), ("raw", pa.string()),
    ])  # fmt: skip


def output_schema(plan: Plan, kind: str) -> pa.Schema:
    """The columns of panes, of late rows, of the quarantine, or of the archive."""
    import pyarrow as pa

    if kind == "quarantine":
        return quarantine_schema()
    if kind == "archive":
        return pa.schema([
            *arrow_schema(plan.inputs[0].source.schema), ("archive_source", pa.string()),
            ("archive_partition", pa.string()), ("archive_offset", pa.int64()), ("archive_batch", pa.int64()),
        ])  # fmt: skip
    instant = pa.timestamp("us", tz="UTC")
    if kind == "late":
        missed = pa.list_(pa.struct([("start", instant), ("end", instant)]))
        return pa.schema([
            *arrow_schema(plan.schema), ("late_event_time", instant), ("late_watermark", instant),
            ("late_by", pa.int64()), ("late_partition", pa.string()), ("late_offset", pa.int64()),
            ("late_windows", missed),
        ])  # fmt: skip
    return pa.schema([
        *arrow_schema(plan.key_schema), ("window_start", instant), ("window_end", instant),
        *arrow_schema(plan.result_schema), ("pane_index", pa.int64()), ("pane_timing", pa.string()),
        ("pane_final", pa.bool_()), ("op", pa.int8()),
    ])  # fmt: skip


def target_of(plan: Plan, kind: str, sink: str) -> Target:
    """What the sink of that id is told of the plan's panes, late rows, quarantine or archive."""
    from penstock.sinks.sink import Target

    return Target(
        sink=sink, kind=kind, schema=output_schema(plan, kind),
        keys=(*plan.keys, "window_start", "window_end") if kind == "panes" else (), mode=plan.shown_mode,
        refires=kind == "panes" and not plan.fires_once,
        withdraws=kind == "panes" and not plan.fires_once and (plan.shown_mode == "retracting" or plan.window.merging),
    )  # fmt: skip
