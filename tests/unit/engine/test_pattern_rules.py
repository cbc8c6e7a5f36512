"""Every row of the tables in docs/patterns.md: by the definition, and on both implementations in several cuts."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from penstock.plan.operators.match import TIMEOUTS, Match, match
from penstock.plan.operators.pattern import Pattern, Skip, no_skip, past_last, pattern, to_first, to_last, to_next
from penstock.plan.stages import MAIN, Side
from penstock.reference.aggregates import Record
from penstock.types.durations import SECOND
from penstock.types.schema import schema
from penstock.types.timestamps import MAX_TIME
from tests.properties.all_matches import Condition, Word, expected
from tests.properties.matching import ByColumn, ByRow

PAGE = Path(__file__).parents[3] / "docs" / "patterns.md"
SIDE = Side("events", schema("team string, kind string, bit long"), ("team",))
SKIPS = {"no_skip": no_skip, "to_next": to_next, "past_last": past_last, "to_first": to_first, "to_last": to_last}


@dataclass(frozen=True)
class Example:
    """A row of a table."""

    rule: str
    written: str
    events: str
    given: str


def _examples() -> list[Example]:
    found = []
    for line in PAGE.read_text().splitlines():
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        if len(cells) == 4 and cells[1].startswith("`"):
            found.append(Example(cells[0], cells[1].strip("`"), cells[2], cells[3]))
    return found


@dataclass(frozen=True)
class Shorthand:
    """A pattern in the writing of the tables, in which a letter stands for a step."""

    made: Pattern

    def __getattr__(self, name: str) -> Any:
        def method(*args: Any) -> Shorthand:
            step = args[0].made.steps[0] if args and isinstance(args[0], Shorthand) else None
            given = args if step is None else (step.name, step.condition)
            return Shorthand(getattr(self.made, name)(*given))

        return method


def _letter(letter: str) -> Shorthand:
    return Shorthand(pattern(letter) if letter == "x" else pattern(letter, f"kind = '{letter}'"))


def _asked(short: Shorthand, *, within: str = "1 hour", skip: Skip | None = None, timeouts: bool = False) -> Match:
    asked = short.made.within(within)
    output = {step.name: f"sum({step.name}.bit)" for step in asked.taken}
    return match(asked, output=output, skip=skip or no_skip(), timeouts=timeouts)


def _rule(written: str) -> Match:
    names = {node.id for node in ast.walk(ast.parse(f"_asked({written})")) if isinstance(node, ast.Name)}
    letters = {name: _letter(name) for name in names if len(name) == 1}
    rule: Match = eval(f"_asked({written})", {**SKIPS, **letters, "_asked": _asked})
    rule.check([SIDE])
    return rule


def _records(events: str) -> tuple[list[Record], list[str]]:
    records, labels = [], events.split()
    for n, label in enumerate(labels):
        name, _, at = label.partition("@")
        time = int(at or n) * SECOND
        records.append(Record(time, "s/0", n, {"team": "t", "kind": name[0], "bit": 2**n}))
    return records, [label.partition("@")[0] for label in labels]


def _shown(given: Any, labels: list[str]) -> list[str]:
    """The rows of a batch as the tables write them: the events that a row took, in order."""
    shown = []
    for (output, _), rows in given.rows.items():
        for row in rows:
            values, _ = eval(row)
            bits = sum(value or 0 for name, value in values.items() if len(name) == 1)
            taken = " ".join(label for n, label in enumerate(labels) if bits >> n & 1)
            shown.append(f"timeout {taken}" if output == TIMEOUTS else taken)
            assert output in (MAIN, TIMEOUTS)
    return shown


@pytest.mark.parametrize("machine", [ByRow, ByColumn])
@pytest.mark.parametrize("size", [1, 3, 100])
@pytest.mark.parametrize("example", _examples(), ids=lambda example: f"{example.written} on {example.events}")
def test_the_tables_hold(example: Example, size: int, machine: Any) -> None:
    played = machine(_rule(example.written), SIDE)
    records, labels = _records(example.events)
    given, watermark = [], -(2**63)
    for at in range(0, len(records), size):
        batch = records[at : at + size]
        given += _shown(played.step(batch, watermark, restart=True), labels)
        watermark = batch[-1].time
    given += _shown(played.step([], MAX_TIME), labels)
    expected = [] if example.given == "-" else example.given.split("; ")
    assert sorted(given) == sorted(expected)


@pytest.mark.parametrize("example", _examples(), ids=lambda example: f"{example.written} on {example.events}")
def test_the_definition_gives_what_the_tables_say(example: Example) -> None:
    rule = _rule(example.written)
    records, labels = _records(example.events)
    means = {step.name: _meant(step.name) for step in rule.pattern.steps}
    word = Word(rule.pattern, [{**record.row, "at": record.time} for record in records], means)
    matches, timeouts = expected(word, rule.skip)
    rows = [" ".join(labels[at] for at in found.row.events) for found in matches]
    if rule.timeouts:
        rows += [f"timeout {' '.join(labels[at] for at in found.row.events)}" for found in timeouts]
    assert sorted(rows) == sorted([] if example.given == "-" else example.given.split("; "))


def _meant(letter: str) -> Condition:
    return lambda event, match: letter in ("x", event["kind"])


def test_there_are_many_rows() -> None:
    assert len(_examples()) >= 50
