"""What a batch costs when many windows are open: the same arrivals on random keys among few and among many.

Use:

    python -m bench.open_windows [--quick] [--only TEXT] [--json FILE]

Windows are opened first, without being timed; then batches of 100,000 arrivals on random keys. Median of the warm ones.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import penstock as ps
from bench import processes
from bench.figures import keep
from bench.spark import Nowhere, machine
from penstock.api.progress import Progress
from penstock.connectors.source import Chunk, Offsets, Split, source
from penstock.spark.session import session
from penstock.types.arrow import arrow_schema
from penstock.types.schema import schema

COLUMNS = "key long, value long, at timestamp"
BEGIN = 1_700_000_000_000_000
OPENING = 1_000_000
ARRIVALS = 100_000
COLD = 3


@dataclass(frozen=True)
class RandomKeys:
    """Every key once, to open its window; then so many arrivals a batch on random keys; event time stands still."""

    keys: int
    batches: int
    kind: str = "random keys"

    @property
    def opening(self) -> int:
        """How many batches open windows."""
        return -(-self.keys // OPENING)

    def start(self) -> Offsets:
        return {"batch": 0}

    def latest(self, since: Offsets, now: int, limit: int | None) -> Offsets:
        return {"batch": min(since["batch"] + 1, self.opening + self.batches)}

    def splits(self, since: Offsets, upto: Offsets) -> list[Split]:
        return [{"batch": batch, "half": half} for batch in range(since["batch"], upto["batch"]) for half in (0, 1)]

    def read(self, split: Split) -> Iterator[Chunk]:
        batch, half = split["batch"], split["half"]
        if batch < self.opening:
            first, last = batch * OPENING, min((batch + 1) * OPENING, self.keys)
            keys = np.arange(first + half, last, 2, dtype=np.int64)
        else:
            keys = np.random.default_rng([7, batch, half]).integers(0, self.keys, ARRIVALS // 2)
        offsets = np.arange(len(keys), dtype=np.int64) + (batch << 32)
        times = np.full(len(keys), BEGIN, dtype=np.int64) + offsets % 1_000
        rows = pa.RecordBatch.from_arrays(
            [pa.array(keys), pa.array(np.ones(len(keys), dtype=np.int64)),
             pa.array(times).cast(pa.timestamp("us", tz="UTC"))],
            schema=arrow_schema(schema(COLUMNS)),
        )  # fmt: skip
        yield Chunk(str(half), offsets, rows)

    def partitions(self, at: Offsets) -> list[str]:
        return ["0", "1"]

    def behind(self, at: Offsets, now: int) -> list[str]:
        return [] if self.finished(at, now) else ["0", "1"]

    def finished(self, at: Offsets, now: int) -> bool:
        return bool(at["batch"] >= self.opening + self.batches)


def _keyed(stream: ps.Stream) -> ps.Stream:
    return stream.event_time("at", watermark=ps.bounded("1 minute")).key_by("key")


def default(stream: ps.Stream) -> ps.Panes:
    return _keyed(stream).window(ps.tumbling("1 hour")).aggregate(total=ps.sum("value"), n=ps.rows())


def early(stream: ps.Stream) -> ps.Panes:
    windowed = _keyed(stream).window(ps.tumbling("1 hour")).trigger(ps.at_watermark(early=ps.count(1))).accumulating()
    return windowed.aggregate(total=ps.sum("value"), n=ps.rows())


def sessions(stream: ps.Stream) -> ps.Panes:
    return _keyed(stream).window(ps.session("1 hour")).aggregate(total=ps.sum("value"), n=ps.rows())


PLANS = {"default trigger": (default, 2.0), "early panes": (early, 3.0), "sessions": (sessions, 3.0)}


def measure(spark: Any, plan: Callable[[ps.Stream], ps.Panes], keys: int, batches: int) -> dict[str, float]:
    """Seconds of a batch of arrivals among so many open windows."""
    reader = RandomKeys(keys, batches + COLD)
    panes = plan(source(reader, COLUMNS, name="events", bounded=False, max_bad=None))
    pipeline = ps.pipeline("open", panes.write(Nowhere()))
    seen: list[Progress] = []
    with tempfile.TemporaryDirectory(prefix="penstock-bench-") as scratch:
        pipeline.run(checkpoint=scratch, batch_every="0", until="caught_up", spark=spark, on_progress=seen.append)
    timed = [one.elapsed for one in seen[reader.opening :] if one.events]
    warm = timed[COLD:]
    return {"median": statistics.median(warm), "worst": max(warm), "cold": timed[0], "open": seen[-2].open_windows}


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a tenth of the windows, six batches")
    parser.add_argument("--only", default="", help="only plans whose name has this text")
    parser.add_argument("--json", type=Path, help="write the figures there")
    asked = parser.parse_args()
    few, many, batches = (10_000, 1_000_000, 6) if asked.quick else (100_000, 10_000_000, 30)
    spark = session()
    results = []
    for name, (plan, limit) in PLANS.items():
        if asked.only not in name:
            continue
        small, large = (measure(spark, plan, keys, batches) for keys in (few, many))
        ratio = large["median"] / small["median"]
        results.append({"plan": name, "few": few, "many": many, "ratio": round(ratio, 2), "to_reach": limit,
                        "small": small, "large": large})  # fmt: skip
        worst = f"worst {large['worst']:.2f}, cold {large['cold']:.2f}"
        print(f"{name:16} {few:>9,}: {small['median']:.2f} s   {many:>10,}: {large['median']:.2f} s ({worst})", end="")
        print(f"   × {ratio:.2f}, to reach {limit:g}", flush=True)
    held = processes.peaks()
    print(processes.told(held))
    spark.stop()
    keep({"machine": machine(), "peak_mb": held, "results": results}, asked.json)
    return 0


if __name__ == "__main__":
    sys.exit(main())
