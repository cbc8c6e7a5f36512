"""How is a batch written to a database: rows and ledger in one transaction, after the table was claimed in another."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Protocol

from penstock.connectors.ownership import Claim, committed
from penstock.connectors.sink import Batch, Ledger
from penstock.connectors.sink_errors import columns_differ
from penstock.connectors.sql import LEDGER, RETIRED, Books, Tables, ledger_of, quoted
from penstock.plan.output_schemas import Target

if TYPE_CHECKING:
    import pyarrow as pa

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
