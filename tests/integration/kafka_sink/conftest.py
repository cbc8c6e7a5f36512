"""One broker for all tests here, with three doors: plain, through a proxy, and over TLS with a password."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import penstock as ps
from penstock.testing.servers.kafka import Broker
from penstock.testing.servers.ports import free_port
from tests.certificate import certificate
from tests.integration.kafka_sink.proxy import Proxy

PASSWORD = "correct-horse-battery"


@pytest.fixture(scope="session")
def doors(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Broker, Proxy]]:
    """The broker, and a proxy before one of its listeners."""
    port, behind, locked = free_port(), free_port(), free_port()
    proxy = Proxy(("127.0.0.1", behind))
    ports = {"PLAINTEXT": port, "PROXIED": behind, "LOCKED": locked}
    controller = free_port()
    proof = certificate(tmp_path_factory.mktemp("certificate"))
    broker = Broker(
        tmp_path_factory.mktemp("broker"),
        {
            **proof.of_broker,
            "listeners": ",".join(f"{name}://127.0.0.1:{at}" for name, at in ports.items())
            + f",CONTROLLER://127.0.0.1:{controller}",
            "advertised.listeners": ",".join(f"{name}://127.0.0.1:{at}"
                                             for name, at in {**ports, "PROXIED": proxy.port}.items()),
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,PROXIED:PLAINTEXT,LOCKED:SASL_SSL,"
            "CONTROLLER:PLAINTEXT",
            "sasl.enabled.mechanisms": "PLAIN",
            "listener.name.locked.plain.sasl.jaas.config": "org.apache.kafka.common.security.plain.PlainLoginModule "
            f'required user_penstock="{PASSWORD}";',
            "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
        },
        port,
        controller,
    )  # fmt: skip
    try:
        broker.start()
        broker.locked = f"127.0.0.1:{locked}"  # type: ignore[attr-defined]
        broker.login = {**proof.of_client, "sasl.username": "penstock"}  # type: ignore[attr-defined]
        yield broker, proxy
    finally:
        broker.stop(9)
        proxy.close()


@pytest.fixture
def broker(doors: tuple[Broker, Proxy]) -> Broker:
    """The broker."""
    return doors[0]


@pytest.fixture
def proxy(doors: tuple[Broker, Proxy]) -> Iterator[Proxy]:
    """The proxy, which lets everything through again after the test."""
    yield doors[1]
    doors[1].heal()


@pytest.fixture
def to(broker: Broker) -> Callable[..., Any]:
    """A sink of a topic that no other test has."""

    def make(**more: Any) -> Any:
        given = {"servers": broker.servers, "create": True, "partitions": 2, "compacted": False, **more}
        return ps.to_kafka(given.pop("topic", f"scores-{uuid.uuid4().hex[:8]}"), **given)

    return make
