"""Rows and panes as text tables: a header, then a line for each; columns are parted by two spaces or more."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from typing import Any

from penstock.errors import CaseError, did_you_mean
from penstock.model.panes import Pane
from penstock.plan.graph import AnyStage, flow_of
from penstock.plan.stages import Plan
from penstock.types.timestamps import show

_GAP = re.compile(r"\s{2,}|\t+|\s*\|\s*")


def row_types(plan: AnyStage) -> dict[str, str]:
    """The types by which a table of rows is read."""
    return {column.name: column.type for one in flow_of((plan,)).inputs for column in one.source.schema.columns}


def pane_types(plan: Plan) -> dict[str, str]:
    """The types by which a table of panes is read."""
    return {column.name: column.type for held in (plan.key_schema, plan.result_schema) for column in held.columns}


def read_table(text: str, types: Mapping[str, str], facts: Iterable[str] = ()) -> list[dict[str, Any]]:
    """The rows of a text table; values are read by their types, else as JSON where they are JSON.

    A header alone is a table without rows, if it is one: its names are columns, or facts that can be told.
    """
    lines = [line.strip().strip("|").strip() for line in text.strip().splitlines() if line.strip()]
    if not lines:
        return []
    header = _GAP.split(lines[0]) if _GAP.search(lines[0]) else lines[0].split()
    known = [*types, *facts]
    for name in header if len(lines) == 1 else ():
        if name not in known:
            raise CaseError(
                f"{text.strip()!r} is not a table",
                f"a table has a header, then a line for each; and there is no column {name!r}",
                f"write the header, a line break and the values; {did_you_mean(name, known)}",
            )
    rows = []
    for line in lines[1:]:
        cells = _GAP.split(line) if len(header) > 1 else [line]
        if len(cells) != len(header):
            raise CaseError(
                f"the line {line!r} has {len(cells)} values for {len(header)} columns",
                f"the header is: {', '.join(header)}",
                "part columns by two spaces or more, and write null where there is nothing",
            )
        rows.append({name: _value(cell, types.get(name)) for name, cell in zip(header, cells, strict=True)})
    return rows


def pane_table(plan: Plan, panes: Sequence[Pane]) -> str:
    """Panes as a table that `read_table` reads back."""
    names = [*plan.keys, "start", "end", *(name for name, _ in plan.aggregates), "index", "timing", "final", "op"]
    keys = [column.type for column in plan.key_schema.columns]
    results = {column.name: column.type for column in plan.result_schema.columns}
    lines = [names]
    for pane in panes:
        key = [_in_words(value, kind) for value, kind in zip(pane.key, keys, strict=True)]
        values = [_in_words(pane.values[name], kind) for name, kind in results.items()]
        shown = (*key, show(pane.window.start), show(pane.window.end), *values)
        lines.append([_cell(v) for v in (*shown, pane.index, pane.timing, pane.final, pane.op)])
    widths = [max(len(line[i]) for line in lines) for i in range(len(names))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines
    )


def _in_words(value: Any, kind: str) -> Any:
    if kind == "array<timestamp>" and isinstance(value, (list, tuple)):
        return [_in_words(one, "timestamp") for one in value]
    if kind == "timestamp" and isinstance(value, int):
        return show(value)
    return value.isoformat() if kind == "date" and isinstance(value, date) else value


def _cell(value: object) -> str:
    if isinstance(value, str):
        return value
    return json.dumps(value, default=str)


def _value(cell: str, kind: str | None) -> Any:
    if cell == "null":
        return None
    if kind in ("string", "timestamp", "date"):
        return cell
    try:
        return json.loads(cell)
    except ValueError:
        return cell
