"""How panes are read by people: one table a batch, of what changed, and no more than fits a screen."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple, TextIO

from penstock.connectors.sink import Batch, Ledger
from penstock.connectors.sink_compatibility import fit
from penstock.errors import PlanError
from penstock.model.panes import PANE_COLUMNS
from penstock.plan.output_schemas import Target

if TYPE_CHECKING:
    import pyarrow as pa

ROWS = 20
WITHDRAWN = "−"
WIDEST = 60


class Heading(NamedTuple):
    """The name of a column, and whether it holds numbers."""

    name: str
    number: bool


def console(*, rows: int = ROWS) -> Console:
    """A table on the screen for each batch that has something to show."""
    return Console(rows)


@dataclass(frozen=True, slots=True)
class Console:
    """The screen, and how many rows of a batch it shows."""

    rows: int = ROWS
    ledgered = False

    @property
    def place(self) -> None:
        """Any number of outputs may be shown."""
        return None

    def describe(self) -> str:
        """Where, and what it promises."""
        return f"the console, {self.rows} rows a batch (at least once: a batch that comes back is shown again)"

    def refuse(self, target: Target) -> None:
        """Raise where no row would be shown; every output fits."""
        if not isinstance(self.rows, int) or isinstance(self.rows, bool) or self.rows < 1:
            raise PlanError(
                f"ps.console was asked for {self.rows!r} rows",
                "it shows the first rows of each batch, at least one",
                "write ps.console(rows=20)",
            )
        fit("append", target, "ps.console")

    def open(self, target: Target) -> ConsoleWriter:
        """A writer for one output, to whatever is the standard output by then."""
        return ConsoleWriter(self, target, sys.stdout)


class ConsoleWriter:
    """Takes the first rows of a batch and shows them at its commit."""

    def __init__(self, sink: Console, target: Target, out: TextIO) -> None:
        self.sink, self.target, self.out = sink, target, out
        self.first: list[dict[str, Any]] = []

    def begin(self, lineage: str, epoch: int) -> Ledger | None:
        """There is no ledger."""
        return None

    def mark(self, batch: Batch) -> None:
        """There is nothing to mark."""

    def write(self, batch: Batch, parts: Iterable[pa.Table]) -> None:
        """Keep the first rows; the others are only counted."""
        self.first = []
        for part in parts:
            self.first += part.slice(0, self.sink.rows - len(self.first)).to_pylist()
            if len(self.first) >= self.sink.rows:
                break

    def commit(self, batch: Batch) -> None:
        """Show the table, if there is anything to show."""
        if not self.first:
            return
        again = " · again" if batch.replayed else ""
        rest = batch.rows - len(self.first)
        title = f"{self.target.kind} of batch {batch.batch} · {batch.rows:,}{again}"
        self._show(title, [shown_row(row, self.target) for row in self.first], f"… and {rest:,} more" if rest else "")

    def close(self) -> None:
        """There is nothing to let go."""

    def _show(self, title: str, rows: list[list[str]], rest: str) -> None:
        heads = headings(self.target)
        if self.out.isatty() and _rich(self.out, title, heads, rows, rest):
            return
        self.out.write("\n".join([title, *plain(heads, rows), *([f"  {rest}"] if rest else [])]) + "\n\n")
        self.out.flush()


def headings(target: Target) -> list[Heading]:
    """The columns that are shown: the window in one, the timing in another, `op` only where withdrawals can come."""
    if target.kind != "panes":
        heads = [Heading(_text(one.name), _number(one.type)) for one in target.schema if not _is_sign(one.name, target)]
        return [Heading("", False), *heads] if target.withdraws else heads
    heads = [
        Heading("window" if one.name == "window_start" else _text(one.name), _number(one.type))
        for one in target.schema
        if one.name == "window_start" or one.name not in PANE_COLUMNS
    ]
    return [*([Heading("", False)] if target.withdraws else []), *heads, Heading("pane", False)]


def shown_row(row: dict[str, Any], target: Target) -> list[str]:
    """A row in words, one for each heading."""
    cells = ["+" if row["op"] > 0 else WITHDRAWN] if target.withdraws else []
    if target.kind != "panes":
        return [*cells, *(_text(value) for name, value in row.items() if not _is_sign(name, target))]
    for name, value in row.items():
        if name == "window_start":
            cells.append(window(value, row["window_end"]))
        elif name not in PANE_COLUMNS:
            cells.append(_text(value))
    index = f" #{row['pane_index']}" if target.refires else ""
    return [*cells, f"{row['pane_timing'].replace('_', ' ')}{index}{' final' if row['pane_final'] else ''}"]


def _is_sign(name: str, target: Target) -> bool:
    return target.withdraws and name == "op"


def window(start: datetime | None, end: datetime | None) -> str:
    """A window as people write it: the end without its date where that is the start's."""
    if start is None and end is None:
        return "all time"
    if start is not None and end is not None and start.date() == end.date():
        return f"{_moment(start)} – {_moment(end)[11:]}"
    return f"{_moment(start)} – {_moment(end)}"


def plain(heads: list[Heading], rows: list[list[str]]) -> list[str]:
    """Lines of a table with its columns aligned, numbers to the right."""
    wide = [
        max(len(cell) for cell in (head.name, *column))
        for head, column in zip(heads, zip(*rows, strict=True), strict=True)
    ]
    lines = [[head.name for head in heads], ["─" * width for width in wide], *rows]
    return [
        "  "
        + "  ".join(
            cell.rjust(width) if head.number else cell.ljust(width)
            for cell, width, head in zip(line, wide, heads, strict=True)
        ).rstrip()
        for line in lines
    ]


def _rich(out: TextIO, title: str, heads: list[Heading], rows: list[list[str]], rest: str) -> bool:
    """The same table in Rich, if it is installed."""
    try:
        from rich.console import Console as Screen
        from rich.table import Table
        from rich.text import Text
    except ImportError:
        return False
    table = Table(title=Text(title), title_justify="left", caption=Text(rest) if rest else None, caption_justify="left")
    for head in heads:
        table.add_column(Text(head.name), justify="right" if head.number else "left")
    for row in rows:
        # Text, not markup: a key may hold brackets.
        table.add_row(*(Text(cell) for cell in row), style="dim" if row[0] == WITHDRAWN else None)
    Screen(file=out).print(table)
    return True


def _moment(value: datetime | None) -> str:
    if value is None:
        return "∞"
    seconds = value.strftime(":%S") if value.second or value.microsecond else ""
    fraction = f".{value.microsecond:06d}".rstrip("0") if value.microsecond else ""
    return value.strftime("%Y-%m-%d %H:%M") + seconds + fraction


def _text(value: object) -> str:
    """A value on one line, with signs that would steer a terminal made harmless."""
    if value is None:
        return "∅"
    if isinstance(value, datetime):
        return _moment(value)
    text = f"{value:.6g}" if isinstance(value, float) else str(value)
    safe = "".join(sign if sign.isprintable() else ascii(sign)[1:-1] for sign in text)
    return safe if len(safe) <= WIDEST else safe[: WIDEST - 1] + "…"


def _number(kind: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))
