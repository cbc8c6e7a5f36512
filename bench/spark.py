"""How fast a pipeline runs beside Spark's own `groupBy(window, key)`: both in one session, in turns, on the same files.

Use:

    python bench/spark.py [--quick] [--only TEXT] [--json FILE]

Seconds per million events of the warm batches (the first two are left out), and the whole run with its start. Before a
job is measured, both run it to warm the JVM: the first job three times, the others once. Spark's own query has what
helps it: partitions as many as our shards, no adaptive execution, changelog checkpoints, and the file manager that does
not fork.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

import penstock as ps
from bench import processes
from bench.data import Data, write
from bench.figures import keep
from penstock.api.progress import Progress
from penstock.connectors.sink import Batch, Ledger
from penstock.plan.output_schemas import Target
from penstock.spark.session import LOCAL_FILES, restore_settings, session

COLD = 2
# The first job also warms a new JVM, which takes both sides some rounds.
COLD_ROUNDS = 6


@dataclass(frozen=True)
class Nowhere:
    """A sink that takes panes and drops them where they are made, as Spark's noop does."""

    place: None = None
    ledgered: bool = False

    def refuse(self, target: Target) -> None:
        """It takes everything."""

    def describe(self) -> str:
        return "nowhere"

    def open(self, target: Target) -> NowhereWriter:
        return NowhereWriter()

    def stage(self, target: Target, tag: str, table: pa.Table) -> dict[str, Any]:
        return {"rows": table.num_rows}


class NowhereWriter:
    """The writer of it."""

    def begin(self, lineage: str, epoch: int) -> Ledger | None:
        return None

    def mark(self, batch: Batch) -> None:
        """Nothing."""

    def write(self, batch: Batch, parts: Any) -> None:
        for _ in parts:
            pass

    def write_staged(self, batch: Batch, receipts: Any, parts: Any) -> None:
        self.write(batch, parts)

    def discard(self, receipts: Any) -> None:
        """Nothing."""

    def commit(self, batch: Batch) -> None:
        """Nothing."""

    def close(self) -> None:
        """Nothing."""


@dataclass
class Run:
    """What one run measured: the events and seconds of each batch, and the whole of it."""

    who: str
    batches: list[tuple[int, float]] = field(default_factory=list)
    whole: float = 0.0
    rows: int = 0

    @property
    def warm(self) -> float:
        """Seconds for a million events, once warm."""
        kept = [(events, seconds) for events, seconds in self.batches[COLD:] if events]
        events = sum(events for events, _ in kept)
        return 1e6 * sum(seconds for _, seconds in kept) / events if events else float("nan")


@dataclass(frozen=True)
class Job:
    """A question to both: data, our plan, Spark's grouping."""

    name: str
    data: Data
    ours: Callable[[ps.Stream], ps.Panes]
    theirs: Callable[[Any], Any]
    partitions: int = 2


def _timed(stream: ps.Stream) -> ps.Stream:
    return stream.event_time("at", watermark=ps.bounded("10 seconds")).key_by("key")


def _aggregated(windowed: Any) -> ps.Panes:
    panes: ps.Panes = windowed.aggregate(total=ps.sum("value"), n=ps.rows())
    return panes


def tumbling(stream: ps.Stream) -> ps.Panes:
    return _aggregated(_timed(stream).window(ps.tumbling("10 seconds")))


def sliding(stream: ps.Stream) -> ps.Panes:
    return _aggregated(_timed(stream).window(ps.sliding("60 seconds", every="1 second")))


def sessions(stream: ps.Stream) -> ps.Panes:
    return _aggregated(_timed(stream).window(ps.session("50 milliseconds")))


def native(*window: str) -> Callable[[Any], Any]:
    """Spark's own tumbling or sliding windows."""

    def grouped(df: Any) -> Any:
        from pyspark.sql import functions as f

        made = df.withWatermark("at", "10 seconds").groupBy(f.window("at", *window), "key")
        return made.agg(f.sum("value").alias("total"), f.count("*").alias("n"))

    return grouped


def native_sessions(df: Any) -> Any:
    from pyspark.sql import functions as f

    made = df.withWatermark("at", "10 seconds").groupBy(f.session_window("at", "50 milliseconds"), "key")
    return made.agg(f.sum("value").alias("total"), f.count("*").alias("n"))


THOUSAND = Data(keys=1_000)
MILLION = Data(keys=1_000_000)
SHORT = replace(THOUSAND, events=4_000_000)
JOBS = [
    Job("tumbling, 1 k keys", THOUSAND, tumbling, native("10 seconds")),
    Job("tumbling, 1 k keys, 1 shard", THOUSAND, tumbling, native("10 seconds"), 1),
    Job("tumbling, 1 M keys", MILLION, tumbling, native("10 seconds")),
    Job("tumbling, 80 % on one key", replace(THOUSAND, hot=0.8), tumbling, native("10 seconds")),
    Job("sliding 60 s every 1 s", SHORT, sliding, native("60 seconds", "1 second")),
    Job("sessions, gap 50 ms", SHORT, sessions, native_sessions),
]
ROCKS = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
HDFS = "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider"


def run_ours(spark: Any, job: Job, files: Path, scratch: Path, who: str) -> Run:
    """Our pipeline over the files, fused or behind Spark's reader."""
    if who == "penstock":
        stream = ps.directory(str(files), schema=job.data.schema, format="parquet")
    else:
        schema = spark.read.parquet(str(files)).schema
        stream = ps.stream(spark.readStream.schema(schema).option("maxFilesPerTrigger", 2).parquet(str(files)))
    pipeline = ps.pipeline("bench", job.ours(stream).write(Nowhere()), shards=job.partitions,
                           batch_rows=2 * job.data.rows)  # fmt: skip
    return measured_ours(spark, pipeline, scratch, who)


def measured_ours(spark: Any, pipeline: ps.Pipeline, scratch: Path, who: str, observe: bool = True) -> Run:
    """A pipeline until it has read all there is."""
    run, begun = Run(who), time.monotonic()
    seen: list[Progress] = []
    pipeline.run(checkpoint=str(scratch / "checkpoint"), batch_every="0", until="caught_up", spark=spark,
                 on_progress=seen.append, observe=observe)  # fmt: skip
    run.whole = time.monotonic() - begun
    run.batches = [(one.events, one.elapsed) for one in seen]
    run.rows = seen[-1].total_panes
    return run


def run_theirs(spark: Any, job: Job, files: Path, scratch: Path, who: str) -> Run:
    """Spark's own aggregate over the files, with one of its stores."""
    store = ROCKS if who == "spark, RocksDB" else HDFS
    schema = spark.read.parquet(str(files)).schema
    df = spark.readStream.schema(schema).option("maxFilesPerTrigger", 2).parquet(str(files))
    return measured_theirs(spark, job.theirs(df), scratch, store, job.partitions)


def measured_theirs(
    spark: Any, grouped: Any, scratch: Path, store: str, partitions: int, mode: str = "append",
    more: Mapping[str, str] | None = None,
) -> Run:  # fmt: skip
    """A query of Spark's until it has read all there is, with what helps it; `more` settings are its own."""
    settings = {
        "spark.sql.streaming.stateStore.providerClass": store,
        "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
        "spark.sql.shuffle.partitions": str(partitions),
        "spark.sql.adaptive.enabled": "false",
        **LOCAL_FILES,
        **(more or {}),
    }
    before = {name: spark.conf.get(name, None) for name in settings}
    for name, value in settings.items():
        spark.conf.set(name, value)
    begun = time.monotonic()
    query = (
        grouped.writeStream.format("noop").outputMode(mode).trigger(availableNow=True)
        .option("checkpointLocation", str(scratch / "checkpoint")).start()
    )  # fmt: skip
    query.awaitTermination()
    run = Run(store, whole=time.monotonic() - begun)
    restore_settings(spark, before)
    run.batches = [(int(one["numInputRows"]), one["durationMs"]["triggerExecution"] / 1000)
                   for one in query.recentProgress if one["numInputRows"]]  # fmt: skip
    return run


RUNNERS = {
    "penstock": run_ours,
    "spark, in memory": run_theirs,
    "penstock, DataFrame": run_ours,
    "spark, RocksDB": run_theirs,
}


# Penstock and the faster of the stores, so that neither is measured on a cold JVM.
WARMING = {who: RUNNERS[who] for who in ("penstock", "spark, in memory")}


def compare(spark: Any, job: Job, cache: Path, rounds: int) -> dict[str, Any]:
    """All runs of a job, one after the other in one session; the first rounds warm the JVM and are not counted."""
    files = cache / f"{job.data.keys}-{job.data.events}-{job.data.hot:g}"
    write(job.data, files)
    runs = {}
    for who, runner in [*list(WARMING.items()) * rounds, *RUNNERS.items()]:
        with tempfile.TemporaryDirectory(prefix="penstock-bench-") as scratch:
            runs[who] = runner(spark, job, files, Path(scratch), who)
        print(f"  {job.name}: {who}: {runs[who].warm:.2f} s/M warm, {runs[who].whole:.1f} s in all", flush=True)
    ours = runs["penstock"].warm
    return {
        "job": job.name,
        "seconds_per_million": {who: round(run.warm, 3) for who, run in runs.items()},
        "whole_run_seconds": {who: round(run.whole, 1) for who, run in runs.items()},
        "times_in_memory": round(runs["spark, in memory"].warm / ours, 2),
        "times_rocksdb": round(runs["spark, RocksDB"].warm / ours, 2),
    }


def table(results: list[dict[str, Any]]) -> str:
    """The comparison as people read it."""
    lines = [f"{'job':28} {'penstock':>9} {'DataFrame':>10} {'in memory':>10} {'RocksDB':>8}   × in memory  × RocksDB"]
    for one in results:
        s = one["seconds_per_million"]
        lines.append(
            f"{one['job']:28} {s['penstock']:9.2f} {s['penstock, DataFrame']:10.2f} {s['spark, in memory']:10.2f} "
            f"{s['spark, RocksDB']:8.2f}   {one['times_in_memory']:11.2f}  {one['times_rocksdb']:9.2f}"
        )
    return "\n".join(lines)


def machine() -> dict[str, Any]:
    """What the figures were made on."""
    import pyspark

    return {
        "python": platform.python_version(), "pyspark": pyspark.__version__, "pyarrow": pa.__version__,
        "cores": os.cpu_count(), "penstock": ps.__version__,
    }  # fmt: skip


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a tenth of the events: to see that it works")
    parser.add_argument("--only", default="", help="only jobs whose name has this text")
    parser.add_argument("--json", type=Path, help="write the figures there")
    parser.add_argument("--data", type=Path, default=Path(tempfile.gettempdir()) / "penstock-bench-data")
    asked = parser.parse_args()
    spark = session()
    results = []
    for job in JOBS:
        if asked.only in job.name:
            size = replace(job.data, events=job.data.events // 10, rows=50_000) if asked.quick else job.data
            results.append(compare(spark, replace(job, data=size), asked.data, 1 if results else COLD_ROUNDS))
    held = processes.peaks()
    spark.stop()
    print(f"\nseconds for a million events, once warm\n{table(results)}\n{processes.told(held)}")
    keep({"machine": machine(), "peak_mb": held, "results": results}, asked.json)
    return 0


if __name__ == "__main__":
    sys.exit(main())
