"""What of a plan its memory depends on: what may not change while a checkpoint lives, and what differs."""

from __future__ import annotations

from collections.abc import Mapping

from penstock.aggregate import Aggregate
from penstock.checkpoint.store import CheckpointError
from penstock.duration import words
from penstock.engine.compiled import Compiled
from penstock.flow import Flow
from penstock.plan import Plan
from penstock.stage import RowStage
from penstock.trigger import Trigger
from penstock.window import Custom

HASH = "murmur64a/1"
MEMORY = "2"


def binding(flow: Flow, shards: int) -> dict[str, str]:
    """Each thing that binds, in words that can be compared; where there are several stages, those of each."""
    held = {"sources": ", ".join(f"{one.source.name} ({_read_by(one.source.reader)})" for one in flow.inputs)}
    for number, stage in enumerate(flow.stages):
        said = _windows(stage) if isinstance(stage, Plan) else _rows(stage)
        if len(flow.stages) > 1:
            said |= {"reads": ", ".join(one.source.name for one in stage.inputs)}
            said = {f"{number + 1} {stage.label}: {name}": value for name, value in said.items()}
        held |= said
    return {**held, "shards": f"{shards}, hash {HASH}"}


def _rows(stage: RowStage) -> dict[str, str]:
    keys = [", ".join(f"{column.name} {column.type}" for column in side.key_schema.columns) or "none"
            for side in stage.sides]  # fmt: skip
    return {"keys": "; ".join(keys), **stage.operator.binding(stage.sides), "memory": f"{stage.label}, format {MEMORY}"}


def _windows(plan: Plan) -> dict[str, str]:
    compiled = Compiled(plan)
    return {
        "keys": ", ".join(f"{column.name} {column.type}" for column in plan.key_schema.columns) or "none",
        "window": "custom" if isinstance(plan.window, Custom) else str(plan.window),
        "aggregates": ", ".join(_aggregate(plan, name, one) for name, one in plan.aggregates),
        # A window that was let go cannot come back, and one that waits for its end has that end from the lateness.
        "lateness": words(plan.lateness),
        "trigger": _shape(plan.trigger),
        "mode": plan.shown_mode if not plan.fires_once else "one pane a window",
        "memory": f"{'slices' if compiled.by_slices else 'windows'}, format {MEMORY}"
        + (", of records that may be withdrawn" if plan.signed else ""),
    }


def refuse_change(checkpoint: str, held: Mapping[str, str], now: Mapping[str, str]) -> None:
    """Refuse a plan that does not fit what the checkpoint remembers, with the difference."""
    # What an older version did not write down did not bind then.
    changed = [name for name in now if held.get(name, now[name]) != now[name]]
    if changed:
        said = "; ".join(f"{name}: it has {held[name]!r}, the plan has {now[name]!r}" for name in changed)
        raise CheckpointError(
            f"the plan does not fit the checkpoint {checkpoint}",
            said,
            "run it with a new checkpoint (and a new table), or change the plan back",
        )


def _read_by(reader: object) -> str:
    return "handed in" if reader is None else getattr(reader, "kind", type(reader).__name__.lower())


def _aggregate(plan: Plan, name: str, one: Aggregate) -> str:
    over = [f"{column} {plan.schema.type_of(column, name)}" for column in (one.column, one.by) if column is not None]
    over += [str(number) for number in (one.size, one.q, one.type) if number is not None]
    return f"{name} = {one.kind}({', '.join(over)})"


def _shape(trigger: Trigger) -> str:
    """The trigger without its numbers: its state depends on how it is built, not on how often it fires."""
    inner = ", ".join(_shape(part) for part in trigger.parts)
    return f"{type(trigger).__name__.lower()}({inner})" if inner else type(trigger).__name__.lower()
