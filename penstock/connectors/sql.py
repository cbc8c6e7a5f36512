"""What do the SQL sinks have in common: which tables an output makes, and the ledger beside them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from penstock.connectors.ownership import Claim, Held, claimed, refuse_exchanged
from penstock.connectors.sink import Batch, Ledger
from penstock.connectors.sink_compatibility import EVERY, NET, NET_AND_EVERY, check_columns, fit
from penstock.connectors.sink_errors import fenced, foreign, moved
from penstock.errors import PlanError
from penstock.plan.output_schemas import Target

LEDGER = (
    'CREATE TABLE penstock_ledger (sink TEXT PRIMARY KEY, lineage TEXT NOT NULL, batch BIGINT NOT NULL, '
    'epoch BIGINT NOT NULL, "rows" BIGINT NOT NULL, fingerprint TEXT NOT NULL, table_name TEXT NOT NULL)'
)  # fmt: skip
RETIRED = (
    "CREATE TABLE penstock_retired (table_name TEXT NOT NULL, lineage TEXT NOT NULL, PRIMARY KEY (table_name, lineage))"
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
_FORGET = "DELETE FROM penstock_ledger WHERE sink = ?"
_GONE = "SELECT lineage FROM penstock_retired WHERE table_name = ?"
_RETIRE = "INSERT INTO penstock_retired VALUES (?, ?) ON CONFLICT DO NOTHING"


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


def ledger_of(batch: Batch, target: Target) -> Ledger:
    """The ledger row of a batch."""
    return Ledger(target.sink, batch.lineage, batch.batch, batch.epoch, batch.rows, batch.fingerprint)


@dataclass(frozen=True, slots=True)
class Books:
    """The ledger of a database and the lineages that were taken over, as one connection reads and writes them.

    `table` is the name under which an output's table stands there. `lock` is what a reader adds who is about to write.
    """

    execute: Callable[[str, tuple[Any, ...]], Any]
    table: str
    lock: str = ""

    def claim(self, claim: Claim, orphans: bool) -> Ledger:
        """Take the table for a lineage and an epoch, inside a transaction, or raise who has it."""
        owners = self.owners(claim.sink)
        mine = next((owner for owner, table in owners if (owner.sink, table) == (claim.sink, self.table)), None)
        for owner, table in owners:
            if table == self.table:
                refuse_exchanged(claim, owner)
            if not claim.takeover and (owner.sink, table) != (claim.sink, self.table):
                raise (
                    moved(claim.place, claim.sink, table)
                    if owner.sink == claim.sink
                    else foreign(claim.place, owner, claim.sink, claim.lineage)
                )
        retired = [lineage for (lineage,) in self.execute(_GONE, (self.table,)).fetchall()]
        taken = claimed(claim, Held(mine, retired, orphans and mine is None))
        if owners != [(taken, self.table)]:
            for owner, table in owners:
                self._retire(claim, owner, table)
            self.keep(taken)
        return taken

    def still_ours(self, claim: Claim) -> None:
        """Raise, inside the transaction that writes, if somebody has taken the table since it was claimed."""
        here = [owner for owner, table in self.owners(claim.sink, self.lock) if table == self.table]
        if not here:
            raise fenced(claim.place, claim.epoch, "its ledger says that the output is written elsewhere")
        for owner in here:
            claimed(replace(claim, takeover=False), Held(owner))

    def keep(self, ledger: Ledger) -> None:
        """Write the ledger row of a sink."""
        self.execute(_KEEP, (ledger.sink, ledger.lineage, ledger.batch, ledger.epoch, ledger.rows, ledger.fingerprint,
                             self.table))  # fmt: skip

    def owners(self, sink: str, lock: str = "") -> list[tuple[Ledger, str]]:
        """Who writes to the table, and where the sink writes."""
        found = self.execute(_FOUND + lock, (sink, self.table)).fetchall()
        return [(Ledger(*row[:6]), row[6]) for row in found]

    def _retire(self, claim: Claim, owner: Ledger, table: str) -> None:
        """An owner that is taken over never comes back."""
        if owner.lineage != claim.lineage:
            self.execute(_RETIRE, (table, owner.lineage))
        if owner.sink != claim.sink:
            self.execute(_FORGET, (owner.sink,))


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
