"""How does a batch get into PostgreSQL: under a lock of the table, by COPY into a temporary table and an upsert."""

from __future__ import annotations

import hashlib
import time
from typing import TYPE_CHECKING, Any

from penstock.connectors.ownership import Claim
from penstock.connectors.sink_errors import columns_differ, down
from penstock.connectors.sql import Columns, SqlWriter, list_of, quoted
from penstock.plan.output_schemas import Target

if TYPE_CHECKING:
    import pyarrow as pa

    from penstock.connectors.postgres.sink import Postgres

OLDEST = 150_000
# Room beside each row for its next version, so that an update touches no index.
FILLFACTOR = 70
# A transaction that holds the table is waited for; that of an older run, or of a connection we lost, not as long.
PATIENCE_SECONDS = 10.0
GRACE_SECONDS = 1.0
NUL = "␀"
_COLUMNS = """SELECT a.attname, format_type(a.atttypid, a.atttypmod),
    a.attnotnull AND NOT a.atthasdef AND a.attidentity = '' AS needed
FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = %s AND c.relname = %s AND c.relkind IN ('r', 'p') AND a.attnum > 0 AND NOT a.attisdropped
ORDER BY a.attnum"""
_UNIQUE = """SELECT i.indnullsnotdistinct OR bool_and(a.attnotnull), array_agg(a.attname::text)
FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid JOIN pg_namespace n ON n.oid = c.relnamespace
CROSS JOIN LATERAL unnest(i.indkey::int2[]) WITH ORDINALITY AS k (number, place)
JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.number
WHERE n.nspname = %s AND c.relname = %s AND i.indisunique AND i.indisvalid AND i.indimmediate
    AND i.indpred IS NULL AND i.indexprs IS NULL AND k.place <= i.indnkeyatts
GROUP BY i.indexrelid, i.indnullsnotdistinct"""
_END_OTHERS = """SELECT pg_terminate_backend(l.pid) FROM pg_locks l JOIN pg_stat_activity a USING (pid)
WHERE l.locktype = 'advisory' AND l.granted AND l.objsubid = 1 AND l.pid <> pg_backend_pid()
    AND a.datname = current_database() AND a.usename = current_user
    AND l.database = a.datid AND (l.classid::int8 << 32) | l.objid::int8 = %s"""


class PostgresWriter(SqlWriter):
    """A connection to PostgreSQL: one transaction a batch, under a lock that no other run of the output has."""

    def __init__(self, sink: Postgres, target: Target) -> None:
        super().__init__(sink, target, sink.name, " FOR UPDATE")
        self.sink = sink
        self.connection: Any = None
        self.secrets = [value for name, value in sink.connection().items() if "password" in name]

    def close(self) -> None:
        """Let the connection go; PostgreSQL rolls back what is open."""
        self.claim = None
        if self.connection is not None:
            self.connection.close()
            self.connection = None

    def _begin(self, claim: Claim | None = None) -> None:
        if self.connection is None:
            self._open()
        began = time.monotonic()
        while not self._begun():
            waited = time.monotonic() - began
            if waited > PATIENCE_SECONDS:
                raise down(self.place, f"the transaction of another run has held it for {waited:.0f} seconds")
            if claim is not None and waited > GRACE_SECONDS:
                self._end_others(claim)
            time.sleep(0.02)

    def _execute(self, statement: str, values: tuple[Any, ...] = ()) -> Any:
        """Run a statement; those with values are ours and hold no names of the user's."""
        from penstock.connectors.postgres.errors import explained

        with explained(self.place, self.secrets):
            return (
                self.connection.execute(statement.replace("?", "%s").encode(), values)
                if values
                else (self.connection.execute(statement.encode()))
            )

    def _commit(self) -> None:
        if self._execute("COMMIT").statusmessage != "COMMIT":
            raise down(self.place, "the transaction was rolled back")

    def _abandon(self) -> None:
        self.close()

    def _declared(self, kind: pa.DataType) -> str:
        from penstock.connectors.postgres.copy import declared

        return declared(kind)

    def _found(self, table: str) -> Columns:
        """Its columns, without those that are not ours and get along without a value."""
        ours = self.target.schema.names
        found = self._execute(_COLUMNS, (self.sink.schema, table)).fetchall()
        ledgers = table.startswith("penstock_")
        return [(name, kind) for name, kind, needed in found if needed or name in ours or ledgers]

    def _compare(self, table: str, found: Columns, wanted: Columns) -> None:
        if sorted(found) != sorted(wanted):
            raise columns_differ(f"the table {table!r} in {self.place.partition('#')[0]}", found, wanted)

    def _creation(self, table: str) -> str:
        room = f" WITH (fillfactor = {FILLFACTOR})" if table == self.tables.current else ""
        return super()._creation(table) + room

    def _identify(self, table: str) -> list[str]:
        found = self._execute(_UNIQUE, (self.sink.schema, table)).fetchall()
        if any(fits and sorted(names) == sorted(self.target.keys) for fits, names in found):
            return []
        return [f"CREATE UNIQUE INDEX ON {quoted(table)} ({list_of(self.target.keys)}) NULLS NOT DISTINCT"]

    def _make_tables(self) -> bool:
        from penstock.connectors.postgres.copy import part_of

        held = super()._make_tables()
        if self.tables.current is not None:
            self._execute(part_of(self._wanted(self.tables.current)))
        return held

    def _missing(self) -> list[str]:
        from penstock.connectors.postgres.errors import no_schema, not_made

        # Two that make the same table at once would see one fail.
        self._execute("SELECT pg_advisory_xact_lock(?)", (_number(self.sink.schema),))
        schema = self.sink.schema
        if not self._execute("SELECT 1 FROM pg_namespace WHERE nspname = ?", (schema,)).fetchall():
            raise no_schema(self.place, f"CREATE SCHEMA {quoted(schema)}")
        missing = super()._missing()
        if missing and not self.sink.create:
            raise not_made(self.place, [f"SET search_path = {quoted(schema)}", *missing])
        return missing

    def _append(self, table: str, rows: pa.Table) -> None:
        from penstock.connectors.postgres.copy import append
        from penstock.connectors.postgres.errors import explained

        with explained(self.place, self.secrets):
            append(self.connection, quoted(table), rows, None if self.target.kind == "panes" else NUL)

    def _upsert(self, table: str, panes: pa.Table) -> None:
        from penstock.connectors.postgres.copy import upsert
        from penstock.connectors.postgres.errors import explained

        with explained(self.place, self.secrets):
            upsert(self.connection, quoted(table), panes, self.target.keys)

    def _open(self) -> None:
        import psycopg

        from penstock.connectors.postgres.errors import explained, other_encoding, too_old

        with explained(self.place, self.secrets):
            self.connection = psycopg.connect("", autocommit=True, **self.sink.connection())
        if self.connection.info.server_version < OLDEST:
            raise too_old(self.place, self.connection.info.server_version)
        encoding = self.connection.info.parameter_status("server_encoding")
        if encoding != "UTF8":
            raise other_encoding(self.place, str(encoding))
        self._execute(
            f"SET search_path = {quoted(self.sink.schema)}; SET client_min_messages = error; "
            f"SET statement_timeout = 0; SET lock_timeout = {int(PATIENCE_SECONDS * 1000)}; "
            "SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'"
        )

    def _begun(self) -> bool:
        """Begin a transaction that has the table to itself; False where another one has it."""
        self._execute("BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE")
        lock = _number(self.sink.schema, self.sink.name)
        if self._execute("SELECT pg_try_advisory_xact_lock(?)", (lock,)).fetchone()[0]:
            return True
        self._execute("ROLLBACK")
        return False

    def _end_others(self, claim: Claim) -> None:
        """End the transaction that has the table, if it is of an older run or of a connection that this run lost.

        Only for the waiting's sake: whatever it had written could not be committed after our claim, and before it, it
        is found in the ledger.
        """
        if not self._found("penstock_ledger"):
            return
        owners = [owner for owner, _ in self.books.owners(claim.sink)]
        same = [owner for owner in owners if (owner.sink, owner.lineage) == (claim.sink, claim.lineage)]
        if all(owner.epoch <= claim.epoch for owner in same) if same else claim.takeover:
            self._execute(_END_OTHERS, (_number(self.sink.schema, self.sink.name),))


def _number(*names: str) -> int:
    """A number for an advisory lock, the same wherever these names are the same."""
    digest = hashlib.sha256("\x00".join(("penstock", *names)).encode()).digest()
    return int.from_bytes(digest[:8], "big", signed=True)
