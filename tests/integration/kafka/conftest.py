"""One real broker for all tests of a process, and small words for topics and messages."""

from __future__ import annotations

import itertools
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock.connectors.kafka.consumer import drop_all
from penstock.testing.servers.kafka import Broker, broker
from penstock.testing.servers.ports import free_port
from tests.certificate import certificate
from tests.integration.kafka.talking import PASSWORD, Kafka

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def real_broker() -> Iterator[Broker]:
    """A broker that takes large messages and compacts at once."""
    with broker(**{"message.max.bytes": str(90 << 20), "log.cleaner.backoff.ms": "200"}) as one:
        yield one


@pytest.fixture
def log(real_broker: Broker) -> Iterator[Kafka]:
    """The broker, spoken to under names that no other test uses."""
    one = Kafka(real_broker, f"t{next(_numbers)}")
    yield one
    drop_all()
    one.close()


@pytest.fixture(scope="module")
def own_broker() -> Iterator[Any]:
    """A broker that a test may stop and start, and that speaks TLS and asks for a password at a second door."""
    with tempfile.TemporaryDirectory(prefix="penstock-kafka-") as scratch:
        port, controller, guarded = free_port(), free_port(), free_port()
        proof = certificate(Path(scratch))
        one = Broker(Path(scratch, "broker"), {
            **proof.of_broker,
            "listeners": f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller},SASL://127.0.0.1:{guarded}",
            "advertised.listeners": f"PLAINTEXT://127.0.0.1:{port},SASL://127.0.0.1:{guarded}",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SASL:SASL_SSL",
            "sasl.enabled.mechanisms": "PLAIN",
            "listener.name.sasl.plain.sasl.jaas.config":
                f'org.apache.kafka.common.security.plain.PlainLoginModule required user_ann="{PASSWORD}";',
        }, port, controller)  # fmt: skip
        try:
            one.start()
            made = Kafka(one, "own", guarded=f"127.0.0.1:{guarded}", login={**proof.of_client, "sasl.username": "ann"})
            yield made
            drop_all()
            made.close()
        finally:
            one.stop(signal.SIGKILL)
