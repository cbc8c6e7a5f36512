"""A pipeline on Spark that reads a real broker: caught up, killed before its first commit, and catching up unevenly."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import penstock as ps
from penstock.api.loader import load
from penstock.checkpoint.clock import FOLDER as CLOCKS
from penstock.checkpoint.status import standing
from penstock.cli.status import lag_table
from penstock.connectors.memory import STORES
from penstock.spark.verify import verify
from tests.integration.cli.conftest import penstock as penstock  # the fixture
from tests.integration.kafka.talking import PASSWORD, Kafka
from tests.integration.spark.driving import caught_up, clock
from tests.integration.spark.test_poison import JSON
from tests.properties.avro_by_hand import sized, zigzag

pytestmark = pytest.mark.spark

SCHEMA = "team string, points long, at timestamp"
PIPELINE = """
import penstock as ps

scores = ps.kafka({topic!r}, servers={servers!r}, schema={schema!r}, columns=("offset",), name="scores")
timed = scores.event_time("at", watermark=ps.ascending(idle=None)).key_by("team")
windows = timed.window(ps.tumbling("10 seconds"), lateness="1 minute").trigger(ps.at_watermark(late=ps.count(1)))
totals = windows.accumulating().aggregate(points=ps.sum("points"))
bad = ps.to_kafka({topic!r} + "-bad", servers={servers!r}, create=True)
mended = ps.pipeline("mended", totals.write(ps.memory("mended")), totals.quarantine.write(bad))
"""


@pytest.fixture(scope="module")
def spark():
    """The session that Penstock makes, on two cores."""

    from penstock.spark.session import session

    return session(master="local[2]")


@pytest.fixture(autouse=True)
def forgotten():
    """What memory sinks hold is let go after each test."""
    yield
    STORES.clear()


def scores(seconds, team="red"):
    return [{"team": team, "points": 1, "at": clock(second)} for second in seconds]


GROUPS = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"


def totals(log: Kafka, topic: str, name: str, **how):
    stream = log.read(topic, SCHEMA, name="scores", **how)
    timed = stream.event_time("at", watermark=ps.bounded("1 second", idle=None, max_skew=None))
    panes = timed.key_by("team").window(ps.tumbling("10 seconds")).aggregate(points=ps.sum("points"))
    return panes, ps.pipeline(name, panes.write(ps.memory(name)), panes.late.write(ps.memory(f"{name}-late")),
                              panes.quarantine.write(ps.memory(f"{name}-bad")), batch_rows=300)  # fmt: skip


def test_7_a_backlog_is_drained_without_running_ahead_of_a_slow_partition(spark, log, real_broker, tmp_path):
    """Row 7: a partition that is far behind the others in event time holds the windows; nobody's events are late."""
    topic = log.topic(partitions=3)
    for partition, rows in enumerate(
        (scores(range(0, 600)), scores(range(300, 600)), scores(sorted([*range(0, 600)] * 3)))
    ):
        log.put(topic, rows, partition)
    log.put(topic, [b"poison"], 1)
    _, pipeline = totals(log, topic, "slow", group=f"{log.prefix}-g", settings={"sasl.password": PASSWORD})
    told = caught_up(pipeline, tmp_path / "checkpoint")
    assert told[-1].totals.read == 2_701
    assert told[-1].totals.late == 0
    assert ps.memory("slow-late").rows == []
    (bad,) = ps.memory("slow-bad").rows
    assert (bad["partition"], bad["offset"], bad["raw"]) == (f"{topic}/1", 300, "poison")
    assert sum(row["points"] for row in ps.memory("slow").rows) == 590 + 290 + 3 * 590
    # The lag in Kafka's own words, and the same columns by ours.
    kafkas = real_broker.tool(GROUPS, "--describe", "--group", f"{log.prefix}-g").splitlines()
    ours = lag_table(standing(str(tmp_path / "checkpoint")))
    wanted = ["TOPIC", "PARTITION", "CURRENT-OFFSET", "LOG-END-OFFSET", "LAG"]
    assert columns(kafkas, wanted) == columns(ours, wanted)
    assert columns(ours, wanted)[2] == [topic, "2", "1800", "1800", "0"]
    # Row 25: what Spark and we have written down knows no secret.
    written = [path.read_bytes() for path in (tmp_path / "checkpoint").rglob("*") if path.is_file()]
    assert any(topic.encode() in held for held in written)
    assert not any(PASSWORD.encode() in held for held in written)


def columns(lines, names):
    """Some columns of a table of words, in order of the partitions."""
    head, *rows = [line.split() for line in lines if line.strip()]
    places = [head.index(name) for name in names]
    return sorted([row[place] for place in places] for row in rows)


def only_the_first_logged(checkpoint: Path) -> None:
    """As if it had been killed in its first batch, however many it had before it was caught up."""
    shutil.rmtree(checkpoint / "commits")
    for folder, first in (("offsets", 0), (CLOCKS, 1)):
        for one in (checkpoint / folder).iterdir():
            number = one.name.removeprefix(".").removesuffix(".crc")
            if number.isdigit() and int(number) > first:
                one.unlink()


def test_a_batch_that_is_run_again_begins_where_the_first_one_began(spark, log, tmp_path):
    """The first batch was logged and never committed: what came meanwhile belongs to the next one, and none is lost."""
    topic = log.topic()
    log.put(topic, scores(range(0, 100)))
    _, pipeline = totals(log, topic, "again", start="latest")
    checkpoint = tmp_path / "checkpoint"
    caught_up(pipeline, checkpoint)
    only_the_first_logged(checkpoint)
    log.put(topic, scores(range(100, 131)))
    told = caught_up(pipeline, checkpoint)
    assert told[-1].totals.read == 31
    assert told[-1].notes == (
        f"{topic} has 1 partition for 2 cores: one task reads a partition, so that the others idle",
    )
    assert sum(row["points"] for row in ps.memory("again").rows) == 20


def test_the_stream_and_the_batch_read_the_same_of_a_topic(spark, log):
    """`penstock verify`, of partitions of which one has no message and one has some that are none."""
    topic = log.topic(partitions=3)
    log.put(topic, [*scores(range(0, 400)), b"torn", *scores(range(400, 500))], 0)
    log.put(topic, scores(range(0, 300), "blue"), 1)
    for end in (None, "latest"):
        _, pipeline = totals(log, topic, "verified", **({} if end is None else {"end": end}))
        found = verify(pipeline, rows=10_000, spark=spark)
        assert found.rows == 801
        assert found.equal
        assert [(one.answers, one.skipped) for one in found.comparisons] == [(80, None)] * 3


def test_an_end_that_was_the_latest_and_is_taken_away(spark, log, tmp_path):
    """What came after the end is told; without an end the same checkpoint reads it."""
    topic = log.topic()
    log.put(topic, scores(range(0, 100)))
    _, bounded = totals(log, topic, "bounded", end="latest")
    checkpoint = tmp_path / "checkpoint"
    assert caught_up(bounded, checkpoint)[-1].totals.read == 100
    log.put(topic, scores(range(100, 131)))
    told = caught_up(bounded, checkpoint)
    assert told[-1].totals.read == 100
    assert f"31 messages came to {topic} after its end, unread; end= holds" in told[-1].notes[-1]
    _, endless = totals(log, topic, "bounded")
    told = caught_up(endless, checkpoint)
    assert told[-1].totals.read == 131
    assert not any("after its end" in note for note in told[-1].notes)


MICROS = {"type": "long", "logicalType": "timestamp-micros"}
FIELDS = {"case": "string", "at": MICROS, "inner": ["null", "Deep"], "none": {"type": "array", "items": "null"}}
DEEP = {
    "type": "record",
    "name": "Deep",
    "fields": [{"name": name, "type": kind} for name, kind in FIELDS.items()],
}
HEAD = sized(b"x") + zigzag(1_767_225_600_000_000)
AVRO = {
    "nested 5,000 deep": (HEAD + b"\2") * 5_000 + HEAD + b"\0\0" * 5_001,
    "a count of 2**40": HEAD + b"\0" + zigzag(2**40) + b"\0",
    "a count of -(2**40)": HEAD + b"\0" + zigzag(-(2**40)) + b"\0\0",
    "torn": HEAD[:3],
    "a text of 2**60": zigzag(2**60) + b"x",
}


def test_4_messages_that_once_ended_a_run_are_quarantined_one_by_one(spark, log, tmp_path):
    """A partition of each kind: ten good messages, the bad one, ten good ones; of JSON and of Avro, in one run."""
    lines = list(JSON.values())
    texts, records = log.topic("json", partitions=len(lines)), log.topic("avro", partitions=len(AVRO))
    for number, bad in enumerate(lines):
        log.put(
            texts,
            [*[{"case": str(number), "at": clock(1)}] * 10, bad, *[{"case": str(number), "at": clock(1)}] * 10],
            number,
        )
    for number, bad in enumerate(AVRO.values()):
        good = [sized(str(number).encode()) + zigzag(1_767_225_601_000_000) + b"\0\0"] * 10
        log.put(records, [*good, bad, *good], number)
    columns = "case string, at timestamp"
    for name, stream, count in (
        ("json", log.read(texts, f"{columns}, n long, m decimal(38,10), x double", end="latest"), len(lines)),
        ("avro", log.read(records, columns, value="avro", avro_schema=DEEP, end="latest"), len(AVRO)),
    ):
        timed = stream.event_time("at", watermark=ps.ascending()).key_by("case")
        counted = timed.window(ps.tumbling("1 hour")).aggregate(n=ps.rows())
        outputs = counted.write(ps.memory(name)), counted.quarantine.write(ps.memory(f"{name}-bad"))
        told = caught_up(ps.pipeline(f"poison-{name}", *outputs), tmp_path / name, until="end")
        bad = ps.memory(f"{name}-bad").rows
        assert told[-1].totals.quarantined == count
        places = {(row["partition"].rpartition("/")[2], row["offset"]) for row in bad}
        assert places == {(str(number), 10) for number in range(count)}
        assert {row["case"]: row["n"] for row in ps.memory(name).rows} == {str(number): 20 for number in range(count)}


def test_4_repaired_messages_go_through_the_pipeline_once(spark, log, tmp_path, penstock):
    """Row 4: quarantined to a topic, listed, exported, mended by hand, replayed, and replayed again for nothing."""
    topic = log.topic()
    text = json.dumps({"team": "red", "points": "many", "at": clock(2)}).encode()
    log.put(topic, [*scores([1]), text, b"\xff\x00", *scores([12], "blue")])
    source = PIPELINE.format(topic=topic, servers=log.broker.servers, schema=SCHEMA)
    Path("mended.py").write_text(source)
    checkpoint = tmp_path / "checkpoint"
    assert caught_up(load("mended.py"), checkpoint)[-1].totals.quarantined == 2
    quarantine = ("quarantine", "list", "checkpoint", "--pipeline", "mended.py")
    listed = penstock(*quarantine)
    assert listed.code == 0, listed.err
    assert f"scores/{topic}/0 offset 1  decode: column 'points'" in listed.out
    assert "base64:/wA=" in listed.out
    assert penstock(*quarantine, "--export", "bad.jsonl").code == 0
    rows = [json.loads(line) for line in Path("bad.jsonl").read_text().splitlines()]
    assert [(row["offset"], row["row"] is None) for row in rows] == [(1, False), (2, True)]
    rows[0]["row"]["points"] = 4
    rows[1]["row"] = {"team": "red", "points": 8, "at": clock(3)}
    Path("bad.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    replay = ("quarantine", "replay", "checkpoint", "--from", "bad.jsonl", "--pipeline", "mended.py")
    assert "2 rows put back" in penstock(*replay).out
    assert "0 rows put back" in penstock(*replay).out
    told = caught_up(load("mended.py"), checkpoint)
    assert [(row["team"], row["points"]) for row in ps.memory("mended").rows] == [("red", 1), ("red", 13)]
    assert (told[-1].totals.read, told[-1].totals.quarantined, told[-1].lag) == (6, 2, 0)
    assert "(replayed)" in penstock(*quarantine).out
