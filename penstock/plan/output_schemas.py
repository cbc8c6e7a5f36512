"""What a sink is told of an output: its columns, what identifies a row, and how its panes relate."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from penstock.plan.graph import AnyStage, flow_of
from penstock.plan.stages import Entry, Plan
from penstock.types.arrow import arrow_schema

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class Target:
    """What an output is, fixed for the life of a checkpoint; `keys` identify a row of the current answer.

    Rows that may be withdrawn and have such keys have a current answer, as panes do. `stream` is what its rows are
    called on their way, where a pipeline has several of a kind.
    """

    sink: str
    kind: str
    schema: pa.Schema
    keys: tuple[str, ...] = ()
    mode: str = "accumulating"
    refires: bool = False
    withdraws: bool = False
    stream: str = field(default="", compare=False)

    @property
    def answers(self) -> bool:
        """Whether there is a current answer: of its rows one stands for each key."""
        return self.mode != "discarding" and (self.kind == "panes" or (self.kind == "rows" and bool(self.keys)))


def quarantine_schema() -> pa.Schema:
    """The columns of the quarantine, the same for every plan."""
    import pyarrow as pa

    return pa.schema(
        [
            ("source", pa.string()),
            ("partition", pa.string()),
            ("offset", pa.int64()),
            ("step", pa.string()),
            ("reason", pa.string()),
            ("raw", pa.string()),
        ]
    )


def entry_of(plan: AnyStage, name: str) -> Entry:
    """The entry of that name, or the first."""
    return next((entry for entry in plan.entries if entry.name == name), plan.entries[0])


def output_schema(plan: AnyStage, kind: str, name: str = "") -> pa.Schema:
    """The columns of panes or rows, of late rows, of the quarantine, or of the archive."""
    import pyarrow as pa

    instant = pa.timestamp("us", tz="UTC")
    if kind == "quarantine":
        return quarantine_schema()
    if kind == "archive":
        return pa.schema(
            [
                *arrow_schema(flow_of((plan,)).inputs[0].source.schema),
                ("archive_source", pa.string()),
                ("archive_partition", pa.string()),
                ("archive_offset", pa.int64()),
                ("archive_batch", pa.int64()),
            ]
        )
    if kind == "late":
        why = [
            ("late_event_time", instant),
            ("late_watermark", instant),
            ("late_by", pa.int64()),
            ("late_partition", pa.string()),
            ("late_offset", pa.int64()),
        ]
        if isinstance(plan, Plan):
            why.append(("late_windows", pa.list_(pa.struct([("start", instant), ("end", instant)]))))
        why += [("op", pa.int8())] if entry_of(plan, name).signed else []
        return pa.schema([*arrow_schema(entry_of(plan, name).schema), *why])
    if not isinstance(plan, Plan):
        rows = arrow_schema(plan.outputs[name])
        return rows.append(pa.field("op", pa.int8())) if plan.withdraws(name) else rows
    return pa.schema(
        [
            *arrow_schema(plan.key_schema),
            ("window_start", instant),
            ("window_end", instant),
            *arrow_schema(plan.result_schema),
            ("pane_index", pa.int64()),
            ("pane_timing", pa.string()),
            ("pane_final", pa.bool_()),
            ("op", pa.int8()),
        ]
    )


def target_of(plan: AnyStage, kind: str, sink: str, name: str = "", stream: str = "") -> Target:
    """What the sink of that id is told of a stage's panes or rows, late rows, quarantine or archive."""

    if not isinstance(plan, Plan) and kind == "rows" and plan.withdraws(name):
        keys = plan.operator.identity(plan.sides)
        return Target(
            sink=sink,
            kind=kind,
            schema=output_schema(plan, kind, name),
            keys=keys,
            mode="retracting",
            refires=True,
            withdraws=True,
            stream=stream or kind,
        )
    if not isinstance(plan, Plan) or kind != "panes":
        mode = plan.shown_mode if isinstance(plan, Plan) else "accumulating"
        return Target(sink=sink, kind=kind, schema=output_schema(plan, kind, name), mode=mode, stream=stream or kind)
    return Target(
        sink=sink,
        kind=kind,
        schema=output_schema(plan, kind),
        keys=(*plan.keys, "window_start", "window_end"),
        mode=plan.shown_mode,
        refires=not plan.fires_once,
        withdraws=plan.withdraws(),
        stream=stream or kind,
    )
