"""Row 14: a run that is stopped in the middle of a batch, and woken when another has its place, writes nothing."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest

import penstock as ps
from penstock.storage.local import CheckpointError
from penstock.testing.crash.process import Run, python
from penstock.testing.servers.kafka import broker
from penstock.testing.servers.postgres import database
from tests.faults.small import BATCH_ROWS, every_pane, panes
from tests.integration.kafka_sink.checker import read

ROOT = Path(__file__).parents[2]
HISTORY = "SELECT team, points, plays, pane_index, pane_timing FROM totals_history"


@contextmanager
def sqlite(folder: Path) -> Iterator[str]:
    """A file."""
    yield f"{folder}/zombie.db"


@contextmanager
def postgres(folder: Path) -> Iterator[str]:
    """A server."""
    with database(fsync="off") as server:
        yield server.url


@contextmanager
def kafka(folder: Path) -> Iterator[str]:
    """A broker."""
    with broker() as one:
        yield one.servers


PLACES = {"sqlite": sqlite, "postgres": postgres, "kafka": kafka}


def sink(kind: str, place: str) -> Any:
    """The sink there, such that every pane can be read from it afterwards."""
    match kind:
        case "sqlite":
            return ps.sqlite(place, table="totals", history=True)
        case "postgres":
            return ps.postgres(place, table="totals", history=True)
    return ps.to_kafka("totals", servers=place, create=True, compacted=False)


def written(kind: str, place: str) -> list[tuple[Any, ...]]:
    """Every pane that the sink holds."""
    if kind == "kafka":
        told = ((json.loads(one.value or b"{}"), one.headers) for one in read(place, "totals"))
        return sorted((row["team"], row["points"], row["plays"], int(headers["penstock.index"]),
                       headers["penstock.timing"].decode()) for row, headers in told)  # fmt: skip
    with closing(sqlite3.connect(place) if kind == "sqlite" else psycopg.connect(place)) as connection:
        return sorted(map(tuple, connection.execute(HISTORY).fetchall()))


@dataclass(frozen=True, slots=True)
class Gate:
    """The first output of a run that is to become a zombie: it has its rows and its lease, and has written nothing."""

    folder: str

    def __call__(self, rows: Any, batch: Any) -> None:
        if batch.batch == 1 and os.environ.get("PENSTOCK_TEST_GATE"):
            (Path(self.folder) / "at the gate").touch()
            while not (Path(self.folder) / "open").exists():
                time.sleep(0.01)


def gated(folder: str, kind: str, place: str) -> None:
    """The small pipeline behind a gate, to one sink."""
    totals = panes()
    made = ps.pipeline("small", totals.write(ps.foreach_batch(Gate(folder))), totals.write(sink(kind, place)), shards=2,
                       batch_rows=BATCH_ROWS)  # fmt: skip
    made.run(checkpoint=f"{folder}/checkpoint", batch_every="0", until="caught_up")


@pytest.mark.parametrize("kind", PLACES)
def test_row_14_a_zombie_never_gets_a_row_in(spark, finished, tmp_path, kind):
    """A second one is refused; stopped in the middle of a batch, taken over and woken, the first writes nothing."""
    with PLACES[kind](tmp_path) as place:
        mine = (str(tmp_path), kind, place)
        code = "import sys; from tests.faults.test_zombie import gated; gated(*sys.argv[1:])"
        zombie = Run(python("-c", code, *mine), tmp_path / "log", {"PYTHONPATH": str(ROOT), "PENSTOCK_TEST_GATE": "1"})
        try:
            while not (tmp_path / "at the gate").exists():
                assert zombie.alive, zombie.said()
                time.sleep(0.01)
            with pytest.raises(CheckpointError, match=f"process {zombie.process.pid} on this machine runs it"):
                gated(*mine)
            zombie.pause()
            gated(*mine)
            after = written(kind, place)
            assert after == every_pane(finished)
            (tmp_path / "open").touch()
            zombie.send(signal.SIGCONT)
            assert zombie.wait() != 0
            assert "is fenced against this run" in zombie.said(), zombie.said()
            assert written(kind, place) == after
            gated(*mine)
            assert written(kind, place) == after
        finally:
            zombie.kill()
