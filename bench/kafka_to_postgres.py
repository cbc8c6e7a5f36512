"""Kafka to PostgreSQL at a steady rate, everything on the same cores: does lag or memory grow, how old are the rows?

Use:

    python -m bench.kafka_to_postgres [--minutes 10] [--rate 20000] [--backlog EVENTS] [--json FILE]

Producer, broker, Spark and database run here. JSON of about 100 bytes in 4 partitions, sums and counts by key in ten
seconds with early panes each second. Each minute the lag, the memory of all processes, and how old the newest committed
event is; exit code 1 where the last two thirds grow by 5 % or more. With --backlog so many events, one partition far
behind the others in event time, are drained first, of which none may be late.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

import penstock as ps
from bench.kafka import PARTITIONS
from bench.processes import resident, tree
from bench.soak import growth
from bench.spark import machine
from penstock.api.progress import Progress
from penstock.spark.session import session
from penstock.testing.servers.kafka import broker
from penstock.testing.servers.postgres import Database, database

SCHEMA = "key long, value long, at timestamp, note string"
NOTE = "some words, so that it has its length"
SLOW = 600  # seconds by which the last partition of a backlog is behind the others


def encoded(key: int, value: int, at: float) -> bytes:
    """A message of about 100 bytes."""
    stamp = str(np.datetime64(int(at * 1e6), "us")).encode()
    return b'{"key":%d,"value":%d,"at":"%sZ","note":"%s"}' % (key, value, stamp, NOTE.encode())


def produce(servers: str, topic: str, rate: int, stop: Any) -> None:
    """Events as they happen, at a steady rate, until told to stop."""
    from confluent_kafka import Producer

    random = np.random.default_rng(7)
    producer = Producer({"bootstrap.servers": servers, "linger.ms": 10, "compression.type": "lz4"})
    begun, sent = time.time(), 0
    while not stop.is_set():
        due = int((time.time() - begun) * rate)
        keys = random.integers(0, 1_000, max(0, due - sent)).tolist()
        for key in keys:
            producer.produce(topic, encoded(key, 1, begun + sent / rate), partition=sent % PARTITIONS)
            sent += 1
        producer.poll(0)
        time.sleep(0.02)
    producer.flush()


def fill(servers: str, topic: str, events: int) -> None:
    """A backlog: each partition in order, the last one far behind the others in event time."""
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": servers, "linger.ms": 50, "compression.type": "lz4",
                         "queue.buffering.max.messages": 1_000_000})  # fmt: skip
    first = time.time() - 2 * SLOW
    for number in range(events):
        partition = number % PARTITIONS
        at = first + (0 if partition == PARTITIONS - 1 else SLOW) + number / events * SLOW
        while True:
            try:
                producer.produce(topic, encoded(number % 1_000, 1, at), partition=partition)
                break
            except BufferError:
                producer.poll(0.1)
    producer.flush()


def pipeline_of(servers: str, url: str, topic: str, name: str) -> ps.Pipeline:
    """Sums and counts by key, and the newest event of each, early each second."""
    events = ps.kafka(topic, servers=servers, schema=SCHEMA, group=name)
    totals = (
        events.with_columns(made="at").event_time("at", watermark=ps.bounded("2 seconds", idle=None)).key_by("key")
        .window(ps.tumbling("10 seconds"), lateness="10 seconds")
        .trigger(ps.at_watermark(early=ps.every("1 second"), late=ps.count(1))).accumulating()
        .aggregate(total=ps.sum("value"), n=ps.rows(), newest=ps.max("made"))
    )  # fmt: skip
    return ps.pipeline(name, totals.write(ps.postgres(url, table=name)))


def age(db: Database, table: str) -> float | None:
    """How old the newest event is that a reader sees, in seconds."""
    found = db.ask(f"SELECT extract(epoch FROM max(newest)) FROM {table}")[0][0]
    return None if found is None else time.time() - float(found)


def topic_of(servers: str, name: str) -> None:
    """Make a topic."""
    from confluent_kafka.admin import AdminClient, NewTopic

    # The client must live until the answer is there.
    admin = AdminClient({"bootstrap.servers": servers})
    admin.create_topics([NewTopic(name, PARTITIONS, 1)])[name].result()


def drained(servers: str, url: str, events: int, scratch: Path, spark: Any) -> dict[str, Any]:
    """Drain a backlog; W must not run ahead of the slow partition."""
    topic_of(servers, "backlog")
    fill(servers, "backlog", events)
    seen: list[Progress] = []
    begun = time.monotonic()
    pipeline_of(servers, url, "backlog", "backlog").run(
        checkpoint=str(scratch / "backlog"), batch_every="0", until="caught_up", spark=spark, on_progress=seen.append
    )
    took = time.monotonic() - begun
    late = seen[-1].totals.late
    print(f"a backlog of {events:,} events: {took:.0f} s, {late} late", flush=True)
    return {"events": seen[-1].totals.read, "seconds": round(took, 1), "late": late}


def steady(servers: str, db: Database, asked: argparse.Namespace, scratch: Path, spark: Any) -> list[dict[str, float]]:
    """Run at a steady rate; what each minute showed."""
    topic_of(servers, "steady")
    stop = multiprocessing.get_context("spawn").Event()
    producer = multiprocessing.get_context("spawn").Process(
        target=produce, args=(servers, "steady", asked.rate, stop), daemon=True
    )
    producer.start()
    batches: list[Progress] = []
    handle = pipeline_of(servers, db.url, "steady", "steady").start(
        checkpoint=str(scratch / "steady"), batch_every="500 milliseconds", spark=spark, on_progress=batches.append
    )
    rows: list[dict[str, float]] = []
    while not batches or batches[-1].total_panes == 0:
        time.sleep(0.1)
    end = time.monotonic() + asked.minutes * 60
    every = min(60.0, asked.minutes * 60 / 10)
    while time.monotonic() < end and handle.running:
        ages, until, seen = [], time.monotonic() + every, len(batches)
        while time.monotonic() < until:
            if (one := age(db, "steady")) is not None:
                ages.append(one)
            time.sleep(0.1)
        lags = [float(one.lag or 0) for one in batches[seen:]]
        rows.append({
            "lag": round(statistics.median(lags)) if lags else -1, "memory_mb": round(resident(tree(os.getpid()))),
            "age_median": round(statistics.median(ages), 2), "age_p99": round(float(np.quantile(ages, 0.99)), 2),
            "batch_seconds": round(statistics.median(one.seconds for one in batches[seen:]), 3),
            "events": batches[-1].totals.read,
        })  # fmt: skip
        print("  ".join(f"{name} {value}" for name, value in rows[-1].items()), flush=True)
    stop.set()
    handle.stop()
    producer.join(30)
    return rows


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--rate", type=int, default=20_000)
    parser.add_argument("--backlog", type=int, default=5_000_000)
    parser.add_argument("--json", type=Path, help="write the figures there")
    asked = parser.parse_args()
    spark = session()
    with tempfile.TemporaryDirectory(prefix="penstock-bench-") as place, broker() as one, database() as db:
        backlog = drained(one.servers, db.url, asked.backlog, Path(place), spark) if asked.backlog else None
        rows = steady(one.servers, db, asked, Path(place), spark) if asked.minutes else []
        spark.stop()
    # A lag of a few rows doubles by chance: what counts is whether it grows by more than a batch.
    kept = rows[len(rows) // 3 :]
    grown = {"memory_mb": round(growth([row["memory_mb"] for row in rows]), 3),
             "lag_rows": kept[-1]["lag"] - kept[0]["lag"] if kept else 0}  # fmt: skip
    oldest = statistics.median(row["age_median"] for row in kept) if kept else None
    print(f"growth over the last two thirds: {grown}; newest committed event: median {oldest} s old (to reach: 2)")
    if asked.json:
        asked.json.parent.mkdir(parents=True, exist_ok=True)
        result = {"backlog": backlog, "minutes": rows, "growth": grown, "age_median": oldest}
        asked.json.write_text(json.dumps({"machine": machine(), "result": result}, indent=2) + "\n")
    lost = backlog is not None and backlog["late"] > 0
    return 1 if lost or grown["memory_mb"] >= 0.05 or grown["lag_rows"] >= asked.rate else 0


if __name__ == "__main__":
    sys.exit(main())
