"""How the broker is spoken to: clients that print nothing, transactions, and what their errors mean."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from confluent_kafka import KafkaError, KafkaException, Producer

from penstock.connectors.sink_errors import SinkDown, SinkError, down
from penstock.credentials import Secret, revealed
from penstock.types.durations import MILLISECOND, SECOND, words

if TYPE_CHECKING:
    from penstock.connectors.kafka.records import Record
    from penstock.connectors.kafka.sink import Kafka

ANSWER_SECONDS = 10.0
COMMIT_SECONDS = 30.0
ABORT_SECONDS = 5.0

_FENCED = {
    KafkaError._FENCED,
    KafkaError.PRODUCER_FENCED,
    KafkaError.INVALID_PRODUCER_EPOCH,
    KafkaError.INVALID_PRODUCER_ID_MAPPING,
    KafkaError.UNKNOWN_PRODUCER_ID,
}
_AWAY = {
    KafkaError._TRANSPORT,
    KafkaError._ALL_BROKERS_DOWN,
    KafkaError._TIMED_OUT,
    KafkaError._MSG_TIMED_OUT,
    KafkaError._TIMED_OUT_QUEUE,
    KafkaError._RESOLVE,
    KafkaError._DESTROY,
    KafkaError._PURGE_QUEUE,
    KafkaError._PURGE_INFLIGHT,
    KafkaError._RETRY,
    KafkaError._STATE,
    KafkaError._FATAL,
    KafkaError._CONFLICT,
    KafkaError.CONCURRENT_TRANSACTIONS,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.NOT_COORDINATOR,
    KafkaError.REQUEST_TIMED_OUT,
    KafkaError.NETWORK_EXCEPTION,
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.NOT_CONTROLLER,
    KafkaError.BROKER_NOT_AVAILABLE,
    KafkaError.REPLICA_NOT_AVAILABLE,
    KafkaError.NOT_ENOUGH_REPLICAS,
    KafkaError.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    KafkaError.KAFKA_STORAGE_ERROR,
    KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER,
    KafkaError.INVALID_TXN_STATE,
    KafkaError.OFFSET_NOT_AVAILABLE,
    KafkaError.FENCED_LEADER_EPOCH,
    KafkaError.UNKNOWN_LEADER_EPOCH,
    KafkaError.THROTTLING_QUOTA_EXCEEDED,
}
# Said by a callback while the call itself only times out: waiting would not help.
_HOPELESS = {
    KafkaError._AUTHENTICATION,
    KafkaError.SASL_AUTHENTICATION_FAILED,
    KafkaError._SSL,
    KafkaError.UNSUPPORTED_SASL_MECHANISM,
    KafkaError._UNSUPPORTED_FEATURE,
}

_log = logging.getLogger("penstock.sinks.kafka")
_log.addHandler(logging.NullHandler())
_log.propagate = False


class Heard:
    """What a client's callbacks have said: the first error that waiting does not mend, and failed deliveries."""

    def __init__(self) -> None:
        self.hopeless: KafkaError | None = None
        self.fatal: KafkaError | None = None
        self.failed: KafkaError | None = None

    def error(self, error: KafkaError) -> None:
        """The client's word about a broker or itself."""
        # A handshake may also fail because a broker is just going or coming.
        passes = error.code() == KafkaError._SSL and "certificate" not in error.str()
        if error.code() in _HOPELESS and not passes and self.hopeless is None:
            self.hopeless = error
        if error.fatal():
            self.fatal = error

    def delivered(self, error: KafkaError | None, _: Any) -> None:
        """The fate of one record; only failures are told."""
        if error is not None and self.failed is None:
            self.failed = error


def options(sink: Kafka, heard: Heard, **more: Any) -> dict[str, Any]:
    """What a client is made with; secrets are revealed here and nowhere else."""
    given = {name: revealed(value) if isinstance(value, Secret) else value for name, value in sink.settings}
    calm = {"reconnect.backoff.max.ms": 1000, "log_level": 0}
    return {**calm, **given, "bootstrap.servers": sink.servers, "logger": _log, "error_cb": heard.error, **more}


@contextmanager
def explained(sink: Kafka, heard: Heard | None = None) -> Iterator[None]:
    """Turn what the client raises into what a sink raises: to be waited for, or to stop at."""
    try:
        yield
    except KafkaException as error:
        raise said(sink, error.args[0], heard) from None


def said(sink: Kafka, error: KafkaError, heard: Heard | None = None) -> SinkError:
    """The sink's error for one of the client."""
    if heard is not None and heard.hopeless is not None and error.code() in _AWAY:
        error = heard.hopeless
    text = hidden(sink, error.str())
    if error.code() in _FENCED:
        return SinkDown(
            f"{sink.place} has a newer producer ({text})",
            "another run has begun, if only to be refused; nothing of this batch is visible",
            "wait: the ledger is read again and tells whose the topic is",
        )
    if error.code() not in _HOPELESS and (error.retriable() or error.code() in _AWAY):
        return down(sink.place, text)
    if error.code() == KafkaError.INVALID_TRANSACTION_TIMEOUT:
        return SinkError(
            f"{sink.place} refuses a transaction_timeout of {words(sink.transaction_timeout)}",
            "the broker's own limit, transaction.max.timeout.ms, is shorter",
            "say a shorter transaction_timeout, or raise the limit of the broker",
        )
    return SinkError(
        f"{sink.place} refuses: {text} ({error.name()})",
        "the broker or the client says so, and trying again would not change it",
        "mend the topic, the rights or the settings that it names, and start again: the ledger decides what is missing",
    )


def hidden(sink: Kafka, text: str) -> str:
    """A text without the secrets of the settings."""
    for _, value in sink.settings:
        if isinstance(value, Secret) and value.reveal():
            text = text.replace(value.reveal(), "***")
    return text


class Transactions:
    """A producer and its transaction; from `take` on it has shut out all before it."""

    def __init__(self, sink: Kafka, transactional_id: str) -> None:
        self.sink, self.heard, self.open, self.shut_out = sink, Heard(), False, False
        self.since = self.last = self.gap = 0.0
        with explained(sink, self.heard):
            self.producer: Any = Producer(
                options(
                    sink,
                    self.heard,
                    **_unless(sink, {"partitioner": "murmur2_random", "queue.buffering.max.kbytes": 64 << 10}),
                    **{
                        "transactional.id": transactional_id,
                        "delivery.report.only.error": True,
                        "transaction.timeout.ms": sink.transaction_timeout // MILLISECOND,
                        "on_delivery": self.heard.delivered,
                    },
                )
            )

    def take(self) -> None:
        """Shut every older producer of this id out; what it had open is ended or aborted when this returns."""
        with self._explained():
            # Without a connection the client would wait half a second: the first question brings it to the address
            # by which the broker calls itself, the second one waits until it is connected there.
            for _ in range(2):
                self.producer.list_topics(self.sink.progress_topic, timeout=ANSWER_SECONDS)
            self.producer.init_transactions(ANSWER_SECONDS)

    def begin(self) -> None:
        """Open a transaction."""
        with self._explained():
            self.producer.begin_transaction()
        self.open, self.gap = True, 0.0
        self.since = self.last = time.monotonic()

    def send(self, topic: str, records: Iterable[Record], partition: int = -1) -> None:
        """Hand records to the client, which sends them on; waits where it holds too many."""
        produce = self.producer.produce
        self._alive()
        with self._explained():
            for key, value, headers in records:
                while True:
                    try:
                        produce(topic, value, key, partition, headers=headers)
                        break
                    except BufferError:
                        self._drain()
            self.producer.poll(0)
        self._check()

    def flush(self) -> None:
        """Wait until the broker has all that was sent."""
        with self._explained():
            while len(self.producer):
                self._drain()
        self._check()

    def commit(self) -> None:
        """Make everything visible; where the outcome is not known, that is SinkDown, and the ledger will tell."""
        # From here on the broker may have decided, unless it says itself that it has not.
        self.open = False
        try:
            self.producer.commit_transaction(COMMIT_SECONDS)
        except KafkaException as error:
            self.open = error.args[0].txn_requires_abort()
            raise self._meant(self.heard.failed or error.args[0]) from None

    def close(self) -> None:
        """Abort what is open, as far as the broker can be reached, and let the client go."""
        if self.producer is None:
            return
        if self.open:
            with suppress(KafkaException):
                self.producer.abort_transaction(ABORT_SECONDS)
        self.open = False
        self.producer = None

    def _drain(self) -> None:
        """Let the client send; if nothing at all is delivered for a while, the broker is down."""
        before, until = len(self.producer), time.monotonic() + ANSWER_SECONDS
        while time.monotonic() < until:
            self.producer.poll(0.05)
            self._alive()
            self._check()
            if len(self.producer) < before or not before:
                return
        raise down(self.sink.place, f"{before} records wait, and none was taken in {ANSWER_SECONDS:.0f} seconds")

    def _alive(self) -> None:
        """Remember the longest time in which nothing was done: who was stopped may try again."""
        now = time.monotonic()
        self.gap, self.last = max(self.gap, now - self.last), now

    def _check(self) -> None:
        if self.heard.failed is not None:
            raise self._meant(self.heard.failed)

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except KafkaException as error:
            raise self._meant(error.args[0]) from None

    def _fatal(self) -> KafkaError | None:
        """Why the client gave up: it says so when it is next asked, as an error or to its callback."""
        try:
            self.producer.poll(0)
        except KafkaException as error:
            return error.args[0]
        return self.heard.fatal

    def _meant(self, error: KafkaError) -> SinkError:
        """The sink's error; the broker's abort of a transaction that took too long looks like a newer producer."""
        if error.code() == KafkaError._FATAL and self.producer is not None:
            error = self._fatal() or error
        self.shut_out = error.code() in _FENCED
        limit = self.sink.transaction_timeout / SECOND
        self._alive()
        if not self.shut_out or self.last - self.since < limit or self.gap > limit / 2:
            return said(self.sink, error, self.heard)
        return SinkError(
            f"{self.sink.place} threw a transaction away that was open for longer than "
            f"{words(self.sink.transaction_timeout)}",
            "nothing of the batch is visible; played again it would take as long",
            "say a longer transaction_timeout, or make batches smaller with batch_rows",
        )


def _unless(sink: Kafka, defaults: dict[str, Any]) -> dict[str, Any]:
    """Defaults of ours that the settings do not name."""
    named = {name for name, _ in sink.settings}
    return {name: value for name, value in defaults.items() if name not in named}
