"""What does a case file say: TOML, JSON or YAML, checked key by key, as frozen cases with their steps."""

from __future__ import annotations

import datetime
import importlib
import json
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from penstock.errors import CaseError, PlanError, did_you_mean
from penstock.testing.beam_transcripts import case_of, transcripts
from penstock.testing.case_expressions import make
from penstock.testing.script_arguments import MARKS, checked_marks, checked_times
from penstock.types.timestamps import parse

Said = Mapping[str, Any]
ENDINGS = (".json", ".toml", ".yaml", ".yml")
TEXT_OR_NUMBER = (str, int)
EXPECTED = (str, list)
ROW_MARKS = (*MARKS, "@times")

FILE_KEYS = {"suite": str, "about": str, "deviations": dict, "defaults": dict, "case": list}
PLAN_KEYS: dict[str, Any] = {
    "schema": str,
    "bounded": bool,
    "event_time": str,
    "time": str,
    "unit": str,
    "watermark": str,
    "where_before": str,
    "where": str,
    "with_columns": dict,
    "key_by": list,
    "window": str,
    "lateness": str,
    "trigger": str,
    "mode": str,
    "aggregate": dict,
    "partitions": list,
    "max_bad": TEXT_OR_NUMBER,
    "sources": dict,
}
CASE_KEYS = {
    **PLAN_KEYS,
    "name": str,
    "about": str,
    "error": str,
    "refused": str,
    "deviation": str,
    "step": list,
}
SOURCE_KEYS = {key: PLAN_KEYS[key] for key in ("schema", "bounded", "event_time", "unit", "watermark", "max_bad")}
STEP_KEYS: dict[str, Any] = {
    "about": str,
    "rows": EXPECTED,
    "partition": str,
    "now": TEXT_OR_NUMBER,
    "watermark": TEXT_OR_NUMBER,
    "end": bool,
    "resume": bool,
    "restart": bool,
    "panes": EXPECTED,
    "late": EXPECTED,
    "quarantined": EXPECTED,
    "watermark_after": TEXT_OR_NUMBER,
    "deviation": str,
}
WORDS = {
    "time": ("event", "processing", "ingestion"),
    "mode": ("accumulating", "discarding", "retracting"),
    "unit": ("s", "ms", "us"),
}


@dataclass(frozen=True, slots=True)
class Step:
    """One batch and what it must give; an expectation that is "any" is not looked at."""

    rows: str | Sequence[Said] = ()
    partition: str | None = None
    now: str | int | None = None
    watermark: str | int | None = None
    end: bool = False
    resume: bool = False
    restart: bool = False
    panes: str | Sequence[Said] = ()
    late: str | Sequence[Said] = ()
    quarantined: str | Sequence[Said] = ()
    watermark_after: str | int | None = None
    deviation: str | None = None


@dataclass(frozen=True, slots=True)
class Case:
    """One pipeline and the batches to play on it.

    Its withdrawals are listed among the panes, or, where others know of none, checked against what they take back.
    """

    suite: str
    name: str
    says: Said
    steps: tuple[Step, ...] = ()
    error: str | None = None
    refused: str | None = None
    deviation: str | None = None
    file: Path = field(default=Path(), compare=False)
    withdrawals: Literal["listed", "checked"] = "listed"

    @property
    def deviations(self) -> tuple[str, ...]:
        """The deviations that the case, its steps and its panes name."""
        named = [self.deviation]
        for step in self.steps:
            named.append(step.deviation)
            named += [pane.get("deviation") for pane in step.panes if isinstance(pane, Mapping)]
        return tuple(name for name in named if name is not None)


def find(paths: Iterable[str | Path]) -> list[Path]:
    """The case files that paths name: a file itself, a directory all those below it."""
    found: list[Path] = []
    for path in map(Path, paths):
        inside = sorted(one for one in path.rglob("*") if one.suffix in ENDINGS) if path.is_dir() else [path]
        if not inside:
            raise CaseError(
                f"{path} holds no case file",
                f"a case file ends in {', '.join(ENDINGS)}",
                "name a file, or a directory that has one",
            )
        found += inside
    return found


def read(path: str | Path) -> list[Case]:
    """The cases of a file; every key is known and every maker can be read, or a CaseError says which not."""
    path = Path(path)
    where = str(path)
    found = _normal(_load(path))
    if documents := transcripts(found):
        return [_transcript(document, path) for document in documents]
    said = _checked(found, FILE_KEYS, where)
    said = _named(said, said.get("deviations", {}), where)
    suite, defaults = said.get("suite", path.stem), _checked(said.get("defaults", {}), PLAN_KEYS, f"{where}: defaults")
    if not said.get("case"):
        raise _error(
            where, "it has no cases", "a case file says at least one thing to play", "add [[case]], with a name"
        )
    cases = []
    for number, one in enumerate(said.get("case", []), 1):
        name = one.get("name", f"case {number}") if isinstance(one, dict) else f"case {number}"
        cases.append(_case(suite, path, _checked(one, CASE_KEYS, f"{where}: {name}"), defaults))
    names = [case.name for case in cases]
    for name in names:
        if names.count(name) > 1:
            raise _error(where, f"two cases are called {name!r}", "a case is found by its name", "rename one of them")
    return cases


def _case(suite: str, path: Path, said: Said, defaults: Said) -> Case:
    where = f"{path}: {said.get('name', 'a case')}"
    if "name" not in said:
        raise _error(where, "it has no name", "a failure is told by the case's name", 'write name = "…"')
    plan = {**defaults, **{key: value for key, value in said.items() if key in PLAN_KEYS}}
    _check_plan(plan, where)
    steps = tuple(
        _step(_checked(one, STEP_KEYS, f"{where}: step {n}"), f"{where}: step {n}")
        for n, one in enumerate(said.get("step", []), 1)
    )
    if not steps and "refused" not in said:
        raise _error(where, "it has no steps", "a case plays at least one batch", 'add [[case.step]], or refused = "…"')
    return Case(suite, said["name"], plan, steps, said.get("error"), said.get("refused"), said.get("deviation"), path)


def _transcript(document: Said, path: Path) -> Case:
    said = case_of(document, str(path))
    steps = tuple(Step(**one) for one in said["step"])
    plan = {key: value for key, value in said.items() if key in PLAN_KEYS}
    return Case(path.stem, said["name"], plan, steps, said.get("error"), None, said.get("deviation"), path, "checked")


def _check_plan(plan: Said, where: str) -> None:
    for key, words in WORDS.items():
        if key in plan and plan[key] not in words:
            raise _error(
                where, f"{key} is {plan[key]!r}", f"it is one of {', '.join(words)}", did_you_mean(plan[key], words)
            )
    for key in ("key_by", "partitions", "with_columns", "aggregate"):
        values = plan.get(key, [])
        for value in values.values() if isinstance(values, dict) else values:
            if not isinstance(value, str):
                raise _error(where, f"{key} holds {value!r}", f"what {key} holds is text", "write it in quotes")
    if plan.get("sources") == {}:
        raise _error(
            where,
            "sources is empty",
            "a pipeline reads from at least one source",
            "leave sources out, or write sources = { events = {} }",
        )
    for name, source in plan.get("sources", {}).items():
        _checked(source, SOURCE_KEYS, f"{where}: the source {name}")
    makers = [(what, plan[what]) for what in ("window", "trigger", "watermark") if what in plan]
    makers += [("watermark", one["watermark"]) for one in plan.get("sources", {}).values() if "watermark" in one]
    makers += [("aggregate", text) for text in plan.get("aggregate", {}).values()]
    for what, text in makers:
        try:
            make(text, what)
        except CaseError as error:
            raise _error(where, error.what, error.why, error.instead) from None
        except PlanError:
            pass  # a refusal is for `refused` to expect, when the case is played


def _step(said: Said, where: str) -> Step:
    wrong = None
    if said.get("end") and (said.keys() & {"rows", "watermark", "resume"}):
        wrong = "end = true together with rows, watermark or resume", "at the end nothing arrives and W is infinite"
    elif said.get("resume") and ("now" not in said or said.keys() & {"rows", "watermark"}):
        wrong = "resume = true without now, or with rows or watermark", "the first batch after an outage says its now"
    if wrong is not None:
        raise _error(where, *wrong, "give each its own step")
    for key in ("now", "watermark", "watermark_after"):
        try:
            parse(said.get(key, 0))
        except ValueError as error:
            raise _error(
                where,
                f"{key} is no point in time: {error}",
                "it is a time of day, ISO 8601, +inf, or microseconds",
                f'write {key} = "12:00"',
            ) from None
    for key in ("rows", "panes", "late", "quarantined"):
        _check_text(said.get(key, []), key, where)
        for one in said.get(key, []) if isinstance(said.get(key), list) else []:
            _check_row(one, key, where)
    return Step(**{key: value for key, value in said.items() if key != "about"})


def _check_text(said: Any, key: str, where: str) -> None:
    """A text is a table, of a header and at least one line, or "any" where something is expected."""
    if isinstance(said, str) and len(said.strip().splitlines()) < 2 and (said != "any" or key == "rows"):
        words = "a text table" if key == "rows" else 'a text table, or "any"'
        raise _error(
            where,
            f"{key} is {said!r}",
            f"{key} is a list, {words}; a text table has a header, then lines",
            f"for none write {key} = []",
        )


def _check_row(one: Any, key: str, where: str) -> None:
    if not isinstance(one, dict):
        raise _error(where, f"{key} holds {one!r}", "each is a table", "write { value = 1 }")
    try:
        checked_times(one)
        if key == "rows":
            checked_marks(one, ROW_MARKS)
    except CaseError as error:
        raise _error(where, error.what, error.why, error.instead) from None
    if one.get("absent") and "deviation" not in one:
        raise _error(
            where,
            "a pane is absent without a deviation",
            "only a named deviation makes up for it",
            'add deviation = "name: rule"',
        )


def _checked(said: Any, known: Mapping[str, Any], where: str) -> Said:
    """A table that has known keys alone, each of its type."""
    if not isinstance(said, dict):
        raise _error(where, f"it is {said!r}", "a table was expected", "write keys and values")
    for key, value in said.items():
        if key not in known:
            raise _error(
                where, f"there is no key {key!r}", f"the keys are: {', '.join(known)}", did_you_mean(str(key), known)
            )
        kinds = known[key] if isinstance(known[key], tuple) else (known[key],)
        if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
            wanted = " or ".join(_WORD[kind] for kind in kinds)
            raise _error(where, f"{key} is {value!r}", f"{key} is {wanted}", f"give {key} {wanted}")
    return said


_WORD = {str: "a text", int: "a number", bool: "true or false", list: "a list", dict: "a table"}


def _load(path: Path) -> Any:
    try:
        text = path.read_text(encoding="utf-8")
        if path.suffix == ".toml":
            return tomllib.loads(text)
        if path.suffix == ".json":
            return json.loads(text)
        if path.suffix in (".yaml", ".yml"):
            found = list(importlib.import_module("yaml").safe_load_all(text))
            return found[0] if len(found) == 1 else found
    except ImportError:
        raise _error(
            path,
            "YAML cannot be read here",
            "PyYAML is not installed, and Penstock does not need it",
            "write the cases as TOML or JSON, or install PyYAML",
        ) from None
    except (OSError, ValueError) as error:
        raise _error(path, "the file cannot be read", str(error), "mend the file, or name another") from None
    except Exception as error:  # PyYAML's errors, whose class has no name here
        raise _error(path, "the file cannot be read", str(error), "mend the file, or name another") from None
    raise _error(
        path,
        f"{path.suffix or 'no ending'} is not the ending of a case file",
        f"a case file ends in {', '.join(ENDINGS)}",
        "rename the file",
    )


def _normal(said: Any) -> Any:
    """TOML's times of day as the texts that the kit reads everywhere."""
    if isinstance(said, dict):
        return {key: _normal(value) for key, value in said.items()}
    if isinstance(said, list):
        return [_normal(value) for value in said]
    return said.isoformat() if isinstance(said, (datetime.time, datetime.datetime)) else said


def _named(said: Any, rules: Said, where: str) -> Any:
    """What a file says, with each deviation written out: its name and, from `deviations`, its rule."""
    if isinstance(said, list):
        return [_named(value, rules, where) for value in said]
    if not isinstance(said, dict):
        return said
    left = ("rows", "deviations")
    named = {key: value if key in left else _named(value, rules, where) for key, value in said.items()}
    deviation = named.get("deviation")
    if isinstance(deviation, str) and ":" not in deviation:
        if deviation not in rules:
            raise _error(
                where,
                f"there is no deviation {deviation!r}",
                "a deviation names the rule that differs",
                did_you_mean(deviation, rules) if rules else 'write deviation = "name: the rule"',
            )
        named["deviation"] = f"{deviation}: {rules[deviation]}"
    return named


def _error(where: object, what: str, why: str, instead: str) -> CaseError:
    return CaseError(f"{where}: {what}", why, instead)
