"""How long from an event to its row in SQLite at 10,000 events a second, and from a cold start to the first pane.

Use:

    python -m bench.latency [--quick] [--json FILE]
"""

from __future__ import annotations

import argparse
import sqlite3
import subprocess
import sys
import tempfile
import textwrap
import time
from pathlib import Path

import numpy as np

from bench.figures import keep
from bench.spark import machine

PIPELINE = textwrap.dedent(
    """
    import penstock as ps

    scores = ps.game_scores(rate={rate}, keys=1_000, disorder="0")
    newest = (
        scores.with_columns(made="at").event_time("at", watermark=ps.bounded("2 seconds"))
        .key_by("team").window(ps.tumbling("10 seconds"))
        .trigger(ps.at_watermark(early=ps.count(1))).accumulating()
        .aggregate(plays=ps.rows(), newest=ps.max("made"))
    )
    pipeline = ps.pipeline("latency", newest.write(ps.sqlite({db!r}, table="newest")))

    if __name__ == "__main__":
        pipeline.run(checkpoint={checkpoint!r}, batch_every="500 milliseconds")
    """
)


def first_pane(folder: Path) -> tuple[subprocess.Popen[bytes], Path, float]:
    """Start a pipeline in a process of its own; how long until its first pane is in SQLite."""
    db = folder / "answers.db"
    script = folder / "pipeline.py"
    script.write_text(PIPELINE.format(rate=10_000, db=str(db), checkpoint=str(folder / "checkpoint")))
    begun = time.monotonic()
    process = subprocess.Popen([sys.executable, str(script)], stdout=subprocess.DEVNULL)
    while not newest(db):
        if process.poll() is not None:
            raise SystemExit(f"the pipeline ended with {process.returncode}")
        time.sleep(0.02)
    return process, db, time.monotonic() - begun


def newest(db: Path) -> float | None:
    """The event time of the newest event that a reader sees, in seconds."""
    if not db.exists():
        return None
    try:
        with sqlite3.connect(f"file:{db}?mode=ro", uri=True, timeout=1) as connection:
            (found,) = connection.execute("select max(newest) from newest").fetchone()
    except sqlite3.OperationalError:
        return None
    if found is None:
        return None
    return np.datetime64(str(found).replace(" ", "T").rstrip("Z").split("+")[0], "us").astype(np.int64) / 1e6


def latencies(db: Path, seconds: float) -> np.ndarray:
    """Event to visible row, for the events of each moment: looked at every 10 ms.

    At the first look that shows the event of time t or a later one, all events between the newest seen before and t
    have become visible; they come at a steady rate, so they are sampled evenly.
    """
    found: list[float] = []
    before, end = newest(db), time.time() + seconds
    while time.time() < end:
        seen, at = newest(db), time.time()
        if seen is not None and before is not None and seen > before:
            found += list(at - np.linspace(before, seen, 20, endpoint=False) - 0.0)
            before = seen
        time.sleep(0.01)
    return np.array(found)


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="ten seconds instead of sixty")
    parser.add_argument("--json", type=Path, help="write the figures there")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="penstock-bench-") as scratch:
        process, db, cold = first_pane(Path(scratch))
        try:
            time.sleep(5 if asked.quick else 15)
            spans = latencies(db, 10 if asked.quick else 60)
        finally:
            process.terminate()
            process.wait(60)
    result = {
        "first_pane_seconds": round(cold, 1), "events": len(spans), "median": round(float(np.median(spans)), 2),
        "p99": round(float(np.quantile(spans, 0.99)), 2),
    }  # fmt: skip
    print(f"first pane from a cold start: {result['first_pane_seconds']} s (to reach: 20)")
    print(f"event to row: median {result['median']} s (1.0), 99 % {result['p99']} s (2.5)")
    keep({"machine": machine(), "result": result}, asked.json)
    return 0


if __name__ == "__main__":
    sys.exit(main())
