"""Kafka at speed: beside Spark's own connector, `from_json` and aggregate, from one broker on the same cores.

Use:

    python -m bench.kafka [--quick] [--only TEXT] [--batch ROWS] [--json FILE]

JSON (or Avro) values of about 100 bytes in 4 partitions, ten-second sums and counts by key, batches of a million
events, as in `make bench`. Seconds per million events of the warm batches. All read the same topic in one session, in
turns: the first rounds warm the JVM, and of the last three the median counts. Spark's connector is not published for
every version of Spark: the nearest is taken, and named.
"""

from __future__ import annotations

import argparse
import io
import json
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

import penstock as ps
from bench.figures import keep
from bench.spark import COLD_ROUNDS, HDFS, ROCKS, Nowhere, Run, machine, measured_ours, measured_theirs, tumbling
from penstock.testing.servers.kafka import Broker, broker
from penstock.testing.servers.maven import jars

PARTITIONS = 4
BATCH = 1_000_000  # events
COUNTED = 3  # rounds
CONNECTOR = (
    "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0", "org.apache.spark:spark-token-provider-kafka-0-10_2.13:4.0.0",
    "org.apache.kafka:kafka-clients:3.9.2", "org.apache.commons:commons-pool2:2.13.1",
    "org.apache.spark:spark-avro_2.13:4.0.0",
)  # fmt: skip
SCHEMA = "key long, value long, at timestamp, note string"
AVRO = {
    "type": "record",
    "name": "Event",
    "fields": [
        {"name": "key", "type": "long"},
        {"name": "value", "type": "long"},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
        {"name": "note", "type": "string"},
    ],
}
NOTE = "some words, so that it has its length"


@dataclass(frozen=True)
class Topic:
    """What is in a topic: so many events over so many keys, 100,000 a second of event time."""

    keys: int
    events: int
    format: str

    @property
    def name(self) -> str:
        """What it is called in the broker."""
        return f"{self.format}-{self.keys}-{self.events}"

    def values(self) -> Iterator[tuple[int, bytes]]:
        """The messages in order, each with its partition."""
        random = np.random.default_rng(7)
        encode = _json if self.format == "json" else _avro()
        for first in range(0, self.events, BATCH):
            count = min(BATCH, self.events - first)
            keys = random.integers(0, self.keys, count).tolist()
            values = random.integers(0, 100, count).tolist()
            for i in range(count):
                yield (first + i) % PARTITIONS, encode(keys[i], values[i], 1_767_225_600_000_000 + 10 * (first + i))


def _json(key: int, value: int, at: int) -> bytes:
    stamp = str(np.datetime64(at, "us"))
    return b'{"key":%d,"value":%d,"at":"%sZ","note":"%s"}' % (key, value, stamp.encode(), NOTE.encode())


def _avro() -> Callable[[int, int, int], bytes]:
    import fastavro

    schema = fastavro.parse_schema(AVRO)

    def encoded(key: int, value: int, at: int) -> bytes:
        out = io.BytesIO()
        fastavro.schemaless_writer(out, schema, {"key": key, "value": value, "at": at, "note": NOTE})
        return out.getvalue()

    return encoded


def fill(one: Broker, topic: Topic) -> None:
    """Write a topic, once."""
    from confluent_kafka import Producer
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient({"bootstrap.servers": one.servers})
    if topic.name in admin.list_topics(timeout=10).topics:
        return
    admin.create_topics([NewTopic(topic.name, PARTITIONS, 1)])[topic.name].result()
    producer = Producer({"bootstrap.servers": one.servers, "linger.ms": 50, "batch.num.messages": 50_000,
                         "queue.buffering.max.messages": 1_000_000, "compression.type": "lz4"})  # fmt: skip
    for partition, value in topic.values():
        while True:
            try:
                producer.produce(topic.name, value, partition=partition)
                break
            except BufferError:
                producer.poll(0.1)
    producer.flush()


@dataclass(frozen=True)
class Job:
    """A topic, read by both."""

    name: str
    topic: Topic
    batch: int = BATCH


JOBS = [
    Job("JSON, 1 k keys", Topic(1_000, 5_000_000, "json")),
    Job("JSON, 1 M keys", Topic(1_000_000, 5_000_000, "json")),
    Job("Avro, 1 k keys", Topic(1_000, 5_000_000, "avro")),
]


def ours(spark: Any, one: Broker, job: Job, scratch: Path) -> Run:
    """Our pipeline over the topic."""
    how: dict[str, Any] = {} if job.topic.format == "json" else {"value": "avro", "avro_schema": AVRO}
    stream = ps.kafka(job.topic.name, servers=one.servers, schema=SCHEMA, **how)
    pipeline = ps.pipeline(
        "bench", tumbling(stream).write(Nowhere()), shards=2, batch_rows=job.batch, batch_target="1 hour"
    )
    return measured_ours(spark, pipeline, scratch, "penstock")


def theirs(spark: Any, one: Broker, job: Job, scratch: Path, store: str) -> Run:
    """Spark's connector and its own aggregate."""
    from pyspark.sql import functions as f
    from pyspark.sql.avro.functions import from_avro

    raw = (
        spark.readStream.format("kafka").option("kafka.bootstrap.servers", one.servers)
        .option("subscribe", job.topic.name).option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", job.batch).load()
    )  # fmt: skip
    if job.topic.format == "json":
        row = f.from_json(f.col("value").cast("string"), SCHEMA)
    else:
        row = from_avro(f.col("value"), json.dumps(AVRO))
    grouped = (
        raw.select(row.alias("row")).select("row.*").withWatermark("at", "10 seconds")
        .groupBy(f.window("at", "10 seconds"), "key").agg(f.sum("value").alias("total"), f.count("*").alias("n"))
    )  # fmt: skip
    return measured_theirs(spark, grouped, scratch, store, 2)


RUNNERS: dict[str, Callable[[Any, Broker, Job, Path], Run]] = {
    "penstock": ours,
    "spark, in memory": lambda *given: theirs(*given, HDFS),
    "spark, RocksDB": lambda *given: theirs(*given, ROCKS),
}


def compare(spark: Any, one: Broker, job: Job, rounds: int) -> dict[str, Any]:
    """All runs of a job, one after the other; the first rounds warm the JVM and are not counted."""
    fill(one, job.topic)
    runs: dict[str, list[Run]] = {who: [] for who in RUNNERS}
    warming = ["penstock", "spark, in memory"] * rounds
    for turn, who in enumerate([*warming, *[*RUNNERS] * COUNTED]):
        with tempfile.TemporaryDirectory(prefix="penstock-bench-") as scratch:
            run = RUNNERS[who](spark, one, job, Path(scratch))
        if turn >= len(warming):
            runs[who].append(run)
        print(f"  {job.name}: {who}: {run.warm:.2f} s/M warm, {run.whole:.1f} s in all", flush=True)
    warm = {who: median(run.warm for run in some) for who, some in runs.items()}
    return {
        "job": job.name,
        "batch": job.batch,
        "seconds_per_million": {who: round(seconds, 3) for who, seconds in warm.items()},
        "whole_run_seconds": {who: round(median(run.whole for run in some), 1) for who, some in runs.items()},
        "times_faster_store": round(min(warm["spark, in memory"], warm["spark, RocksDB"]) / warm["penstock"], 2),
    }


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a tenth of the events: to see that it works")
    parser.add_argument("--only", default="", help="only jobs whose name has this text")
    parser.add_argument("--batch", type=int, default=BATCH, help="events of a batch; %(default)s")
    parser.add_argument("--json", type=Path, help="write the figures there")
    asked = parser.parse_args()
    connector = jars("spark-kafka-avro-4.2.0", *CONNECTOR, alone=True)
    spark = connected_session(connector)
    results = []
    with broker() as one:
        for job in JOBS:
            if asked.only in job.name:
                size = replace(job.topic, events=job.topic.events // 10) if asked.quick else job.topic
                results.append(
                    compare(spark, one, replace(job, topic=size, batch=asked.batch), 1 if results else COLD_ROUNDS)
                )
        spark.stop()
    print(
        f"\nseconds for a million events, once warm, batches of {asked.batch:,}; "
        f"Spark's connector is {CONNECTOR[0].rpartition(':')[2]}"
    )
    for result in results:
        s = result["seconds_per_million"]
        print(f"{result['job']:16} penstock {s['penstock']:.2f}, in memory {s['spark, in memory']:.2f}, RocksDB "
              f"{s['spark, RocksDB']:.2f}: {result['times_faster_store']:.2f}× of the faster")  # fmt: skip
    keep({"machine": machine(), "results": results}, asked.json)
    return 0


def connected_session(connector: Path) -> Any:
    """A session with Spark's connector in it."""
    from penstock.spark import session

    paths = ",".join(str(path) for path in sorted(connector.glob("*.jar")))
    session.SESSION_SETTINGS["spark.jars"] = paths
    return session.session()


if __name__ == "__main__":
    sys.exit(main())
