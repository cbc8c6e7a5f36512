"""What is a sink: a configuration that opens a writer, and the four values the two speak in."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

if TYPE_CHECKING:
    import pyarrow as pa

    from penstock.plan.output_schemas import Target


@dataclass(frozen=True, slots=True)
class Ledger:
    """The batch that a sink committed last; -1 where a lineage has begun and committed nothing yet."""

    sink: str
    lineage: str
    batch: int
    epoch: int
    rows: int
    fingerprint: str


@dataclass(frozen=True, slots=True)
class Batch:
    """What a writer is asked to write; `token` names it the same at every attempt."""

    lineage: str
    batch: int
    epoch: int
    rows: int
    fingerprint: str
    replayed: bool = False

    @property
    def token(self) -> str:
        """The name of the batch for all time: use it as an idempotency key."""
        return f"{self.lineage}/{self.batch}"


class Writer(Protocol):
    """An open sink: fences, tells what it has, then takes one batch at a time, whole or not at all."""

    def begin(self, lineage: str, epoch: int) -> Ledger | None:
        """Shut out older epochs first, then tell what was committed last."""

    def mark(self, batch: Batch) -> None:
        """Write the ledger alone, so that a replay of this batch writes nothing."""

    def write(self, batch: Batch, parts: Iterable[pa.Table]) -> None:
        """Take the rows of a batch, unseen by readers until the commit."""

    def commit(self, batch: Batch) -> None:
        """Make rows and ledger visible in one step."""

    def close(self) -> None:
        """Let go; what was not committed is gone."""


class Sink(Protocol):
    """Where rows go: a frozen configuration that can be pickled."""

    @property
    def place(self) -> str | None:
        """What no second output may write to; None where any number may."""

    @property
    def ledgered(self) -> bool:
        """Whether it keeps a ledger with its rows, so that each batch is there exactly once."""

    def refuse(self, target: Target) -> None:
        """Raise PlanError where the output does not fit the sink."""

    def describe(self) -> str:
        """Where it writes and what it promises, without secrets."""

    def open(self, target: Target) -> Writer:
        """A writer for one output."""


@runtime_checkable
class Stages(Protocol):
    """A sink whose rows tasks write aside; the driver then commits their receipts."""

    def stage(self, target: Target, tag: str, table: pa.Table) -> dict[str, Any]:
        """Runs in a task: write one data file aside and give its receipt, plain JSON."""


@runtime_checkable
class StagedWriter(Protocol):
    """A writer that commits what tasks have staged."""

    def write_staged(self, batch: Batch, receipts: list[dict[str, Any]], parts: Iterable[pa.Table]) -> None:
        """Take a batch whose rows lie in staged files, and in parts where there are few."""

    def discard(self, receipts: list[dict[str, Any]]) -> None:
        """Remove staged files that no batch will name."""


def wants_dataframe(sink: Sink) -> bool:
    """Whether its writer is handed the rows as a Spark DataFrame in place of parts."""
    return bool(getattr(sink, "wants_dataframe", False))
