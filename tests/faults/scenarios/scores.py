"""The pipeline that is killed: game scores with stragglers and bad rows, to every sink at once.

`python -m tests.faults.scenarios.scores FOLDER` runs it there, from wherever it was killed, until all is written. No
pane depends on the wall clock: whatever dies, it must write what it writes undisturbed.
"""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import penstock as ps
from penstock.api.pipeline import Pipeline, pipeline
from penstock.api.stream import Stream
from penstock.api.windowed import Panes
from penstock.connectors.duckdb import duckdb
from penstock.connectors.files.sink import files, read_files
from penstock.connectors.foreach_batch import foreach_batch
from penstock.connectors.game_scores import Faults, game_scores
from penstock.connectors.sqlite import sqlite
from penstock.testing.crash.life import run_out
from penstock.testing.crash.verdict import Rows, Verdict, Written, differing, in_batches, unequal
from penstock.types.durations import positive

NAME = "scores"
BATCH_ROWS = 1_000
BATCHES = 10
WINDOW, DELAY, LATENESS = "2 seconds", "1 second", "2 seconds"
SINKS = tuple(f"{NAME}/{one}" for one in (
    "panes/sqlite:totals", "panes/duckdb:totals", "panes/files:parquet", "panes/files:json", "panes/foreachbatch",
    "late/files:late", "quarantine/sqlite:quarantined",
))  # fmt: skip


@dataclass(frozen=True, slots=True)
class Append:
    """The user's own function: a file for each batch, which is not written a second time."""

    folder: str

    def __call__(self, rows: Any, batch: Any) -> None:
        path = Path(self.folder) / f"{batch.batch:06d}.json"
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            aside = path.with_suffix(".aside")
            # As numbers, for a Row would tell a time in the zone of this machine.
            held = rows.selectExpr("* except (window_start, window_end)", "unix_micros(window_start) as window_start",
                                   "unix_micros(window_end) as window_end")  # fmt: skip
            aside.write_text(json.dumps([row.asDict() for row in held.collect()]))
            os.rename(aside, path)


def scores() -> Stream:
    """The source, the same whenever it is read."""
    wrong = Faults(stragglers=0.05, straggler_delay="5 seconds", bad=0.01)
    return game_scores(rate=1_000, keys=60, teams=6, disorder="300 milliseconds", faults=wrong, realtime=False,
                       events=BATCH_ROWS * BATCHES)  # fmt: skip


def totals() -> Panes:
    """Early panes by count, on time, and one for each late row."""
    return (
        scores().event_time("at", watermark=ps.bounded(DELAY))
        .key_by("team")
        .window(ps.tumbling(WINDOW), lateness=LATENESS)
        .trigger(ps.at_watermark(early=ps.count(40), late=ps.count(1)))
        .accumulating()
        .aggregate(points=ps.sum("points"), plays=ps.rows())
    )  # fmt: skip


def made(folder: str, delivery: Any = "exactly_once") -> Pipeline:
    """The pipeline that writes all of it below a folder."""
    results = totals()
    return pipeline(
        NAME,
        results.write(sqlite(f"{folder}/a.db", table="totals", history=True)),
        results.write(duckdb(f"{folder}/a.duckdb", table="totals", history=True)),
        results.write(files(f"{folder}/parquet")),
        results.write(files(f"{folder}/json", format="json")),
        results.write(foreach_batch(Append(f"{folder}/function"))),
        results.late.write(files(f"{folder}/late")),
        results.quarantine.write(sqlite(f"{folder}/a.db", table="quarantined")),
        delivery=delivery, shards=2, batch_rows=BATCH_ROWS,
    )  # fmt: skip


def main(folder: str, delivery: str = "exactly_once") -> None:
    """Run until all is written."""
    run_out(made(folder, delivery), folder)


if __name__ == "__main__":
    main(*sys.argv[1:])


PANE = ("team", "window_start", "window_end", "points", "plays", "pane_index", "pane_timing", "pane_final", "op")
LATE = ("user", "team", "points", "late_event_time", "late_watermark", "late_by", "late_partition", "late_offset")
BAD = ("partition", "offset", "step", "reason", "raw")
HISTORIES = ("sqlite", "duckdb", "parquet", "json", "function")
KINDS = {**dict.fromkeys(HISTORIES, "panes"), "late": "late", "quarantine": "quarantined"}


@dataclass(frozen=True)
class ScoresChecker:
    """Compares with an undisturbed run, and with the oracle when a run has ended."""

    undisturbed: dict[str, Written]

    @classmethod
    def of(cls, folder: str, log: str) -> ScoresChecker:
        """Learn from a run that nothing disturbed, whose output is in the log."""
        batches = [json.loads(line) for line in log.splitlines() if line.startswith('{"batch"')]
        found = read_all(folder)
        return cls({
            name: in_batches(name, rows, [one[KINDS[name]] for one in batches]) for name, rows in found.items()
        })  # fmt: skip

    def check(self, folder: str, ended: bool) -> Verdict:
        """Every output, batch by batch; at the end also the answers."""
        found = read_all(folder)
        verdict = Verdict()
        for name, written in self.undisturbed.items():
            verdict += written.judge(found[name], ended)
        return verdict + (answers_right(folder, found) if ended else Verdict())


def read_all(folder: str) -> dict[str, Rows]:
    """Every row of every output, in the order it was written; read from a copy, which nobody recovers for the run."""
    with tempfile.TemporaryDirectory() as aside:
        copy = Path(aside) / "copy"
        shutil.copytree(folder, copy, ignore=shutil.ignore_patterns("checkpoint"))
        found: dict[str, Rows] = {
            "sqlite": list(_sqlite(copy / "a.db", "totals_history", PANE)),
            "duckdb": list(_duckdb(copy / "a.duckdb", "totals_history", PANE)),
            "parquet": list(_files(copy / "parquet", PANE)),
            "json": list(_files(copy / "json", PANE)),
            "function": list(_function(copy / "function")),
            "late": list(_files(copy / "late", LATE)),
            "quarantine": list(_sqlite(copy / "a.db", "quarantined", BAD)),
        }
    return found


def answers_right(folder: str, found: dict[str, Rows]) -> Verdict:
    """The last answers are those of plain Python, panes are numbered without gaps, and every row is accounted for."""
    oracle = expected()
    verdict = Verdict()
    for name in HISTORIES:
        verdict += differing(f"{name}, last panes", _last(found[name]), oracle.answers)
        verdict += _in_order(name, found[name])
    for name, rows in (("sqlite", _current_sqlite(folder)), ("duckdb", _current_duckdb(folder))):
        verdict += differing(f"{name}, current answers", rows, oracle.answers)
    verdict += unequal("late rows", Counter((row[6], row[7]) for row in found["late"]), Counter(oracle.late))
    verdict += unequal("quarantine", Counter((row[0], row[1]) for row in found["quarantine"]), Counter(oracle.bad))
    counted = sum(plays for _, plays in _last(found["sqlite"]).values())
    told = counted + len(found["late"]) + len(found["quarantine"])
    return verdict + unequal("in windows + late + quarantined", told, oracle.read)


@dataclass(frozen=True)
class Expected:
    """What plain Python makes of the same rows."""

    answers: dict[tuple[Any, ...], tuple[int, int]]
    late: list[tuple[str, int]]
    bad: list[tuple[str, int]]
    read: int


@lru_cache(maxsize=1)
def expected() -> Expected:
    """Row by row, batch by batch: W is the least of the partitions' newest, less the bound, of the batches before."""
    (one,) = scores().inputs
    reader = one.source.reader
    size, delay, lateness = positive(WINDOW, ""), positive(DELAY, ""), positive(LATENESS, "")
    answers: dict[tuple[Any, ...], tuple[int, int]] = {}
    late, bad, read = [], [], 0
    newest: dict[str, int] = {}
    at, watermark = reader.start(), -(2**63)
    while not reader.finished(at, 0):
        upto = reader.latest(at, 0, BATCH_ROWS)
        for split in reader.splits(at, upto):
            for chunk in reader.read(split):
                bad += [(chunk.partition, row.offset) for row in chunk.undecoded]
                read += len(chunk.undecoded) + len(chunk.offsets)
                for offset, row in zip(chunk.offsets.tolist(), chunk.rows.to_pylist(), strict=True):
                    if row["at"] is None:
                        bad.append((chunk.partition, offset))
                        continue
                    when = _micros(row["at"])
                    newest[chunk.partition] = max(newest.get(chunk.partition, when), when)
                    start = when // size * size
                    if start + size + lateness <= watermark:
                        late.append((f"scores/{chunk.partition}", offset))
                        continue
                    key = (row["team"], start)
                    points, plays = answers.get(key, (0, 0))
                    answers[key] = (points + row["points"], plays + 1)
        at, watermark = upto, max(watermark, min(newest.values()) - delay)
    return Expected(answers, late, bad, read)


def _in_order(name: str, rows: Rows) -> Verdict:
    """The panes of a window are 0, 1, 2 …, each once, and never show fewer rows than before."""
    verdict = Verdict()
    panes: dict[tuple[Any, ...], Rows] = {}
    for row in rows:
        panes.setdefault(row[:2], []).append(row)
    for key, mine in panes.items():
        verdict += unequal(f"{name}, panes of {key}", [row[5] for row in mine], list(range(len(mine))))
        if any(one[4] > other[4] for one, other in pairwise(mine)):
            verdict += Verdict(said=(f"{name}, {key}: a pane shows less than the one before",))
    return verdict


def _last(rows: Rows) -> dict[tuple[Any, ...], tuple[int, int]]:
    return {row[:2]: (row[3], row[4]) for row in rows}


def _current_sqlite(folder: str) -> dict[tuple[Any, ...], tuple[int, int]]:
    return _last(list(_sqlite(Path(folder) / "a.db", "totals", PANE[:-1])))


def _current_duckdb(folder: str) -> dict[tuple[Any, ...], tuple[int, int]]:
    return _last(list(_duckdb(Path(folder) / "a.duckdb", "totals", PANE[:-1])))


def _sqlite(path: Path, table: str, columns: tuple[str, ...]) -> Iterator[tuple[Any, ...]]:
    if not path.exists():
        return
    connection = sqlite3.connect(path)
    try:
        names = ", ".join(f'"{name}"' for name in columns)
        if connection.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (table,)).fetchone():
            for row in connection.execute(f'SELECT {names} FROM "{table}" ORDER BY rowid'):
                yield _plain(columns, row)
    finally:
        connection.close()


def _duckdb(path: Path, table: str, columns: tuple[str, ...]) -> Iterator[tuple[Any, ...]]:
    import duckdb

    if not path.exists():
        return
    with duckdb.connect(str(path)) as connection:
        names = ", ".join(
            f"epoch_us({name}) AS {name}" if name in ("window_start", "window_end") else f'"{name}"' for name in columns
        )
        if connection.execute("SELECT 1 FROM duckdb_tables() WHERE table_name = ?", [table]).fetchone():
            for row in connection.execute(f'SELECT {names} FROM "{table}" ORDER BY rowid').fetchall():
                yield _plain(columns, row)


def _files(path: Path, columns: tuple[str, ...]) -> Iterator[tuple[Any, ...]]:
    if not (path / "_penstock").exists():
        return
    for row in read_files(path).to_pylist():
        yield _plain(columns, tuple(row[name] for name in columns))


def _function(path: Path) -> Iterator[tuple[Any, ...]]:
    for file in sorted(path.glob("*.json")):
        for row in json.loads(file.read_text()):
            yield _plain(PANE, tuple(row[name] for name in PANE))


def _plain(columns: tuple[str, ...], row: tuple[Any, ...]) -> tuple[Any, ...]:
    """A row in the same values whatever the sink has for them: times in microseconds, truth as such."""
    made = []
    for name, value in zip(columns, row, strict=True):
        if name in ("window_start", "window_end", "late_event_time", "late_watermark"):
            value = _micros(value)
        made.append(bool(value) if name == "pane_final" else value)
    return tuple(made)


def _micros(value: Any) -> Any:
    if isinstance(value, str):
        value = datetime.fromisoformat(value.replace("Z", "+00:00"))
    if isinstance(value, datetime):
        whole = value if value.tzinfo else value.replace(tzinfo=UTC)
        delta = whole - datetime(1970, 1, 1, tzinfo=UTC)
        return (delta.days * 86_400 + delta.seconds) * 1_000_000 + delta.microseconds
    return value
