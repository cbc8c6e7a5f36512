"""What the pipeline of `crash.ids` must have written: each id that was committed once, and none that was aborted."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass

from penstock.connectors.kafka.sharded_sink import ParallelKafka
from penstock.connectors.kafka.sink import Kafka
from penstock.connectors.postgres.sink import Postgres
from penstock.engine.shuffle.partition import shard_of
from penstock.testing.crash.sink_rows import held_by
from penstock.testing.crash.verdict import Rows, Verdict, Written, in_batches, unequal
from tests.faults.scenarios.ids import IDS, SHARDS, aborted, made

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
