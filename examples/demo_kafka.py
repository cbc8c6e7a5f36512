"""A Kafka broker, a PostgreSQL server, and the pipeline of kafka_to_postgres.py between them, for about a minute.

Both servers are real, started here on free ports of this machine and gone at the end: `make demo-kafka`.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from penstock.api.progress import Progress
from penstock.checkpoint.status import standing
from penstock.cli.progress import Lines
from penstock.cli.run import watched
from penstock.cli.status import lag_table
from penstock.errors import PenstockError
from penstock.testing.servers.kafka import Broker, broker
from penstock.testing.servers.postgres import Database, database

SECONDS = float(os.environ.get("SECONDS", "45"))
TEAMS = ("amber", "azure", "coral", "ebony", "hazel")
GROUPS = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
RATE = 1_000
REST = 5  # seconds at the end in which nothing more is sent, so that both lags below are of the same messages


@dataclass
class Watching(Lines):
    """Tells of the run, and when it is time to send no more."""

    enough: threading.Event = field(default_factory=threading.Event)
    begun: float = 0.0

    def progress(self, progress: Progress) -> None:
        """A batch is committed."""
        self.begun = self.begun or time.monotonic()
        if time.monotonic() - self.begun > SECONDS - REST:
            self.enough.set()
        Lines.progress(self, progress)


def produce(one: Broker, stop: threading.Event) -> None:
    """Plays as they happen: one in a hundred tells of them up to 25 seconds late, one in five thousand is no JSON."""
    from confluent_kafka import Producer

    chance = random.Random(7)
    producer = Producer({"bootstrap.servers": one.servers, "linger.ms": 20, "log_level": 0})
    while not stop.is_set():
        begun = time.time()
        for i in range(RATE // 10):
            at = begun + i / RATE - (chance.uniform(5, 25) if chance.random() < 0.01 else chance.uniform(0, 1))
            user, team = f"user{chance.randrange(500)}", chance.choice(TEAMS)
            play = {"user": user, "team": team, "points": chance.randrange(1, 10),
                    "at": datetime.fromtimestamp(at, UTC).isoformat()}  # fmt: skip
            value = "{ not JSON" if chance.random() < 0.0002 else json.dumps(play)
            producer.produce("plays", value, key=user)
        producer.poll(0)
        stop.wait(max(0.0, begun + 0.1 - time.time()))
    producer.flush(10)


def answers(db: Database) -> list[str]:
    """What stands in the table, the newest windows first."""
    rows = db.ask("SELECT window_start, team, points, plays, pane_timing, pane_index FROM team_scores "
                  "ORDER BY window_start DESC, team LIMIT 10")  # fmt: skip
    head = ("window_start", "team", "points", "plays", "pane_timing", "pane_index")
    cells = [head, *([str(value)[:19] for value in row] for row in rows)]
    widths = [max(len(row[i]) for row in cells) for i in range(len(head))]
    return ["  " + "  ".join(map(str.ljust, row, widths)).rstrip() for row in cells]


def told(db: Database, one: Broker, checkpoint: Path) -> list[str]:
    """What was seen."""
    panes = dict(db.ask("SELECT pane_timing, count(*) FROM team_scores_history GROUP BY 1"))
    (corrected,) = db.ask("SELECT count(DISTINCT (team, window_start)) FROM team_scores_history "
                          "WHERE pane_timing = 'late'")[0]  # fmt: skip
    (bad,) = db.ask("SELECT count(*) FROM bad_plays")[0]
    return [
        "", "What you have seen",
        f"- Panes: {panes.get('early', 0):,} early (guesses, every second), {panes.get('on_time', 0):,} on time, "
        f"{panes.get('late', 0):,} late: plays that were told of after their window was complete have corrected "
        f"{corrected:,} answers.",
        f"- {bad:,} messages were no JSON: they are in the table bad_plays, with topic, partition, offset and reason.",
        "- Each batch is one transaction in PostgreSQL, with a ledger row that says which batch it was: after a crash "
        "the batch that comes back is not written twice.",
        "", "The table team_scores, the newest windows:", *answers(db),
        "", "The lag, as the checkpoint has it (penstock status):",
        *(f"  {line}" for line in lag_table(standing(str(checkpoint)))),
        "", "The same by Kafka's own tool (kafka-consumer-groups --describe --group team-scores):",
        *(f"  {line}" for line in one.tool(GROUPS, "--describe", "--group", "team-scores").splitlines() if line),
        "", "What to try next",
        "  examples/kafka_to_postgres.py is the pipeline: set KAFKA and POSTGRES to servers of yours, then",
        "    penstock run examples/kafka_to_postgres.py --batch-every '500 milliseconds'",
        "  what could not be read is listed, mended and put back by",
        "    penstock quarantine list checkpoints/team-scores --pipeline examples/kafka_to_postgres.py",
        "  docs/kafka.md, docs/postgres.md and docs/guarantees.md say what is promised",
    ]  # fmt: skip


def main() -> int:
    """Start both servers, run, look, and take everything away again."""
    print("starting a Kafka broker and a PostgreSQL server of their own", flush=True)
    with tempfile.TemporaryDirectory(prefix="penstock-demo-") as scratch, broker() as one, database() as db:
        from confluent_kafka.admin import AdminClient, NewTopic

        admin = AdminClient({"bootstrap.servers": one.servers, "log_level": 0})
        admin.create_topics([NewTopic("plays", 4, 1)])["plays"].result()
        os.environ["KAFKA"], os.environ["POSTGRES"] = one.servers, db.url
        from examples.kafka_to_postgres import team_scores

        print(f"Kafka at {one.servers}, PostgreSQL at {db.url}: a thousand plays a second begin", flush=True)
        who = Watching("team-scores", "a scratch folder", sys.stdout)
        producer = threading.Thread(target=produce, args=(one, who.enough), daemon=True)
        producer.start()
        checkpoint = Path(scratch, "checkpoint")
        ended = watched(team_scores, who, seconds=SECONDS, checkpoint=str(checkpoint),
                        batch_every="500 milliseconds")  # fmt: skip
        who.enough.set()
        producer.join()
        if ended is not None and ended.batches:
            print("\n".join(told(db, one, checkpoint)), flush=True)
    return 0


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        sys.exit(main())
    except PenstockError as error:
        sys.exit(f"error: {error}")
