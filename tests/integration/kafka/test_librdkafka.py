"""Messages from librdkafka in blocks: what is gathered from memory, what is said, and that nothing stays behind."""

from __future__ import annotations

import logging
import time

import numpy as np
import pytest
from hypothesis import given, strategies as st

from penstock.connectors.formats.message_bytes import Values
from penstock.connectors.kafka import librdkafka
from penstock.connectors.kafka.client import Cluster, Said, logged
from penstock.connectors.kafka.consumer import NEEDED
from penstock.connectors.kafka.librdkafka import Consumer, gathered

NOBODY = {"bootstrap.servers": "127.0.0.1:1", "group.id": "nobody", **NEEDED}
SOME = st.lists(st.none() | st.binary(max_size=40), max_size=30)


@given(SOME, st.randoms())
def test_stretches_of_memory_are_gathered_wherever_they_lie(values, random):
    """Short and long ones, empty ones, null ones, in no order of their addresses."""
    held = [None if value is None else np.frombuffer(value + b"!", np.uint8) for value in values]
    order = list(range(len(values)))
    random.shuffle(order)
    starts = np.array([0 if held[at] is None else held[at].ctypes.data for at in order], np.int64)
    sizes = np.array([0 if values[at] is None else len(values[at]) for at in order], np.int64)
    made = gathered(starts, sizes)
    made.validate(full=True)
    assert made.to_pylist() == [values[at] for at in order]


@given(SOME, SOME, st.data())
def test_values_are_the_same_in_parts_and_together(first, second, data):
    every = [*first, *second]
    joined = Values.joined([Values.of(first), Values.of(second)])
    low = data.draw(st.integers(0, len(every)))
    high = data.draw(st.integers(low, len(every)))
    part, plain = joined.part(low, high), every[low:high]
    assert [part[at] for at in range(len(part))] == plain
    assert part.sizes.tolist() == [len(value or b"") for value in plain]
    assert part.laid(3).tobytes() == b"".join(value or b"" for value in plain) + bytes(3)
    assert part.nulls == (None in plain)
    assert part.there.tolist() == [value is not None for value in plain]
    there = part.take(np.flatnonzero(part.there))
    assert there.lines() == b"\n".join(value for value in plain if value is not None)


def test_a_broker_that_is_not_there_is_complained_of_and_logged(caplog):
    said = Said()
    with caplog.at_level(logging.DEBUG, "penstock.kafka"):
        one = Consumer(NOBODY, said, logged)
        one.assign("t", 0, 0)
        end = time.monotonic() + 20
        while not (said.last and caplog.records) and time.monotonic() < end:
            one.take(10, 0.1).let_go()
        one.close()
    assert "127.0.0.1:1" in said.last
    assert any("127.0.0.1:1" in record.getMessage() for record in caplog.records)


@pytest.mark.parametrize(
    ("more", "why"), [({"no.such.setting": "1"}, "no.such.setting"), ({"security.protocol": "ssl ", "x": 1}, "ssl ")]
)
def test_a_setting_that_is_not_known_is_named(more, why):
    with pytest.raises(ValueError, match=why):
        Consumer({**NOBODY, **more}, Said(), logged)


def test_every_message_is_let_go_whatever_becomes_of_it(log, monkeypatch):
    """Read, beyond the range, ends of partitions, and those on the way when somebody stops half way."""
    from penstock.connectors.kafka.consumer import Reading, Span, messages, ready

    taken, freed = [], []
    take, destroy = Consumer.take, librdkafka._let_go()

    def counted(self, most, seconds):
        got = take(self, most, seconds)
        taken.extend(got.places.tolist())
        return got

    def free(place):
        freed.append(place)
        destroy(place)

    monkeypatch.setattr(Consumer, "take", counted)
    monkeypatch.setattr(librdkafka, "_let_go", lambda: free)
    topic = log.topic()
    log.put(topic, [{"n": n} for n in range(500)])
    reading = Reading(Cluster(log.broker.servers), "read_committed")
    whole, part = (Span(topic, "", 0, low, high, True) for low, high in ((0, 500), (100, 200)))
    assert sum(messages(ready(reading, whole), reading, whole, len)) == 500
    assert sum(messages(ready(reading, part), reading, part, len)) == 100

    def wrong(_):
        raise RuntimeError("no")

    with pytest.raises(RuntimeError):
        list(messages(ready(reading, whole), reading, whole, wrong))
    assert len(taken) > 600
    assert sorted(taken) == sorted(freed)
