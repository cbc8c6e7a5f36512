"""How panes become rows of a DuckDB file: the current answer per key and window, in one transaction with the ledger."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from penstock.errors import PlanError
from penstock.sinks.claim import Claim, committed
from penstock.sinks.errors import busy, columns_differ, without_package
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


def duckdb(path: str | os.PathLike[str], *, table: str, history: bool = False, takeover: bool = False) -> Duckdb:
    """A table of a DuckDB file: the current answer of panes, or late or quarantined rows as they come."""
    return Duckdb(os.fspath(path), table, history, takeover)


@dataclass(frozen=True, slots=True)
class Duckdb:
    """A DuckDB file, a table in it, and whether every pane is kept beside the current answer."""

    path: str
    table: str
    history: bool = False
    takeover: bool = False
    ledgered = True

    @property
    def place(self) -> str:
        """The file and the table, which DuckDB finds whatever its case."""
        return f"duckdb:{os.path.realpath(self.path)}#{self.table.casefold()}"

    def describe(self) -> str:
        """Where, and what it promises."""
        kept = f", every pane in {self.table}_history" if self.history else ""
        return f"DuckDB {self.path}, table {self.table}{kept} (exactly once: ledger in the same transaction)"

    def refuse(self, target: Target) -> None:
        """Raise where the output does not fit, or DuckDB is not installed."""
        self.tables(target)
        if find_spec("duckdb") is None:
            raise without_package("ps.duckdb", "duckdb", "duckdb")
        if self.path in ("", ":memory:") or ":" in self.path.split("/")[0][2:]:
            raise PlanError(
                f"ps.duckdb was given {self.path!r}, which is not a file",
                "the ledger must outlive the process, and its file must be on this machine",
                'name a file, such as ps.duckdb("answers.duckdb", table="totals")',
            )

    def tables(self, target: Target) -> Tables:
        """Which tables the output makes."""
        return tables_of(target, self.table, self.history, f"ps.duckdb(table={self.table!r})")

    def open(self, target: Target) -> DuckdbWriter:
        """A writer for one output."""
        return DuckdbWriter(self, target)


class DuckdbWriter:
    """A DuckDB file, open only while a batch is written: while it is, no other process can read it."""

    def __init__(self, sink: Duckdb, target: Target) -> None:
        self.sink, self.target = sink, target
        self.tables = sink.tables(target)
        self.claim: Claim | None = None
        self.connection: Any = None

    def begin(self, lineage: str, epoch: int) -> Ledger | None:
        """Take the table for this epoch, then tell what was committed last."""
        claim = Claim(self.sink.place, self.target.sink, lineage, epoch, self.sink.takeover)
        self._open()
        self.connection.execute("BEGIN TRANSACTION")
        try:
            orphans = self._make_tables() if self.claim is None else False
            taken = claim_table(self.connection, claim, self.sink.table, orphans)
            self.connection.execute("COMMIT")
        finally:
            self.close()
        self.claim = claim
        return committed(taken)

    def mark(self, batch: Batch) -> None:
        """Write the ledger alone."""
        self._begin_batch()
        self.commit(batch)

    def write(self, batch: Batch, parts: Iterable[pa.Table]) -> None:
        """Apply the parts one after the other, inside the transaction."""
        from penstock.sinks.writing.duckdb_rows import append, upsert

        self._begin_batch()
        for part in parts:
            if self.tables.every is not None:
                append(self.connection, self.tables.every, part)
            if self.tables.current is not None:
                upsert(self.connection, self.tables.current, part, self.target.keys)

    def commit(self, batch: Batch) -> None:
        """The ledger row, then everything at once; the file is let go for readers."""
        keep(self.connection, ledger_of(batch, self.target), self.sink.table)
        self.connection.execute("COMMIT")
        self.close()

    def close(self) -> None:
        """Let the file go; DuckDB rolls back what is open."""
        if self.connection is not None:
            self.connection.close()
            self.connection = None

    def _open(self) -> None:
        import duckdb as package

        if self.connection is not None:
            return
        try:
            self.connection = package.connect(self.sink.path)
        except package.IOException as error:
            if "lock" in str(error):
                raise busy(self.sink.place, error) from error
            raise

    def _begin_batch(self) -> None:
        assert self.claim is not None
        self._open()
        self.connection.execute("BEGIN TRANSACTION")
        still_ours(self.connection, self.claim, self.sink.table)

    def _make_tables(self) -> bool:
        """Make what is missing and compare what is there; whether a table holds rows."""
        from penstock.sinks.writing.duckdb_rows import declared, found_columns, spelled

        for ledger in (LEDGER, RETIRED):
            self.connection.execute(ledger)
        held = False
        for name in self.tables.names:
            fields = [one for one in self.target.schema if name != self.tables.current or one.name != "op"]
            wanted = [(field.name, spelled(self.connection, declared(field.type))) for field in fields]
            found = found_columns(self.connection, name)
            if found and found != wanted:
                raise columns_differ(f"the table {name!r} in {self.sink.path}", found, wanted)
            if not found:
                columns = ", ".join(f"{quoted(column)} {kind}" for column, kind in wanted)
                self.connection.execute(f"CREATE TABLE {quoted(name)} ({columns})")
            held = held or self.connection.execute(f"SELECT 1 FROM {quoted(name)} LIMIT 1").fetchone() is not None
        return held
