"""The pipeline that is killed between real servers: unique ids from Kafka, each to PostgreSQL and to Kafka again.

`python -m tests.faults.scenarios.ids FOLDER` runs it there, from wherever it was killed, until all is written; the
servers are named by KAFKA and POSTGRES. To Kafka they go twice: by the driver, and by the tasks themselves. Some of the
ids were sent in transactions that were aborted: nobody may see them. Each id is a key of its own, so that whatever is
lost or doubled can be named.
"""

from __future__ import annotations

import json
import os
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import penstock as ps
from penstock.api.pipeline import Pipeline, pipeline
from penstock.connectors.kafka.sink import to_kafka
from penstock.connectors.kafka.source import kafka
from penstock.connectors.postgres.sink import postgres
from penstock.testing.crash.running import run_out

NAME = "ids"
TOPIC = "ids"
PARTITIONS = 3
IDS = 6_000
BATCH_ROWS = 600
IN_TRANSACTION = 100
ABORTED = 4  # of so many transactions one is aborted, after all of it was sent
SHARDS = 2
SHOWS = 3  # the first batch in which a window is complete
SINKS = (f"{NAME}/panes/postgres:public.ids_{{life}}", f"{NAME}/panes/kafka:ids-{{life}}",
         f"{NAME}/panes/kafka:ids-by-tasks-{{life}}")  # fmt: skip


def produce(servers: str) -> None:
    """Fill the topic, once: ids in order of time, in transactions, every fourth of them aborted."""
    from confluent_kafka import Producer
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient({"bootstrap.servers": servers})
    admin.create_topics([NewTopic(TOPIC, PARTITIONS, 1)])[TOPIC].result()
    producer = Producer({"bootstrap.servers": servers, "transactional.id": "ids-producer"})
    producer.init_transactions()
    for first in range(0, IDS, IN_TRANSACTION):
        producer.begin_transaction()
        for number in range(first, first + IN_TRANSACTION):
            at = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(milliseconds=number)
            value = json.dumps({"id": number, "at": at.isoformat()})
            producer.produce(TOPIC, value, partition=number % PARTITIONS)
        producer.flush()
        if aborted(first):
            producer.abort_transaction()
        else:
            producer.commit_transaction()


def aborted(number: int) -> bool:
    """Whether an id was sent in a transaction that was aborted."""
    return number // IN_TRANSACTION % ABORTED == ABORTED - 1


def life_of(folder: str) -> str:
    """What the tables and topics of a life are called by."""
    return Path(folder).name.replace("-", "")


def made(folder: str) -> Pipeline:
    """The pipeline of a life, with a table and a topic of its own."""
    servers, database, life = os.environ["KAFKA"], os.environ["POSTGRES"], life_of(folder)
    ids = kafka(TOPIC, servers=servers, schema="id long, at timestamp", end="latest")
    counted = (
        ids.event_time("at", watermark=ps.bounded("100 milliseconds")).key_by("id")
        .window(ps.tumbling("500 milliseconds"))
        .aggregate(n=ps.rows())
    )  # fmt: skip
    by_tasks = to_kafka(f"ids-by-tasks-{life}", servers=servers, compacted=False, create=True, parallel=True)
    return pipeline(
        NAME,
        counted.write(postgres(database, table=f"ids_{life}", history=True)),
        counted.write(to_kafka(f"ids-{life}", servers=servers, compacted=False, create=True)),
        counted.write(by_tasks),
        shards=SHARDS, batch_rows=BATCH_ROWS,
    )  # fmt: skip


def main(folder: str) -> None:
    """Run until all is written."""
    run_out(made(folder), folder)


if __name__ == "__main__":
    main(*sys.argv[1:])
