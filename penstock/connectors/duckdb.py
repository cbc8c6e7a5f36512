"""How panes become rows of a DuckDB file: the current answer per key and window, in one transaction with the ledger."""

from __future__ import annotations

import os
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from penstock.connectors.ownership import Claim
from penstock.connectors.sink_errors import busy, without_package
from penstock.connectors.sql import Columns, SqlWriter, Tables, tables_of
from penstock.errors import PlanError, path_of
from penstock.plan.output_schemas import Target

if TYPE_CHECKING:
    import pyarrow as pa


def duckdb(path: str | os.PathLike[str], *, table: str, history: bool = False, takeover: bool = False) -> Duckdb:
    """A table of a DuckDB file: the current answer of panes, or late or quarantined rows as they come."""
    return Duckdb(path_of(path, "ps.duckdb"), table, history, takeover)


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


class DuckdbWriter(SqlWriter):
    """A DuckDB file, open only while a batch is written: while it is, no other process can read it."""

    def __init__(self, sink: Duckdb, target: Target) -> None:
        super().__init__(sink, target, sink.table.casefold())
        self.path = sink.path
        self.connection: Any = None

    def close(self) -> None:
        """Let the file go; DuckDB rolls back what is open."""
        if self.connection is not None:
            self.connection.close()
            self.connection = None

    def _begin(self, claim: Claim | None = None) -> None:
        import duckdb as package

        if self.connection is None:
            try:
                self.connection = package.connect(self.path)
            except package.IOException as error:
                if "lock" in str(error):
                    raise busy(self.place, error) from error
                raise
        self._execute("BEGIN TRANSACTION")

    def _execute(self, statement: str, values: tuple[Any, ...] = ()) -> Any:
        return self.connection.execute(statement, values)

    def _commit(self) -> None:
        self._execute("COMMIT")
        self.close()

    def _abandon(self) -> None:
        self.close()

    def _declared(self, kind: pa.DataType) -> str:
        from penstock.connectors.duckdb_rows import declared, spelled

        return spelled(self.connection, declared(kind))

    def _found(self, table: str) -> Columns:
        from penstock.connectors.duckdb_rows import found_columns

        return found_columns(self.connection, table)

    def _append(self, table: str, rows: pa.Table) -> None:
        from penstock.connectors.duckdb_rows import append

        append(self.connection, table, rows)

    def _upsert(self, table: str, panes: pa.Table) -> None:
        from penstock.connectors.duckdb_rows import upsert

        upsert(self.connection, table, panes, self.target.keys)
