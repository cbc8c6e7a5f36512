"""`python -m tests.golden.write [CASE …]` writes the set of the version at hand: runs that were stopped on the way."""

from __future__ import annotations

import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

import penstock as ps
from penstock.quarantine.replay import put
from penstock.storage.local import LocalStore
from tests.golden.cases import CASES, Case
from tests.golden.sets import archive, pack


def stopped(case: Case, folder: Path, spark: Any) -> None:
    """Run a case for so many batches, and stop it as a user does."""
    case.prepare(folder)
    begun, told, handles = threading.Event(), [], []

    def hear(progress: ps.Progress) -> None:
        told.append(progress)
        if len(told) == case.stop_after:
            begun.wait()
            handles[0].ask_to_stop()

    pipeline = case.made(folder)
    until = "caught_up" if case.stop_after is None else None
    handles.append(pipeline.start(checkpoint=str(folder / "checkpoint"), batch_every="0", until=until, on_progress=hear,
                                  spark=spark))  # fmt: skip
    begun.set()
    handles[0].wait()
    if case.repaired:
        put(LocalStore(str(folder / "checkpoint")), case.repaired)
    print(f"{pipeline.name}: {told[-1]}")


def main(*names: str) -> None:
    """Write the cases of these names, or all."""
    from penstock.spark.session import session

    spark = session(master="local[2]")
    for name in names or CASES:
        with tempfile.TemporaryDirectory(prefix="golden-") as folder:
            stopped(CASES[name], Path(folder).resolve(), spark)
            pack(Path(folder).resolve(), archive(ps.__version__, name))
            print(f"{archive(ps.__version__, name)}: {archive(ps.__version__, name).stat().st_size:,} bytes")


if __name__ == "__main__":
    main(*sys.argv[1:])
