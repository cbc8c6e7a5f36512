"""ps.kafka as it is written: what is refused, what is hidden, and how a batch is planned. No broker."""

from __future__ import annotations

import pickle
import re
from datetime import UTC, datetime

import pytest

import penstock as ps
from penstock.connectors.kafka import offsets
from penstock.connectors.kafka.client import Cluster, Said, settings_of
from penstock.connectors.kafka.metadata import Log, Topic
from penstock.connectors.kafka.schema_registry import Registry
from penstock.connectors.source import Lag, came_after, shared_among
from penstock.credentials import Secret
from penstock.errors import PlanError
from penstock.types.timestamps import parse
from tests.unit.connectors.sources.reading import reader_of

ROWS = "team string, points long, at timestamp"
PASSWORD = "correct horse battery"


def made(topics="scores", **how):
    return ps.kafka(topics, **{"servers": "localhost:9092", "schema": ROWS, **how})


@pytest.mark.parametrize(
    ("how", "what"),
    [
        ({"topics": "sco res"}, "does not name a topic"),
        ({"topics": []}, "does not name a topic"),
        ({"topics": re.compile(b"scores")}, "does not name a topic"),
        ({"servers": ""}, "servers is ''"),
        ({"value": "protobuf"}, "there is no value 'protobuf'"),
        ({"value": "avro"}, 'value="avro" without a schema'),
        ({"value": "avro", "avro_schema": {"type": "long"}}, "not the schema of a record"),
        ({"value": "avro", "avro_schema": "{"}, "not the schema of a record"),
        ({"avro_schema": {}}, 'avro_schema with value="json"'),
        ({"registry": "http://r"}, 'registry with value="json"'),
        ({"value": "avro", "registry": "r"}, "registry is not an address"),
        ({"value": "text"}, 'value="text" with the schema'),
        ({"value": "bytes", "schema": "value string"}, 'value="bytes" with the schema'),
        ({"schema": "b binary"}, "the column 'b' is binary"),
        ({"schema": None}, "is not a schema"),
        ({"key": "double"}, "there is no key 'double'"),
        ({"columns": ("keys",)}, "a message has no 'keys'"),
        ({"columns": {"key": "team"}}, "the column 'team' is there twice"),
        ({"start": "erliest"}, "start is 'erliest'"),
        ({"start": 5}, "start is 5"),
        ({"start": {"scores": 5}}, "start has 'scores': 5"),
        ({"start": {"scores/0": -5}}, "start has 'scores/0': -5"),
        ({"end": "earliest"}, "leaves nothing to read"),
        ({"isolation": "committed"}, "isolation is 'committed'"),
        ({"on_loss": "ignore"}, "on_loss is 'ignore'"),
        ({"group": ""}, "group is ''"),
        ({"tasks": 0}, "tasks is 0"),
        ({"timeout": "0"}, "timeout is '0'"),
        ({"settings": {"group.id": "x"}}, "which is the reader's own"),
        ({"settings": {"ssl.ca.pem": [1]}}, "is not a word or a number"),
    ],
)
def test_what_cannot_be_meant_is_refused(how, what):
    with pytest.raises(PlanError, match=re.escape(what)):
        made(**how)


def test_the_columns_of_a_message_stand_after_those_of_its_value():
    stream = made(key="long", columns={"kafka_time": "came", "offset": "offset"})
    assert str(stream.schema) == "team string, points long, at timestamp, came timestamp, offset long, key long"
    assert str(made(value="text", schema=None, columns=["headers"]).schema) == "value string, headers string"
    assert str(made(value="bytes", schema="body binary").schema) == "body binary"


def test_a_reader_travels_and_stays_the_same():
    reader = reader_of(made(re.compile("scores-.*"), start="2026-01-31T12:00:00Z", end={"a/0": 5}, group="g"))
    assert pickle.loads(pickle.dumps(reader)) == reader
    assert reader.begin.time == parse("2026-01-31T12:00:00Z")
    assert reader_of(made(start=datetime(2026, 1, 31, 12, tzinfo=UTC))).begin == reader.begin
    assert made(end="latest").inputs[0].source.bounded
    assert not made().inputs[0].source.bounded


def test_25_secrets_are_shown_to_nobody_but_the_client():
    """Row 25: not in a plan, a repr or an error; a password that was written as plain text neither."""
    stream = made(settings={"sasl.password": PASSWORD, "ssl.key.password": Secret("other"), "sasl.username": "ann"},
                  value="avro", registry=f"http://ann:{PASSWORD.replace(' ', '%20')}@registry:8081/")  # fmt: skip
    panes = stream.event_time("at", watermark=ps.ascending()).window(ps.tumbling("1 minute")).aggregate(n=ps.rows())
    reader = reader_of(stream)
    shown = repr(stream) + str(stream) + repr(panes.plan) + panes.explain() + repr(reader) + repr(reader.start())
    assert "horse" not in shown
    assert "other" not in shown
    assert "ann" in shown
    assert reader.shape.registry == Registry("http://registry:8081", Secret(f"ann:{PASSWORD}"))
    assert reader.cluster.client(Said())["sasl.password"] == PASSWORD
    assert reader.cluster.scrubbed(f"no user ann with {PASSWORD}") == "no user ann with ***"


def test_settings_are_texts_in_order():
    assert settings_of({"b": True, "a": 5}) == (("a", "5"), ("b", "true"))


LOGS = {"a/0": Log(0, 1_000, 1_000), "a/1": Log(0, 100, 100), "a/2": Log(0, 0, 0)}
TOPICS = {"a": Topic("id", ("a/0", "a/1", "a/2"))}


def at(**places):
    return offsets.begun(TOPICS, LOGS, {f"a/{name[1]}": place for name, place in places.items()}, {}, 0)


def test_a_limit_is_shared_by_what_there_is():
    """All partitions come to their ends together, so that none runs ahead of the others."""
    since = at(p0=0, p1=0, p2=0)
    upto = offsets.advanced(since, TOPICS, LOGS, {}, {}, 0, 110)
    assert upto["partitions"] == {"a/0": [100, 1_000], "a/1": [10, 100], "a/2": [0, 0]}
    assert offsets.behind(upto, 0) == ["a/0", "a/1"]
    assert offsets.ranges(since, upto) == {"a/0": (0, 100), "a/1": (0, 10)}
    assert offsets.advanced(since, TOPICS, LOGS, {}, {}, 0, None)["partitions"]["a/0"] == [1_000, 1_000]
    assert offsets.shared({"a": 10**9, "b": 1}, 10) == {"a": 9, "b": 1}


def test_partitions_are_dealt_into_a_few_heaps_of_about_the_same_size():
    spans = {f"a/{i}": (0, 100_000) for i in range(5)} | {"b/0": (0, 300_000)}
    heaps = offsets.dealt(spans, 2)
    assert sorted(sum(spans[one][1] for one in heap) for heap in heaps) == [400_000, 400_000]
    assert offsets.dealt({"a/0": (0, 5), "a/1": (0, 5)}, 2) == [["a/0", "a/1"]]
    assert offsets.dealt({}, 2) == []
    assert offsets.dealt({"a/10": (0, 5), "a/9": (0, 5)}, 2) == [["a/9", "a/10"]]


def test_19_a_partition_that_waits_for_a_transaction_is_named():
    """Row 19: by when its stable end stopped moving, and only after a minute."""
    reader = reader_of(made())
    open_since = {"a/0": Log(0, 10, 15)}
    one = offsets.begun({"a": Topic("", ("a/0",))}, open_since, {"a/0": 10}, {}, 1_000_000)
    two = offsets.advanced(one, {"a": Topic("", ("a/0",))}, {"a/0": Log(0, 10, 17)}, {}, {}, 50_000_000, None)
    assert two["held"] == {"a/0": [10, 17, 1_000_000]}
    assert reader.stuck(two, 50_000_000) == []
    assert reader.behind(one, 5_999_999) == []
    assert reader.behind(two, 6_000_000) == ["a/0"]
    (said,) = reader.stuck(two, 61_500_000)
    assert said.startswith("a/0: nothing after offset 10 can be read, for a transaction has been open for 1 minute; 7")
    three = offsets.advanced(two, {"a": Topic("", ("a/0",))}, {"a/0": Log(0, 12, 17)}, {}, {}, 70_000_000, None)
    assert reader.stuck(three, 80_000_000) == []


def ended(**stop):
    """A position that is at its stops, of partitions that each had 1,000 messages when that was looked at."""
    ends = {f"a/{name[1:]}": place for name, place in stop.items()}
    held = {one: [place, 1_000] for one, place in ends.items()}
    return {"begun": True, "ids": {"a": ""}, "partitions": held, "stop": ends, "held": {}, "lost": {}}


def test_what_came_after_an_end_that_was_the_latest_is_counted():
    one = ended(p0=400, p1=1_000)
    (note,) = came_after(reader_of(made("a", end="latest")), one, 0)
    assert note.startswith("600 messages came to a after its end, unread; end= holds from the checkpoint's first batch")
    assert reader_of(made("a", end={"a/0": "latest", "a/1": 1_000})).beyond(one) == [
        "600 messages came to a after its end, unread"
    ]
    assert came_after(reader_of(made("a", end="latest")), ended(p0=1_000), 0) == []
    assert came_after(reader_of(made("a", end="latest")), {**one, "partitions": {"a/0": [399, 1_000]}}, 0) == []
    # An end that somebody chose is where reading was to stop.
    for chosen in ({"a/0": 400, "a/1": 1_000}, "2026-01-01T00:00:00Z"):
        assert came_after(reader_of(made("a", end=chosen)), one, 0) == []
    assert came_after(reader_of(made("a")), one, 0) == []


def test_lag_and_notes_follow_from_the_position_alone():
    reader = reader_of(made(tasks=4))
    one = at(p0=5, p1=100, p2=0)
    assert reader.lag(one) == [Lag("a/0", 5, 1_000), Lag("a/1", 100, 100), Lag("a/2", 0, 0)]
    (note,) = reader.notes(one)
    assert note.startswith("scores has 3 partitions for 4 cores")
    assert reader_of(made()).notes(one) == [], "it is a run that knows how many cores there are"
    assert shared_among(reader_of(made()), 4).notes(one) == [note]
    assert shared_among(reader_of(made(tasks=3)), 4).notes(one) == []
    assert reader.notes(reader.start()) == []
    assert not reader.finished(one, 0)


def test_patience_is_a_duration():
    assert reader_of(made(timeout="5 minutes")).cluster == Cluster("localhost:9092", (), 300_000_000)
