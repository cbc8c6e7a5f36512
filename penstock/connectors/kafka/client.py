"""Which Kafka, and how it is spoken to: servers and settings, with secrets revealed to the client alone."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from penstock.connectors.kafka.errors import bad_settings, not_installed, refused, unreachable
from penstock.credentials import Secret, hides, revealed
from penstock.errors import PlanError, not_a_mapping

T = TypeVar("T")
Settings = tuple[tuple[str, str | Secret], ...]

_OURS = {
    "bootstrap.servers": "servers=…",
    "metadata.broker.list": "servers=…",
    "group.id": "group=…",
    "isolation.level": 'isolation="read_committed"',
    "auto.offset.reset": "start=…",
    "enable.auto.commit": "nothing: Spark's checkpoint holds the offsets, and group=… shows them in Kafka",
    "enable.auto.offset.store": "nothing: Spark's checkpoint holds the offsets",
    "enable.partition.eof": "nothing: the reader needs it as it is",
}
DENIED = 5.0  # seconds after which a password that is not taken is wrong: a broker that starts may not know it yet
_PAUSE = 0.2
# What syslog calls an emergency, alert, critical, error, warning, notice, information; and what is for finding faults.
_LEVELS = (*[logging.CRITICAL] * 3, logging.ERROR, logging.WARNING, logging.INFO, logging.INFO, logging.DEBUG)
_clients: dict[tuple[object, ...], Any] = {}

logger = logging.getLogger("penstock.kafka")
logger.addHandler(logging.NullHandler())


@dataclass(frozen=True, slots=True)
class Cluster:
    """Servers, the settings of the client, and for how long it is patient, in microseconds."""

    servers: str
    settings: Settings = ()
    timeout: int = 60_000_000

    @property
    def seconds(self) -> float:
        """How long a silent broker is waited for."""
        return self.timeout / 1_000_000

    def plain(self) -> dict[str, Any]:
        """The settings of any client: the only place where secrets are revealed."""
        return {
            "reconnect.backoff.max.ms": 1_000,
            "topic.metadata.refresh.interval.ms": 60_000,
            **{name: revealed(value) for name, value in self.settings},
            "bootstrap.servers": self.servers,
        }

    def client(self, said: Said, **more: Any) -> dict[str, Any]:
        """What a client of confluent-kafka's is made with."""
        return {**self.plain(), **more, "bootstrap.servers": self.servers, "error_cb": said, "logger": logger}

    def scrubbed(self, text: object) -> str:
        """What a client said, without a secret that it may have repeated."""
        plain = str(text)
        for _, value in self.settings:
            if isinstance(value, Secret) and value.reveal():
                plain = plain.replace(value.reveal(), "***")
        return plain


class Said:
    """The last thing that a client complained of, and whether it was that it is not let in."""

    def __init__(self) -> None:
        self.last = ""
        self.denied = False

    def __call__(self, error: Any) -> None:
        from confluent_kafka import KafkaError

        text = str(error.str())
        # A handshake that fails for another reason may be a broker that is just going or coming.
        stranger = error.code() == KafkaError._SSL and "certificate" in text
        denied = stranger or error.code() == KafkaError._AUTHENTICATION
        if denied or not self.denied:
            self.last = text
        self.denied = self.denied or denied


def settings_of(given: Mapping[str, Any] | None) -> Settings:
    """Settings as they are kept: in order, texts, and secret where their names say so."""
    if not isinstance(given or {}, Mapping):
        raise not_a_mapping(given, '"fetch.max.bytes": 1_000_000')
    made: dict[str, str | Secret] = {}
    for name, value in (given or {}).items():
        if name in _OURS:
            raise PlanError(
                f"settings names {name!r}, which is the reader's own",
                "it decides what is read and how far, and two answers could differ",
                f"say it by {_OURS[name]}",
            )
        if not isinstance(name, str) or not isinstance(value, (str, int, float, bool, Secret)):
            raise PlanError(
                f"the setting {name!r} is not a word or a number",
                "settings are passed to the client as they are",
                "write settings={'security.protocol': 'SASL_SSL', 'sasl.password': ps.secret('KAFKA_PASSWORD')}",
            )
        text = str(value).lower() if isinstance(value, bool) else value if isinstance(value, Secret) else str(value)
        hidden = isinstance(text, str) and hides(name)
        made[name] = Secret(text) if hidden and isinstance(text, str) else text
    return tuple(sorted(made.items(), key=lambda item: item[0]))


def admin(cluster: Cluster) -> tuple[Any, Said]:
    """The client that asks what a cluster holds, one in each process."""

    def made(said: Said) -> Any:
        from confluent_kafka.admin import AdminClient

        return AdminClient(cluster.client(said))

    return kept(("admin", cluster), cluster, made)


def kept(name: tuple[object, ...], cluster: Cluster, make: Callable[[Said], Any]) -> tuple[Any, Said]:
    """A client that is made once in a process; a process that was forked from it makes its own."""
    place = (os.getpid(), *name)
    if place not in _clients:
        _clients[place] = made(cluster, make)
    found: tuple[Any, Said] = _clients[place]
    return found


def made(cluster: Cluster, make: Callable[[Said], Any]) -> tuple[Any, Said]:
    """A client, and what it says; settings it does not know are refused in our words."""
    try:
        from confluent_kafka import KafkaException
    except ImportError:
        raise not_installed() from None
    said = Said()
    try:
        return make(said), said
    except (KafkaException, ValueError, TypeError) as error:
        raise bad_settings(cluster.scrubbed(_text(error))) from None


def patient(cluster: Cluster, doing: str, ask: Callable[[Any], T]) -> T:
    """An answer of the cluster's, asked for again while its brokers are away, and no longer than the time-out."""
    from confluent_kafka import KafkaException

    begun = time.monotonic()
    client, said = admin(cluster)
    client.poll(0)  # complaints are told when it is polled
    said.last, said.denied = "", False
    while True:
        try:
            return ask(client)
        except KafkaException as error:
            client.poll(0)
            waited = time.monotonic() - begun
            if not passing(error.args[0]):
                raise refused(cluster.servers, cluster.scrubbed(_text(error)), doing) from None
            if said.denied and waited > min(DENIED, cluster.seconds):
                raise refused(cluster.servers, cluster.scrubbed(said.last), doing) from None
            if waited > cluster.seconds:
                heard = cluster.scrubbed(said.last or _text(error))
                raise unreachable(cluster.servers, cluster.seconds, heard, doing) from None
            time.sleep(_PAUSE)


def passing(error: Any) -> bool:
    """Whether an error may be over when it is asked again."""
    from confluent_kafka import KafkaError

    passes = {
        KafkaError._TRANSPORT,
        KafkaError._TIMED_OUT,
        KafkaError._ALL_BROKERS_DOWN,
        KafkaError._RESOLVE,
        KafkaError._TIMED_OUT_QUEUE,
        KafkaError._WAIT_COORD,
        KafkaError._NODE_UPDATE,
        KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError.REQUEST_TIMED_OUT,
        KafkaError.BROKER_NOT_AVAILABLE,
        KafkaError.REPLICA_NOT_AVAILABLE,
        KafkaError.NETWORK_EXCEPTION,
        KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
        KafkaError.COORDINATOR_NOT_AVAILABLE,
        KafkaError.NOT_COORDINATOR,
        KafkaError.KAFKA_STORAGE_ERROR,
        KafkaError.OFFSET_NOT_AVAILABLE,
        KafkaError.NOT_CONTROLLER,
        KafkaError.UNKNOWN_LEADER_EPOCH,
        KafkaError.FENCED_LEADER_EPOCH,
    }
    return bool(error.retriable()) or error.code() in passes


def logged(severity: int, text: str) -> None:
    """A line of a client's own log, by the severity that syslog has for it."""
    logger.log(_LEVELS[min(severity, len(_LEVELS) - 1)], text)


def _text(error: BaseException) -> str:
    first = error.args[0] if error.args else error
    return str(first.str()) if hasattr(first, "str") else str(first)
