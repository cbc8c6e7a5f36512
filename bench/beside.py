"""What does each of several ways take for one question: in turns, in one session, on the same files; and the table."""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import penstock as ps
from bench.data import Files, write
from bench.figures import keep
from bench.spark import HDFS, ROCKS, Nowhere, Run, machine, measured_ours, measured_theirs
from penstock.spark.session import session

OURS = "penstock"
IN_MEMORY, ROCKSDB = "spark, in memory", "spark, RocksDB"
SHARDS = 2
# Short runs are repeated, for a pause in one of few batches would decide: until they have taken so many seconds.
ENOUGH, MOST_TURNS = 15, 5
# What a pipeline of ours has, too: no batches without data, of which a state with a time to live has no end.
PLAIN = {"spark.sql.streaming.noDataMicroBatches.enabled": "false"}
# What it gives the store at the birth of a checkpoint; the one in memory does not know it.
HARDENED = {**PLAIN, "spark.sql.streaming.stateStore.checkpointFormatVersion": "2"}


@dataclass(frozen=True)
class Kept:
    """Files of events, and what is known of them without looking."""

    data: Files
    where: Path

    def stream(self) -> ps.Stream:
        """The files as our own source reads them."""
        return ps.directory(str(self.where), schema=self.data.schema, format="parquet", name=self.where.name)

    def frame(self, spark: Any, files: int) -> Any:
        """The files as Spark reads them, so many in a batch."""
        schema = spark.read.parquet(str(self.where)).schema
        return spark.readStream.schema(schema).option("maxFilesPerTrigger", files).parquet(str(self.where))


@dataclass(frozen=True)
class Figure:
    """What is to be reached: so many times as fast as the fastest other, or so many events a second."""

    times: float | None = None
    rate: float | None = None

    def reached(self, times: float | None, rate: float) -> bool:
        """Whether it was."""
        return (self.times is None or (times is not None and times >= self.times)) and rate >= (self.rate or 0)

    def __str__(self) -> str:
        if self.times is not None:
            return f"{self.times:g}×"
        return "" if self.rate is None else f"{self.rate:,.0f} events/s"


@dataclass(frozen=True)
class Question:
    """What is asked of all: events in files, answers of ours and of Spark's by what they are called.

    `files` of each kind of events are a batch. Answers take streams or frames, one for each kind; the first of ours is
    the one that is compared.
    """

    name: str
    data: Mapping[str, Files]
    ours: Mapping[str, Callable[..., Any]]
    theirs: Mapping[str, Callable[..., Any]]
    figure: Figure = Figure()
    files: int = 2
    mode: str = "append"

    def kept(self, cache: Path) -> list[Kept]:
        """Its events on disk, written if they are not there."""
        made = []
        for name, data in self.data.items():
            # The same events, however a file is called, so that a change of either is another directory.
            where = cache / f"{name}-{data.keys}-{data.events}-{data.rows}-{data.a_second}" / name
            write(data, where)
            made.append(Kept(data, where))
        return made


def run(spark: Any, question: Question, who: str, kept: Sequence[Kept], scratch: Path) -> Run:
    """One run of one of those who are asked."""
    if who in question.ours:
        answer = question.ours[who](*(one.stream() for one in kept))
        rows = question.files * max(one.data.rows for one in kept)
        pipeline = ps.pipeline(
            "bench", answer.write(Nowhere()), shards=SHARDS, batch_rows=rows, batch_target="1 hour"
        )  # fmt: skip
        return measured_ours(spark, pipeline, scratch, who)
    store = HDFS if who == IN_MEMORY else ROCKS
    query = question.theirs[who](*(one.frame(spark, question.files) for one in kept))
    found = measured_theirs(spark, query, scratch, store, SHARDS, question.mode, HARDENED if store == ROCKS else PLAIN)
    # Spark counts the rows of a source once for each time that the query reads it.
    size = question.files * sum(one.data.rows for one in kept)
    found.batches = [(size, seconds) for _, seconds in found.batches]
    return found


def compare(spark: Any, question: Question, cache: Path, rounds: int = 0) -> dict[str, Any]:
    """All runs of a question, in turns; the first rounds warm the JVM and are not counted, of the others the median."""
    kept = question.kept(cache)

    def asked(who: str) -> Run:
        with tempfile.TemporaryDirectory(prefix="penstock-bench-") as scratch:
            found = run(spark, question, who, kept, Path(scratch))
        print(f"  {question.name}: {who}: {found.warm:.2f} s/M warm, {1e6 / found.warm:,.0f} events/s, "
              f"{found.whole:.1f} s in all", flush=True)  # fmt: skip
        return found

    # Spark by the key is not warmed for its own sake: its batches take so long that the first two are enough.
    for who in [who for who in (OURS, IN_MEMORY) if who in question.ours or who in question.theirs] * rounds:
        asked(who)
    runs: dict[str, list[Run]] = {who: [] for who in (*question.ours, *question.theirs)}
    for _ in range(MOST_TURNS if rounds else 1):
        for who, made in runs.items():
            if sum(one.whole for one in made) < ENOUGH:
                made.append(asked(who))
    return result(question, {who: sorted(made, key=lambda one: one.warm)[len(made) // 2] for who, made in runs.items()})


def result(question: Question, runs: Mapping[str, Run]) -> dict[str, Any]:
    """What runs say together."""
    ours = runs[OURS].warm
    others = [runs[who].warm for who in question.theirs]
    times = min(others) / ours if others else None
    return {
        "job": question.name,
        "seconds_per_million": {who: round(run.warm, 3) for who, run in runs.items()},
        "events_per_second": {who: round(1e6 / run.warm) for who, run in runs.items()},
        "whole_run_seconds": {who: round(run.whole, 1) for who, run in runs.items()},
        "times_fastest_other": None if times is None else round(times, 2),
        "to_reach": str(question.figure),
        "reached": question.figure.reached(times, 1e6 / ours),
    }


def table(results: Sequence[Mapping[str, Any]]) -> str:
    """The comparison as people read it."""
    lines = [f"{'job':44} {OURS:>9} {'events/s':>10}   beside"]
    for one in results:
        seconds = dict(one["seconds_per_million"])
        ours, rate = seconds.pop(OURS), one["events_per_second"][OURS]
        beside = ", ".join(f"{who} {s:.2f}" for who, s in seconds.items()) or "nothing of Spark's says it"
        times = "" if one["times_fastest_other"] is None else f": {one['times_fastest_other']:.2f}×"
        wanted = f" (to reach {one['to_reach']}{'' if one['reached'] else ': missed'})" if one["to_reach"] else ""
        lines.append(f"{one['job']:44} {ours:9.2f} {rate:10,}   {beside}{times}{wanted}")
    return "\n".join(lines)


def roomy() -> Any:
    """A session whose JVM has room for all that Spark's store in memory holds of a query that forgets nothing."""
    os.environ.setdefault("PYSPARK_SUBMIT_ARGS", "--driver-memory 8g pyspark-shell")
    return session()


def asking(description: str | None) -> argparse.ArgumentParser:
    """What the command line may say."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="few events: to see that it works")
    parser.add_argument("--only", default="", help="only jobs whose name has this text")
    parser.add_argument("--json", type=Path, help="write the figures there")
    parser.add_argument("--data", type=Path, default=Path(tempfile.gettempdir()) / "penstock-bench-data")
    return parser


def told(results: Sequence[Mapping[str, Any]], where: Path | None) -> None:
    """Print the table, and write the figures beside it."""
    on = machine()
    print(f"\nseconds for a million events, once warm; PySpark {on['pyspark']}, Python {on['python']}, pyarrow "
          f"{on['pyarrow']}, {on['cores']} cores\n{table(results)}")  # fmt: skip
    keep({"machine": on, "results": list(results)}, where)
