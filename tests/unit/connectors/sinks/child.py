"""A process to be killed, which delivers batches to one sink: its name, the folder, the delivery, how many batches."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pyarrow as pa

from penstock.connectors.delivery import deliver
from tests.unit.connectors.sinks.outputs import PANES, batch_of, pane, panes, sinks

TEAMS = 50


def batch_table(number: int) -> pa.Table:
    """Panes of a batch: every team's answer so far, and one session withdrawn; the same whenever it is asked."""
    rows = [pane(f"team-{team}", number * 100 + team, index=number) for team in range(TEAMS)]
    gone = [pane(None, number - 1, minute=number - 1, op=-1)] if number else []
    return panes(*rows, *gone, pane(None, number, minute=number))


def expected_answers(batches: int) -> list[tuple[Any, ...]]:
    """The current answer after so many batches."""
    last = batches - 1
    rows = [(f"team-{team}", 0, last * 100 + team) for team in range(TEAMS)]
    return sorted([*rows, (None, last, last)], key=repr)


def expected_panes(numbers: list[int]) -> list[tuple[Any, ...]]:
    """Every pane of some batches."""
    tables = [batch_table(number).to_pylist() for number in numbers]
    return sorted(((row["team"], row["points"], row["op"]) for rows in tables for row in rows), key=repr)


def main(name: str, folder: str, delivery: str, batches: int, start: int = 0, epoch: int = 1) -> None:
    """Deliver batches, each in three parts; files are staged in part, as tasks do."""
    sink: Any = sinks(Path(folder))[name]
    writers: dict[str, Any] = {}
    try:
        for number in range(start, batches):
            table = batch_table(number)
            receipts, inline = [], table
            if hasattr(sink, "stage"):
                receipts, inline = [sink.stage(PANES, f"{number:09d}-0", table.slice(0, 30))], table.slice(30)
            parts = [inline.slice(at, 10) for at in range(0, inline.num_rows, 10)]
            deliver(sink, PANES, writers, batch_of(number, table, epoch=epoch), parts, delivery, receipts=receipts)
            print(number, flush=True)
    finally:
        for writer in writers.values():
            writer.close()


if __name__ == "__main__":
    main(*sys.argv[1:4], *(int(word) for word in sys.argv[4:]))
