"""What does it cost to be observed? The same pipeline with and without, in pairs, one after the other in one session.

Use:

    python -m bench.observing [--quick] [--json FILE]

Ten-second sums and counts of a thousand keys from Parquet files, in batches of a million events. The first run of a
pair is the observed one in every second pair. The median of the ratios is what counts; 3 % is to be kept.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import penstock as ps
from bench.data import Data, write
from bench.spark import COLD_ROUNDS, THOUSAND, Nowhere, machine, measured_ours, tumbling
from penstock.spark.session import session

PAIRS = 10
MOST = 0.03


def taken(spark: Any, data: Data, files: Path, observe: bool) -> float:
    """Seconds for a million events, once warm."""
    stream = ps.directory(str(files), schema=data.schema, format="parquet")
    pipeline = ps.pipeline("bench", tumbling(stream).write(Nowhere()), shards=2, batch_rows=2 * data.rows)
    with tempfile.TemporaryDirectory(prefix="penstock-bench-") as scratch:
        return measured_ours(spark, pipeline, Path(scratch), "penstock", observe).warm


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="two pairs of a few events: to see that it works")
    parser.add_argument("--json", type=Path, help="write the figures there")
    parser.add_argument("--data", type=Path, default=Path(tempfile.gettempdir()) / "penstock-bench-data")
    asked = parser.parse_args()
    data, pairs = (replace(THOUSAND, events=400_000, rows=50_000), 2) if asked.quick else (THOUSAND, PAIRS)
    files = asked.data / f"{data.keys}-{data.events}-{data.hot:g}"
    write(data, files)
    spark = session()
    for _ in range(COLD_ROUNDS):
        taken(spark, data, files, True)
    ratios = []
    for pair in range(pairs):
        found = {observe: taken(spark, data, files, observe) for observe in (pair % 2 == 0, pair % 2 == 1)}
        ratios.append(found[True] / found[False])
        print(
            f"  pair {pair + 1}: {found[True]:.3f} s/M observed, {found[False]:.3f} not: {ratios[-1]:.3f}", flush=True
        )
    spark.stop()
    cost = statistics.median(ratios) - 1
    print(f"being observed costs {cost:.1%} (median of {pairs} pairs; to keep {MOST:.0%})")
    if asked.json:
        asked.json.parent.mkdir(parents=True, exist_ok=True)
        told = {"machine": machine(), "ratios": ratios, "cost": cost, "to_keep": MOST}
        asked.json.write_text(json.dumps(told, indent=2) + "\n")
    return 0 if asked.quick or cost <= MOST else 1


if __name__ == "__main__":
    sys.exit(main())
