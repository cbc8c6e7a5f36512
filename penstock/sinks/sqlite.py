"""How panes become rows of a SQLite file: the current answer per key and window, in one transaction with the ledger."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.errors import PlanError
from penstock.sinks.claim import Claim, committed
from penstock.sinks.errors import busy, columns_differ
from penstock.sinks.sink import Batch, Ledger, Target
from penstock.sinks.sql import (
    LEDGER,
    RETIRED,
    Tables,
    claim_table,
    keep,
    ledger_of,
    quoted,
    still_ours,
    tables_of,
)

if TYPE_CHECKING:
    import pyarrow as pa

BUSY_SECONDS = 10.0


def sqlite(path: str | os.PathLike[str], *, table: str, history: bool = False, takeover: bool = False) -> Sqlite:
    """A table of a SQLite file: the current answer of panes, or late or quarantined rows as they come."""
    return Sqlite(os.fspath(path), table, history, takeover)


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


class SqliteWriter:
    """An open SQLite file: one connection, one transaction a batch."""

    def __init__(self, sink: Sqlite, target: Target) -> None:
        self.sink, self.target = sink, target
        self.tables = sink.tables(target)
        self.claim: Claim | None = None
        # Batches come from whatever thread Spark calls from, one at a time.
        self.connection = sqlite3.connect(sink.path, BUSY_SECONDS, isolation_level=None, check_same_thread=False)

    def begin(self, lineage: str, epoch: int) -> Ledger | None:
        """Take the table for this epoch, then tell what was committed last."""
        claim = Claim(self.sink.place, self.target.sink, lineage, epoch, self.sink.takeover)
        if self.claim is None:
            with self._lock_explained():
                self.connection.execute("PRAGMA journal_mode = WAL")
                self.connection.execute("PRAGMA synchronous = FULL")
        self._begin()
        try:
            orphans = self._make_tables() if self.claim is None else False
            taken = claim_table(self.connection, claim, self.sink.table, orphans)
            self.connection.execute("COMMIT")
        except BaseException:
            self._rollback()
            raise
        self.claim = claim
        return committed(taken)

    def mark(self, batch: Batch) -> None:
        """Write the ledger alone."""
        self._begin_batch()
        self.commit(batch)

    def write(self, batch: Batch, parts: Iterable[pa.Table]) -> None:
        """Apply the parts one after the other, inside the transaction."""
        from penstock.sinks.writing.sqlite_rows import append, upsert

        self._begin_batch()
        for part in parts:
            if self.tables.every is not None:
                append(self.connection, self.tables.every, part)
            if self.tables.current is not None:
                upsert(self.connection, self.tables.current, part, self.target.keys)

    def commit(self, batch: Batch) -> None:
        """The ledger row, then everything at once."""
        keep(self.connection, ledger_of(batch, self.target), self.sink.table)
        self.connection.execute("COMMIT")

    def close(self) -> None:
        """Roll back what is open and let the file go."""
        self._rollback()
        self.connection.close()

    def _begin_batch(self) -> None:
        assert self.claim is not None
        self._begin()
        still_ours(self.connection, self.claim, self.sink.table)

    def _begin(self) -> None:
        with self._lock_explained():
            self.connection.execute("BEGIN IMMEDIATE")

    def _rollback(self) -> None:
        if self.connection.in_transaction:
            self.connection.execute("ROLLBACK")

    def _make_tables(self) -> bool:
        """Make what is missing and compare what is there; whether a table holds rows."""
        from penstock.sinks.writing.sqlite_rows import declared, identity

        for ledger in (LEDGER, RETIRED):
            self.connection.execute(ledger)
        held = False
        for name in self.tables.names:
            fields = [one for one in self.target.schema if name != self.tables.current or one.name != "op"]
            wanted = [(field.name, declared(field.type)) for field in fields]
            found = [(row[1], row[2]) for row in self.connection.execute(f"PRAGMA table_info({quoted(name)})")]
            if found and found != wanted:
                raise columns_differ(f"the table {name!r} in {self.sink.path}", found, wanted)
            if not found:
                columns = ", ".join(f"{quoted(column)} {kind}" for column, kind in wanted)
                self.connection.execute(f"CREATE TABLE {quoted(name)} ({columns})")
            if name == self.tables.current:
                self.connection.execute(
                    f"CREATE UNIQUE INDEX IF NOT EXISTS {quoted(f'penstock_{name}')} ON {quoted(name)} "
                    f"({identity(self.target.schema, self.target.keys)})"
                )
            held = held or self.connection.execute(f"SELECT 1 FROM {quoted(name)} LIMIT 1").fetchone() is not None
        return held

    @contextmanager
    def _lock_explained(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.OperationalError as error:
            if "locked" in str(error) or "busy" in str(error):
                raise busy(self.sink.place, error) from error
            raise
