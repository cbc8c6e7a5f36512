"""Which settings of a run does somebody need who looks at it? They are kept with what is observed, without secrets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from penstock.api.pipeline import Pipeline
from penstock.plan.graph import Flow


def settings_of(pipeline: Pipeline, shards: int, batch_every: int, until: str | None, kept: int) -> dict[str, Any]:
    """The settings of a run: cadence, shards, how much is kept, and how each source's watermark waits."""
    sources = {}
    for one in pipeline.flow.inputs:
        rule = None if one.time is None else one.time.watermark
        sources[one.source.name] = {"idle": None, "when_idle": "hold"} if rule is None else {
            "idle": rule.idle, "when_idle": rule.when_idle, "rule": str(rule),
        }  # fmt: skip
    return {"batch_every": batch_every, "batch_target": pipeline.batch_target, "until": until, "shards": shards,
            "delivery": pipeline.delivery, "kept_bytes": kept, "sources": sources}  # fmt: skip


def sources_of(flow: Flow, bad: Mapping[str, Sequence[int]]) -> dict[str, dict[str, Any]]:
    """What each source has given so far: rows, bad ones among them, and how many of these it may."""
    found = {}
    for one in flow.inputs:
        read, rejected = bad.get(one.source.name, (0, 0))
        most = one.source.max_bad
        found[one.source.name] = {
            "read": read, "bad": rejected, "max_bad_rows": None if most is None else most.rows,
            "max_bad_share": None if most is None else most.share,
        }  # fmt: skip
    return found
