"""What is gone is never passed over in silence, and a broker that is away is waited for: on a real broker."""

from __future__ import annotations

import signal
import threading
import time

import pytest

from penstock.connectors.kafka import client
from penstock.connectors.kafka.errors import DataLost, SourceError
from penstock.credentials import Secret
from penstock.errors import PlanError
from tests.integration.kafka.talking import PASSWORD, Log, count
from tests.unit.connectors.sources.reading import between, logged


def test_18_retention_that_passed_our_offsets_stops_and_names_them(log):
    """Row 18: and with on_loss="skip" goes on, with what was lost in the position."""
    topic = log.topic(partitions=2)
    log.put(topic, count(0, 10))
    log.put(topic, count(10, 20), 1)
    one = Log(log.read(topic)).begin()
    one.rows(10)
    skipping = Log(log.read(topic, on_loss="skip"))
    skipping.at = one.at
    log.cut(topic, 0, 8)
    with pytest.raises(DataLost, match=f"not read yet: {topic}/0: offsets 5 to 7\n") as told:
        one.batch()
    assert "empty checkpoint" in told.value.instead
    assert 'on_loss="skip"' in told.value.instead
    assert skipping.numbers() == [15, 16, 17, 18, 19]
    assert skipping.at["lost"] == {f"{topic}/0": [5, 8]}
    assert skipping.numbers() == [8, 9]
    assert skipping.at["lost"] == {}


def test_18_retention_in_the_middle_of_a_batch_stops_it(log):
    """Row 18: the batch was planned, and a worker finds its offsets gone."""
    topic = log.topic()
    log.put(topic, count(0, 10))
    one = Log(log.read(topic)).begin()
    upto = logged(one.reader.latest(one.at, 0, None))
    log.cut(topic, 0, 8)
    with pytest.raises(DataLost, match=f"{topic}/0 does not hold the offsets 0 to 9"):
        between(one.reader, one.at, upto)


def test_18_what_was_read_may_be_deleted(log):
    topic = log.topic()
    log.put(topic, count(0, 10))
    one = Log(log.read(topic)).begin()
    one.rows()
    log.cut(topic, 0, 10)
    assert one.rows() == []
    log.put(topic, count(10, 12))
    assert one.numbers() == [10, 11]


def test_18_a_topic_made_anew_stops_even_if_its_offsets_are_there(log):
    """Row 18: told by its id; a batch that is read again looks too."""
    topic = log.topic()
    log.put(topic, count(0, 4))
    one = Log(log.read(topic)).begin()
    since = one.at
    assert one.numbers() == [0, 1, 2, 3]
    planned = one.at
    log.delete(topic)
    log.topic()
    log.put(topic, count(100, 110))
    with pytest.raises(DataLost, match=f"'{topic}' was deleted and made anew: .*read to {topic}/0 offset 4"):
        one.batch()
    again = Log(log.read(topic)).reader
    again.latest(again.start(), 0, None)
    with pytest.raises(DataLost, match="was deleted and made anew"):
        again.splits(since, planned)
    skipping = Log(log.read(topic, on_loss="skip"))
    skipping.at = planned
    assert skipping.rows() == []
    assert skipping.numbers() == list(range(100, 110))


def test_18_a_deleted_topic_stops(log):
    topic, other = log.topic(), log.topic("other")
    log.put(topic, count(0, 4))
    one = Log(log.read([topic, other])).begin()
    log.delete(topic)
    with pytest.raises(DataLost, match=f"the topic '{topic}' is gone; it had been read to {topic}/0 offset 0"):
        one.batch()
    skipping = Log(log.read([topic, other], on_loss="skip"))
    skipping.at = one.at
    log.put(other, count(7, 9))
    assert skipping.numbers() == [7, 8]
    assert skipping.reader.partitions(skipping.at) == [f"{other}/0"]


def test_18_a_log_that_was_cut_stops(log, monkeypatch):
    """Row 18: a position beyond the end of the log, as after a restore of the broker from a copy."""
    from penstock.connectors.kafka import source

    monkeypatch.setattr(source, "SECOND_LOOK", 0.2)
    topic = log.topic(partitions=2)
    log.put(topic, count(0, 4))
    one = Log(log.read(topic)).begin()
    one.rows()
    one.at["partitions"][f"{topic}/0"] = [9, 9]
    with pytest.raises(DataLost, match=f"{topic}/0 was read to 9 and ends at 4"):
        one.batch()
    one.at["partitions"][f"{topic}/5"] = [1, 1]
    with pytest.raises(DataLost, match=f"partitions have vanished: {topic}/5"):
        one.batch()


def test_25_bad_settings_and_an_absent_broker_say_no_secret(log, capfd):
    """Row 25: also nothing on the screen."""
    password = PASSWORD
    with pytest.raises(PlanError, match="No such configuration property") as told:
        Log(log.read("x", settings={"sasl.passwort": password})).begin()
    assert password not in str(told.value)
    how = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "sasl.username": "ann",
           "sasl.password": password}  # fmt: skip
    with pytest.raises(SourceError, match="did not answer within 2 s") as other:
        Log(log.read("x", settings=how, timeout="2 seconds", servers="127.0.0.1:1")).begin()
    assert password not in str(other.value)
    assert "Connection refused" in other.value.why
    assert capfd.readouterr() == ("", "")


def test_25_a_password_goes_to_the_broker_and_nowhere_else(own_broker, capfd, caplog, monkeypatch):
    """Row 25: a real login over TLS; one that fails says so soon, and not with what; so does an unknown certificate."""
    topic = own_broker.topic("guarded")
    own_broker.put(topic, count(0, 3))

    def read(password, **more):
        how = {**own_broker.login, "sasl.password": password, **more}
        return Log(own_broker.read(topic, servers=own_broker.guarded, settings=how, timeout="12 seconds"))

    one = read(Secret(PASSWORD)).begin()
    assert one.numbers() == [0, 1, 2]
    assert PASSWORD not in repr(one.reader) + repr(one.at)
    monkeypatch.setattr(client, "DENIED", 1.0)
    for why, one in (("Authentication failed", read("wrong horse")), ("certificate verify failed", read(
            PASSWORD, **{"ssl.ca.location": "probe"}))):  # fmt: skip
        begun = time.monotonic()
        with pytest.raises(SourceError, match="refused, asked for its topics") as told:
            one.begin()
        assert time.monotonic() - begun < 20
        assert why in told.value.why
        assert "horse" not in str(told.value) + caplog.text
    assert capfd.readouterr() == ("", "")


def test_a_broker_that_restarts_is_waited_for(own_broker):
    topic = own_broker.topic(partitions=2)
    own_broker.put(topic, count(0, 2_000))
    own_broker.put(topic, count(0, 10), 1)
    one = Log(own_broker.read(topic, timeout="60 seconds")).begin()
    upto = logged(one.reader.latest(one.at, 0, None))
    (split,) = one.reader.splits(one.at, upto)
    chunks = one.reader.read(split)
    own_broker.broker.stop(signal.SIGKILL)
    back = threading.Thread(target=lambda: (time.sleep(1.0), own_broker.broker.start()))
    back.start()
    found = sorted(n for chunk in chunks for n in chunk.rows.column("n").to_pylist())
    back.join()
    assert found == sorted([*range(2_000), *range(10)])
    one.at = upto
    own_broker.broker.stop()
    back = threading.Thread(target=lambda: (time.sleep(1.0), own_broker.broker.start()))
    back.start()
    assert one.rows() == []
    back.join()
    own_broker.put(topic, count(5, 7))
    assert one.numbers() == [5, 6]


def test_a_broker_that_stays_away_is_an_error_that_says_so(own_broker):
    topic = own_broker.topic("away")
    own_broker.put(topic, count(0, 10))
    one = Log(own_broker.read(topic, timeout="2 seconds")).begin()
    upto = logged(one.reader.latest(one.at, 0, None))
    splits = one.reader.splits(one.at, upto)
    own_broker.broker.stop(signal.SIGKILL)
    begun = time.monotonic()
    with pytest.raises(SourceError, match=f"gave nothing of {topic}/0 for 2 s, with offsets 0 to 9 still to be read"):
        list(one.reader.read(splits[0]))
    with pytest.raises(SourceError, match="did not answer within 2 s, asked for its topics"):
        one.reader.latest(upto, 0, None)
    assert time.monotonic() - begun < 15
