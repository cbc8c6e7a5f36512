"""What of a plan its memory depends on: what may not change while a checkpoint lives, and what differs."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from penstock.checkpoint.persisted_names import persisted_fields, persisted_name
from penstock.checkpoint.plan_fingerprint import fingerprint_stage
from penstock.engine.windows.compiled import Compiled
from penstock.model.aggregates import Aggregate
from penstock.model.triggers import Trigger, When
from penstock.model.windows import Custom
from penstock.plan.graph import AnyStage, Flow
from penstock.plan.operators.passthrough import Pass
from penstock.plan.stages import Input, Plan, RowStage
from penstock.storage.local import CheckpointError
from penstock.types.durations import words

HASH = "murmur64a/1"
MEMORY = "2"
DOES = "does"  # may change, but not turn into that of another stage

# What older versions did not write, each with why a checkpoint that lacks it is taken as it is: it says nothing of it,
# and most plans are unchanged. A name that is missing and not here was not bound by that plan, and is refused.
UNWRITTEN = {
    "inputs": "`sources` and `reads` have all names: it tells stages of one label, and the sides of a join, apart",
    DOES: "two stages that keep the same things were not told apart; the ids in ledgers tell outputs apart",
    "windows: merging": "`window` says that windows are by functions",
    "windows: trigger parts": "`trigger` has the shape, without which part is early and which late, and `once`",
    "match: lateness": "how far events were passed was not said apart from W",
    "match: events": "events at rest have their columns with them, and are refused where these differ",
    "match: functions": "registers at rest have their types with them, and are refused where these differ",
    "process: timers": "a function without on_timer has set none, so that one may be added",
}
_OF_ALL = ("sources", "shards")
_NUMBERED = re.compile(r"(\d+) ([^:]+): (.+)", re.DOTALL)


def binding(flow: Flow, shards: int) -> dict[str, str]:
    """Each thing that binds, in words that can be compared; where there are several stages, those of each."""
    bound = {"sources": ", ".join(f"{one.source.name} ({_read_by(one.source.reader)})" for one in flow.inputs)}
    for number, stage in enumerate(flow.stages, 1):
        facts = _windows(stage) if isinstance(stage, Plan) else _rows(stage)
        facts["inputs"] = _inputs(flow, stage)
        if not (isinstance(stage, RowStage) and isinstance(stage.operator, Pass)):  # which remembers nothing
            facts[DOES] = fingerprint_stage(stage)
        if len(flow.stages) > 1:
            facts |= {"reads": ", ".join(one.source.name for one in stage.inputs)}
            facts = {f"{number} {stage.label}: {name}": value for name, value in facts.items()}
        bound |= facts
    return {**bound, "shards": f"{shards}, hash {HASH}"}


def _inputs(flow: Flow, stage: AnyStage) -> str:
    """What each side of a stage reads: sources by their names, outputs of other stages by their numbers too."""

    def read(way: Input) -> str:
        derived = way.source.derived
        return way.source.name if derived is None else f"{flow.stages.index(derived.stage) + 1} {way.source.name}"

    return "; ".join(f"{entry.name}: {', '.join(map(read, entry.inputs))}" for entry in stage.entries)


def _rows(stage: RowStage) -> dict[str, str]:
    keys = [
        ", ".join(f"{column.name} {column.type}" for column in side.key_schema.columns) or "none"
        for side in stage.sides
    ]
    return {"keys": "; ".join(keys), **stage.operator.binding(stage.sides), "memory": f"{stage.label}, format {MEMORY}"}


def _windows(plan: Plan) -> dict[str, str]:
    compiled, custom = Compiled(plan), isinstance(plan.window, Custom)
    return {
        "keys": ", ".join(f"{column.name} {column.type}" for column in plan.key_schema.columns) or "none",
        "window": "custom" if custom else str(plan.window),
        **({"merging": str(plan.window.merging).lower()} if custom else {}),
        "aggregates": ", ".join(_aggregate(plan, name, one) for name, one in plan.aggregates),
        # A window that was let go cannot come back, and one that waits for its end has that end from the lateness.
        "lateness": words(plan.lateness),
        "trigger": _shape(plan.trigger),
        "trigger parts": _parts(plan.trigger),
        "mode": plan.shown_mode if not plan.fires_once else "one pane a window",
        "memory": f"{'slices' if compiled.by_slices else 'windows'}, format {MEMORY}"
        + (", of records that may be withdrawn" if plan.signed else ""),
    }


def refuse_change(checkpoint: str, before: Mapping[str, str], now: Mapping[str, str]) -> None:
    """Refuse a plan that does not fit what the checkpoint remembers, with the difference."""
    there, here = _stages(before), _stages(now)
    changed = _differences("", _whole(before), _whole(now))
    if [stage.label for stage in there] != [stage.label for stage in here]:
        changed.append(_difference("stages", _listed(there), _listed(here)))
    else:
        for number, (old, new) in enumerate(zip(there, here, strict=True), 1):
            changed += _differences(f"{number} {new.label}: " if len(here) > 1 else "", old.facts, new.facts, new.label)
    layouts = [[stage.layout for stage in stages] for stages in (there, here)]
    moved = layouts[0] != layouts[1] and Counter(layouts[0]) == Counter(layouts[1])
    if not changed:
        changed = _exchanged(there, here)
        moved = bool(changed)
    if changed:
        order = "write the outputs, and the sides of joins, in the order in which the checkpoint has them, or "
        raise CheckpointError(
            f"the plan does not fit the checkpoint {checkpoint}",
            "; ".join(changed),
            f"{order if moved else ''}run it with a new checkpoint (and a new table), or change the plan back",
        )


@dataclass(frozen=True, slots=True)
class _Stage:
    """A stage as a checkpoint or a plan has it: what it is called, and what binds of it by name."""

    label: str
    facts: dict[str, str]

    @property
    def layout(self) -> frozenset[tuple[str, str]]:
        """What decides how its memory is laid out, wherever it stands among the stages."""
        return frozenset(
            (name, value) for name, value in self.facts.items() if name != "reads" and not _unwritten(self.label, name)
        )


def _whole(bound: Mapping[str, str]) -> dict[str, str]:
    """What binds and belongs to no stage."""
    return {name: value for name, value in bound.items() if name in _OF_ALL}


def _stages(bound: Mapping[str, str]) -> list[_Stage]:
    """The stages of a binding by their numbers: where there is but one, its names are written without."""
    found: dict[int, _Stage] = {}
    for name, value in bound.items():
        if name in _OF_ALL:
            continue
        numbered = _NUMBERED.fullmatch(name)
        number, label, fact = numbered.groups() if numbered else ("1", _label(bound.get("memory", "")), name)
        found.setdefault(int(number), _Stage(label, {})).facts[fact] = value
    return [found[number] for number in sorted(found)]


def _label(memory: str) -> str:
    """What a stage is called, by what is written of its memory: of windows that is how they lie."""
    label = memory.partition(",")[0]
    return "windows" if label == "slices" else label


def _listed(stages: Sequence[_Stage]) -> str:
    return ", ".join(f"{number} {stage.label}" for number, stage in enumerate(stages, 1))


def _differences(where: str, before: Mapping[str, str], now: Mapping[str, str], label: str = "") -> list[str]:
    """What appears, vanishes or differs; but for what older versions did not write."""
    names = [name for name in now if name in before or not _unwritten(label, name)]
    names += [name for name in before if name not in now]
    return [
        _difference(f"{where}{name}", before.get(name), now.get(name))
        for name in names
        if name != DOES and before.get(name) != now.get(name)
    ]


def _unwritten(label: str, name: str) -> bool:
    """Whether older versions did not write what a stage has under a name."""
    return name in UNWRITTEN or f"{label}: {name}" in UNWRITTEN


def _difference(name: str, before: str | None, now: str | None) -> str:
    there, here = ("none" if value is None else repr(value) for value in (before, now))
    return f"{name}: it has {there}, the plan has {here}"


def _exchanged(before: Sequence[_Stage], now: Sequence[_Stage]) -> list[str]:
    """Which stages, or sides of one, remember what others do, and do what another did that does not any more."""
    did, does = ([stage.facts.get(DOES, "") for stage in stages] for stages in (before, now))
    fed, feeds = ([one.split(";")[1:] for one in whole] for whole in (did, does))
    found = []
    for number, stage in enumerate(now):
        alike = [n for n, other in enumerate(before) if other.layout == before[number].layout]
        others = [*_taken(did, does, number, alike), *_taken(fed, feeds, number, alike)]
        if others:
            found.append(
                f"stage {number + 1}, {stage.label}, does what stage {others[0] + 1} of the checkpoint did, "
                "and would go on with what another remembers"
            )
            continue
        sides = range(min(len(fed[number]), len(feeds[number])))
        if any(_taken(fed[number], feeds[number], side, sides) for side in sides):
            found.append(f"stage {number + 1}, {stage.label}, has its sides in another order")
    return found


def _taken(did: Sequence[Any], does: Sequence[Any], at: int, places: Iterable[int]) -> list[int]:
    """The places whose part the one at a place has taken over, while they do something else."""
    if did[at] == does[at]:
        return []
    return [place for place in places if did[place] == does[at] and did[place] != does[place]]


def _read_by(reader: object) -> str:
    return "handed in" if reader is None else getattr(reader, "kind", type(reader).__name__.lower())


def _aggregate(plan: Plan, name: str, one: Aggregate) -> str:
    over = [f"{column} {plan.schema.type_of(column, name)}" for column in (one.column, one.by) if column is not None]
    over += [str(number) for number in (one.size, one.q, one.type) if number is not None]
    return f"{name} = {one.kind}({', '.join(over)})"


def _shape(trigger: Trigger) -> str:
    """The trigger without its numbers: its state depends on how it is built, not on how often it fires."""
    inner = ", ".join(_shape(part) for part in trigger.parts)
    name = persisted_name(type(trigger)).lower()
    return f"{name}({inner})" if inner else name


def _parts(trigger: Trigger) -> str:
    """The trigger by the names of its parts: which part a column of its state belongs to."""
    named = [(name, part) for name, part in persisted_fields(trigger) if isinstance(part, Trigger)]
    inner = ", ".join(f"{name}={_parts(part)}" for name, part in named)
    once = " once" if isinstance(trigger, When) and trigger.once else ""
    return f"{persisted_name(type(trigger)).lower()}{once}({inner})"
