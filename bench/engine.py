"""How fast the columnar engine is alone: ingest, step and panes on one core, beside a bare group-by of the same rows.

Use:

    python bench/engine.py [--quick] [--only TEXT] [--json FILE]
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import platform
import statistics
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

import penstock as ps
from penstock.api.windowed import Panes
from penstock.engine.ingest.row_steps import SourceBatch
from penstock.engine.ingest.windows import ingest
from penstock.engine.state.snapshot import part_names, restored, saved
from penstock.engine.watermarks import ClockState, end_batch
from penstock.engine.windows.compiled import Compiled
from penstock.engine.windows.lifecycle import Clock
from penstock.engine.windows.step import start, step
from penstock.plan.graph import flow_of
from penstock.runtime.batch import Tick

ROWS = 500_000
ARRIVALS = 100_000
WARM = 16
EVENTS_A_SECOND = 100_000
BEGIN = 1_700_000_000_000_000
SECOND = 1_000_000


@dataclass(frozen=True)
class Job:
    """One line of the table: a plan over a kind of key, and the figure it is to reach."""

    name: str
    keys: int
    text: bool
    panes: Panes
    target: float | None
    relative: tuple[str, float] | None = None


def batches(keys: int, text: bool, count: int) -> list[SourceBatch]:
    """Rows in memory: 100,000 a second of event time, up to half a second out of order."""
    rng = np.random.default_rng(7)
    names = pa.array([f"user-{i:07d}" for i in range(keys)]) if text else None
    made, offset = [], 0
    for i in range(count):
        at = BEGIN + (i * ROWS + np.arange(ROWS)) * SECOND // EVENTS_A_SECOND - rng.integers(0, SECOND // 2, ROWS)
        codes = rng.integers(0, keys, ROWS)
        key = names.take(pa.array(codes)) if names is not None else pa.array(codes)
        rows = pa.RecordBatch.from_arrays(
            [key, pa.array(rng.integers(0, 1000, ROWS)), pa.array(at).cast(pa.timestamp("us", tz="UTC"))],
            names=["key", "value", "at"],
        )
        made.append(SourceBatch("events", "0", np.arange(offset, offset + ROWS), rows))
        offset += ROWS
    return made


def stream(text: bool) -> ps.Stream:
    """The stream that every job reads."""
    kind = "string" if text else "long"
    return ps.events(f"key {kind}, value long, at timestamp").event_time(
        "at", watermark=ps.bounded("500 milliseconds")).key_by("key")  # fmt: skip


def jobs() -> Iterator[Job]:
    """Every kind of window that has a figure, for numbers and for text as keys."""
    both = {"total": ps.sum("value"), "rows": ps.rows()}
    for text in (False, True):
        kind = "text" if text else "int"
        tumbling = ps.tumbling("10 seconds")
        for keys, target in ((1_000, 20e6), (1_000_000, 3e6)):
            size = "1 k" if keys == 1_000 else "1 M"
            base = f"tumbling 10 s, {size} {kind} keys"
            yield Job(base, keys, text, stream(text).window(tumbling).aggregate(**both), target)
            early = stream(text).window(tumbling, lateness="5 seconds").trigger(
                ps.at_watermark(early=ps.every("1 second"), late=ps.count(1)))  # fmt: skip
            yield Job(f"early and late panes, {size} {kind} keys", keys, text,
                      early.accumulating().aggregate(**both), None, (base, 0.5))  # fmt: skip
        base = f"tumbling 10 s, 1 k {kind} keys"
        yield Job(f"sliding 60 s every 1 s, 1 k {kind} keys", 1_000, text,
                  stream(text).window(ps.sliding("60 seconds", every="1 second")).aggregate(**both), None,
                  (base, 0.5))  # fmt: skip
        yield Job(f"sessions, 1 k {kind} keys", 1_000, text,
                  stream(text).window(ps.session("50 milliseconds")).aggregate(**both), 3e6)  # fmt: skip


def engine_seconds(panes: Panes, given: list[SourceBatch], warm: int) -> tuple[float, int]:
    """The time of each warm batch through the engine, added up, and how many panes came."""
    compiled, flow = Compiled(panes.plan), flow_of((panes.plan,))
    memory, clock, spent, shown = start(compiled), ClockState(), 0.0, 0
    for i, batch in enumerate(given):
        # One tick of the early trigger a batch: the clock moves as event time does.
        now = BEGIN + (i + 1) * ROWS * SECOND // EVENTS_A_SECOND
        begun = time.perf_counter()
        part = ingest(compiled, batch, clock.watermark, now)
        stepped = step(compiled, memory, [part.blob], Clock(clock.watermark, now))
        clock = end_batch(flow, clock, [part.report], now, Tick())
        memory = stepped.memory
        if i >= warm:
            spent += time.perf_counter() - begun
            shown += stepped.panes.num_rows
    return spent, shown


def bare_seconds(given: list[SourceBatch], warm: int) -> float:
    """The time of a bare window assignment and Arrow group-by of the same rows."""
    spent = 0.0
    for i, batch in enumerate(given):
        begun = time.perf_counter()
        at = batch.rows.column("at").cast(pa.int64()).to_numpy()
        window = pa.array(at // (10 * SECOND) * (10 * SECOND))
        table = pa.table([batch.rows.column("key"), window, batch.rows.column("value")], names=["k", "w", "v"])
        table.group_by(["k", "w"], use_threads=False).aggregate([("v", "sum"), ([], "count_all")])
        if i >= warm:
            spent += time.perf_counter() - begun
    return spent


def open_jobs() -> Iterator[tuple[str, Panes, float]]:
    """What is measured among few and among many open windows, and how many times the few's time the many may take."""
    both = {"total": ps.sum("value"), "rows": ps.rows()}
    plain = ps.events("key long, value long, at timestamp").event_time("at", watermark=ps.by_hand()).key_by("key")
    day = plain.window(ps.tumbling("1 day"))
    yield "open windows, default trigger", day.aggregate(**both), 1.5
    early = day.trigger(ps.at_watermark(early=ps.count(1))).accumulating()
    yield "open windows, early count(1)", early.aggregate(**both), 2
    yield "open windows, sessions", plain.window(ps.session("30 minutes")).aggregate(**both), 2


def open_milliseconds(panes: Panes, windows: int) -> Iterator[float]:
    """Step, save and restore of batch after batch, on random keys among so many open windows, in time of this core."""
    compiled, rng = Compiled(panes.plan), np.random.default_rng(7)
    memory, parts = start(compiled), {}
    filling = np.array_split(rng.permutation(windows), -(-windows // ARRIVALS))
    for i in itertools.count():
        keys = filling[i] if i < len(filling) else rng.integers(0, windows, ARRIVALS)
        at = BEGIN + max(0, i - len(filling)) * SECOND + rng.integers(0, SECOND, len(keys))
        columns = [keys, rng.integers(0, 1000, len(keys)), at.astype("datetime64[us]")]
        rows = pa.RecordBatch.from_arrays([pa.array(column) for column in columns], names=["key", "value", "at"])
        clock = Clock(BEGIN - 3600 * SECOND + i * SECOND, BEGIN + i * SECOND)
        part = ingest(compiled, SourceBatch("events", "0", np.arange(len(keys)), rows), clock.watermark, clock.now)
        begun = time.process_time()
        diff = saved(compiled, step(compiled, memory, [part.blob], clock).memory, parts)
        memory = restored(compiled, diff.head, parts.__getitem__)
        spent = 1000 * (time.process_time() - begun)
        named = part_names(diff.head)
        parts = {name: data for name, data in (*parts.items(), *diff.parts.items()) if name in named}
        if i >= len(filling) + WARM:
            yield spent


def measure_open_windows(only: str, quick: bool) -> Iterator[dict[str, object]]:
    """A line for each kind of window: what a batch costs among few open windows and among many, taking turns."""
    few, many, count = (20_000, 200_000, 3) if quick else (100_000, 2_000_000, 24)
    for name, panes, limit in open_jobs():
        if only not in name:
            continue
        turns = zip(open_milliseconds(panes, few), open_milliseconds(panes, many), strict=False)
        small, large = zip(*itertools.islice(turns, count), strict=True)
        ratio = statistics.median(large) / statistics.median(small)
        print(f"{name:42} {statistics.median(small):7.1f} ms among {few:,}, {statistics.median(large):7.1f} ms among "
              f"{many:,} (mean {statistics.mean(small):.1f}, {statistics.mean(large):.1f}): {ratio:.2f} times "
              f"({'<=' if ratio <= limit else '>'} {limit})", flush=True)  # fmt: skip
        yield {"job": name, "few": small, "many": large, "reached": ratio <= limit}


def main() -> int:
    """Measure, print the table, and say which figures were reached."""
    asked = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    asked.add_argument("--quick", action="store_true", help="fewer batches: a smoke test, not a measurement")
    asked.add_argument("--only", default="", metavar="TEXT", help="only the jobs that have this in their name")
    asked.add_argument("--json", type=Path, default=None, help="write the figures here too")
    options = asked.parse_args()
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    pa.set_cpu_count(1)
    # Others may use the machine: engine and bare group-by take turns, and the best turn of each counts.
    warm, count, rounds = (1, 3, 1) if options.quick else (14, 26, 3)
    print(f"python {platform.python_version()}, pyarrow {pa.__version__}, numpy {np.__version__}, one core, "
          f"batches of {ROWS:,}, {count - warm} measured after {warm}, best of {rounds}")  # fmt: skip
    print(f"{'job':42} {'M events/s':>10} {'bare':>7} {'of bare':>8} {'panes':>10}  figure")
    figures: list[dict[str, object]] = []
    rates, made = {}, {}
    for job in (job for job in jobs() if options.only in job.name):
        if (job.keys, job.text) not in made:
            made = {(job.keys, job.text): batches(job.keys, job.text, count)}
        given = made[job.keys, job.text]
        turns = [(engine_seconds(job.panes, given, warm), bare_seconds(given, warm)) for _ in range(rounds)]
        spent, shown = min(engine for engine, _ in turns)
        bare = min(bare for _, bare in turns)
        events = ROWS * (count - warm)
        rates[job.name] = rate = events / spent
        figure, reached = _figure(job, rate, rates)
        print(f"{job.name:42} {rate / 1e6:10.1f} {events / bare / 1e6:7.1f} {bare / spent:8.2f} {shown:10,}  {figure}")
        figures.append({"job": job.name, "events_per_second": rate, "bare": events / bare, "reached": reached})
    figures += measure_open_windows(options.only, options.quick)
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps(figures, indent=2) + "\n")
    missed = [figure["job"] for figure in figures if not figure["reached"]]
    print("all figures reached" if not missed else f"not reached: {', '.join(map(str, missed))}")
    return 0


def _figure(job: Job, rate: float, rates: dict[str, float]) -> tuple[str, bool]:
    if job.target is not None:
        return f"{'>=' if rate >= job.target else '<'} {job.target / 1e6:g} M", rate >= job.target
    assert job.relative is not None
    name, share = job.relative
    if name not in rates:
        return f"no {name} to compare with", True
    found = rate / rates[name]
    return f"{found:.2f} of {name} ({'>=' if found >= share else '<'} {share})", found >= share


if __name__ == "__main__":
    sys.exit(main())
