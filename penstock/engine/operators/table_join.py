"""Joins with a table, in columns: its changes first, then the rows that meet it as it stands.

The table is one of versions that all begin at one instant, so that the last to arrive takes the place of the others.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from dataclasses import replace

import numpy as np

from penstock.engine.columns.constants import constant
from penstock.engine.ingest.pre_aggregate import Rows
from penstock.engine.operators.join_output import Lookup, deletions
from penstock.engine.operators.protocol import Emitted
from penstock.engine.operators.version_table import put
from penstock.engine.state.codec import framed, unframed
from penstock.engine.state.row_runs import Run, run_names, run_parts, run_read, run_said, written
from penstock.engine.state.rows import Stored, kept_rows
from penstock.engine.state.snapshot import Saved
from penstock.engine.windows.lifecycle import Clock
from penstock.plan.operators.table_join import TableJoin
from penstock.plan.stages import Side
from penstock.types.timestamps import MAX_TIME

Memory = tuple[Run, ...]
ALWAYS = 0


class TableOperator:
    """A join with a table made ready for columns; the memory is the table."""

    def __init__(self, rule: TableJoin, sides: Sequence[Side]) -> None:
        self.rule, self.left, self.right = rule, *sides
        self.lookup = Lookup(rule, sides)

    def start(self) -> Memory:
        """An empty table."""
        return ()

    def step(self, memory: Memory, arrivals: Sequence[Rows], clock: Clock) -> Emitted:
        """Change the table, then join."""
        rows, changes = arrivals
        kept = kept_rows(changes, changes.times)
        news = Stored(replace(kept, times=constant(ALWAYS, len(changes))), self.right.keys)
        table = put(memory, news, deletions(changes, self.rule.deleted), ALWAYS, ALWAYS)
        asking = Stored(kept_rows(rows, rows.times), self.left.keys)
        outputs = self.lookup.outgoing(asking, np.full(len(rows), ALWAYS), table)
        return Emitted(table.left(ALWAYS, ALWAYS), outputs, (None, None), (), MAX_TIME)

    def saved(self, memory: Memory, known: Container[str] = ()) -> Saved:
        """The memory as bytes."""
        parts = written(run_parts(memory), known)
        return Saved(framed({"table": [run_said(run) for run in memory]}), parts)

    def parts(self, head: bytes) -> tuple[str, ...]:
        """The names of all parts that a head speaks of."""
        return run_names(unframed(head)[0]["table"])

    def restored(self, head: bytes, fetch: Callable[[str], bytes]) -> Memory:
        """The memory that was saved."""
        return tuple(run_read(run, fetch) for run in unframed(head)[0]["table"])

    def held(self, memory: Memory) -> int:
        """How many rows the table has."""
        return sum(run.live for run in memory)

    def everywhere(self, memory: Memory) -> int:
        """How many of them every shard has: all, where the table goes to each."""
        return self.held(memory)
