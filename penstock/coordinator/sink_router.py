"""Where a batch goes: each output to its sink by the pipeline's delivery; what nobody writes is kept, up to a cap."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.api.pipeline import Pipeline
from penstock.checkpoint.identity import Identity
from penstock.checkpoint.unwritten_rows import folder_of
from penstock.connectors.delivery import check_delivery, deliver
from penstock.connectors.sink import Batch, Writer, wants_dataframe
from penstock.connectors.sink_errors import ForeignLineage, exchanged
from penstock.coordinator.batch_result import Heard
from penstock.coordinator.messages import BAD, LATE, kind_of
from penstock.coordinator.sink_retry import Waiting
from penstock.coordinator.sink_targets import targets_of
from penstock.coordinator.staging import clear_staging, for_spark
from penstock.plan.output_schemas import Target
from penstock.storage.local import CheckpointError, Store

KEPT_BYTES = 1 << 30


@dataclass
class Outlets:
    """The sinks of a pipeline while it runs; `ledgers` is what each has said of the batch that it has."""

    pipeline: Pipeline
    lineage: str
    epoch: int
    store: Store
    staging: str | None
    spark: Any
    writers: dict[str, Writer] = field(default_factory=dict)
    ledgers: dict[str, dict[str, Any]] = field(default_factory=dict)

    @classmethod
    def opened(
        cls,
        pipeline: Pipeline,
        identity: Identity,
        epoch: int,
        store: Store,
        staging: str | None,
        spark: Any,
        waiting: Waiting | None = None,
    ) -> Outlets:
        """Open every sink, shut older runs out, and refuse before the first batch what would be refused in it.

        A sink that does not answer is refused, or waited for where the run has written to it before.
        """
        outlets = cls(pipeline, identity.lineage, epoch, store, staging, spark)
        if staging is not None:
            clear_staging(staging)
        try:
            for name, sink, target in targets_of(pipeline):
                check_delivery(sink, pipeline.delivery)
                opened = partial(outlets._open, name, sink, target)
                opened() if waiting is None else waiting.through(opened)
        except BaseException:
            outlets.close()
            raise
        return outlets

    def write(
        self, heard: Heard, batch: int, given: Mapping[str, int], waiting: Waiting, *, replayed: bool = False
    ) -> dict[str, int]:
        """Give each output its rows; an output without rows is left alone. Tells which batch each was given last."""
        last = dict(given)
        targets = tuple(targets_of(self.pipeline))
        for name, sink, target in targets:
            rows = heard.rows(target.stream)
            if not rows:
                continue
            one = Batch(self.lineage, batch, self.epoch, rows, heard.fingerprint(target.stream), replayed)
            waiting.through(partial(self._deliver, name, heard, sink, target, one, given.get(name)))
            last[name] = batch
        written = {target.stream for _, _, target in targets}
        for stream in heard.streams:
            if kind_of(stream) in (LATE, BAD) and heard.rows(stream) and stream not in written:
                name = f"kept/{folder_of(stream)}"
                last[name] = self._keep(heard, stream, batch, given.get(name, 0))
        if self.staging is not None and any("staged" in part.head for kind in heard.streams.values() for part in kind):
            clear_staging(self.staging)
        return last

    def _open(self, name: str, sink: Any, target: Target) -> None:
        self.writers[name] = sink.open(target)
        ledger = self.writers[name].begin(self.lineage, self.epoch)
        self.ledgers[name] = {
            "batch": None if ledger is None else ledger.batch,
            "rows": None if ledger is None else ledger.rows,
            "had": False,
            "ledgered": sink.ledgered,
        }

    def _deliver(self, name: str, heard: Heard, sink: Any, target: Target, batch: Batch, after: int | None) -> None:
        rows, receipts = self._rows(heard, target.sink, sink, target)
        written = deliver(
            sink, target, self.writers, batch, rows, self.pipeline.delivery, receipts=receipts, after=after
        )
        self.ledgers[name] = {
            "batch": batch.batch,
            "rows": batch.rows,
            "had": not written,
            "ledgered": sink.ledgered,
        }

    def close(self) -> None:
        """Let go of every sink."""
        for writer in self.writers.values():
            with suppress(Exception):
                writer.close()
        self.writers.clear()

    def _rows(self, heard: Heard, name: str, sink: Any, target: Target) -> tuple[Any, list[dict[str, Any]]]:
        """What a sink is handed: parts, or a DataFrame, or receipts of what its tasks have staged."""
        parts = heard.streams[target.stream]
        if wants_dataframe(sink):
            return self._frame(heard, target), []
        receipts = [part.head["receipts"][name] for part in parts if name in part.head.get("receipts", {})]
        inline = [part for part in parts if name not in part.head.get("receipts", {})]
        return (table for part in inline for table in part.tables(self.staging)), receipts

    def _frame(self, heard: Heard, target: Target) -> Any:
        """The rows as a Spark DataFrame: from memory what is small, from files what was put aside."""
        parts = heard.streams[target.stream]
        frames = []
        small = [table for part in parts if "staged" not in part.head for table in part.tables(None)]
        if small:
            frames.append(self.spark.createDataFrame(pa.concat_tables(small)))
        paths = [part.head["staged"] for part in parts if "staged" in part.head]
        if paths:
            frames.append(self.spark.read.parquet(*(for_spark(self.staging or "", path) for path in paths)))
        whole = frames[0]
        for frame in frames[1:]:
            whole = whole.unionByName(frame)
        return whole

    def _keep(self, heard: Heard, stream: str, batch: int, size: int) -> int:
        """Keep rows that no sink is given under the checkpoint; once, and not without end."""
        kind = folder_of(stream)
        size = size if self.store.names(f"penstock/{kind}") else 0
        sink = pa.BufferOutputStream()
        tables = [table for part in heard.streams[stream] for table in part.tables(self.staging)]
        pq.write_table(pa.concat_tables(tables), sink)
        data = sink.getvalue().to_pybytes()
        size += len(data)
        if size > KEPT_BYTES:
            raise CheckpointError(
                f"the {kind} rows that nobody writes anywhere have reached {KEPT_BYTES >> 20} MB",
                f"they are kept under {self.store.root}/penstock/{kind}, and nothing is dropped in silence",
                f"write them to a sink of your own: totals.{kind_of(stream)}.write(ps.files(...)), or move that folder "
                "away",
            )
        self.store.create(f"penstock/{kind}/{batch:012d}.parquet", data)
        return size


def refuse_exchanged(pipeline: Pipeline, written: Mapping[str, int]) -> None:
    """Refuse outputs that have changed places, whatever is said of a takeover: with them the stages have.

    Only the last part of a place is known here; the ledgers have all of it, and are asked when the sinks are opened.
    """
    names = {name for name, _, _ in targets_of(pipeline)}
    gone = [old for old in written if old not in names and old.startswith(f"{pipeline.name}/") and old.count("/") > 1]
    for name, sink, _ in targets_of(pipeline):
        if getattr(sink, "place", None) is None or name in written:
            continue
        _, stream, label = name.split("/", 2)
        for old in gone:
            if old.split("/", 2)[2] == label and old.split("/")[1] != stream:
                raise exchanged(sink.place, old, name)


def refuse_moved(pipeline: Pipeline, given: Mapping[str, int]) -> None:
    """Refuse an output that takes the place of another: it would begin in the middle, unless that is meant."""
    names = {name for name, _, _ in targets_of(pipeline)}
    for name, sink, _ in targets_of(pipeline):
        kind = name.split("/")[1]
        gone = sorted(old for old in given if old not in names and old.startswith(f"{pipeline.name}/{kind}/"))
        if gone and name not in given and sink.ledgered and not getattr(sink, "takeover", False):
            raise ForeignLineage(
                f"the output {name} is new, and {gone[0]} is gone",
                "if it has moved, the new place would lack everything that was shown until now",
                "name the table or path as before, or start a new checkpoint, or say takeover=True to begin there in "
                "the middle",
            )
