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
from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import penstock as ps
from penstock.api.pipeline import Pipeline, pipeline
from penstock.connectors.kafka.sharded_sink import ParallelKafka
from penstock.connectors.kafka.sink import Kafka, to_kafka
from penstock.connectors.kafka.source import kafka
from penstock.connectors.postgres.sink import Postgres, postgres
from penstock.engine.shuffle.partition import shard_of
from penstock.testing.crash.life import run_out
from penstock.testing.crash.sink_rows import held_by
from penstock.testing.crash.verdict import Rows, Verdict, Written, in_batches, unequal

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


BY_TASKS = "parallelkafka"
KINDS: dict[type, str] = {Postgres: "postgres", Kafka: "kafka", ParallelKafka: BY_TASKS}


@dataclass(frozen=True)
class IdsChecker:
    """Compares with an undisturbed run batch by batch, and with the ids themselves."""

    undisturbed: dict[str, Written]

    @classmethod
    def of(cls, folder: str, log: str) -> IdsChecker:
        """Learn from a run that nothing disturbed, whose output is in the log."""
        counts = [json.loads(line)["panes"] for line in log.splitlines() if line.startswith('{"batch"')]
        return cls(
            {name: in_batches(name, rows, counts) for name, rows in read_all(folder).items() if name != BY_TASKS}
        )

    def check(self, folder: str, ended: bool) -> Verdict:
        """Every output; whatever has happened, nobody may have seen an id that was aborted."""
        verdict = Verdict()
        for name, rows in read_all(folder).items():
            verdict += self.by_shards(rows, ended) if name == BY_TASKS else self.undisturbed[name].judge(rows, ended)
            verdict += ids_right(name, rows, ended)
        return verdict

    def by_shards(self, rows: Rows, ended: bool) -> Verdict:
        """What tasks have written: shards of a batch may come one after the other, and each is there whole or not."""
        verdict = Verdict()
        for shard in range(SHARDS):
            batches = tuple(of_shard(batch, shard) for batch in self.undisturbed["kafka"].batches)
            verdict += Written(f"kafka by tasks, shard {shard}", batches).judge(of_shard(rows, shard), ended)
        return verdict


def of_shard(rows: Rows, shard: int) -> Rows:
    """The ids that belong to a shard."""
    return [row for row in rows if shard_of((row[0],), SHARDS) == shard]


def read_all(folder: str) -> dict[str, Rows]:
    """Id and count of every row, in the order they were written: the history in PostgreSQL, the topic in Kafka."""
    from penstock.coordinator.sink_targets import targets_of

    found: dict[str, Rows] = {}
    for _, sink, target in targets_of(made(folder)):
        rows = held_by(sink, target).every or []
        kind = KINDS[type(sink)]
        if kind.endswith("kafka"):
            values = [json.loads(value) for _, value in rows]
            found[kind] = [(int(row["id"]), int(row["n"])) for row in values]
        else:
            at, n = target.schema.names.index("id"), target.schema.names.index("n")
            found[kind] = [(int(row[at]), int(row[n])) for row in rows]
    return found


def ids_right(name: str, rows: Rows, ended: bool) -> Verdict:
    """Each id once and counted once; in the end all that were committed."""
    seen = Counter(number for number, _ in rows)
    dirty = sum(aborted(number) for number in seen)
    verdict = Verdict(
        duplicated=sum(times - 1 for times in seen.values()) + sum(n != 1 for _, n in rows), foreign=dirty,
        said=(f"{name}: {dirty} ids of aborted transactions were read",) if dirty else (),
    )  # fmt: skip
    if ended:
        verdict += unequal(f"{name}, ids", len(seen), sum(not aborted(number) for number in range(IDS)))
    return verdict
