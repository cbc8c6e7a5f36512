"""What do SQLite and DuckDB have in common: which tables an output makes, and the ledger beside them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from penstock.errors import PlanError
from penstock.sinks.claim import Claim, Held, claimed
from penstock.sinks.errors import foreign, moved
from penstock.sinks.fits import EVERY, NET, NET_AND_EVERY, check_columns, fit
from penstock.sinks.sink import Batch, Ledger, Target

LEDGER = (
    "CREATE TABLE IF NOT EXISTS penstock_ledger (sink TEXT PRIMARY KEY, lineage TEXT NOT NULL, batch BIGINT NOT NULL, "
    'epoch BIGINT NOT NULL, "rows" BIGINT NOT NULL, fingerprint TEXT NOT NULL, table_name TEXT NOT NULL)'
)
RETIRED = (
    "CREATE TABLE IF NOT EXISTS penstock_retired (table_name TEXT NOT NULL, lineage TEXT NOT NULL, "
    "PRIMARY KEY (table_name, lineage))"
)
_FOUND = (
    'SELECT sink, lineage, batch, epoch, "rows", fingerprint, table_name FROM penstock_ledger '
    "WHERE sink = ? OR table_name = ?"
)
_KEEP = (
    "INSERT INTO penstock_ledger VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (sink) DO UPDATE SET "
    'lineage = excluded.lineage, batch = excluded.batch, epoch = excluded.epoch, "rows" = excluded."rows", '
    "fingerprint = excluded.fingerprint, table_name = excluded.table_name"
)


@dataclass(frozen=True, slots=True)
class Tables:
    """The tables of an output: the current answer, and the one that is only added to; either may be None."""

    name: str
    current: str | None
    every: str | None

    @property
    def names(self) -> tuple[str, ...]:
        """The tables that there are."""
        return tuple(name for name in (self.current, self.every) if name is not None)


def tables_of(target: Target, table: str, history: bool, sink: str) -> Tables:
    """Which tables an output is written to; raises PlanError where it does not fit."""
    _check_table(table)
    check_columns(target, sink)
    what = fit("history" if history else "upsert", target, sink)
    if what in (NET, NET_AND_EVERY):
        return Tables(table, table, f"{table}_history" if history else None)
    return Tables(table, None, f"{table}_history" if what == EVERY else table)


def quoted(name: str) -> str:
    """An identifier that means itself, whatever it holds."""
    return '"' + name.replace('"', '""') + '"'


def list_of(names: Any) -> str:
    """Identifiers with commas between them."""
    return ", ".join(quoted(name) for name in names)


def claim_table(connection: Any, claim: Claim, table: str, orphans: bool) -> Ledger:
    """Take the table for a lineage and an epoch, inside a transaction, or raise who has it."""
    name = table.casefold()
    owners = _owners(connection, claim.sink, name)
    mine = next((owner for owner, place in owners if (owner.sink, place) == (claim.sink, name)), None)
    for owner, place in owners:
        if not claim.takeover and (owner.sink, place) != (claim.sink, name):
            raise (
                moved(claim.place, claim.sink, place)
                if owner.sink == claim.sink
                else foreign(claim.place, owner, claim.sink, claim.lineage)
            )
    retired = connection.execute("SELECT lineage FROM penstock_retired WHERE table_name = ?", (name,)).fetchall()
    taken = claimed(claim, Held(mine, [lineage for (lineage,) in retired], orphans and mine is None))
    if owners != [(taken, name)]:
        for owner, place in owners:
            _retire(connection, claim, owner, place)
        keep(connection, taken, table)
    return taken


def still_ours(connection: Any, claim: Claim, table: str) -> None:
    """Raise, inside the transaction that writes, if somebody has taken the table since it was claimed."""
    name = table.casefold()
    for owner, place in _owners(connection, claim.sink, name):
        if place == name:
            claimed(replace(claim, takeover=False), Held(owner))


def _retire(connection: Any, claim: Claim, owner: Ledger, place: str) -> None:
    """An owner that is taken over never comes back."""
    if owner.lineage != claim.lineage:
        remember = "INSERT INTO penstock_retired VALUES (?, ?) ON CONFLICT DO NOTHING"
        connection.execute(remember, (place, owner.lineage))
    if owner.sink != claim.sink:
        connection.execute("DELETE FROM penstock_ledger WHERE sink = ?", (owner.sink,))


def keep(connection: Any, ledger: Ledger, table: str) -> None:
    """Write the ledger row of a sink."""
    connection.execute(_KEEP, (ledger.sink, ledger.lineage, ledger.batch, ledger.epoch, ledger.rows,
                               ledger.fingerprint, table.casefold()))  # fmt: skip


def ledger_of(batch: Batch, target: Target) -> Ledger:
    """The ledger row of a batch."""
    return Ledger(target.sink, batch.lineage, batch.batch, batch.epoch, batch.rows, batch.fingerprint)


def _owners(connection: Any, sink: str, name: str) -> list[tuple[Ledger, str]]:
    found = connection.execute(_FOUND, (sink, name)).fetchall()
    return [(Ledger(*row[:6]), row[6]) for row in found]


def _check_table(table: str) -> None:
    if (
        not isinstance(table, str)
        or not table
        or "\x00" in table
        or table.casefold().startswith(("penstock_", "sqlite_"))
    ):
        raise PlanError(
            f"a table cannot be called {table!r}",
            "a table needs a name, and those that begin with penstock_ or sqlite_ are taken",
            'write table="team_scores"',
        )
