"""What reading Kafka costs without Spark: the Python client, the library that it wraps, our rows of its messages.

Use:

    python -m bench.kafka_reading [--quick] [--json FILE]

The Avro topic of `bench.kafka`, from one broker on the same cores, read in two processes of two partitions each as the
two tasks of a pipeline do: batch after batch of a million. Seconds of the wall and of both processes' cores, for a
million events, the best of some rounds in turns. What the library takes alone is what no reader on it can get below.
"""

from __future__ import annotations

import argparse
import gc
import multiprocessing
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from itertools import chain
from pathlib import Path
from typing import Any

import penstock as ps
from bench.figures import keep
from bench.kafka import AVRO, BATCH, JOBS, SCHEMA, fill
from bench.spark import machine
from penstock.connectors.kafka.consumer import BLOCK, NEEDED, PREFETCH, Reading, Span, messages, ready
from penstock.connectors.kafka.librdkafka import Messages
from penstock.connectors.kafka.source import Kafka
from penstock.testing.servers.kafka import broker

TASKS = 2
ROUNDS = 4


@cache
def reader_of(servers: str, topic: str) -> Kafka:
    """Our reader of the topic; a process has one, so that its consumers stay."""
    made = ps.kafka(topic, servers=servers, schema=SCHEMA, value="avro", avro_schema=AVRO, tasks=TASKS)
    reader: Kafka = made.inputs[0].source.reader
    return reader


@cache
def splits(servers: str, topic: str, task: int) -> list[Any]:
    """What a task reads, batch after batch."""
    reader = reader_of(servers, topic)
    at = reader.latest(reader.start(), 0, None)
    found = []
    while (upto := reader.latest(at, 0, BATCH))["partitions"] != at["partitions"]:
        found.append(reader.splits(at, upto)[task])
        at = upto
    return found


def only_library(reader: Kafka, split: Any, taken: Callable[[Messages], Any] = len) -> int:
    """A split as the library gives it."""
    reading = Reading(reader.cluster, reader.isolation)
    spans = [Span(topic, ids, number, low, high, more) for topic, number, ids, low, high, more in split["parts"]]
    waiting = [(span, ready(reading, span)) for span in spans]
    for _ in chain.from_iterable(messages(one, reading, span, taken) for span, one in waiting):
        pass
    return sum(span.high - span.low for span in spans)


@cache
def client_of(servers: str, topic: str, partition: int) -> Any:
    """The Python client on a partition from its beginning; it stays, as ours does."""
    from confluent_kafka import Consumer, TopicPartition

    made = Consumer({**PREFETCH, **NEEDED, "bootstrap.servers": servers, "group.id": "bench"})
    made.assign([TopicPartition(topic, partition, 0)])
    return made


def only_client(reader: Kafka, split: Any) -> int:
    """A split as the Python client gives it, with the values of its messages and without looking for cycles."""
    from confluent_kafka import Message, TopicPartition

    gc.disable()
    for topic, number, _, low, high, _ in split["parts"]:
        client, at = client_of(reader.cluster.servers, topic, number), low
        if low == 0:
            client.assign([TopicPartition(topic, number, low)])
        while at < high:
            got = [one for one in client.consume(min(BLOCK, high - at), 0.1) if one.error() is None]
            list(map(Message.value, got))
            at += len(got)
    gc.enable()
    return sum(high - low for _, _, _, low, high, _ in split["parts"])


def our_rows(reader: Kafka, split: Any) -> int:
    """A split as chunks of rows."""
    return sum(len(chunk.offsets) for chunk in reader.read(split))


WAYS: dict[str, Callable[[Kafka, Any], int]] = {
    "Python client": only_client,
    "library": only_library,
    "library, values": partial(only_library, taken=Messages.values),
    "rows": our_rows,
}


def task(servers: str, topic: str, way: str, number: int) -> tuple[int, float]:
    """One of two tasks: the events it has read and the seconds of its core, threads of the client among them."""
    reader, mine = reader_of(servers, topic), splits(servers, topic, number)
    begun = time.process_time()
    events = sum(WAYS[way](reader, split) for split in mine)
    return events, time.process_time() - begun


def measured(servers: str, topic: str, rounds: int) -> list[dict[str, Any]]:
    """Each way in turns; the first round warms the processes and is not counted."""
    found: dict[str, list[tuple[float, float]]] = {way: [] for way in WAYS}
    pools = [multiprocessing.get_context("spawn").Pool(1) for _ in range(TASKS)]
    for turn in range(rounds + 1):
        for way, seconds in found.items():
            begun = time.monotonic()
            asked = [pool.apply_async(task, (servers, topic, way, at)) for at, pool in enumerate(pools)]
            done = [one.get() for one in asked]
            wall, events = time.monotonic() - begun, sum(count for count, _ in done)
            if turn:
                seconds.append((1e6 * wall / events, 1e6 * sum(cpu for _, cpu in done) / events))
    for pool in pools:
        pool.terminate()
    best = {way: [round(min(some), 3) for some in zip(*seconds, strict=True)] for way, seconds in found.items()}
    return [{"way": way, "wall": wall, "cores": cores} for way, (wall, cores) in best.items()]


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a tenth of the events, one round: to see that it works")
    parser.add_argument("--json", type=Path, help="write the figures there")
    asked = parser.parse_args()
    topic = next(job.topic for job in JOBS if job.topic.format == "avro")
    if asked.quick:
        topic = replace(topic, events=topic.events // 10)
    with broker() as one:
        fill(one, topic)
        results = measured(one.servers, topic.name, 1 if asked.quick else ROUNDS)
    print(f"seconds for a million events, {TASKS} processes: of the wall, of their cores")
    for result in results:
        print(f"{result['way']:18} {result['wall']:.2f} {result['cores']:.2f}")
    keep({"machine": machine(), "results": results}, asked.json)
    return 0


if __name__ == "__main__":
    sys.exit(main())
