"""Can this be played: plans, partitions, rows, times and expectations as a test hands them in, or what to write."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from penstock.api.stream import Rows, Stream
from penstock.api.windowed import Panes, Windowed
from penstock.errors import CaseError, did_you_mean
from penstock.plan.graph import AnyStage, flow_of
from penstock.plan.stages import Plan, RowStage
from penstock.testing.tables import read_table, row_types
from penstock.types.timestamps import MAX_TIME, MIN_TIME, parse

Row = Mapping[str, Any]
MARKS = ("@partition", "@source")


def checked_plan(panes: object) -> AnyStage:
    """The stage of what `.aggregate(...)`, or a join or another stage, gave."""
    if isinstance(panes, Panes):
        return panes.plan
    if isinstance(panes, Rows):
        return panes.stage
    if isinstance(panes, (Plan, RowStage)):
        return panes
    unfinished = isinstance(panes, (Stream, Windowed))
    raise CaseError(
        "the pipeline has no aggregate yet" if unfinished else f"{_brief(panes)} is not a pipeline",
        "a script plays what .aggregate(...) gives: a pipeline that shows panes",
        "write Script(windowed.aggregate(n=ps.rows()))"
        if isinstance(panes, Windowed)
        else 'write Script(stream.window(ps.tumbling("1 minute")).aggregate(n=ps.rows()))',
    )


def checked_partitions(partitions: object) -> list[str]:
    """The names of the partitions that are known from the start."""
    if isinstance(partitions, Iterable) and not isinstance(partitions, (str, bytes, Mapping)):
        names = list(partitions)
        if all(isinstance(name, str) for name in names):
            return names
    raise CaseError(
        f"partitions is {_brief(partitions)}",
        "it is a list of names, each a text",
        f'write partitions=["{partitions if isinstance(partitions, str) else 0}"]',
    )


def checked_instant(value: object, what: str) -> int:
    """A point in time that a test gives in words, a datetime or microseconds."""
    try:
        if not isinstance(value, (str, int, datetime)):
            raise ValueError(f"it is {_brief(value)}")
        instant = parse(value)
        if not MIN_TIME <= instant <= MAX_TIME:
            raise ValueError(f"{value} microseconds do not fit into 64 bits")
    except (ValueError, OverflowError) as error:
        raise CaseError(
            f"{what} is no point in time: {error}",
            'a time is a time of day on 1970-01-01, ISO 8601, a datetime, "+inf", "-inf", or whole microseconds',
            f'write {what}="12:00", or {what}="2026-05-01T12:00:30"',
        ) from None
    return instant


def checked_rows(rows: object, plan: AnyStage) -> list[Row]:
    """The rows of a batch, from a text table or a list."""
    if isinstance(rows, str):
        return list(read_table(rows, row_types(plan), MARKS))
    line = f"batch([{{{_example(plan)}}}])"
    if isinstance(rows, (Mapping, bytes)) or not isinstance(rows, Iterable):
        what = "is one row" if isinstance(rows, Mapping) else f"is {_brief(rows)}"
        raise CaseError(f"what arrives {what}", "a batch is a list of rows, or a text table", f"write {line}")
    listed = list(rows)
    for number, row in enumerate(listed, 1):
        if not isinstance(row, Mapping):
            raise CaseError(f"row {number} is {_brief(row)}", "a row names its columns", f"write {line}")
    return listed


def checked_expected(
    expected: Iterable[object], call: str, types: Mapping[str, str], known: Iterable[str]
) -> list[Row]:
    """What a call expects, from rows and text tables."""
    wanted: list[Row] = []
    facts = list(known)
    for one in expected:
        if isinstance(one, str):
            wanted += read_table(one, types, facts)
        elif isinstance(one, Mapping):
            wanted.append(one)
        elif isinstance(one, (list, tuple)):
            raise CaseError(
                f"{call} was given a list",
                "each thing that is expected is an argument of its own",
                f"write {call}(*{_brief(one)}), with a star; for nothing at all write {call}()",
            )
        else:
            raise CaseError(
                f"{call} was given {_brief(one)}",
                "what is expected is a dict of facts, or a text table",
                f'write {call}({{"{facts[0]}": …}}); for nothing at all write {call}()',
            )
    return wanted


def checked_marks(row: Row, marks: Iterable[str]) -> None:
    """A row says nothing with @ but what can be said with it."""
    known = tuple(marks)
    for name in row:
        if isinstance(name, str) and name.startswith("@") and name not in known:
            raise CaseError(
                f"the row says {name!r}, which means nothing",
                f"beside its columns a row can say: {', '.join(known) or 'nothing'}",
                did_you_mean(name, known),
            )


def checked_times(row: Row) -> int:
    """How many rows one with "@times" stands for."""
    times = row.get("@times", 1)
    if isinstance(times, bool) or not isinstance(times, int) or times < 1:
        raise CaseError(
            f"@times is {times!r}",
            "it is how many rows like this there are: a whole number, at least 1",
            'write "@times" = 2, or leave out the row',
        )
    return times


def _example(plan: AnyStage) -> str:
    values = {"string": '"a"', "timestamp": '"12:00"', "date": '"2026-05-01"', "boolean": "True"}
    columns = flow_of((plan,)).inputs[0].source.schema.columns[:3]
    return ", ".join(f'"{column.name}": {values.get(column.type, "1")}' for column in columns)


def _brief(value: object) -> str:
    said = repr(value)
    return said if len(said) <= 60 else f"{said[:57]}…"
