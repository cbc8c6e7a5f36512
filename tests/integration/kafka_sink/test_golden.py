"""What older versions wrote to Kafka is gone on with: the ledger's records are read, and the next batch is the next."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

import penstock as ps
from penstock.connectors.kafka.ledger import LEDGER_TOPIC
from penstock.errors import PenstockError
from penstock.testing.servers.kafka import Broker
from tests.golden.servers import BATCHES, OLDER, TABLE, give
from tests.golden.sets import HERE, versions
from tests.integration.kafka_sink.checker import read


@pytest.mark.parametrize("version", versions())
def test_a_topic_is_gone_on_with(version: str, broker: Broker) -> None:
    held = json.loads((HERE / version / "kafka.json").read_text())
    ledger = f"golden-progress-{version}"
    admin = AdminClient({"bootstrap.servers": broker.servers})
    made = [NewTopic(TABLE, 1, 1), NewTopic(ledger, 1, 1, config=LEDGER_TOPIC)]
    for done in admin.create_topics(made).values():
        done.result()
    producer = Producer({"bootstrap.servers": broker.servers})
    for topic, name in ((TABLE, "rows"), (ledger, "ledger")):
        for one in held[name]:
            headers = [(name, base64.b64decode(value)) for name, value in one["headers"]]
            producer.produce(topic, key=_bytes(one["key"]), value=_bytes(one["value"]), headers=headers, partition=0)
    producer.flush()
    sink = ps.to_kafka(TABLE, servers=broker.servers, progress_topic=ledger, compacted=False)
    assert not give(sink, BATCHES - 1, epoch=2), "the ledger has it, with this fingerprint"
    with pytest.raises(PenstockError, match="taken over"):
        give(sink, BATCHES, epoch=3, lineage=OLDER)
    assert give(sink, BATCHES, epoch=2)
    records = read(broker.servers, TABLE)
    assert len(records) == len(held["rows"]) + 4
    assert {one.headers["penstock.batch"] for one in records} == {f"3f2a/{n}".encode() for n in range(BATCHES + 1)}
    assert [one.key for one in read(broker.servers, ledger)][:2] == [b"totals", b"totals#12"]


def _bytes(value: Any) -> bytes | None:
    return None if value is None else base64.b64decode(value)
