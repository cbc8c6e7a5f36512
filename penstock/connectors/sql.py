"""What do the SQL sinks have in common: which tables an output makes, and the ledger beside them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

from penstock.connectors.ownership import Claim, Held, claimed, committed, refuse_exchanged
from penstock.connectors.sink import Batch, Ledger
from penstock.connectors.sink_compatibility import EVERY, NET, NET_AND_EVERY, check_columns, fit
from penstock.connectors.sink_errors import columns_differ, fenced, foreign, moved
from penstock.errors import PlanError
from penstock.plan.output_schemas import Target

if TYPE_CHECKING:
    import pyarrow as pa

LEDGER = (
    "CREATE TABLE penstock_ledger (sink TEXT PRIMARY KEY, lineage TEXT NOT NULL, batch BIGINT NOT NULL, "
    'epoch BIGINT NOT NULL, "rows" BIGINT NOT NULL, fingerprint TEXT NOT NULL, table_name TEXT NOT NULL)'
)
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
        self.execute(
            _KEEP,
            (ledger.sink, ledger.lineage, ledger.batch, ledger.epoch, ledger.rows, ledger.fingerprint, self.table),
        )

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


# A part costs a few statements however small it is: those of many shards are put together first.
GATHERED_ROWS = 50_000
GATHERED_BYTES = 64 << 20
Columns = list[tuple[str, str]]


class SqlSink(Protocol):
    """What a writer asks of the configuration that opened it."""

    @property
    def place(self) -> str:
        """What no second output may write to."""

    @property
    def takeover(self) -> bool:
        """Whether it may write where another lineage has written."""

    def tables(self, target: Target) -> Tables:
        """Which tables the output makes."""


class SqlWriter(ABC):
    """One output in a database. What differs between databases are the methods without a body."""

    def __init__(self, sink: SqlSink, target: Target, table: str, lock: str = "") -> None:
        self.target = target
        self.place, self.takeover = sink.place, sink.takeover
        self.tables = sink.tables(target)
        self.books = Books(self._execute, table, lock)
        self.claim: Claim | None = None

    def begin(self, lineage: str, epoch: int) -> Ledger | None:
        """Take the table for this epoch, then tell what was committed last."""
        claim = Claim(self.place, self.target.sink, lineage, epoch, self.takeover)
        self._begin(claim)
        try:
            orphans = self._make_tables() if self.claim is None else False
            taken = self.books.claim(claim, orphans)
            self._commit()
        except BaseException:
            self._abandon()
            raise
        self.claim = claim
        return committed(taken)

    def mark(self, batch: Batch) -> None:
        """Write the ledger alone."""
        self._begin_batch()
        self.commit(batch)

    def write(self, batch: Batch, parts: Iterable[pa.Table]) -> None:
        """Apply the parts one after the other, inside the transaction."""
        self._begin_batch()
        for part in _gathered(parts):
            if self.tables.every is not None:
                self._append(self.tables.every, part)
            if self.tables.current is not None:
                self._upsert(self.tables.current, part)

    def commit(self, batch: Batch) -> None:
        """The ledger row, then everything at once."""
        self.books.keep(ledger_of(batch, self.target))
        self._commit()

    @abstractmethod
    def close(self) -> None:
        """Let go; what was not committed is gone."""

    @abstractmethod
    def _begin(self, claim: Claim | None = None) -> None:
        """Begin a transaction that writes; with a claim, one before which older runs are shut out."""

    @abstractmethod
    def _execute(self, statement: str, values: tuple[Any, ...] = ()) -> Any:
        """Run a statement; what it found."""

    @abstractmethod
    def _commit(self) -> None:
        """End the transaction."""

    @abstractmethod
    def _abandon(self) -> None:
        """Roll back what is open."""

    @abstractmethod
    def _declared(self, kind: pa.DataType) -> str:
        """The type of the database that holds a column, as the database spells it."""

    @abstractmethod
    def _found(self, table: str) -> Columns:
        """The columns of a table with their types; none where there is no table."""

    @abstractmethod
    def _append(self, table: str, rows: pa.Table) -> None:
        """Add rows."""

    @abstractmethod
    def _upsert(self, table: str, panes: pa.Table) -> None:
        """Write the net of panes over what is there."""

    def _identify(self, table: str) -> list[str]:
        """The statements that make a table hold each key and window once; none where it does."""
        return []

    def _compare(self, table: str, found: Columns, wanted: Columns) -> None:
        """Raise where the columns that are there are not those of the output."""
        if found != wanted:
            raise columns_differ(self._whole_name(table), found, wanted)

    def _creation(self, table: str) -> str:
        """The statement that makes a table of the output."""
        columns = ", ".join(f"{quoted(column)} {kind}" for column, kind in self._wanted(table))
        return f"CREATE TABLE {quoted(table)} ({columns})"

    def _whole_name(self, table: str) -> str:
        return f"the table {table!r} in {self.place.partition('#')[0]}"

    def _begin_batch(self) -> None:
        assert self.claim is not None
        self._begin()
        self.books.still_ours(self.claim)

    def _make_tables(self) -> bool:
        """Make what is missing and compare what is there; whether a table holds rows."""
        for statement in self._missing():
            self._execute(statement)
        held = False
        for name in self.tables.names:
            self._compare(name, self._found(name), self._wanted(name))
            held = held or bool(self._execute(f"SELECT 1 FROM {quoted(name)} LIMIT 1").fetchall())
        return held

    def _missing(self) -> list[str]:
        """The statements that make what is not there."""
        books = {"penstock_ledger": LEDGER, "penstock_retired": RETIRED}
        made = [statement for name, statement in books.items() if not self._found(name)]
        made += [self._creation(name) for name in self.tables.names if not self._found(name)]
        return made if self.tables.current is None else made + self._identify(self.tables.current)

    def _wanted(self, table: str) -> Columns:
        """The columns that a table of the output has; the current answer needs no `op`."""
        fields = [one for one in self.target.schema if table != self.tables.current or one.name != "op"]
        return [(field.name, self._declared(field.type)) for field in fields]


def _gathered(parts: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """The parts in their order, small ones put together, never more than a bounded number of rows and bytes on top."""
    import pyarrow as pa

    held: list[pa.Table] = []
    rows = size = 0
    for part in parts:
        held.append(part)
        rows, size = rows + part.num_rows, size + part.nbytes
        if rows >= GATHERED_ROWS or size >= GATHERED_BYTES:
            yield pa.concat_tables(held)
            held, rows, size = [], 0, 0
    if held:
        yield pa.concat_tables(held)
