"""What lies on disk of a plan, in words: how a stage's memory is laid out, as its bytes tell."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from penstock.api.pipeline import Pipeline
from penstock.engine.in_process import ColumnarRun
from penstock.engine.state.codec import unframed
from penstock.reference.engine import ReferenceRun
from penstock.runtime.batch import Tick
from tests.faults.reference_check import BEGUN, _arrivals


def memories(pipeline: Pipeline, batches: int = 3) -> dict[str, list[str]]:
    """For each stage of a pipeline, played for some batches: its head, and each kind of part it names."""
    run = ReferenceRun(*(output.plan for output in pipeline.outputs))
    arrivals = _arrivals(run, pipeline.batch_rows)[:batches]
    found: dict[int, set[str]] = {}
    for plan in {id(output.plan): output.plan for output in pipeline.outputs}.values():
        columnar = ColumnarRun(plan)
        sources = {one.source.name for one in columnar.flow.inputs}
        for number, batch in enumerate(arrivals):
            columnar.batch([one for one in batch if one.source in sources], Tick(BEGUN + number * 1_000_000))
        for stage, saved in zip(columnar.flow.stages, columnar.snapshot()[0], strict=True):
            place = run.flow.stages.index(stage)
            found.setdefault(place, set()).update(
                [f"head {head(saved.head)}", *(f"part {part(data)}" for data in saved.parts.values())]
            )
    return {f"{place + 1} {run.flow.stages[place].label}": sorted(found[place]) for place in sorted(found)}


def head(data: bytes) -> str:
    """The names in a head, and in those within it."""
    return names(unframed(data)[0])


def names(value: Any) -> str:
    """The names of what JSON has, without its values."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{name}{names(one)}" for name, one in sorted(value.items())) + "}"
    if isinstance(value, list) and value and isinstance(value[0], list):
        return "[" + str(max(map(len, value))) + "]"
    return ""


def part(data: bytes) -> str:
    """The head of a part, and the columns of its tables."""
    said, at = unframed(data)
    if "tables" not in said:
        return f"{names(said)} {columns(data[at:])}"
    told = []
    for table in said["tables"]:
        body = data[at : at + table["bytes"]]
        at += table["bytes"]
        types = {field.name: str(field.type) for field in pa.ipc.open_stream(body).schema} if body else {}
        arrows = (f"{name} {types[name]}" for name, kind in table["columns"].items() if kind == "arrow")
        shape = sorted(name if groups is None else f"{name}={groups}" for name, groups in table["shape"].items())
        told.append(f"{table['kind']}: {' '.join(shape)}: {', '.join(sorted(arrows))}")
    return "; ".join([names({name: one for name, one in said.items() if name != "tables"}), *told])


def columns(body: bytes) -> str:
    """The columns of an Arrow stream, if it is one."""
    try:
        schema = pa.ipc.open_stream(body).schema
    except pa.ArrowInvalid:
        return "no table"
    return ", ".join(f"{field.name} {field.type}" for field in schema)
