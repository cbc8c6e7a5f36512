"""What does a run consist of: its sources, stages and sinks as a graph in words, kept beside its checkpoint.

Written when a run starts, if it differs from what is there; so a page can draw the plan without the pipeline's file.
Sinks say where they write without their secrets.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from penstock.api.pipeline import Pipeline
from penstock.checkpoint.checksummed_json import sealed, unsealed
from penstock.plan.explain import explain, explain_rows, input_words
from penstock.plan.graph import AnyStage, Flow
from penstock.plan.stages import Plan
from penstock.storage.local import Store

FOLDER = "penstock/plan"


def graph_of(pipeline: Pipeline) -> dict[str, Any]:
    """The plan as nodes, which say what they are and do, and the ways of rows between them."""
    flow = pipeline.flow
    depth = depths(flow)
    nodes: list[dict[str, Any]] = []
    edges: list[list[str]] = []
    for one in flow.inputs:
        nodes.append(
            {
                "id": f"source:{one.source.name}",
                "kind": "source",
                "name": one.source.name,
                "depth": 0,
                "says": [["columns", str(one.source.schema)], *_pairs(input_words(one)[1:])],
            }
        )
    for number, stage in enumerate(flow.stages):
        nodes.append(
            {
                "id": f"stage:{number}",
                "kind": "stage",
                "name": stage.label,
                "depth": depth[number],
                "number": number,
                "windows": isinstance(stage, Plan),
                "keys": list(_keys(stage)),
                "says": _pairs(_stage_words(stage)),
            }
        )
        edges += [[from_, f"stage:{number}", ""] for from_ in _above(flow, number)]
    last = max(depth.values(), default=0) + 1
    for place, output in enumerate(pipeline.outputs):
        nodes.append(
            {
                "id": f"output:{place}",
                "kind": "output",
                "name": output.name or output.kind,
                "depth": last,
                "says": [["to", output.sink.describe()]],
            }
        )
        edges.append([f"stage:{flow.stages.index(output.plan)}", f"output:{place}", output.name or output.kind])
    return {
        "name": pipeline.name,
        "delivery": pipeline.delivery.replace("_", " "),
        "nodes": nodes,
        "edges": edges,
        "warnings": list(pipeline.check()),
    }


def depths(flow: Flow) -> dict[int, int]:
    """How many stages rows pass before they have left each one."""
    found: dict[int, int] = {}
    for number in range(len(flow.stages)):
        found[number] = 1 + max((found[one] for one in flow.above(number)), default=0)
    return found


def keep_plan(store: Store, pipeline: Pipeline, epoch: int) -> None:
    """Write a plan down unless the last one is the same; that it cannot be written is no reason to stop a run."""
    with suppress(Exception):
        graph = graph_of(pipeline)
        if kept_plan(store) == json.loads(json.dumps(graph)):
            return
        store.create(f"{FOLDER}/{epoch:09d}", sealed({"graph": graph}))
        for old in [name for name in store.names(FOLDER) if name < f"{epoch:09d}"]:
            store.delete(f"{FOLDER}/{old}")


def kept_plan(store: Store) -> dict[str, Any] | None:
    """The plan that a run has written down last; None where none has, or where it cannot be read."""
    names = store.names(FOLDER)
    data = store.read(f"{FOLDER}/{names[-1]}") if names else None
    if data is None:
        return None
    with suppress(Exception):
        graph: dict[str, Any] = unsealed(data, f"{store.root}/{FOLDER}/{names[-1]}")["graph"]
        return graph
    return None


def _stage_words(stage: AnyStage) -> list[str]:
    said = explain(stage) if isinstance(stage, Plan) else explain_rows(stage)
    # What it reads are nodes of their own.
    return [line for line in said.splitlines() if not line.startswith((" ", "source:", "table:", "reads:"))]


def _pairs(lines: list[str]) -> list[list[str]]:
    """Lines such as `when:   at_watermark()` as a word and what is said of it."""
    made = []
    for line in lines:
        word, parted, rest = line.strip().partition(": ")
        short = parted and len(word) <= 24
        made.append([word if short else "", rest.strip() if short else line.strip()])
    return made


def _above(flow: Flow, number: int) -> Iterator[str]:
    yield from (f"source:{name}" for name in sorted(flow.own_sources(number)))
    yield from (f"stage:{one}" for one in flow.above(number))


def _keys(stage: AnyStage) -> tuple[str, ...]:
    return stage.keys if isinstance(stage, Plan) else stage.entries[0].keys


def settings_of(pipeline: Pipeline, shards: int, batch_every: int, until: str | None, kept: int) -> dict[str, Any]:
    """The settings of a run: cadence, shards, how much is kept, and how each source's watermark waits."""
    sources = {}
    for one in pipeline.flow.inputs:
        rule = None if one.time is None else one.time.watermark
        sources[one.source.name] = (
            {"idle": None, "when_idle": "hold"}
            if rule is None
            else {
                "idle": rule.idle,
                "when_idle": rule.when_idle,
                "rule": str(rule),
            }
        )
    return {
        "batch_every": batch_every,
        "batch_target": pipeline.batch_target,
        "until": until,
        "shards": shards,
        "delivery": pipeline.delivery,
        "kept_bytes": kept,
        "sources": sources,
    }


def sources_of(flow: Flow, bad: Mapping[str, Sequence[int]]) -> dict[str, dict[str, Any]]:
    """What each source has given so far: rows, bad ones among them, and how many of these it may."""
    found = {}
    for one in flow.inputs:
        read, rejected = bad.get(one.source.name, (0, 0))
        most = one.source.max_bad
        found[one.source.name] = {
            "read": read,
            "bad": rejected,
            "max_bad_rows": None if most is None else most.rows,
            "max_bad_share": None if most is None else most.share,
        }
    return found
