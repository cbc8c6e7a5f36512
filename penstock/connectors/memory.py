"""How rows stay in this process: for tests and notebooks, with a ledger that lives as long as the process does."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from penstock.connectors.ownership import Claim, Held, claimed, committed
from penstock.connectors.sink import Batch, Ledger
from penstock.connectors.sink_compatibility import fit
from penstock.connectors.sink_errors import columns_differ
from penstock.errors import PenstockError, PlanError
from penstock.plan.output_schemas import Target

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(slots=True)
class Store:
    """What a name holds: tables in order, whose they are, and what they are."""

    tables: list[pa.Table] = field(default_factory=list)
    ledger: Ledger | None = None
    retired: set[str] = field(default_factory=set)
    target: Target | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)


STORES: dict[str, Store] = {}


def memory(name: str, *, takeover: bool = False) -> Memory:
    """Rows kept in this process under a name: `.rows` are all of them, `.current()` the answer now."""
    return Memory(name, takeover)


@dataclass(frozen=True, slots=True)
class Memory:
    """A name under which this process keeps rows."""

    name: str
    takeover: bool = False
    ledgered = True

    @property
    def place(self) -> str:
        """The name."""
        return f"memory:{self.name}"

    @property
    def rows(self) -> list[dict[str, Any]]:
        """All rows in order, as dictionaries."""
        return [row for table in self._store().tables for row in table.to_pylist()]

    @property
    def table(self) -> pa.Table:
        """All rows in order, as one Arrow table."""
        import pyarrow as pa

        store = self._store()
        if store.target is None:
            return pa.table({})
        return pa.concat_tables([store.target.schema.empty_table(), *store.tables])

    def current(self) -> list[dict[str, Any]]:
        """The last answer of each key and window, without those that were withdrawn."""
        from penstock.connectors.latest_answers import current

        target = self._store().target
        if target is None:
            return []
        if not target.answers:
            raise PenstockError(
                f"{self.place} holds {target.mode + ' ' if target.kind == 'panes' else ''}{target.kind}, "
                "which have no current answer",
                "each row stands for itself, none replaces another",
                "read .rows; discarding panes add up to the answer",
            )
        rows: list[dict[str, Any]] = current(self.table, target.keys).to_pylist()
        return rows

    def clear(self) -> None:
        """Forget the rows and their ledger."""
        STORES.pop(self.name, None)

    def describe(self) -> str:
        """Where, and what it promises."""
        return f"memory of this process, {self.name!r} (exactly once, until the process ends)"

    def refuse(self, target: Target) -> None:
        """Raise where the name is not one; every output fits."""
        if not isinstance(self.name, str) or not self.name:
            raise PlanError(
                f"ps.memory was given {self.name!r}, which is not a name",
                "the rows are found again by their name",
                'write ps.memory("totals")',
            )
        fit("append", target, "ps.memory")

    def open(self, target: Target) -> MemoryWriter:
        """A writer for one output."""
        return MemoryWriter(self, target)

    def _store(self) -> Store:
        return STORES.setdefault(self.name, Store())


class MemoryWriter:
    """Rows of the batch in hand, which join the others at the commit."""

    def __init__(self, sink: Memory, target: Target) -> None:
        self.sink, self.target = sink, target
        self.store = sink._store()
        self.claim: Claim | None = None
        self.pending: list[pa.Table] = []

    def begin(self, lineage: str, epoch: int) -> Ledger | None:
        """Take the name for this epoch, then tell what was committed last."""
        self.claim = Claim(self.sink.place, self.target.sink, lineage, epoch, self.sink.takeover)
        with self.store.lock:
            if self.store.target is not None and not self.store.target.schema.equals(self.target.schema):
                raise columns_differ(self.sink.place, _columns(self.store.target), _columns(self.target))
            had = self.store.ledger
            taken = claimed(self.claim, Held(had, self.store.retired))
            if had is not None and had.lineage != lineage:
                self.store.retired.add(had.lineage)
            self.store.ledger, self.store.target = taken, self.target
        return committed(taken)

    def mark(self, batch: Batch) -> None:
        """Write the ledger alone."""
        self._keep(batch, [])

    def write(self, batch: Batch, parts: Iterable[pa.Table]) -> None:
        """Hold the parts."""
        self.pending = list(parts)

    def commit(self, batch: Batch) -> None:
        """Rows and ledger under one lock."""
        self._keep(batch, self.pending)
        self.pending = []

    def close(self) -> None:
        """Forget what was not committed."""
        self.pending = []

    def _keep(self, batch: Batch, tables: list[pa.Table]) -> None:
        assert self.claim is not None
        with self.store.lock:
            claimed(replace(self.claim, takeover=False), Held(self.store.ledger, self.store.retired))
            self.store.tables.extend(tables)
            self.store.ledger = Ledger(
                self.target.sink, batch.lineage, batch.batch, batch.epoch, batch.rows, batch.fingerprint
            )


def _columns(target: Target) -> list[tuple[str, str]]:
    return [(one.name, str(one.type)) for one in target.schema]
