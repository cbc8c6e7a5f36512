"""Each output of a pipeline with the id of its sink, which stands in ledgers, and what the sink is told of it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

from penstock.api.pipeline import Output, Pipeline
from penstock.connectors.console import Console
from penstock.connectors.foreach_batch import ForeachBatch
from penstock.coordinator.messages import at, late_of, rows_of
from penstock.plan.graph import Flow
from penstock.plan.output_schemas import entry_of, target_of

# What sinks without a place are called in ledgers and clocks; one of the user's is called as its class.
PLACELESS: dict[type, str] = {Console: "console", ForeachBatch: "foreachbatch"}


def targets_of(pipeline: Pipeline) -> Iterator[tuple[str, Any, Any]]:
    """For each output the id of its sink, the sink, and what the sink is told of it.

    The id stands in ledgers: it is made of what the output is and where it goes, so that outputs may be reordered.
    """
    seen: Counter[str] = Counter()
    flow = pipeline.flow
    for output in pipeline.outputs:
        stream = stream_of(flow, output)
        plain = f"{pipeline.name}/{stream.replace('/', '.')}/{_label(output.sink)}"
        seen[plain] += 1
        sink = plain if seen[plain] == 1 else f"{plain}/{seen[plain]}"
        yield sink, output.sink, target_of(output.plan, output.kind, sink, output.name, stream)


def stream_of(flow: Flow, output: Output) -> str:
    """What the rows of an output are called on their way; quarantine and archive belong to no stage."""
    if output.kind in ("quarantine", "archive"):
        return output.kind
    kind: str = output.kind
    if kind == "rows":
        kind = rows_of(output.name)
    elif kind == "late":
        kind = late_of(output.plan.entries.index(entry_of(output.plan, output.name)))
    return at(flow.stages.index(output.plan), kind)


def _label(sink: Any) -> str:
    """Its kind, with the table, the last part of the path or the name: what stays when a database is moved."""
    place = getattr(sink, "place", None)
    if place is None:
        return PLACELESS.get(type(sink), type(sink).__name__.lower())
    kind, _, where = place.partition(":")
    return f"{kind}:{re.split('[/#]', where.rstrip('/'))[-1]}"
