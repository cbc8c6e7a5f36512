"""Are these the panes that were expected: a one-to-one match in any order, each expectation in part."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal, InvalidOperation
from typing import Any

from penstock.errors import CaseError, did_you_mean
from penstock.model.panes import Given, Late, Pane, Quarantined
from penstock.plan.graph import AnyStage, flow_of
from penstock.plan.stages import Plan
from penstock.testing.script_arguments import checked_instant
from penstock.types.durations import microseconds
from penstock.types.schema import Schema
from penstock.types.timestamps import MAX_TIME, MIN_TIME
from penstock.types.validate import decode_value

_TIMES = ("start", "end", "event_time", "W", "window_start", "window_end")
_PANE = (
    "window",
    "start",
    "end",
    "index",
    "timing",
    "final",
    "event_time",
    "op",
    "window_start",
    "window_end",
    "pane_index",
    "pane_timing",
    "pane_final",
)
_LATE = ("late_by", "W", "partition", "source", "windows", "op")
_BAD = ("reason", "step", "partition", "source", "offset")


def pane_names(plan: Plan) -> tuple[str, ...]:
    """The names of what can be expected of a pane."""
    return (*plan.keys, *(name for name, _ in plan.aggregates), *_PANE)


def row_names(stage: AnyStage, output: str) -> tuple[str, ...]:
    """The names of what can be expected of a row that a stage gives."""
    if output not in stage.outputs:
        raise CaseError(
            f"{stage.label} has no output {output!r}",
            f"it has {', '.join(stage.outputs)}",
            did_you_mean(output, tuple(stage.outputs)),
        )
    return (*stage.outputs[output].names, "event_time", "op")


def row_facts(given: Given) -> dict[str, Any]:
    """Everything that can be expected of a row that a stage gave; a column named like a fact is meant."""
    return {"event_time": given.event_time, "op": given.op, **given.row}


def wanted_given(schema: Schema, want: Mapping[str, Any]) -> dict[str, Any]:
    """What is expected of a row that a stage gives, its timestamps in microseconds; without `op` it is a +1."""
    return {"op": 1, **_with_instants((schema,), want)}


def late_names(plan: AnyStage) -> tuple[str, ...]:
    """The names of what can be expected of a late row."""
    return (*_row_types(plan), *_LATE)


def quarantined_names(plan: AnyStage) -> tuple[str, ...]:
    """The names of what can be expected of a quarantined row."""
    return (*_row_types(plan), *_BAD)


def pane_facts(plan: Plan, pane: Pane) -> dict[str, Any]:
    """Everything that can be expected of a pane, by name; where a column is named like a fact, the column is meant."""
    return {
        "start": pane.window.start,
        "end": pane.window.end,
        "window": [pane.window.start, pane.window.end],
        "index": pane.index,
        "timing": pane.timing,
        "final": pane.final,
        "op": pane.op,
        "event_time": pane.event_time,
        "window_start": pane.window.start,
        "window_end": pane.window.end,
        "pane_index": pane.index,
        "pane_timing": pane.timing,
        "pane_final": pane.final,
        **dict(zip(plan.keys, pane.key, strict=True)),
        **pane.values,
    }


def late_facts(late: Late) -> dict[str, Any]:
    """Everything that can be expected of a late row, by name; a column that is called op is meant."""
    return {
        "op": late.op,
        **late.row,
        "late_by": late.late_by,
        "source": late.source,
        "partition": late.partition,
        "W": late.watermark,
        "windows": [list(window) for window in late.windows],
    }


def quarantined_facts(plan: AnyStage, bad: Quarantined) -> dict[str, Any]:
    """Everything that can be expected of a quarantined row, by name; a reason is expected in part."""
    where = {"source": bad.source, "partition": bad.partition, "offset": bad.offset}
    return {**wanted_bad(plan, bad.row), **where, "step": bad.step, "reason": bad.reason}


def wanted_bad(plan: AnyStage, want: Mapping[str, Any]) -> dict[str, Any]:
    """A quarantined row, or what is expected of one: what can be decoded is, and the rest is as it came."""
    types = _row_types(plan)
    return {name: _decoded(value, types[name]) if name in types else value for name, value in want.items()}


def wanted_row(plan: AnyStage, want: Mapping[str, Any]) -> dict[str, Any]:
    """What is expected of a row, its timestamps in the microseconds that rows hold."""
    return _with_instants(_schemas(plan), want)


def wanted_pane(plan: Plan, want: Mapping[str, Any]) -> dict[str, Any]:
    """What is expected of a pane, its timestamps in the microseconds that panes hold; without `op` it is a +1."""
    return {"op": 1, **_with_instants((plan.key_schema, plan.result_schema), want)}


def _with_instants(schemas: Sequence[Schema], want: Mapping[str, Any]) -> dict[str, Any]:
    stamps = {c.name for held in schemas for c in held.columns if c.type in ("timestamp", "array<timestamp>")}
    return {name: _instant(value, name) if name in stamps else value for name, value in want.items()}


def _schemas(plan: AnyStage) -> tuple[Schema, ...]:
    """The columns of rows as they reach a stage, and as sources give them."""
    entries = tuple(entry.schema for entry in plan.entries)
    return (*entries, *(one.source.schema for one in flow_of((plan,)).inputs))


def _row_types(plan: AnyStage) -> dict[str, str]:
    """The types of all columns; one that is a time before or after the row steps is read as a time."""
    schemas = _schemas(plan)
    types = {column.name: column.type for held in schemas for column in held.columns}
    return types | {c.name: c.type for held in schemas for c in held.columns if c.type == "timestamp"}


def _decoded(value: Any, kind: str) -> Any:
    try:
        return None if value is None else decode_value(value, kind)
    except (ValueError, OverflowError, KeyError):
        return value


def mismatches(
    found: Sequence[Mapping[str, Any]], expected: Sequence[Mapping[str, Any]], what: str, names: Iterable[str]
) -> str | None:
    """What does not match, in words, or None; a name that nothing of the kind has is told as such."""
    pairs = _matching(found, expected)
    missing = [dict(want) for i, want in enumerate(expected) if i not in pairs]
    extra = [dict(fact) for i, fact in enumerate(found) if i not in pairs.values()]
    said = [f"Unmatched output: expected but not found: {missing}"] if missing else []
    said += [f"Unexpected output: found but not expected: {extra}"] if extra else []
    known = dict.fromkeys([*names, *(name for fact in found for name in fact)])
    return "; ".join(said + unknown_names(missing, what, known)) or None


def unknown_names(wanted: Sequence[Mapping[str, Any]], what: str, known: Iterable[str]) -> list[str]:
    """For each name that is expected and that nothing of the kind has, a sentence that says so."""
    names = tuple(known)
    strange = dict.fromkeys(str(name) for want in wanted for name in want if name not in names)
    return [f"no {what} has a fact {name!r}: {did_you_mean(name, names)}" for name in strange]


def matches(fact: Mapping[str, Any], want: Mapping[str, Any]) -> bool:
    """Whether a fact has everything that is wanted."""
    return all(name in fact and _equal(name, fact[name], value) for name, value in want.items())


def _matching(found: Sequence[Mapping[str, Any]], expected: Sequence[Mapping[str, Any]]) -> dict[int, int]:
    """The largest pairing of expectations with facts, by augmenting paths."""
    owner: dict[int, int] = {}

    def assign(i: int, tried: set[int]) -> bool:
        fits = [j for j, fact in enumerate(found) if j not in tried and matches(fact, expected[i])]
        # A free fact first: many facts that are alike would otherwise push one another on, as deep as they are many.
        for j in sorted(fits, key=lambda j: j in owner):
            if j in tried:
                continue
            tried.add(j)
            if j not in owner or assign(owner[j], tried):
                owner[j] = i
                return True
        return False

    for i in range(len(expected)):
        assign(i, set())
    return {i: j for j, i in owner.items()}


def _equal(name: str, found: Any, wanted: Any) -> bool:
    if name in _TIMES and isinstance(found, int) and isinstance(wanted, (str, datetime)):
        return found == checked_instant(wanted, name)
    if isinstance(found, date) and isinstance(wanted, str):
        return found.isoformat() == wanted
    if isinstance(found, Decimal) and isinstance(wanted, (str, float)):
        return _decimal(wanted) == found
    if name == "late_by" and isinstance(wanted, str):
        return bool(found == microseconds(wanted, name))
    if name == "reason" and isinstance(wanted, str):
        return wanted in str(found)
    if name == "window" and isinstance(wanted, str):
        return wanted == "global" and found == [MIN_TIME, MAX_TIME]
    if name in ("window", "windows") and isinstance(wanted, (list, tuple)):
        return bool(list(found) == [_instant(part, name) for part in wanted])
    if isinstance(found, float) and isinstance(wanted, (int, float)) and not isinstance(wanted, bool):
        return math.isclose(found, wanted, rel_tol=1e-9) or (math.isnan(found) and math.isnan(wanted))
    if isinstance(found, bool) != isinstance(wanted, bool):
        return False
    return bool(found == wanted)


def _instant(part: Any, name: str) -> Any:
    if isinstance(part, (list, tuple)):
        return [_instant(inner, name) for inner in part]
    return None if part is None else checked_instant(part, name)


def _decimal(wanted: str | float) -> Decimal | None:
    try:
        return Decimal(str(wanted))
    except InvalidOperation:
        return None
