"""What stops a sink: each error says what the sink holds, why writing would be wrong, and the choices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from penstock.errors import PenstockError, PlanError

if TYPE_CHECKING:
    from penstock.connectors.sink import Batch, Ledger


class SinkError(PenstockError):
    """A sink cannot take a batch without becoming wrong."""


class Fenced(SinkError):
    """A newer run has taken the sink; this one may not write any more."""


class ForeignLineage(SinkError):
    """The sink holds the rows of another checkpoint, or rows of which no ledger tells."""


class ReplayDiverged(SinkError):
    """A batch came back with other rows than those the sink has committed."""


class OutOfStep(SinkError):
    """The sink is ahead of the checkpoint, or behind it, by more than the one batch that can come back."""


class ColumnsDiffer(SinkError):
    """The table that is there has other columns than the output."""


class TornBatch(SinkError):
    """The rows handed over, or found, are not as many as the batch holds."""


class SinkDown(SinkError):
    """The sink does not answer, or asks to try again: nothing is wrong with the batch, and it waits."""


class SinkBusy(SinkDown):
    """Another process holds the sink."""


class OutcomeUnknown(SinkError):
    """A commit failed, and the ledger that would tell its outcome cannot be read."""


def fenced(place: str, epoch: int, newer: str) -> Fenced:
    """An older epoch, or a lineage that was taken over."""
    return Fenced(
        f"{place} is fenced against this run (epoch {epoch}): {newer}",
        "two runs that write one output would each undo what the other did",
        "stop this run; the newer one goes on",
    )


def foreign(place: str, found: Ledger, sink: str, lineage: str) -> ForeignLineage:
    """A ledger of another checkpoint or of another output."""
    return ForeignLineage(
        f"{place} belongs to {found.sink} of lineage {found.lineage}, at batch {found.batch}; "
        f"this is {sink} of lineage {lineage}",
        "batch numbers of two checkpoints mean different rows: skipping would lose some, writing would mix them",
        "go on from the checkpoint that wrote it, or name a new table or path, "
        "or say takeover=True: its rows stay, and the other lineage may never write there again",
    )


def exchanged(place: str, before: str, sink: str) -> ForeignLineage:
    """A place that another output of the same run wrote to."""
    return ForeignLineage(
        f"{place} has the rows of {before} of this checkpoint, and is now to be given those of {sink}",
        "outputs were written in another order, or have changed places: each stage would go on with what another "
        "remembers, and takeover=True does not help",
        "write the outputs in the order that they had, each with its own table, or name a table that is new",
    )


def moved(place: str, sink: str, before: str) -> ForeignLineage:
    """An output that was written elsewhere until now."""
    return ForeignLineage(
        f"{sink} wrote to the table {before!r} before, and is now to write to {place}",
        "the new table would lack everything that was shown until now",
        "name the table as before, or start a new checkpoint, or say takeover=True to begin there in the middle",
    )


def unledgered(place: str) -> ForeignLineage:
    """Rows without a ledger."""
    return ForeignLineage(
        f"{place} holds rows, but no ledger tells which batch they are of",
        "the ledger was deleted or the rows are not ours; which of ours are among them cannot be known",
        "name a new table or path, or say takeover=True to write among the rows that are there",
    )


def manifests_lost(place: str) -> ForeignLineage:
    """Data files whose manifests were deleted."""
    return ForeignLineage(
        f"{place} was written to before, but its manifests in _penstock are gone",
        "no ledger tells which files are data and which batch was the last",
        "name a new path; the files in data/ are still there",
    )


def diverged(place: str, found: Ledger, batch: Batch) -> ReplayDiverged:
    """A replay that is not the batch it was."""
    return ReplayDiverged(
        f"replay diverged: {place} has batch {found.batch} with {found.rows} rows (fingerprint {found.fingerprint}), "
        f"and it came back with {batch.rows} rows (fingerprint {batch.fingerprint})",
        "keeping the first would leave sink and state apart: a function that is not deterministic, a source that "
        "changed, or a plan that was edited in the middle of a batch",
        "make the plan give the same rows again and restart, or start a new checkpoint with a new table or path",
    )


def ahead(place: str, found: Ledger, batch: Batch) -> OutOfStep:
    """A checkpoint older than the sink."""
    return OutOfStep(
        f"{place} is at batch {found.batch} of this lineage and is asked to write batch {batch.batch}",
        "only the last batch can come back: the checkpoint is older than the sink, as from a backup",
        "restore the newer checkpoint, or restore the sink to the same moment, or start a new checkpoint "
        "with a new table or path",
    )


def behind(place: str, has: int, batch: Batch, after: int) -> OutOfStep:
    """A sink older than the checkpoint, or one that it never wrote to."""
    found = f"is at batch {has} of this lineage" if has >= 0 else "has no batch of this lineage"
    return OutOfStep(
        f"{place} {found}, but batch {after} was committed before batch {batch.batch}",
        "the sink was emptied, moved or restored from a backup, and what it lacks cannot be made again",
        "restore the sink, or start a new checkpoint, or, for a sink that has nothing of this lineage, "
        "say takeover=True to begin in the middle",
    )


def columns_differ(place: str, found: Sequence[tuple[str, str]], wanted: Sequence[tuple[str, str]]) -> ColumnsDiffer:
    """The difference between the columns that are there and those of the output, column by column."""
    there, here = dict(found), dict(wanted)
    lines = [f"{name} is missing" for name in here if name not in there]
    lines += [f"{name} is not in the output" for name in there if name not in here]
    lines += [
        f"{name} is {there[name]}, not {kind}" for name, kind in here.items() if name in there and there[name] != kind
    ]
    return ColumnsDiffer(
        f"{place} has other columns than the output: {'; '.join(lines) or 'another order'}",
        "rows are only written into columns of their own names and types",
        "name a new table or path, or change the one that is there",
    )


def torn(place: str, batch: int, found: int, told: int) -> TornBatch:
    """Rows that do not add up."""
    return TornBatch(
        f"batch {batch} of {place} has {told} rows by its count, and {found} are there",
        "a batch is written whole or not at all",
        "restart, which plays the batch again; if it stays so, files under the sink were changed by hand",
    )


def busy(place: str, error: Exception) -> SinkBusy:
    """A lock that another process holds."""
    return SinkBusy(
        f"{place} is locked by another process: {error}",
        "it takes one writer at a time",
        "stop the other writer, or wait until it has finished",
    )


def down(place: str, error: Exception | str) -> SinkDown:
    """A server that cannot be reached, or has gone away in the middle."""
    return SinkDown(
        f"{place} does not answer: {str(error).strip() or type(error).__name__}",
        "the batch is whole and waits; its ledger is read before anything is written again",
        "start the server again, or mend the way to it: the run goes on by itself",
    )


def outcome_unknown(place: str, batch: int, error: Exception) -> OutcomeUnknown:
    """A commit that may or may not have happened."""
    return OutcomeUnknown(
        f"the commit of batch {batch} to {place} failed, and its ledger cannot be read: {error}",
        "the batch may be there or not; writing again without looking could write it twice",
        "restart when the sink answers again: the ledger is read first and decides",
    )


def without_package(sink: str, package: str, extra: str) -> PlanError:
    """A sink whose package is not installed."""
    return PlanError(
        f"{sink} needs the package {package}, which is not installed",
        "it is an extra, so that nobody installs what they do not use",
        f"pip install 'penstock[{extra}]'",
    )
