"""What the sink finds on the broker: topics that are missing or do not fit, and a password."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic, ResourceType

from penstock.connectors.kafka import ledger, producer as kafka_clients
from penstock.connectors.sink_errors import ForeignLineage, SinkDown, SinkError
from penstock.credentials import Secret
from penstock.quarantine.read_back import keeps_all, reader_of
from tests.integration.kafka_sink.checker import QUIET, read
from tests.integration.kafka_sink.conftest import PASSWORD
from tests.unit.connectors.sinks.outputs import BAD, LATES, QUARANTINE, give, late_rows, pane, panes

TABLE = panes(pane("red", 1))


def made(servers: str, *topics: NewTopic) -> AdminClient:
    """Make topics by hand."""
    admin = AdminClient({"bootstrap.servers": servers, "log_level": 0, "logger": QUIET})
    for future in admin.create_topics(list(topics)).values():
        future.result()
    return admin


def policy(servers: str, topic: str) -> Any:
    admin = AdminClient({"bootstrap.servers": servers, "log_level": 0, "logger": QUIET})
    (future,) = admin.describe_configs([ConfigResource(ResourceType.TOPIC, topic)]).values()
    return future.result()["cleanup.policy"].value


def test_a_missing_topic_is_named_and_made_if_that_is_said(to):
    sink = to(create=False, partitions=None)
    with pytest.raises(SinkError, match=f"there is no topic '{sink.topic}'"):
        give(sink, TABLE)
    made_so = to(topic=sink.topic, partitions=3, replication=1, compacted=True)
    assert give(made_so, TABLE)
    assert policy(sink.servers, sink.topic) == "compact"
    assert policy(sink.servers, sink.progress_topic) == "compact"
    assert not give(to(topic=sink.topic, create=False, partitions=None, compacted=True), TABLE)


def test_appended_rows_get_a_topic_that_is_not_compacted(to):
    sink = to(compacted=True)
    assert give(sink, late_rows(), target=LATES)
    assert policy(sink.servers, sink.topic) == "delete"


def test_a_compacted_topic_takes_no_appended_rows(to, broker):
    sink = to()
    made(broker.servers, NewTopic(sink.topic, 1, 1, config={"cleanup.policy": "compact"}))
    with pytest.raises(SinkError, match="is compacted, and rows are to be appended"):
        give(sink, TABLE)


def test_a_ledger_that_retention_would_delete_is_refused(to, broker):
    made(broker.servers, NewTopic("forgetful", 1, 1, config={"cleanup.policy": "compact,delete"}))
    with pytest.raises(SinkError, match=r"'forgetful' has cleanup\.policy=compact,delete"):
        give(to(progress_topic="forgetful"), TABLE)


def test_records_without_a_ledger_are_not_taken_for_ours(to, broker):
    sink = to()
    made(broker.servers, NewTopic(sink.topic, 2, 1))
    producer = Producer({"bootstrap.servers": sink.servers, "log_level": 0, "logger": QUIET})
    producer.produce(sink.topic, b"somebody's")
    producer.flush(10)
    with pytest.raises(ForeignLineage, match="holds rows, but no ledger tells"):
        give(sink, TABLE)
    assert give(to(topic=sink.topic, takeover=True), TABLE)
    assert len(read(sink.servers, sink.topic)) == 2


@pytest.mark.parametrize(("value", "said"), [(b"nonsense", "cannot be read"), (b'{"version": 2}', "has version 2")])
def test_a_ledger_that_cannot_be_read_is_not_guessed_at(to, value, said):
    sink = to(progress_topic="scribbled")
    give(to(progress_topic="scribbled"), TABLE)
    producer = Producer({"bootstrap.servers": sink.servers, "log_level": 0, "logger": QUIET})
    producer.produce("scribbled", value, sink.topic)
    producer.flush(10)
    with pytest.raises(SinkError, match=said):
        give(sink, TABLE)


def test_a_row_that_is_too_large_for_the_broker_stops_and_nothing_is_written(to):
    sink = to()
    with pytest.raises(SinkError, match="MSG_SIZE_TOO_LARGE") as caught:
        give(sink, panes(pane("x" * 2_000_000, 1), pane("red", 1)))
    assert not isinstance(caught.value, SinkDown)
    assert read(sink.servers, sink.topic) == []


@pytest.mark.parametrize("parallel", [False, True])
def test_the_quarantine_is_read_back(to, broker, parallel):
    """As `penstock quarantine list` reads it: all partitions, and nothing of a topic that is not there."""
    sink = to(partitions=3, parallel=parallel)
    read_back = reader_of(sink)
    assert read_back is not None
    assert list(read_back(sink)) == []
    bad = [{"source": "web", "partition": "web/0", "offset": n, "step": "decode", "reason": "no JSON", "raw": "{"}
           for n in range(20)]  # fmt: skip
    assert give(sink, pa.Table.from_pylist(bad, schema=QUARANTINE), target=BAD)
    assert sorted(read_back(sink)) == [tuple(row.values()) for row in bad]
    assert reader_of(to(value="avro")) is None
    assert not keeps_all(sink), "retention may have taken some"
    producer = Producer({"bootstrap.servers": sink.servers, "log_level": 0, "logger": QUIET})
    producer.produce(sink.topic, b"somebody's")
    producer.flush(10)
    with pytest.raises(SinkError, match="has a record that is no quarantined row"):
        list(read_back(sink))


def test_row_25_a_password_opens_the_door_and_a_wrong_one_stops_without_being_shown(to, broker, monkeypatch, capfd):
    monkeypatch.setattr(kafka_clients, "ANSWER_SECONDS", 3.0)
    monkeypatch.setattr(ledger, "ANSWER_SECONDS", 3.0)
    sink = to(servers=broker.locked, settings={**broker.login, "sasl.password": Secret(PASSWORD)})
    assert give(sink, TABLE)
    wrong = to(servers=broker.locked, settings={**broker.login, "sasl.password": "hunter2"})
    unknown = to(servers=broker.locked,
                 settings={**broker.login, "ssl.ca.location": "probe", "sasl.password": "hunter2"})  # fmt: skip
    for sink, said in ((wrong, r"refuses: .*[Aa]uthentication"), (unknown, "refuses: .*certificate verify failed")):
        with pytest.raises(SinkError, match=said) as caught:
            give(sink, TABLE)
        assert not isinstance(caught.value, SinkDown)
        assert "hunter2" not in str(caught.value)
    assert capfd.readouterr() == ("", "")


def test_a_setting_that_is_none_is_named(to):
    with pytest.raises(SinkError, match=r'No such configuration property: "no\.such\.setting"'):
        give(to(settings={"no.such.setting": "1"}), TABLE)
