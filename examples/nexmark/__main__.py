"""Run one query on Spark and show its rows: `python -m examples.nexmark q5 --events 100000`."""

from __future__ import annotations

import argparse
import tempfile

import penstock as ps
from examples.nexmark.generator import nexmark
from examples.nexmark.queries import QUERIES
from examples.nexmark.site import Site


def main() -> None:
    """Read the words of the command line, and run until all events have been read."""
    words = argparse.ArgumentParser(prog="python -m examples.nexmark", description=__doc__)
    words.add_argument("query", choices=QUERIES)
    words.add_argument("--events", type=int, default=100_000)
    words.add_argument("--rate", type=int, default=1_000, help="events a second of event time")
    words.add_argument("--generators", type=int, default=2)
    asked = words.parse_args()
    site = Site(nexmark(events=asked.events, rate=asked.rate, generators=asked.generators))
    print(f"{asked.query}: {QUERIES[asked.query].__doc__}")
    pipeline = ps.pipeline(asked.query, QUERIES[asked.query](site).write(ps.console()), batch_rows=asked.events // 4)
    with tempfile.TemporaryDirectory() as checkpoint:
        print(pipeline.run(checkpoint=checkpoint, batch_every="0", until="end"))


if __name__ == "__main__":
    main()
