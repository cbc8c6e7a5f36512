"""What sinks on servers hold, as dumps: tables of PostgreSQL as its own `pg_dump` writes them, records of Kafka.

`python -m tests.golden.servers` writes those of the version at hand; PostgreSQL is started for it, Kafka is not needed.
"""

from __future__ import annotations

import base64
import json
import re
import subprocess
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pyarrow as pa

import penstock as ps
from penstock.connectors.delivery import deliver
from penstock.connectors.fingerprint import fingerprint_of, shown
from penstock.connectors.kafka.ledger import Found
from penstock.connectors.kafka.records import Record, encoder
from penstock.connectors.kafka.sink import columns_of
from penstock.connectors.sink import Batch, Ledger
from penstock.plan.output_schemas import Target
from tests.golden.sets import HERE

LINEAGE, OLDER = "3f2a", "91bc"
BATCHES = 3
INSTANT = pa.timestamp("us", tz="UTC")
SCHEMA = pa.schema([
    ("team", pa.string()), ("window_start", INSTANT), ("window_end", INSTANT), ("points", pa.int64()),
    ("share", pa.float64()), ("paid", pa.decimal128(10, 2)), ("best", pa.list_(pa.int64())), ("pane_index", pa.int64()),
    ("pane_timing", pa.string()), ("pane_final", pa.bool_()), ("op", pa.int8()),
])  # fmt: skip
TARGET = Target("golden/panes/totals", "panes", SCHEMA, ("team", "window_start", "window_end"), "accumulating",
                refires=True)  # fmt: skip
TABLE = "totals"


def panes(number: int) -> pa.Table:
    """The panes of a batch: some are new, one replaces another."""
    start = datetime(2026, 5, 1, 12, tzinfo=UTC)
    rows = [{"team": team, "window_start": start + timedelta(minutes=minute),
             "window_end": start + timedelta(minutes=minute + 1), "points": 10 * number + minute, "share": number / 4,
             "paid": None, "best": [number, minute], "pane_index": number - minute, "pane_timing": "early",
             "pane_final": False, "op": 1}
            for team in ("amber", "azure") for minute in (0, number)[: number + 1]]  # fmt: skip
    return pa.Table.from_pylist(rows, SCHEMA)


def batch(number: int, epoch: int = 1, lineage: str = LINEAGE) -> Batch:
    """What a run says of it."""
    table = panes(number)
    return Batch(lineage, number, epoch, table.num_rows, shown(fingerprint_of(TARGET.kind, table)))


def give(sink: Any, number: int, epoch: int = 1, lineage: str = LINEAGE) -> bool:
    """Deliver a batch; whether it was written."""
    writers: dict[str, Any] = {}
    try:
        return deliver(sink, TARGET, writers, batch(number, epoch, lineage), [panes(number)])
    finally:
        for writer in writers.values():
            writer.close()


def postgres(url: str, takeover: bool = False) -> Any:
    """The sink in a database."""
    return ps.postgres(url, table=TABLE, history=True, create=True, takeover=takeover)


def rows_of(url: str) -> dict[str, list[tuple[Any, ...]]]:
    """What a reader finds."""
    tables = (TABLE, f"{TABLE}_history", "penstock_retired")
    with psycopg.connect(url) as connection:
        return {name: sorted(connection.execute(f"SELECT * FROM {name}").fetchall(), key=repr) for name in tables}


def restored(url: str, dump: str) -> None:
    """Make the tables of a dump; what speaks to psql alone is left out."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(re.sub(r"(?m)^(\\.*|SET transaction_timeout.*)$", "", dump).encode())


def records() -> dict[str, list[dict[str, Any]]]:
    """What a run writes to its topic and to that of the ledger, for a sink that writes itself, and a shard's."""
    sink = ps.to_kafka(TABLE, servers="golden:9092")
    encode = encoder(sink, TARGET)
    written = [one for number in range(BATCHES) for one in encode.records(panes(number), batch(number).token)]
    columns = columns_of(TARGET)
    last = batch(BATCHES - 1)

    def ledger(name: str, epoch: int) -> Record:
        mine = Ledger(TARGET.sink, LINEAGE, last.batch, epoch, last.rows, last.fingerprint)
        return Found(mine, (OLDER,) if epoch else (), columns).record(name)

    return {"rows": [*map(plain, written)], "ledger": [plain(ledger(TABLE, 1)), plain(ledger(f"{TABLE}#12", 0))]}


def plain(record: Record) -> dict[str, Any]:
    """A record as JSON has it."""
    value = None if record.value is None else base64.b64encode(record.value).decode()
    headers = [[name, base64.b64encode(held).decode()] for name, held in record.headers]
    return {"key": base64.b64encode(record.key or b"").decode(), "value": value, "headers": headers}


def main() -> None:
    """Write both."""
    from penstock.testing.servers.postgres import database, programs

    folder = HERE / ps.__version__
    folder.mkdir(exist_ok=True)
    with database(fsync="off") as server:
        give(postgres(server.url), 0, lineage=OLDER)
        with psycopg.connect(server.url, autocommit=True) as connection:
            connection.execute(f"TRUNCATE {TABLE}, {TABLE}_history")
        for number in range(BATCHES):
            give(postgres(server.url, takeover=True), number)
        command = [str(programs() / "pg_dump"), "--inserts", "--no-owner", "--no-privileges", server.url]
        (folder / "postgres.sql").write_text(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    (folder / "kafka.json").write_text(json.dumps(records(), indent=1) + "\n")


if __name__ == "__main__":
    main()
