"""How often is a batch written: exactly once, at least once or at most once, whatever dies in between.

| delivery | a batch that comes back | what a reader may see after a crash |
|---|---|---|
| exactly_once | the ledger has it: compared by fingerprint, and not written | every batch once |
| at_least_once | written again, without asking | no batch missing; an append sink may hold the last one twice |
| at_most_once | marked before it was written: not written | no batch twice; the last one may be missing |

The ledger of each sink stands for itself: a batch that goes to several sinks is played again until all have it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, MutableMapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from penstock.connectors.sink import Batch, Ledger, Sink, StagedWriter, Writer, wants_dataframe
from penstock.connectors.sink_errors import SinkError, ahead, behind, diverged, outcome_unknown, torn
from penstock.errors import PlanError
from penstock.plan.output_schemas import Target
from penstock.runtime.failpoints import reached

if TYPE_CHECKING:
    import pyarrow as pa

Writers = MutableMapping[str, Writer]


def deliver(
    sink: Sink,
    target: Target,
    writers: Writers,
    batch: Batch,
    parts: Any,
    delivery: str = "exactly_once",
    *,
    receipts: Sequence[dict[str, Any]] = (),
    after: int | None = None,
) -> bool:
    """Give a sink a batch as often as the delivery says; True if it was written, False if the sink had it.

    `parts` are tables in order (a DataFrame for a sink that wants one), `receipts` what tasks have staged. `after` is
    the batch before this one that the sink was given, if that is known: a sink that lacks it is refused. Calling again
    after any error is safe: the ledger is read first.
    """
    writer = _opened(sink, target, writers)
    try:
        ledger = writer.begin(batch.lineage, batch.epoch)
        _point("sink:begin", target, batch)
        if sink.ledgered:
            _check_step(sink, ledger, batch, after)
        if _has(_name(sink), ledger, batch, delivery):
            _discard(writer, receipts)
            _dropped(target, writers)
            return False
        if ledger is not None and ledger.batch == batch.batch:
            batch = replace(batch, replayed=True)
        if delivery == "at_most_once":
            writer.mark(batch)
        _write(writer, sink, target, batch, parts, list(receipts))
    except BaseException:
        _dropped(target, writers)
        raise
    _point("sink:commit:before", target, batch)
    _commit(writer, sink, target, writers, batch, delivery)
    _point("sink:commit:after", target, batch)
    return True


def check_delivery(sink: Sink, delivery: str) -> None:
    """Refuse at most once into a sink that cannot mark a batch before it is written."""
    if delivery == "at_most_once" and not sink.ledgered:
        raise PlanError(
            f"at most once cannot be promised for {sink.describe()}",
            "it keeps no ledger, so nothing tells after a crash that a batch was given to it",
            'write to a sink with a ledger, or say delivery="at_least_once"',
        )


def _commit(writer: Writer, sink: Sink, target: Target, writers: Writers, batch: Batch, delivery: str) -> None:
    """Commit; if that fails, look into the ledger before anything else is done."""
    try:
        writer.commit(batch)
    except Exception as error:
        _dropped(target, writers)
        if isinstance(error, SinkError) or not sink.ledgered or delivery != "exactly_once":
            raise
        try:
            found = _opened(sink, target, writers).begin(batch.lineage, batch.epoch)
        except SinkError:
            _dropped(target, writers)
            raise
        except Exception as still:
            _dropped(target, writers)
            raise outcome_unknown(_name(sink), batch.batch, still) from error
        if not _has(_name(sink), found, batch, delivery):
            raise


def _has(name: str, ledger: Ledger | None, batch: Batch, delivery: str) -> bool:
    """Whether the sink has this batch and is not to be given it again."""
    if delivery == "at_least_once" or ledger is None or ledger.batch != batch.batch:
        return False
    if delivery == "exactly_once" and (ledger.rows, ledger.fingerprint) != (batch.rows, batch.fingerprint):
        raise diverged(name, ledger, batch)
    return True


def _check_step(sink: Sink, ledger: Ledger | None, batch: Batch, after: int | None) -> None:
    """Refuse a sink that is not where the checkpoint left it; a takeover may begin in the middle."""
    if ledger is not None and ledger.batch > batch.batch:
        raise ahead(_name(sink), ledger, batch)
    begins = ledger is None and getattr(sink, "takeover", False)
    has = -1 if ledger is None else ledger.batch
    if after is not None and has < after and not begins:
        raise behind(_name(sink), has, batch, after)


def _write(
    writer: Writer, sink: Sink, target: Target, batch: Batch, parts: Any, receipts: list[dict[str, Any]]
) -> None:
    if wants_dataframe(sink):
        _point("sink:write", target, batch)
        writer.write(batch, parts)
        return
    staged = sum(int(receipt["rows"]) for receipt in receipts)
    counted = _counted(_name(sink), target, batch, parts, staged)
    if isinstance(writer, StagedWriter):
        writer.write_staged(batch, receipts, counted)
    else:
        writer.write(batch, counted)


def _counted(name: str, target: Target, batch: Batch, parts: Iterable[pa.Table], staged: int) -> Iterator[pa.Table]:
    """The parts as they come; if all were taken, their rows must be as many as the batch has."""
    rows = staged
    for part in parts:
        rows += part.num_rows
        yield part
        _point("sink:write", target, batch)
    _point("sink:write", target, batch)
    if rows != batch.rows:
        raise torn(name, batch.batch, rows, batch.rows)


def _opened(sink: Sink, target: Target, writers: Writers) -> Writer:
    if target.sink not in writers:
        writers[target.sink] = sink.open(target)
    return writers[target.sink]


def _dropped(target: Target, writers: Writers) -> None:
    """Close a writer that failed; its next batch opens another."""
    writer = writers.pop(target.sink, None)
    if writer is not None:
        writer.close()


def _discard(writer: Writer, receipts: Sequence[dict[str, Any]]) -> None:
    if receipts and isinstance(writer, StagedWriter):
        writer.discard(list(receipts))


def _name(sink: Sink) -> str:
    return sink.place or sink.describe()


def _point(name: str, target: Target, batch: Batch) -> None:
    """A point at which a test may kill: of any sink, or of this one alone."""
    reached(name, batch.batch)
    reached(f"{name}#{target.sink}", batch.batch)
