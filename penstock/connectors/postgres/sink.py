"""How panes become rows in PostgreSQL: the current answer per key and window, in one transaction with the ledger."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from penstock.connectors.sink_errors import without_package
from penstock.connectors.sql import Tables, tables_of
from penstock.credentials import Secret, revealed
from penstock.errors import PlanError
from penstock.plan.output_schemas import Target

if TYPE_CHECKING:
    from penstock.connectors.postgres.writer import PostgresWriter

NAME_BYTES = 63
INDEX_COLUMNS = 32
SYSTEM_COLUMNS = ("tableoid", "xmin", "cmin", "xmax", "cmax", "ctid")
CONNECTION = {
    "connect_timeout": "10",
    "fallback_application_name": "penstock",
    "keepalives_idle": "30",
    "keepalives_interval": "10",
    "keepalives_count": "3",
    "tcp_user_timeout": "120000",
}


def postgres(
    url: str | Secret,
    *,
    table: str,
    history: bool = False,
    takeover: bool = False,
    create: bool = True,
    password: str | Secret | None = None,
) -> Postgres:
    """A table of a PostgreSQL database: the current answer of panes, or late or quarantined rows as they come.

    `url` is an address such as `postgresql://user@host:5432/database`, or words such as `host=... dbname=...`; what it
    leaves out is as libpq has it. `table` may name a schema, as in `games.scores`; else it is `public`.
    """
    return Postgres(_hidden(url), table, history, takeover, create, None if password is None else _hidden(password))


@dataclass(frozen=True, slots=True)
class Postgres:
    """A PostgreSQL database, a table in it, whether every pane is kept, and whether tables are made."""

    url: Secret
    table: str
    history: bool = False
    takeover: bool = False
    create: bool = True
    password: Secret | None = None
    ledgered = True

    @property
    def schema(self) -> str:
        """The schema of the table."""
        return self.table.partition(".")[0] if "." in self.table else "public"

    @property
    def name(self) -> str:
        """The table without its schema."""
        return self.table.partition(".")[2] if "." in self.table else self.table

    @property
    def server(self) -> str:
        """Host, port and database, without secrets."""
        from psycopg import pq

        unsaid = {
            one.keyword.decode(): one.val.decode()
            for one in pq.Conninfo.get_defaults()
            if one.keyword in (b"host", b"port", b"dbname", b"user") and one.val is not None
        }
        said = {**unsaid, **self._said()}
        where = said.get("host") or said.get("hostaddr") or "local"
        return f"{where}:{said.get('port', '5432')}/{said.get('dbname') or said.get('user')}"

    @property
    def place(self) -> str:
        """The database and the table."""
        return f"postgres:{self.server}#{self.schema}.{self.name}"

    def describe(self) -> str:
        """Where, and what it promises."""
        kept = f", every pane in {self.table}_history" if self.history else ""
        return f"PostgreSQL {self.server}, table {self.table}{kept} (exactly once: ledger in the same transaction)"

    def refuse(self, target: Target) -> None:
        """Raise where the output does not fit, or psycopg is not installed."""
        from penstock.connectors.postgres.copy import declared

        tables = self.tables(target)
        if find_spec("psycopg") is None:
            raise without_package("ps.postgres", "psycopg", "postgres")
        for name in (self.schema, *tables.names, *target.schema.names):
            _check_name(name)
        for field in target.schema:
            declared(field.type)
        if len(target.keys) > INDEX_COLUMNS:
            raise PlanError(
                f"the output has {len(target.keys)} key and window columns",
                f"an index of PostgreSQL has at most {INDEX_COLUMNS}",
                "put some of the key columns together before the window",
            )
        self._said()

    def tables(self, target: Target) -> Tables:
        """Which tables the output makes, by names without the schema."""
        if (
            isinstance(self.table, str)
            and "." in self.table
            and ("." in self.name or not self.schema or self.schema.startswith("pg_"))
        ):
            raise PlanError(
                f"a table cannot be called {self.table!r}",
                "one dot parts the schema from the table, and schemas that begin with pg_ are PostgreSQL's own",
                'write table="team_scores", or table="games.team_scores"',
            )
        bare = self.name if isinstance(self.table, str) else self.table
        return tables_of(target, bare, self.history, f"ps.postgres(table={self.table!r})")

    def open(self, target: Target) -> PostgresWriter:
        """A writer for one output."""
        from penstock.connectors.postgres.writer import PostgresWriter

        return PostgresWriter(self, target)

    def connection(self) -> dict[str, Any]:
        """What a connection is made of; secrets among it."""
        said = {**CONNECTION, **self._said(), "client_encoding": "UTF8"}
        return said if self.password is None else {**said, "password": self.password.reveal()}

    def _said(self) -> dict[str, Any]:
        import psycopg
        from psycopg.conninfo import conninfo_to_dict

        try:
            return dict(conninfo_to_dict(self.url.reveal()))
        except psycopg.Error:
            # libpq's own words repeat what it could not read, which may be the password.
            raise PlanError(
                "the address that ps.postgres was given cannot be read",
                "it is a URL or a list of name=value; in a URL, signs such as @ : / % in a name or password are "
                "written as %40 %3A %2F %25",
                'write ps.postgres("postgresql://user@host:5432/database", '
                'password=ps.secret("DATABASE_PASSWORD"), ...)',
            ) from None


def _hidden(text: str | Secret) -> Secret:
    if not isinstance(text, str | Secret):
        raise PlanError(
            f"ps.postgres was given {type(text).__name__} where an address or a password stands",
            "both are text, or a secret",
            'write ps.postgres("postgresql://user@host:5432/database", table="team_scores")',
        )
    return Secret(revealed(text))


def _check_name(name: str) -> None:
    """Refuse names that PostgreSQL would cut or does not give away."""
    if len(name.encode()) > NAME_BYTES:
        raise PlanError(
            f"the name {name!r} has {len(name.encode())} bytes",
            f"PostgreSQL cuts names after {NAME_BYTES} bytes, and two that are cut may be one",
            "give it a shorter name",
        )
    if not name or "\x00" in name or name in SYSTEM_COLUMNS:
        raise PlanError(
            f"a column or table of PostgreSQL cannot be called {name!r}",
            f"names are not empty, and PostgreSQL has columns of its own: {', '.join(SYSTEM_COLUMNS)}",
            "give it another name",
        )
