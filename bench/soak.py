"""Half an hour at a steady rate with finite lateness: does anything grow?

Use:

    python -m bench.soak [--minutes 30] [--json FILE]

Memory of driver, JVM and workers, what lives on the JVM's heap, bytes of state, open files and batch time, each minute;
exit code 1 where the last two thirds grow by 5 % or more. The heap has its full size from the start: by itself it grows
and shrinks as the collector sees fit, which says nothing; what lives on it, after a collection, does.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

import penstock as ps
from bench.processes import open_files, resident, tree
from bench.spark import machine
from penstock.api.progress import Progress
from penstock.spark.session import SESSION_SETTINGS, session

RATE = 5_000
WHOLE_HEAP = {"spark.driver.memory": "1g", "spark.driver.extraJavaOptions": "-Xms1g -XX:+AlwaysPreTouch"}


def living(spark: Any) -> float:
    """What is on the JVM's heap after a collection, in MB."""
    runtime = spark._jvm.java.lang.Runtime.getRuntime()
    runtime.gc()
    return (runtime.totalMemory() - runtime.freeMemory()) / 1e6


def size(folder: Path) -> float:
    """The bytes below a folder, in MB."""
    total = 0
    for path in folder.rglob("*"):
        try:
            total += path.stat().st_size if path.is_file() else 0
        except OSError:
            continue
    return total / 1e6


def growth(values: list[float]) -> float:
    """By which share a straight line through the last two thirds grows over them."""
    kept = values[len(values) // 3 :]
    if len(kept) < 3:
        return 0.0
    slope, start = np.polyfit(np.arange(len(kept)), kept, 1)
    return float(slope * (len(kept) - 1) / start) if start > 0 else 0.0


def pipeline_of(folder: Path) -> ps.Pipeline:
    """A steady pipeline: everything in it comes to an end, so nothing may pile up."""
    scores = ps.game_scores(rate=RATE, keys=1_000, disorder="2 seconds")
    totals = (
        scores.event_time("at", watermark=ps.bounded("5 seconds")).key_by("user")
        .window(ps.tumbling("10 seconds"), lateness="20 seconds")
        .trigger(ps.at_watermark(early=ps.every("2 seconds"), late=ps.count(1))).accumulating()
        .aggregate(points=ps.sum("points"), plays=ps.rows())
    )  # fmt: skip
    return ps.pipeline("soak", totals.write(ps.foreach_batch(_nothing)))


def _nothing(panes: object, batch: ps.Batch) -> None:
    """The sink must not be what grows."""


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--json", type=Path, help="write the figures there")
    asked = parser.parse_args()
    SESSION_SETTINGS.update(WHOLE_HEAP)
    spark = session()
    batches: list[Progress] = []
    rows: list[dict[str, float]] = []
    with tempfile.TemporaryDirectory(prefix="penstock-soak-") as scratch:
        folder = Path(scratch)
        handle = pipeline_of(folder).start(checkpoint=str(folder / "checkpoint"), spark=spark,
                                           on_progress=batches.append)  # fmt: skip
        every = min(60.0, asked.minutes * 60 / 15)
        end = time.monotonic() + asked.minutes * 60
        while time.monotonic() < end and handle.running:
            seen = len(batches)
            time.sleep(every)
            pids = tree(os.getpid())
            spans = [one.seconds for one in batches[seen:]]
            rows.append({
                "memory_mb": round(resident(pids)), "heap_mb": round(living(spark)), "open_files": open_files(pids),
                "state_mb": round(size(folder / "checkpoint" / "state"), 1),
                "batch_seconds": round(statistics.median(spans), 3) if spans else 0.0,
                "open_windows": batches[-1].open_windows if batches else 0,
            })  # fmt: skip
            print("  ".join(f"{name} {value}" for name, value in rows[-1].items()), flush=True)
        handle.stop()
    spark.stop()
    # Three or four windows of each key are open, as the minute falls: that is shown, and is no growth.
    looked_at = [name for name in rows[0] if name != "open_windows"]
    grown = {name: round(growth([float(row[name]) for row in rows]), 3) for name in looked_at}
    print(f"growth over the last two thirds: {grown} (to stay below 0.05)")
    if asked.json:
        asked.json.parent.mkdir(parents=True, exist_ok=True)
        asked.json.write_text(json.dumps({"machine": machine(), "minutes": asked.minutes, "rows": rows,
                                          "growth": grown}, indent=2) + "\n")  # fmt: skip
    return 1 if any(value >= 0.05 for value in grown.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
