"""How fast are the sinks: rows a second into each, the cost of an empty batch, and of fingerprints and nets.

Use:

    python bench/sinks.py [--rows N] [--only NAME] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.connectors.delivery import deliver
from penstock.connectors.duckdb import duckdb
from penstock.connectors.files.sink import files, read_files
from penstock.connectors.fingerprint import fingerprint, shown
from penstock.connectors.latest_answers import net
from penstock.connectors.memory import memory
from penstock.connectors.postgres.sink import postgres
from penstock.connectors.sink import Batch
from penstock.connectors.sqlite import sqlite
from penstock.plan.output_schemas import Target
from penstock.testing.servers.postgres import database

STAMP = pa.timestamp("us", tz="UTC")
SCHEMA = pa.schema([("team", pa.string()), ("window_start", STAMP), ("window_end", STAMP), ("points", pa.int64()),
                    ("plays", pa.int64()), ("pane_index", pa.int64()), ("pane_timing", pa.string()),
                    ("pane_final", pa.bool_()), ("op", pa.int8())])  # fmt: skip
TARGET = Target("bench/panes/0", "panes", SCHEMA, ("team", "window_start", "window_end"), refires=True)
EMPTY_BATCHES = 50
PART = 100_000
RUNS = 3


def panes(rows: int, first: int = 0, op: int = 1) -> pa.Table:
    """One pane of each of so many teams, in ten windows."""
    numbers = np.arange(first, first + rows)
    start = 1_700_000_000_000_000 + numbers % 10 * 10_000_000
    whole = pa.array(numbers, pa.int64())
    return pa.table([
        pa.array([f"team-{number}" for number in numbers]), pa.array(start, STAMP), pa.array(start + 10_000_000, STAMP),
        whole, whole, pa.array(np.zeros(rows, np.int64)), pa.array(["early"] * rows), pa.array(np.zeros(rows, bool)),
        pa.array(np.full(rows, op, np.int8)),
    ], schema=SCHEMA)  # fmt: skip


def seconds(work: Callable[[], object]) -> float:
    """How long some work takes."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def measured(name: str, sink: Any, rows: int) -> dict[str, Any]:
    """New rows, the same again, half of them withdrawn, each the best of some runs; then empty batches."""
    writers: dict[str, Any] = {}
    count = iter(range(1_000_000))

    def give(table: pa.Table) -> None:
        batch = Batch("L", next(count), 1, table.num_rows, "")
        deliver(sink, TARGET, writers, batch, [table.slice(at, PART) for at in range(0, table.num_rows, PART)])

    give(panes(10))
    new, gone = panes(rows), panes(rows // 2, op=-1)
    runs = [[seconds(lambda: give(new)), seconds(lambda: give(new)), seconds(lambda: give(gone)) * 2,
             seconds(lambda: give(panes(rows, op=-1)))] for _ in range(RUNS)]  # fmt: skip
    best = [min(times) for times in zip(*runs, strict=True)]
    found = {"sink": name, "rows": rows, "new_s": best[0], "again_s": best[1], "withdrawn_s": best[2]}
    empty = seconds(lambda: [give(new.slice(0, 0)) for _ in range(EMPTY_BATCHES)])
    for writer in writers.values():
        writer.close()
    return {**found, "empty_ms": empty / EMPTY_BATCHES * 1000}


def reading(path: Path) -> float:
    """How many published rows a second are read."""
    began = time.perf_counter()
    return len(read_files(path)) / (time.perf_counter() - began)


def main() -> None:
    """Measure, print a table, and write JSON if asked to."""
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--rows", type=int, default=100_000)
    asked.add_argument("--only", default="", help="the sinks whose name begins so")
    asked.add_argument("--json", type=Path)
    options = asked.parse_args()
    rows = options.rows
    with tempfile.TemporaryDirectory() as folder, database() as server:
        at = Path(folder)
        jobs = {
            "sqlite": sqlite(at / "a.db", table="t"),
            "sqlite, history": sqlite(at / "h.db", table="t", history=True),
            "duckdb": duckdb(at / "a.duckdb", table="t"),
            "duckdb, history": duckdb(at / "h.duckdb", table="t", history=True),
            "files, parquet": files(at / "parquet"),
            "files, json": files(at / "json", format="json"),
            "memory": memory("bench"),
            "postgres": postgres(server.url, table="t"),
            "postgres, history": postgres(server.url, table="other.t", history=True),
        }
        server.ask("CREATE SCHEMA other")
        found = [measured(name, sink, rows) for name, sink in jobs.items() if name.startswith(options.only)]
        read = {name: reading(at / name) for name in ("parquet", "json") if (at / name).exists()}
    table = panes(rows)
    alone = {
        "fingerprint": rows / seconds(lambda: shown(fingerprint(table))),
        "net": rows / seconds(lambda: net(table, TARGET.keys)),
        **{f"read_files, {name}": rate for name, rate in read.items()},
    }
    python = f"Python {platform.python_version()}, {os.cpu_count()} cores"
    print(f"{rows:,} panes in parts of {PART:,}, best of {RUNS}; {python}")
    print(f"{'sink':<18} {'new':>14} {'the same again':>16} {'withdrawn':>14} {'empty batch':>12}")
    for one in found:
        rates = [f"{rows / one[name] / 1000:,.0f} k/s" for name in ("new_s", "again_s", "withdrawn_s")]
        print(f"{one['sink']:<18} {rates[0]:>14} {rates[1]:>16} {rates[2]:>14} {one['empty_ms']:>9.1f} ms")
    for name, rate in alone.items():
        print(f"{name:<24} {rate / 1000:,.0f} k rows/s")
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        about = {"python": platform.python_version(), "pyarrow": pa.__version__, "cores": os.cpu_count()}
        options.json.write_text(json.dumps({"about": about, "sinks": found, "rows_a_second": alone}, indent=1), "utf-8")


if __name__ == "__main__":
    sys.exit(main())
