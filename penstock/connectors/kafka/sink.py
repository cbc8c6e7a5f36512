"""How rows become records of a Kafka topic: one transaction a batch, with the ledger as a record of another topic.

| compacted | panes | late, quarantine |
|---|---|---|
| True (default) | the last answer of each key and window; a tombstone where it was withdrawn | appended |
| False | every pane with its `op` | appended |

Before a batch the transactional id of the topic is taken, which shuts every older producer out, and only then is the
ledger read. So whoever commits has read the ledger at a time after which nobody else has written.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from penstock.connectors.kafka.schema_registry import Registry, registry_at
from penstock.connectors.kafka.sink_options import New, Setting, check_sink, check_topic, kept, listed, new
from penstock.connectors.ownership import Claim, Held, claimed, committed
from penstock.connectors.sink import Batch, Ledger
from penstock.connectors.sink_compatibility import NET, fit
from penstock.connectors.sink_errors import SinkDown, SinkError, columns_differ, without_package
from penstock.connectors.sql import ledger_of
from penstock.credentials import Secret, shown
from penstock.errors import PlanError
from penstock.plan.output_schemas import Target
from penstock.types.durations import SECOND, Duration, positive, words

if TYPE_CHECKING:
    import pyarrow as pa

    from penstock.connectors.kafka.ledger import Progress
    from penstock.connectors.kafka.producer import Transactions
    from penstock.connectors.kafka.records import Encoder

PROGRESS = "penstock-progress"
CHUNK = 10_000


def to_kafka(
    topic: str,
    *,
    servers: str,
    value: str = "json",
    avro_schema: str | Mapping[str, Any] | None = None,
    key: str | tuple[str, ...] | list[str] | None = None,
    compacted: bool = True,
    settings: Mapping[str, Setting] | None = None,
    progress_topic: str = PROGRESS,
    transaction_timeout: Duration = "60 seconds",
    create: bool = False,
    partitions: int | None = None,
    replication: int | None = None,
    takeover: bool = False,
    parallel: bool = False,
    registry: str | Secret | None = None,
) -> Kafka:
    """A topic of Kafka: the last answer per key and window, or with `compacted=False` every pane; exactly once."""
    from penstock.connectors.kafka.sharded_sink import ParallelKafka

    timeout = positive(transaction_timeout, "transaction_timeout")
    schema = avro_schema if avro_schema is None or isinstance(avro_schema, str) else json.dumps(avro_schema)
    columns = tuple(key) if isinstance(key, list) else key
    form = ParallelKafka if parallel else Kafka
    return form(
        topic,
        listed(servers),
        value,
        schema,
        columns,
        compacted,
        kept(settings or {}),
        progress_topic,
        timeout,
        new(create, partitions, replication),
        takeover,
        None if registry is None else registry_at(registry),
    )


@dataclass(frozen=True, slots=True)
class Kafka:
    """A topic, how its records look, and how its broker is reached; `transaction_timeout` is in microseconds."""

    topic: str
    servers: str
    value: str = "json"
    avro_schema: str | None = None
    key: str | tuple[str, ...] | None = None
    compacted: bool = True
    settings: tuple[tuple[str, Any], ...] = ()
    progress_topic: str = PROGRESS
    transaction_timeout: int = 60 * SECOND
    create: New | None = None
    takeover: bool = False
    registry: Registry | None = None
    ledgered = True

    @property
    def place(self) -> str:
        """The servers and the topic."""
        return f"kafka:{shown(self.servers)}#{self.topic}"

    @property
    def transactional_id(self) -> str:
        """Of the topic, not of the output: two pipelines on one topic shut one another out, and the ledger decides."""
        return f"penstock-{self.topic}"

    def describe(self) -> str:
        """Where, and what it promises."""
        what = "the answer of each key and window" if self.compacted else "every pane"
        return (
            f"Kafka {shown(self.servers)}, topic {self.topic}, {self.value}, {what} "
            "(exactly once for readers with read_committed: ledger in the same transaction)"
        )

    def refuse(self, target: Target) -> None:
        """Raise where the output does not fit."""
        for package, needed in (("confluent_kafka", True), ("fastavro", self.value == "avro")):
            if needed and find_spec(package) is None:
                raise without_package("ps.to_kafka", package, "kafka")
        check_topic(self.topic)
        check_topic(self.progress_topic)
        check_sink(self)
        self.upserts(target)
        self.encoder(target)

    def refuse_cadence(self, batch_every: int) -> None:
        """Raise where a batch may last longer than a transaction; the time between batches is in microseconds."""
        if self.transaction_timeout < 2 * batch_every:
            raise PlanError(
                f"transaction_timeout is {words(self.transaction_timeout)}, with a batch every {words(batch_every)}",
                "to write a batch may take as long as to make one, and the broker throws a transaction away that is "
                "open for longer than its time-out: it must be at least twice the time between batches",
                f'write ps.to_kafka(..., transaction_timeout="{words(max(2 * batch_every, 60 * SECOND))}")',
            )

    def upserts(self, target: Target) -> bool:
        """Whether a record replaces the one before it with the same key."""
        if not self.compacted:
            fit("append", target, "ps.to_kafka")
            return False
        if target.kind == "panes" and target.mode == "discarding":
            raise PlanError(
                f"discarding panes cannot be written to the topic {self.topic!r} as the answer of each key and window",
                "a discarding pane holds only what is new: the last record would show a piece as if it were the whole",
                "write .accumulating(), or say compacted=False to append every pane",
            )
        return fit("upsert", target, "ps.to_kafka") == NET

    def encoder(self, target: Target) -> Encoder:
        """How rows of the output become records."""
        from penstock.connectors.kafka.records import encoder

        return encoder(self, target)

    def open(self, target: Target) -> KafkaWriter:
        """A writer for one output."""
        return KafkaWriter(self, target)


class KafkaWriter:
    """An open topic: the ledger as read so far, and the producer of the batch in hand."""

    def __init__(self, sink: Kafka, target: Target) -> None:
        self.sink, self.target = sink, target
        self.encoder = sink.encoder(target)
        self.claim: Claim | None = None
        self.retired: tuple[str, ...] = ()
        self.progress: Progress | None = None
        self.transactions: Transactions | None = None
        self.spare: Transactions | None = None

    def begin(self, lineage: str, epoch: int) -> Ledger | None:
        """Shut older producers out, read the ledger, and take the topic for this epoch."""
        from penstock.connectors.kafka.ledger import Progress
        from penstock.connectors.kafka.producer import Transactions

        claim = Claim(self.sink.place, self.target.sink, lineage, epoch, self.sink.takeover)
        if self.progress is None:
            self.progress = Progress(self.sink, self.sink.topic)
            self.progress.check_topics(upserts=self.sink.upserts(self.target))
            # A run that would be refused is refused here, before it shuts the living one out for a moment.
            if self.progress.glance():
                self._taken(claim)
        if self.transactions is not None:
            self.transactions.close()
        self.transactions = self.spare or Transactions(self.sink, self.sink.transactional_id)
        self.spare = None
        self.transactions.take()
        self.progress.read()
        taken = self._taken(claim)
        found = self.progress.found[self.sink.topic]
        if found is None or found.ledger != taken:
            self.transactions.begin()
            self._keep(taken)
        self.claim = claim
        return committed(taken)

    def mark(self, batch: Batch) -> None:
        """Write the ledger alone."""
        with self._if_shut_out():
            self._open().begin()
            self._keep(ledger_of(batch, self.target))

    def write(self, batch: Batch, parts: Iterable[pa.Table]) -> None:
        """Send the rows, inside the transaction."""
        with self._if_shut_out():
            self._open().begin()
            for part in parts:
                for start in range(0, part.num_rows, CHUNK):
                    records = self.encoder.records(part.slice(start, CHUNK), batch.token)
                    self._open().send(self.sink.topic, records)

    def commit(self, batch: Batch) -> None:
        """The ledger's record, after the broker has all rows; then everything at once."""
        from penstock.connectors.kafka.producer import Transactions

        with self._if_shut_out():
            self._open().flush()
            self._keep(ledger_of(batch, self.target))
        # Every batch has a producer of its own; the next one connects meanwhile.
        with suppress(SinkError):
            self.spare = Transactions(self.sink, self.sink.transactional_id)

    def close(self) -> None:
        """Abort what is open and let the broker go."""
        for one in (self.transactions, self.spare):
            if one is not None:
                one.close()
        self.transactions = self.spare = None
        if self.progress is not None:
            self.progress.close()
            self.progress = None

    def _taken(self, claim: Claim) -> Ledger:
        """The ledger with which this run goes on, by what was read so far."""
        assert self.progress is not None
        found = self.progress.found[self.sink.topic]
        orphans = found is None and not claim.takeover and self.progress.topic_holds_records()
        held = Held(found.ledger, found.retired) if found is not None else Held(orphans=orphans)
        taken = claimed(claim, held)
        self.retired = tuple(held.retired)
        if found is not None and found.ledger.lineage != claim.lineage:
            self.retired = tuple(sorted({*self.retired, found.ledger.lineage}))
        elif found is not None and found.ledger.sink == claim.sink and found.columns != columns_of(self.target):
            raise columns_differ(self.sink.place, found.columns, columns_of(self.target))
        return taken

    def _keep(self, ledger: Ledger) -> None:
        """Send the ledger's record and commit the transaction."""
        from penstock.connectors.kafka.ledger import Found

        record = Found(ledger, self.retired, columns_of(self.target)).record(self.sink.topic)
        self._open().send(self.sink.progress_topic, [record], partition=0)
        self._open().commit()

    @contextmanager
    def _if_shut_out(self) -> Iterator[None]:
        """A newer producer: if the ledger says that the topic is no longer ours, say so; else it is tried again."""
        try:
            yield
        except SinkDown:
            shut_out = self._open().shut_out and self.progress is not None and self.progress.glance()
            if shut_out and self.claim is not None:
                self._taken(replace(self.claim, takeover=False))
            raise

    def _open(self) -> Transactions:
        assert self.transactions is not None, "begin comes first"
        return self.transactions


def columns_of(target: Target) -> tuple[tuple[str, str], ...]:
    """The columns of an output, as the ledger tells them."""
    return tuple((one.name, str(one.type)) for one in target.schema)
