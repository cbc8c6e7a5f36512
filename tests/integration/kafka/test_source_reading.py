"""Reading topics of a real broker: beginnings, ends, transactions, gaps, columns, new partitions, groups."""

from __future__ import annotations

import json
import re
import time
from datetime import UTC, datetime

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions

from penstock.connectors.kafka.errors import SourceError
from penstock.connectors.source import Lag
from penstock.errors import PlanError
from tests.integration.kafka.talking import Log, count, wait
from tests.unit.connectors.sources.reading import batches, between, logged, reader_of


def test_messages_are_read_in_batches_and_each_once(log):
    topic = log.topic(partitions=3)
    for partition in range(3):
        log.put(topic, count(100 * partition, 100 * partition + 50 * partition + 10), partition)
    stream = log.read(topic, tasks=2)
    found = batches(reader_of(stream), 40)
    assert found[0] == []
    seen = {}
    for batch in found:
        assert sum(len(chunk.offsets) for chunk in batch) <= 42
        for chunk in batch:
            seen.setdefault(chunk.partition, []).extend(chunk.rows.column("n").to_pylist())
    assert seen == {f"{topic}/{p}": list(range(100 * p, 100 * p + 50 * p + 10)) for p in range(3)}


def test_the_first_batch_says_where_the_beginning_is(log):
    """A crash before the first commit asks again where to begin: the first batch has fixed it, and read nothing."""
    topic = log.topic()
    log.put(topic, count(0, 5))
    reader = reader_of(log.read(topic, start="latest"))
    begin = logged(reader.latest(reader.start(), 0, None))
    log.put(topic, count(5, 8))
    again = reader_of(log.read(topic, start="latest"))
    assert again.splits(again.start(), begin) == []
    upto = logged(again.latest(begin, 0, None))
    assert [row["n"] for chunk in between(again, begin, upto) for row in chunk.rows.to_pylist()] == [5, 6, 7]


def test_an_idle_topic_and_an_empty_one_have_no_rows(log):
    """Row 26: an empty topic, an empty batch."""
    topic = log.topic(partitions=2)
    one = Log(log.read(topic)).begin()
    assert one.rows() == []
    assert one.reader.partitions(one.at) == [f"{topic}/0", f"{topic}/1"]
    assert one.reader.behind(one.at, 0) == []
    log.put(topic, count(0, 2), 1)
    assert one.numbers() == [0, 1]
    before = one.at
    assert one.rows() == []
    assert one.at == before


def test_it_begins_where_it_is_told(log):
    topic = log.topic(partitions=2)
    log.put(topic, count(0, 10))
    early = int(time.time() * 1000)
    log.put(topic, count(10, 12), timestamp=early + 60_000)
    at = datetime.fromtimestamp((early + 30_000) / 1000, UTC)

    def read(start):
        return Log(log.read(topic, start=start)).begin().numbers()

    assert read("earliest") == list(range(12))
    assert read("latest") == []
    assert read(at) == read(at.isoformat()) == [10, 11]
    assert read("2100-01-01T00:00:00Z") == []
    assert read("2000-01-01T00:00:00Z") == list(range(12))
    assert read({f"{topic}/0": 7, f"{topic}/1": "latest"}) == [7, 8, 9, 10, 11]
    with pytest.raises(PlanError, match=f"start gives offsets and leaves these partitions out: {topic}/1"):
        read({f"{topic}/0": 7})
    with pytest.raises(PlanError, match=r"names the offset 13 of .*, which holds 0 to 12"):
        read({f"{topic}/0": 13, f"{topic}/1": 0})
    with pytest.raises(PlanError, match="which the topics do not have"):
        read({f"{topic}/0": 7, f"{topic}/1": 0, f"{topic}/2": 0})


def test_a_replay_ends_where_it_is_told(log):
    topic = log.topic(partitions=2)
    log.put(topic, count(0, 10))
    log.put(topic, count(10, 12), 1)
    early = int(time.time() * 1000)
    log.put(topic, count(20, 22), timestamp=early + 60_000)
    at = datetime.fromtimestamp((early + 30_000) / 1000, UTC)

    def read(end, now=early * 1_000, limit=None):
        one = Log(log.read(topic, end=end), now=now).begin()
        assert not one.reader.finished(one.at, now)
        found = []
        for _ in range(30):
            found += one.numbers(limit)
            if one.reader.finished(one.at, now):
                return sorted(found)
        return found

    assert read("latest") == [*range(12), 20, 21]
    assert read("latest", limit=3) == [*range(12), 20, 21]
    assert read({f"{topic}/0": 4, f"{topic}/1": 1}) == [0, 1, 2, 3, 10]
    assert read(at, now=(early + 40_000) * 1_000) == list(range(12))
    one = Log(log.read(topic, end="latest")).begin()
    log.put(topic, count(30, 40))
    log.grow(topic, 3)
    wait(lambda: len(log.admin.list_topics(topic, timeout=5).topics[topic].partitions) == 3)
    assert sorted(one.numbers()) == [*range(12), 20, 21]
    assert one.reader.finished(one.at, 0)
    assert len(one.reader.partitions(one.at)) == 2


def test_an_end_in_the_future_is_waited_for(log):
    topic = log.topic()
    log.put(topic, count(0, 3))
    soon = datetime.fromtimestamp(int(time.time()) + 3600, UTC)
    now = int(time.time() * 1_000_000)
    one = Log(log.read(topic, end=soon), now=now).begin()
    assert one.numbers() == [0, 1, 2]
    assert not one.reader.finished(one.at, now)
    log.put(topic, count(3, 5))
    assert one.numbers() == [3, 4]
    one.now = now + 3_700_000_000
    assert one.numbers() == []
    assert one.reader.finished(one.at, one.now)
    log.put(topic, count(5, 7))
    assert one.numbers() == []


def test_example_19_read_committed_sees_4_read_uncommitted_6(log):
    """Worked example 19: a producer commits 3, aborts 2, commits 1."""
    topic = log.topic()
    producer = log.producer("tx")
    for values, commit in ((count(0, 3), True), (count(3, 5), False), (count(5, 6), True)):
        log.transaction(topic, values, commit, producer=producer)
    assert Log(log.read(topic)).begin().numbers() == [0, 1, 2, 5]
    assert Log(log.read(topic, isolation="read_uncommitted")).begin().numbers() == [0, 1, 2, 3, 4, 5]


def test_19_an_open_transaction_holds_back_what_comes_after_it(log):
    """Row 19: nothing uncommitted is read; the stuck partition is named; it goes on when the transaction ends."""
    topic = log.topic(partitions=2)
    log.put(topic, count(0, 2))
    open_one = log.producer("open")
    open_one.begin_transaction()
    log.put(topic, count(2, 4), producer=open_one)
    log.put(topic, count(4, 6))
    log.put(topic, count(10, 12), 1)
    one = Log(log.read(topic)).begin()
    assert one.numbers() == [0, 1, 10, 11]
    assert one.rows() == []
    assert one.reader.lag(one.at) == [Lag(f"{topic}/0", 2, 2), Lag(f"{topic}/1", 2, 2)]
    (said,) = one.reader.stuck(one.at, one.now + 90_000_000)
    assert said.startswith(f"{topic}/0: nothing after offset 2 can be read")
    assert "1 minute 30 seconds; 4 offsets wait" in said
    open_one.commit_transaction(30)
    log.settled(topic, 0)
    assert one.numbers() == [2, 3, 4, 5]
    assert one.reader.stuck(one.at, one.now + 90_000_000) == []


def test_batches_end_in_markers_and_begin_after_them(log):
    topic = log.topic()
    producer = log.producer("tx")
    one = Log(log.read(topic)).begin()
    for turn in range(6):
        log.transaction(topic, count(10 * turn, 10 * turn + 3), turn % 3 != 1, producer=producer)
        assert one.numbers() == ([10 * turn, 10 * turn + 1, 10 * turn + 2] if turn % 3 != 1 else [])
    found = [n for batch in batches(reader_of(log.read(topic)), 1) for chunk in batch for n in chunk.offsets.tolist()]
    assert found == [0, 1, 2, 8, 9, 10, 12, 13, 14, 20, 21, 22]


def test_compacted_messages_are_a_gap(log):
    topic = log.topic(**{"cleanup.policy": "compact", "segment.ms": "100", "min.cleanable.dirty.ratio": "0.001",
                         "max.compaction.lag.ms": "100", "delete.retention.ms": "100"})  # fmt: skip
    producer = log.producer()
    for n in range(200):
        log.put(topic, [{"n": n}], producer=producer, key=str(n % 3).encode())
        if n % 50 == 49:
            time.sleep(0.3)
    log.put(topic, count(1_000, 1_001), producer=producer, key=b"x")

    def read():
        reader = reader_of(log.read(topic))
        begin = reader.latest(reader.start(), 0, None)
        chunks = between(reader, begin, logged(reader.latest(begin, 0, None)))
        return [n for chunk in chunks for n in chunk.rows.column("n").to_pylist()]

    wait(lambda: len(read()) <= 100, 60)
    log.configure(topic, **{"max.compaction.lag.ms": str(10**13), "min.compaction.lag.ms": str(10**12)})
    time.sleep(1.0)
    found = read()
    assert {197, 198, 199, 1_000} <= set(found)
    for limit in (1, 7):
        assert [row for batch in batches(reader_of(log.read(topic)), limit) for chunk in batch
                for row in chunk.rows.column("n").to_pylist()] == found  # fmt: skip


def test_key_headers_and_the_rest_are_columns(log):
    """Row 26: a null key."""
    topic = log.topic(partitions=2)
    came = int(time.time()) * 1_000 - 59_877
    log.put(topic, [{"n": 1}], 1, key="ü".encode(), headers=[("a", b"1"), ("a", b"\xff"), ("b", None)],
            timestamp=came)  # fmt: skip
    log.put(topic, [{"n": 2}], 1)
    log.put(topic, [{"n": 3}], 1, key=b"\xff")
    columns = {"key": "who", "headers": "headers", "topic": "topic", "partition": "part", "offset": "at",
               "kafka_time": "came"}  # fmt: skip
    (chunk,) = Log(log.read(topic, columns=columns)).begin().batch()
    one, two = chunk.rows.to_pylist()
    assert one == {
        "n": 1, "who": "ü", "headers": json.dumps([["a", "1"], ["a", "base64:/w=="], ["b", None]]), "topic": topic,
        "part": 1, "at": 0, "came": datetime.fromtimestamp(came // 1_000, UTC).replace(microsecond=123_000),
    }  # fmt: skip
    assert (two["who"], two["headers"], two["at"]) == (None, "[]", 1)
    assert abs(two["came"].timestamp() - time.time()) < 60
    (bad,) = chunk.undecoded
    assert (bad.offset, bad.raw) == (2, '{"n": 3}')
    assert bad.reason.startswith("the key: ")


def test_keys_may_be_numbers_as_kafkas_clients_write_them(log):
    topic = log.topic()
    for key in (None, (5).to_bytes(8), (-2).to_bytes(8, signed=True), b"12345"):
        log.put(topic, [{"n": 1}], key=key)
    (chunk,) = Log(log.read(topic, key="long")).begin().batch()
    assert chunk.rows.column("key").to_pylist() == [None, 5, -2]
    assert chunk.undecoded[0].reason == "the key has 5 bytes instead of 8"


def test_text_and_bytes(log):
    topic = log.topic()
    log.put(topic, ["ü".encode(), b"", None, b"\xff\0", b"a\nb"])
    (chunk,) = Log(log.read(topic, value="text", schema="line string")).begin().batch()
    assert chunk.rows.column("line").to_pylist() == ["ü", "", None, "a\nb"]
    assert [(bad.offset, bad.raw) for bad in chunk.undecoded] == [(3, "base64:/wA=")]
    (chunk,) = Log(log.read(topic, value="bytes", schema=None)).begin().batch()
    assert chunk.rows.column("value").to_pylist() == ["ü".encode(), b"", None, b"\xff\0", b"a\nb"]


def test_4_poison_messages_are_quarantined_with_their_bytes_and_offsets(log):
    """Row 4: among good ones, a null value and 50 MB too."""
    topic = log.topic(**{"max.message.bytes": str(90 << 20)})
    poison = [b"{", b'{"n": "x"}', b'{"n": ' + b"9" * 30 + b"}", b'{"s": "\\ud800"}', b'{"x": NaN}', b'{"x": 1e400}',
              b"", None, b"\0", b"\xff", b'{"s": "' + b"x" * (50 << 20) + b'"}', b"[]", b'{"x": Infinity}']  # fmt: skip
    for value in poison:
        log.put(topic, [{"n": 1, "s": "fine", "x": 1.5}])
        log.put(topic, [value])
    (chunk,) = Log(log.read(topic, "n long, s string, x double")).begin().batch()
    assert chunk.offsets.tolist() == list(range(0, 2 * len(poison), 2))
    assert {row["s"] for row in chunk.rows.to_pylist()} == {"fine"}
    assert [bad.offset for bad in chunk.undecoded] == list(range(1, 2 * len(poison), 2))
    assert "null" in chunk.undecoded[7].reason
    assert all(len(bad.raw) < 100_000 for bad in chunk.undecoded)


def test_7_partitions_that_are_added_are_found_and_read_from_their_beginning(log):
    """Row 7: a partition that nobody has seen; those that are behind are named."""
    topic = log.topic()
    log.put(topic, count(0, 4))
    one = Log(log.read(topic, start="latest")).begin()
    log.grow(topic, 3)
    wait(lambda: len(log.admin.list_topics(topic, timeout=5).topics[topic].partitions) == 3)
    log.put(topic, count(10, 14), 2)
    wait(lambda: one.batch() == [] and len(one.reader.partitions(one.at)) == 3)
    assert one.reader.behind(one.at, 0) == [f"{topic}/2"]
    assert one.numbers() == [10, 11, 12, 13]
    assert one.reader.behind(one.at, 0) == []


def test_topics_that_match_are_found_while_it_runs(log):
    first, other = log.topic("red-1"), log.topic("blue-1")
    log.put(first, count(0, 2))
    log.put(other, count(10, 12))
    one = Log(log.read(re.compile(f"{log.prefix}-red-.*"))).begin()
    assert one.numbers() == [0, 1]
    second = log.topic("red-2")
    log.put(second, count(20, 22))
    wait(lambda: one.batch() == [] and len(one.reader.partitions(one.at)) == 2)
    assert one.numbers() == [20, 21]
    both = Log(log.read([first, other])).begin()
    assert sorted(both.numbers()) == [0, 1, 10, 11]
    with pytest.raises(SourceError, match=r"no topic at .* matches"):
        Log(log.read(re.compile("red"))).begin()


def test_an_unknown_topic_is_refused_with_the_one_that_was_meant(log):
    topic = log.topic("scores")
    with pytest.raises(SourceError, match=f"there is no topic '{topic}s' at") as told:
        Log(log.read(topic + "s")).begin()
    assert told.value.instead == f"did you mean '{topic}'?"


def test_offsets_are_shown_to_a_group_in_kafkas_own_words(log):
    topic = log.topic(partitions=2)
    log.put(topic, count(0, 10))
    log.put(topic, count(0, 4), 1)
    one = Log(log.read(topic, group=f"{log.prefix}-group")).begin()
    one.rows(7)
    one.reader.committed(one.reader.start())
    one.reader.committed(one.at)
    (future,) = log.admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(f"{log.prefix}-group")]).values()
    assert {place.partition: place.offset for place in future.result().topic_partitions} == {0: 5, 1: 2}
    assert one.reader.lag(one.at) == [Lag(f"{topic}/0", 5, 10), Lag(f"{topic}/1", 2, 4)]


def test_chunks_end_at_fixed_offsets_whatever_comes_in_one_go(log, monkeypatch):
    from penstock.connectors.kafka import consumer as consumers, decode, message_blocks

    topic = log.topic()
    log.put(topic, count(0, 1_000))
    monkeypatch.setattr(message_blocks, "MAX_ROWS", 300)
    shapes = []
    for block, gathered, size in ((1_000, 50_000, 1 << 30), (7, 1, 1 << 30), (130, 200, 500), (1_000, 50_000, 500)):
        monkeypatch.setattr(consumers, "BLOCK", block)
        monkeypatch.setattr(decode, "BLOCK", gathered)
        monkeypatch.setattr(message_blocks, "CHUNK_BYTES", 1_500)
        monkeypatch.setattr(decode, "BLOCK_BYTES", size)
        chunks = Log(log.read(topic)).begin().batch()
        assert [n for chunk in chunks for n in chunk.rows.column("n").to_pylist()] == list(range(1_000))
        shapes.append([len(chunk.offsets) for chunk in chunks])
    assert shapes[1:] == shapes[:1] * 3
    assert max(shapes[0]) < 300


def test_many_partitions_share_a_few_consumers(log, monkeypatch):
    from penstock.connectors.kafka import consumer as consumers, decode

    monkeypatch.setattr(consumers, "MOST", 3)
    monkeypatch.setattr(decode, "AHEAD", 2)
    topic = log.topic(partitions=7)
    one = Log(log.read(topic)).begin()
    for turn in range(2):
        for partition in range(7):
            log.put(topic, count(partition, partition + 2), partition)
        assert sorted(one.numbers()) == sorted([*range(7), *range(1, 8)]), turn
    assert len(consumers._cache) == 3


def test_a_consumer_stays_assigned_between_batches_and_rests_at_the_end(log, monkeypatch):
    from penstock.connectors.kafka import consumer as consumers

    topic, other = log.topic(), log.topic("other")
    log.put(topic, count(0, 10))
    log.put(other, count(0, 1))
    reader = reader_of(log.read(topic))
    at = reader.latest(reader.start(), 0, None)
    for n in (4, 4, 2):
        upto = reader.latest(at, 0, 4)
        assert sum(len(chunk.offsets) for chunk in between(reader, at, upto)) == n
        at = upto
        (held,) = consumers._cache
        assert held.at == at["partitions"][f"{topic}/0"][0]
        assert held.paused == (held.at == 10)
    log.put(topic, count(10, 30))
    upto = reader.latest(at, 0, 5)
    between(reader, at, upto)
    assert not held.paused
    monkeypatch.setattr(consumers, "STALE", -1.0)
    Log(log.read(other)).begin().rows()
    assert held.paused
    last = reader.latest(upto, 0, None)
    assert [n for chunk in between(reader, upto, last) for n in chunk.offsets.tolist()] == list(range(15, 30))
    assert held in consumers._cache
