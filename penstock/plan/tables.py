"""A table that is no stream: rows that are all there at once, read whole, and perhaps read again.

To the stage that it meets it is a stream of changes: what a reading no longer has is withdrawn, by a column of ours.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.diagnostics.unknown_names import unknown_name
from penstock.plan.stages import Input
from penstock.types.schema import Schema

REMOVED = "_removed"


def until_gone(deleted: str | None) -> str:
    """How long a row of a table is kept, in words, by the column that says it is gone."""
    if deleted is None:
        return "for ever"
    return "until a reading has it no more" if deleted == REMOVED else f"until its {deleted} is true"


@dataclass(frozen=True, slots=True)
class Table:
    """A table by its name and its columns, for `join_table` and for rules; made by `ps.table`."""

    changes: Input

    if not TYPE_CHECKING:
        __getattr__ = unknown_name

    @property
    def name(self) -> str:
        """What it is called among the sources."""
        return self.changes.source.name

    @property
    def schema(self) -> Schema:
        """Its columns."""
        return Schema(tuple(column for column in self.changes.schema.columns if column.name != REMOVED))
