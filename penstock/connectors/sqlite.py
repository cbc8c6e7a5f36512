"""How panes become rows of a SQLite file: the current answer per key and window, in one transaction with the ledger."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from penstock.connectors.ownership import Claim
from penstock.connectors.sink_errors import busy
from penstock.connectors.sql import Columns, SqlWriter, Tables, quoted, tables_of
from penstock.errors import PlanError, path_of
from penstock.plan.output_schemas import Target

if TYPE_CHECKING:
    import pyarrow as pa

BUSY_SECONDS = 10.0


def sqlite(path: str | os.PathLike[str], *, table: str, history: bool = False, takeover: bool = False) -> Sqlite:
    """A table of a SQLite file: the current answer of panes, or late or quarantined rows as they come."""
    return Sqlite(path_of(path, "ps.sqlite"), table, history, takeover)


@dataclass(frozen=True, slots=True)
class Sqlite:
    """A SQLite file, a table in it, and whether every pane is kept beside the current answer."""

    path: str
    table: str
    history: bool = False
    takeover: bool = False
    ledgered = True

    @property
    def place(self) -> str:
        """The file and the table, which SQLite finds whatever its case."""
        return f"sqlite:{os.path.realpath(self.path)}#{self.table.casefold()}"

    def describe(self) -> str:
        """Where, and what it promises."""
        kept = f", every pane in {self.table}_history" if self.history else ""
        return f"SQLite {self.path}, table {self.table}{kept} (exactly once: ledger in the same transaction)"

    def refuse(self, target: Target) -> None:
        """Raise where the output does not fit."""
        self.tables(target)
        if self.path == ":memory:" or self.path.startswith("file:"):
            raise PlanError(
                f"ps.sqlite was given {self.path!r}, which is not a file",
                "the ledger must outlive the process",
                'name a file, such as ps.sqlite("answers.db", table="totals"), or write to ps.memory("totals")',
            )

    def tables(self, target: Target) -> Tables:
        """Which tables the output makes."""
        return tables_of(target, self.table, self.history, f"ps.sqlite(table={self.table!r})")

    def open(self, target: Target) -> SqliteWriter:
        """A writer for one output."""
        return SqliteWriter(self, target)


class SqliteWriter(SqlWriter):
    """An open SQLite file: one connection, one transaction a batch."""

    def __init__(self, sink: Sqlite, target: Target) -> None:
        super().__init__(sink, target, sink.table.casefold())
        # Batches come from whatever thread Spark calls from, one at a time.
        self.connection = sqlite3.connect(sink.path, BUSY_SECONDS, isolation_level=None, check_same_thread=False)

    def close(self) -> None:
        """Roll back what is open and let the file go."""
        self._abandon()
        self.connection.close()

    def _begin(self, claim: Claim | None = None) -> None:
        with self._lock_explained():
            if self.claim is None:
                self.connection.execute("PRAGMA journal_mode = WAL")
                self.connection.execute("PRAGMA synchronous = FULL")
            self.connection.execute("BEGIN IMMEDIATE")

    def _execute(self, statement: str, values: tuple[Any, ...] = ()) -> sqlite3.Cursor:
        return self.connection.execute(statement, values)

    def _commit(self) -> None:
        self.connection.execute("COMMIT")

    def _abandon(self) -> None:
        if self.connection.in_transaction:
            self.connection.execute("ROLLBACK")

    def _declared(self, kind: pa.DataType) -> str:
        from penstock.connectors.sqlite_rows import declared

        return declared(kind)

    def _found(self, table: str) -> Columns:
        return [(row[1], row[2]) for row in self._execute(f"PRAGMA table_info({quoted(table)})")]

    def _identify(self, table: str) -> list[str]:
        from penstock.connectors.sqlite_rows import identity

        return [
            f"CREATE UNIQUE INDEX IF NOT EXISTS {quoted(f'penstock_{table}')} ON {quoted(table)} "
            f"({identity(self.target.schema, self.target.keys)})"
        ]

    def _append(self, table: str, rows: pa.Table) -> None:
        from penstock.connectors.sqlite_rows import append

        append(self.connection, table, rows)

    def _upsert(self, table: str, panes: pa.Table) -> None:
        from penstock.connectors.sqlite_rows import upsert

        upsert(self.connection, table, panes, self.target.keys)

    @contextmanager
    def _lock_explained(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.OperationalError as error:
            if "locked" in str(error) or "busy" in str(error):
                raise busy(self.place, error) from error
            raise
