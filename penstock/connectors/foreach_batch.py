"""How panes reach the user's own function: as a Spark DataFrame, with the token that makes it idempotent."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from penstock.connectors.sink import Batch, Ledger
from penstock.connectors.sink_compatibility import fit
from penstock.connectors.sink_errors import SinkError
from penstock.diagnostics.user_functions import error_alone, place
from penstock.errors import PenstockError, PlanError
from penstock.humanize import many
from penstock.plan.output_schemas import Target

Function = Callable[[Any, Batch], object]


def foreach_batch(function: Function) -> ForeachBatch:
    """The user's own function, called with the rows of each batch as a Spark DataFrame and the batch.

    It is called again for a batch that comes back after a crash. `batch.token` names the batch the same at every
    attempt: write it with the rows in one transaction and skip what is there, or use it as an idempotency key.
    """
    return ForeachBatch(function)


@dataclass(frozen=True, slots=True)
class ForeachBatch:
    """A function of (rows, batch)."""

    function: Function
    ledgered = False
    wants_dataframe = True

    @property
    def place(self) -> None:
        """A function has no place of its own."""
        return None

    def describe(self) -> str:
        """What is called, and what it promises."""
        name = getattr(self.function, "__name__", repr(self.function))
        return f"the function {name} (at least once; exactly once if it is idempotent by batch.token)"

    def refuse(self, target: Target) -> None:
        """Raise where it is not a function; every output fits."""
        if not callable(self.function):
            raise PlanError(
                f"ps.foreach_batch was given {self.function!r}, which cannot be called",
                "it is called with the rows of each batch and the batch",
                "write ps.foreach_batch(lambda rows, batch: rows.show())",
            )
        fit("append", target, "ps.foreach_batch")

    def open(self, target: Target) -> FunctionWriter:
        """A writer for one output."""
        return FunctionWriter(self.function)


class FunctionWriter:
    """Calls the function; what that does with the rows is its own affair."""

    def __init__(self, function: Function) -> None:
        self.function = function

    def begin(self, lineage: str, epoch: int) -> Ledger | None:
        """There is no ledger."""
        return None

    def mark(self, batch: Batch) -> None:
        """There is nothing to mark."""

    def write(self, batch: Batch, parts: Any) -> None:
        """Hand over the rows, a Spark DataFrame."""
        try:
            self.function(parts, batch)
        except PenstockError:
            raise
        except Exception as error:
            raise SinkError(
                f"the function of ps.foreach_batch failed on batch {batch.batch} with {many(batch.rows, 'row')}: "
                f"{error_alone(error)}{place(error, self.function)}",
                "whether it has done a part of its work is not known here, so the batch is not committed",
                "mend it, or catch in it what can be borne, and start again: it is called anew with the same rows and "
                "the same batch.token",
            ) from error

    def commit(self, batch: Batch) -> None:
        """The function has done what it does."""

    def close(self) -> None:
        """There is nothing to let go."""
