"""Does an engine do what a case says: builds its pipeline, plays its steps, and tells the first difference."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from penstock.api.events import events
from penstock.api.stream import Stream
from penstock.api.windowed import Panes
from penstock.errors import PenstockError, PlanError
from penstock.model.panes import Pane
from penstock.runtime.batch import Outcome
from penstock.testing.case_expressions import make
from penstock.testing.cases import ROW_MARKS, Case, Said, Step
from penstock.testing.expectations import (
    late_facts,
    late_names,
    matches,
    mismatches,
    pane_facts,
    pane_names,
    quarantined_facts,
    quarantined_names,
    unknown_names,
    wanted_bad,
    wanted_pane,
    wanted_row,
)
from penstock.testing.script import Script
from penstock.testing.script_arguments import checked_marks, checked_times
from penstock.testing.tables import pane_types, read_table, row_types
from penstock.types.timestamps import parse, show

SCHEMA = "key string, value long, at timestamp"
NOT_FACTS = ("deviation", "absent", "about")
HISTORY = ("first", "early", "late", "nsi")


@dataclass(frozen=True, slots=True)
class Played:
    """How a case went on an engine; `failure` is None if it passed."""

    case: Case
    engine: str
    failure: str | None


def play(case: Case, engine: str) -> Played:
    """Play a case, right or wrong on purpose."""
    if case.refused is not None:
        return Played(case, engine, _refusal(case))
    try:
        failure = _difference(case, engine)
    except (PenstockError, AssertionError) as error:
        failure = _one_line(str(error))
    except Exception as error:  # an engine that falls over has failed this case; the others are still played
        failure = _one_line(f"{type(error).__name__}: {error}")
    if case.error is None:
        return Played(case, engine, failure)
    if failure is None:
        return Played(case, engine, f"it went well, but is wrong on purpose: expected {case.error!r}")
    return Played(case, engine, None if case.error in failure else f"expected {case.error!r}, but: {failure}")


def pipeline(case: Case) -> Panes:
    """The pipeline that a case describes."""
    says = case.says
    streams = [_stream({**says, **source}, name) for name, source in says.get("sources", {"events": {}}).items()]
    stream = streams[0].union(*streams[1:]) if len(streams) > 1 else streams[0]
    if "with_columns" in says:
        stream = stream.with_columns(**says["with_columns"])
    if "where" in says:
        stream = stream.where(says["where"])
    windowed = stream.key_by(*says.get("key_by", [])).window(
        make(says.get("window", "global_window()"), "window"), lateness=says.get("lateness", "0")
    )
    windowed = windowed.trigger(make(says.get("trigger", "at_watermark()"), "trigger"))
    if "mode" in says:
        windowed = getattr(windowed, says["mode"])()
    return windowed.aggregate(**{name: make(text, "aggregate") for name, text in says.get("aggregate", {}).items()})


def begun(case: Case, engine: str) -> Script:
    """A script of the pipeline that a case describes, before its first step."""
    return Script(pipeline(case), engine, partitions=case.says.get("partitions", ()))


def _stream(says: Said, name: str) -> Stream:
    stream = events(
        says.get("schema", SCHEMA), name=name, bounded=says.get("bounded", False), max_bad=says.get("max_bad")
    )
    if "where_before" in says:
        stream = stream.where(says["where_before"])
    basis = says.get("time", "event")
    if basis == "processing":
        return stream.processing_time()
    column, unit = says.get("event_time", "at"), says.get("unit")
    if basis == "ingestion":
        rule = make(says["watermark"], "watermark") if "watermark" in says else None
        return stream.ingestion_time(column, watermark=rule, unit=unit)
    return stream.event_time(column, watermark=make(says.get("watermark", "by_hand()"), "watermark"), unit=unit)


def _refusal(case: Case) -> str | None:
    try:
        pipeline(case)
    except PlanError as error:
        wanted = case.refused or ""
        return None if wanted in str(error) else f"refused, but not with {wanted!r}: {error.what}"
    return f"the plan was not refused; expected {case.refused!r}"


def _difference(case: Case, engine: str) -> str | None:
    """The first step that differs, and how; or None."""
    script = begun(case, engine)
    shown: Counter[Any] = Counter()
    standing: dict[Any, list[Pane]] = {}
    for number, step in enumerate(case.steps, 1):
        outcome = play_step(script, step)
        looked_at = [pane for pane in outcome.panes if case.withdrawals == "listed" or pane.op > 0]
        facts = [_facts(script, pane, shown) for pane in looked_at]
        said = [
            _panes(script, facts, step.panes),
            None if case.withdrawals == "listed" else _withdrawals(script, outcome, standing),
            _late(script, outcome, step.late),
            _quarantined(script, outcome, step.quarantined),
            _watermark(script, step.watermark_after),
        ]
        wrong = [one for one in said if one is not None]
        if wrong:
            return f"step {number}: " + "; ".join(wrong)
    return None


def play_step(script: Script, step: Step) -> Outcome:
    """Play one step of a case, whatever it expects."""
    if step.restart:
        script.restart()
    if step.resume:
        assert step.now is not None
        return script.resume(step.now)
    if step.end:
        return script.end(now=step.now)
    rows = read_table(step.rows, row_types(script.plan), ROW_MARKS) if isinstance(step.rows, str) else step.rows
    for row in rows:
        checked_marks(row, ROW_MARKS)
    return script.batch(_times(rows), partition=step.partition, now=step.now, watermark=step.watermark)


def _times(rows: Sequence[Said]) -> list[Said]:
    """A row with "@times" stands for that many like it."""
    return [
        {name: value for name, value in row.items() if name != "@times"}
        for row in rows
        for _ in range(checked_times(row))
    ]


def _facts(script: Script, pane: Pane, shown: Counter[Any]) -> dict[str, Any]:
    """A pane's facts, and those that only its history tells: the index among the panes that are not early."""
    history: dict[str, Any] = {"first": pane.index == 0, "early": pane.timing == "early", "late": pane.timing == "late"}
    if pane.op > 0:
        place = (tuple(map(repr, pane.key)), pane.window)
        history["nsi"] = -1 if pane.timing == "early" else shown[place]
        shown[place] += pane.timing != "early"
    return {**history, **pane_facts(script.plan, pane)}


def _panes(script: Script, facts: Sequence[Mapping[str, Any]], expected: str | Sequence[Said]) -> str | None:
    if expected == "any":
        return None
    names = (*pane_names(script.plan), *HISTORY)
    table = read_table(expected, pane_types(script.plan), names) if isinstance(expected, str) else expected
    shown: list[Said] = []
    absent: list[Said] = []
    for want in table:
        said = {name: value for name, value in want.items() if name not in NOT_FACTS}
        (absent if want.get("absent") else shown).append(wanted_pane(script.plan, said))
    for want in absent:
        if any(matches(fact, want) for fact in facts):
            return f"Unexpected output: a deviation says that this is not shown: {want}"
    # What nothing has is never shown: a slip in an absent pane would go unseen.
    slips = unknown_names(absent, "pane", names)
    return "; ".join(slips) or mismatches(facts, shown, "pane", names)


def _withdrawals(script: Script, outcome: Outcome, standing: dict[Any, list[Pane]]) -> str | None:
    """Whether each withdrawal repeats what it takes back, and whether a merged window took back what it holds."""
    mode, wrong = script.plan.shown_mode, []
    for pane in (pane for pane in outcome.panes if pane.op < 0):
        before = standing.pop(pane.window, [])
        taken = before if mode == "discarding" else before[-1:]
        values = sorted(value for one in taken for value in cast(list[int], one.values["values"]))
        if not before or (pane.index, pane.timing) != (before[-1].index, before[-1].timing):
            wrong.append(f"Unexpected output: what does not stand is withdrawn: {pane}")
        elif pane.values["values"] != values:
            wrong.append(f"Unmatched output: {values} were to be withdrawn, and not {pane}")
    for pane in (pane for pane in outcome.panes if pane.op > 0):
        inside = [
            one
            for one in standing
            if script.plan.window.merging
            and one != pane.window
            and pane.window.start <= one.start
            and one.end <= pane.window.end
            and not standing[one][-1].final
        ]
        wrong += [f"Unmatched output: {standing[one][-1]} was to be withdrawn" for one in inside]
        standing.setdefault(pane.window, []).append(pane)
    return "; ".join(wrong) or None


def _late(script: Script, outcome: Outcome, expected: str | Sequence[Said]) -> str | None:
    if expected == "any":
        return None
    plan, names = script.plan, late_names(script.plan)
    table = read_table(expected, row_types(plan), names) if isinstance(expected, str) else expected
    facts = [late_facts(late) for late in outcome.late]
    wrong = mismatches(facts, [wanted_row(plan, want) for want in _times(table)], "late row", names)
    return None if wrong is None else f"late rows: {wrong}"


def _quarantined(script: Script, outcome: Outcome, expected: str | Sequence[Said]) -> str | None:
    if expected == "any":
        return None
    plan, names = script.plan, quarantined_names(script.plan)
    table = read_table(expected, row_types(plan), names) if isinstance(expected, str) else expected
    facts = [quarantined_facts(plan, bad) for bad in outcome.quarantined]
    wrong = mismatches(facts, [wanted_bad(plan, want) for want in _times(table)], "quarantined row", names)
    return None if wrong is None else f"quarantine: {wrong}"


def _one_line(text: str) -> str:
    return " / ".join(line.strip() for line in text.splitlines())


def _watermark(script: Script, wanted: str | int | None) -> str | None:
    if wanted is None or parse(wanted) == script.W:
        return None
    return f"the watermark is {show(script.W)} and not {show(parse(wanted))}"
