"""A run of ten batches without Spark, for the harness to kill: python tests/faults/toy.py FOLDER careful|careless."""

from __future__ import annotations

import sys
import time
from pathlib import Path

from penstock.runtime.failpoints import reached

BATCHES, ROWS = 10, 3


def main(folder: Path, kind: str) -> None:
    """Write each batch, then commit it; the careless one does not look whether a batch is there already."""
    checkpoint = folder / "checkpoint"
    epochs, commits, offsets = (checkpoint / name for name in ("penstock/epochs", "commits", "offsets"))
    for one in (epochs, commits, offsets, folder / "out"):
        one.mkdir(parents=True, exist_ok=True)
    (epochs / str(len(list(epochs.iterdir())) + 1)).touch()
    for batch in range(len(list(commits.iterdir())), BATCHES):
        (offsets / str(batch)).touch()
        time.sleep(0.02)  # so that there is something to kill
        for point in ("batch:begin", "task:read", "task:step", "batch:collected", "sink:begin", "sink:write"):
            reached(point, batch)
        name = str(batch) if kind == "careful" else f"{batch}-{time.time_ns()}"
        (folder / "out" / name).write_text("".join(f"{batch} {row}\n" for row in range(ROWS)))
        for point in ("sink:commit:before", "sink:commit:after", "clock:before", "clock:after", "batch:end"):
            reached(point, batch)
        (commits / str(batch)).touch()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
