"""What was `ps.to_kafka` given: read into one form, and refused where it cannot be right."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from penstock.credentials import Secret, hides
from penstock.errors import PlanError, did_you_mean, not_a_mapping
from penstock.types.durations import MILLISECOND, SECOND, words

if TYPE_CHECKING:
    from penstock.connectors.kafka.sink import Kafka

FORMATS = ("json", "avro")
_NAME = re.compile(r"[a-zA-Z0-9._-]{1,249}")
_OURS = (
    "bootstrap.servers",
    "transactional.id",
    "transaction.timeout.ms",
    "enable.idempotence",
    "acks",
    "group.id",
    "isolation.level",
    "enable.partition.eof",
    "delivery.report.only.error",
    "on_delivery",
    "error_cb",
    "logger",
)

Setting = str | int | float | bool | Secret


@dataclass(frozen=True, slots=True)
class New:
    """How a topic is made that is missing; None leaves the number to the broker."""

    partitions: int | None = None
    replication: int | None = None


def listed(servers: Any) -> Any:
    """One form of a list of servers, however it was written."""
    return ",".join(sorted(part.strip() for part in servers.split(","))) if isinstance(servers, str) else servers


def kept(settings: Mapping[str, Setting]) -> tuple[tuple[str, Any], ...]:
    """Settings in order, those that are secret by their name wrapped."""
    if not isinstance(settings, Mapping):
        raise not_a_mapping(settings, '"security.protocol": "SASL_SSL"')
    return tuple(
        (name, Secret(value) if isinstance(value, str) and hides(str(name)) else value)
        for name, value in sorted(settings.items(), key=str)
    )


def new(create: bool, partitions: int | None, replication: int | None) -> New | None:
    """How a missing topic is made, if it is."""
    for what, number in (("partitions", partitions), ("replication", replication)):
        if number is None:
            continue
        if not create:
            raise PlanError(
                f"ps.to_kafka was given {what}={number!r} without create=True",
                "a topic that is there keeps what it has",
                f"write create=True, {what}={number!r}, or leave {what} out",
            )
        if not isinstance(number, int) or isinstance(number, bool) or number < 1:
            raise PlanError(f"{what} is {number!r}", f"{what} is a whole number above zero", f"write {what}=4")
    return New(partitions, replication) if create else None


def check_topic(name: Any) -> None:
    """Refuse a name that no topic can have, or that is Kafka's own."""
    if not isinstance(name, str) or not _NAME.fullmatch(name) or name in (".", "..") or name.startswith("__"):
        raise PlanError(
            f"a topic cannot be called {name!r}",
            "Kafka takes up to 249 letters, digits, '.', '_' and '-'; those that begin with __ are its own",
            'write ps.to_kafka("team-scores", ...)',
        )


def check_sink(sink: Kafka) -> None:
    """Refuse what does not go together."""
    if not isinstance(sink.servers, str) or not sink.servers.strip(","):
        raise PlanError(
            f"ps.to_kafka was given servers={sink.servers!r}",
            "the servers are hosts with ports, by commas",
            'write servers="localhost:9092"',
        )
    if sink.topic == sink.progress_topic:
        raise PlanError(
            f"the topic {sink.topic!r} is to hold both the rows and the ledger",
            "readers of the rows would find records of the ledger among them",
            "name another topic, or another progress_topic",
        )
    if sink.value not in FORMATS:
        raise PlanError(
            f"ps.to_kafka was asked for the value {sink.value!r}",
            "a record is one JSON object or one Avro datum",
            did_you_mean(str(sink.value), FORMATS),
        )
    for name, given in (("avro_schema", sink.avro_schema), ("registry", sink.registry)):
        if given is not None and sink.value != "avro":
            raise PlanError(
                f'ps.to_kafka was given {name} without value="avro"',
                "JSON is written as the columns are",
                f'write value="avro", or leave {name} out',
            )
    if sink.transaction_timeout < SECOND or sink.transaction_timeout // MILLISECOND >= 2**31:
        raise PlanError(
            f"transaction_timeout is {words(sink.transaction_timeout)}",
            "Kafka's transactions may last from a second to 24 days, and the broker's own limit is 15 minutes",
            'write transaction_timeout="60 seconds"',
        )
    for name, value in sink.settings:
        if not isinstance(name, str) or not isinstance(value, (str, int, float, bool, Secret)):
            raise PlanError(
                f"the setting {name!r} is not a word or a number",
                "settings are passed to the client as they are",
                "write settings={'security.protocol': 'SASL_SSL', 'sasl.password': ps.secret('KAFKA_PASSWORD')}",
            )
        if name in _OURS:
            raise PlanError(
                f"settings may not hold {name!r}",
                "exactly once rests on it, so Penstock sets it itself",
                f"leave {name!r} out",
            )
