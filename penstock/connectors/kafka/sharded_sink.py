"""How tasks write a topic themselves: one transaction a shard, each exactly once, though not all at one moment.

A shard has a transactional id and a ledger record of its own. Its task shuts other attempts out, reads that record,
and writes rows and record in one transaction unless the batch is there. The driver's ledger closes the batch.
What that gives up: a reader sees the shards of a batch one after the other, also where the batch as a whole is played
again later; and a refusal that only the driver can speak comes after tasks have written.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from penstock.connectors.kafka.sink import CHUNK, Kafka, KafkaWriter, columns_of
from penstock.connectors.sink import Batch, Ledger
from penstock.connectors.sink_errors import SinkDown, ahead, diverged, fenced
from penstock.errors import PenstockError
from penstock.plan.output_schemas import Target
from penstock.runtime.failpoints import reached

if TYPE_CHECKING:
    import pyarrow as pa

PATIENCE_SECONDS = 300.0
LONGEST_PAUSE = 10.0


@dataclass(frozen=True, slots=True)
class ParallelKafka(Kafka):
    """A topic that tasks write to, and, once a run has begun, the lineage in whose name they do."""

    lineage: str = ""
    # Rows may not come through a task at one attempt and through the driver at the next.
    stages_all = True

    def describe(self) -> str:
        """Where, and what it promises."""
        return Kafka.describe(self).replace(
            "ledger in the same transaction", "one transaction a shard, a batch is not seen at one moment"
        )

    def bound(self, lineage: str) -> ParallelKafka:
        """The same sink as the tasks of a run are given it."""
        return replace(self, lineage=lineage)

    def open(self, target: Target) -> ParallelWriter:
        """A writer for one output."""
        return ParallelWriter(self, target)

    def stage(self, target: Target, tag: str, table: pa.Table) -> dict[str, Any]:
        """Runs in a task: write the rows of a shard, unless this batch of it is there; waits while a broker is down."""
        if not self.lineage:
            raise PenstockError(
                f"{self.place} was not told in whose name it writes",
                "a shard's ledger tells the lineage of the checkpoint",
                "call bound(lineage) before the tasks are given the sink",
            )
        number, shard = tag.split("-")[:2]
        until, pause = time.monotonic() + PATIENCE_SECONDS, 0.2
        while True:
            try:
                written = _staged(self, target, int(number), shard, table)
                return {"rows": table.num_rows, "shard": shard, "written": written}
            except SinkDown:
                if time.monotonic() > until:
                    raise
                time.sleep(pause)
                pause = min(2 * pause, LONGEST_PAUSE)


class ParallelWriter(KafkaWriter):
    """Closes a batch whose rows tasks have written."""

    def write_staged(self, batch: Batch, receipts: list[dict[str, Any]], parts: Iterable[pa.Table]) -> None:
        """Write what did not come through a task; the rest is there."""
        self.write(batch, parts)

    def discard(self, receipts: list[dict[str, Any]]) -> None:
        """What tasks have written is the batch itself, and stays."""


def _staged(sink: ParallelKafka, target: Target, number: int, shard: str, table: pa.Table) -> bool:
    """Fence, read, write: the rows of one shard; whether they were written now."""
    from penstock.connectors.fingerprint import fingerprint_of, shown
    from penstock.connectors.kafka.ledger import Found, Progress
    from penstock.connectors.kafka.producer import Transactions

    name = f"{sink.topic}#{shard}"
    batch = Batch(sink.lineage, number, 0, table.num_rows, shown(fingerprint_of(target.kind, table)))
    progress = Progress(sink, sink.topic, name)
    try:
        transactions = Transactions(sink, f"{sink.transactional_id}#{shard}")
        try:
            transactions.take()
            progress.read()
            owner = progress.found[sink.topic]
            if owner is None or owner.ledger.lineage != sink.lineage:
                other = "nobody" if owner is None else f"lineage {owner.ledger.lineage}"
                raise fenced(sink.place, 0, f"the topic belongs to {other}, not to lineage {sink.lineage}")
            if _has(sink, progress.found[name], batch):
                return False
            transactions.begin()
            encoder = sink.encoder(target)
            for start in range(0, table.num_rows, CHUNK):
                transactions.send(sink.topic, encoder.records(table.slice(start, CHUNK), batch.token))
            transactions.flush()
            reached("task:sent", number)
            ledger = Ledger(target.sink, sink.lineage, number, 0, batch.rows, batch.fingerprint)
            record = Found(ledger, (), columns_of(target)).record(name)
            transactions.send(sink.progress_topic, [record], partition=0)
            transactions.commit()
            reached("task:committed", number)
            return True
        finally:
            transactions.close()
    finally:
        progress.close()


def _has(sink: ParallelKafka, found: Any, batch: Batch) -> bool:
    """Whether the shard has the batch; raises where it has other rows, or is beyond it."""
    if found is None or found.ledger.lineage != batch.lineage or found.ledger.batch < batch.batch:
        return False
    if found.ledger.batch > batch.batch:
        raise ahead(sink.place, found.ledger, batch)
    if (found.ledger.rows, found.ledger.fingerprint) != (batch.rows, batch.fingerprint):
        raise diverged(sink.place, found.ledger, batch)
    return True
