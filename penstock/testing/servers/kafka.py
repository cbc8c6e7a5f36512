"""A real Kafka broker on this machine, for tests, the demo and benchmarks: KRaft, one process, loopback only.

`python -m penstock.testing.servers.kafka` starts one and says its address, until Ctrl-C.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from penstock.errors import PenstockError
from penstock.testing.servers.maven import jars as found
from penstock.testing.servers.ports import answers, free_port, last_words

VERSION = "4.3.1"
# One broker has no others to copy to; a batch of groups that waits for members would only slow tests.
SETTINGS = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.listener.names": "CONTROLLER",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
    "offsets.topic.replication.factor": "1",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.num.partitions": "4",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "group.initial.rebalance.delay.ms": "0",
    "auto.create.topics.enable": "false",
    "log.retention.check.interval.ms": "1000",
    "log.initial.task.delay.ms": "500",
}


class NoBroker(PenstockError):
    """The broker could not be had or did not start."""


def jars() -> Path:
    """Where the jars of the broker lie, fetched if they do not yet."""
    return found(
        f"kafka-broker-{VERSION}", f"org.apache.kafka:kafka_2.13:{VERSION}", f"org.apache.kafka:kafka-tools:{VERSION}"
    )


@dataclass
class Broker:
    """A broker with its data in a folder; it may be stopped, killed and started again on the same ports."""

    folder: Path
    settings: Mapping[str, str] = field(default_factory=dict)
    port: int = field(default_factory=free_port)
    controller: int = field(default_factory=free_port)
    process: subprocess.Popen[bytes] | None = None

    def __post_init__(self) -> None:
        """It runs in its folder, and so must not be told of it by a path from here."""
        self.folder = self.folder.resolve()

    @property
    def servers(self) -> str:
        """What clients call it by."""
        return f"127.0.0.1:{self.port}"

    def start(self) -> Broker:
        """Start it and wait until it answers."""
        config = self._configured()
        if not (self.folder / "data" / "meta.properties").exists():
            self._format(config)
        with (self.folder / "log").open("ab") as log:
            command = [*_java("-Xmx512m", "-Xms128m", "-XX:+UseSerialGC"), "kafka.Kafka", str(config)]
            self.process = subprocess.Popen(
                command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, cwd=self.folder, start_new_session=True
            )
        self._await()
        return self

    def stop(self, number: int = signal.SIGTERM) -> None:
        """Stop it, gently or not, and wait until it is gone."""
        if self.process is None:
            return
        self.process.send_signal(signal.SIGCONT)
        self.process.send_signal(number)
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process = None

    def tool(self, name: str, *arguments: str) -> str:
        """Run one of Kafka's own commands, such as `org.apache.kafka.tools.consumer.group.ConsumerGroupCommand`."""
        command = [*_java("-Xmx256m"), name, "--bootstrap-server", self.servers, *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise NoBroker(f"{name} failed", (done.stderr or done.stdout)[-400:], "see what it says")
        return done.stdout

    def _configured(self) -> Path:
        """Its settings as a file; a broker whose folder was used before may have other ports now."""
        self.folder.mkdir(parents=True, exist_ok=True)
        said = {
            **SETTINGS,
            "listeners": f"PLAINTEXT://127.0.0.1:{self.port},CONTROLLER://127.0.0.1:{self.controller}",
            "advertised.listeners": f"PLAINTEXT://127.0.0.1:{self.port}",
            "controller.quorum.voters": f"1@127.0.0.1:{self.controller}",
            "log.dirs": str(self.folder / "data"),
            **self.settings,
        }
        config = self.folder / "server.properties"
        config.write_text("".join(f"{name}={value}\n" for name, value in said.items()))
        return config

    def _format(self, config: Path) -> None:
        cluster = str(uuid.uuid4())
        command = [*_java(), "kafka.tools.StorageTool", "format", "-t", cluster, "-c", str(config)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=self.folder)
        if done.returncode != 0:
            raise NoBroker(
                "the broker's folder could not be made",
                (done.stderr or done.stdout)[-400:],
                f"empty {self.folder}, or name another folder",
            )

    def _await(self) -> None:
        from confluent_kafka import KafkaException
        from confluent_kafka.admin import AdminClient

        assert self.process is not None
        admin = AdminClient({"bootstrap.servers": self.servers, "log_level": 0, "logger": _silent()})
        if not answers(self.process, lambda: admin.list_topics(timeout=1), KafkaException):
            said = last_words(self.folder / "log")
            self.stop(signal.SIGKILL)
            raise NoBroker("the Kafka broker did not start", said, f"read {self.folder / 'log'}")


@contextmanager
def broker(folder: Path | None = None, **settings: str) -> Iterator[Broker]:
    """A broker for the length of a block, in a folder of its own."""
    with tempfile.TemporaryDirectory(prefix="penstock-kafka-") as scratch:
        one = Broker(folder or Path(scratch), settings)
        try:
            yield one.start()
        finally:
            one.stop(signal.SIGKILL)


def _java(*options: str) -> list[str]:
    home = os.environ.get("JAVA_HOME")
    quiet = "-Dlog4j2.level=WARN"
    return [os.path.join(home, "bin", "java") if home else "java", *options, quiet, "-cp", f"{jars()}/*"]


def _silent() -> object:
    import logging

    logger = logging.getLogger("penstock.testing.servers.kafka")
    logger.setLevel(logging.CRITICAL)
    return logger


if __name__ == "__main__":
    with broker() as running:
        print(running.servers, flush=True)
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
        with suppress(KeyboardInterrupt):
            signal.pause()
