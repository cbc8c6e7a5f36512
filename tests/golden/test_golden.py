"""What older versions wrote is read: each of their runs goes on to its end, and gives what one in a piece gives.

What it must give is what the reference makes of all batches, those before it was stopped and those after.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime
from functools import reduce
from operator import add
from pathlib import Path
from typing import Any

import pytest

import penstock as ps
from penstock.checkpoint.clock import latest_clock
from penstock.checkpoint.compatibility import DOES, binding
from penstock.checkpoint.identity import read_identity
from penstock.connectors.memory import STORES
from penstock.coordinator.sink_targets import targets_of
from penstock.runtime.batch import Arrival, Outcome
from penstock.storage.local import LocalStore
from penstock.types.timestamps import from_datetime
from tests.golden.cases import CASES
from tests.golden.playing import answers, batches, counted, ended, written
from tests.golden.servers import records
from tests.golden.sets import HERE, archive, unpack, versions

VERSIONS = versions()
# Digests of functions, whose bytecode is another with each Python.
BYTECODE = {f"{stage}: {DOES}" for stage in ("10 windows", "11 windows", "8 enrich")}
KEPT = re.compile(r"kept/((\d+-)?late(-\d+)?|quarantine)")  # rows that no sink is given


@pytest.fixture(scope="module")
def spark() -> Any:
    """The session that Penstock makes, on two cores."""
    from penstock.spark.session import session

    return session(master="local[2]")


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    """What memory sinks hold is let go after each test."""
    yield
    STORES.clear()


def laid_out(version: str, case: str, folder: Path) -> Path:
    """A run as it was stopped."""
    unpack(archive(version, case), folder)
    return folder


@pytest.mark.parametrize("version", VERSIONS)
def test_there_is_a_set_of_every_case(version: str) -> None:
    assert {case for case in CASES if archive(version, case).exists()} == set(CASES)


def test_there_is_a_set_of_this_version() -> None:
    assert ps.__version__ in VERSIONS, "python -m tests.golden.write"


@pytest.mark.parametrize("case", [case for case in CASES if case != "frame"])
def test_a_plan_and_its_outputs_are_called_as_they_were(case: str, tmp_path: Path) -> None:
    """Without Spark: what binds the plan, and the ids of sinks, word for word."""
    folder = laid_out("0.1.0", case, tmp_path)
    store = LocalStore(str(folder / "checkpoint"))
    identity = read_identity(store)
    assert identity is not None
    pipeline = CASES[case].made(folder)
    found = binding(pipeline.flow, identity.shards)
    assert found.keys() == identity.binding.keys()
    differs = {name for name, value in found.items() if value != identity.binding[name]}
    assert differs <= BYTECODE
    given = [name for name in latest_clock(store, identity.lineage).given if not KEPT.fullmatch(name)]
    assert set(given) <= {name for name, *_ in targets_of(pipeline)}


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("case", [case for case in CASES if case != "frame"])
def test_a_run_goes_on(case: str, version: str, spark: Any, tmp_path: Path) -> None:
    folder = laid_out(version, case, tmp_path)
    made = CASES[case].made
    totals = ended(CASES[case], folder, spark)
    outcomes = batches(CASES[case], folder)
    assert totals == reduce(add, [one.counts for one in outcomes])
    expected, found = answers(made, folder, outcomes), written(made, folder)
    for name, held in expected.items():
        assert held.every or held.current, f"{name} is given nothing, so that nothing is shown"
        assert counted(found[name].every) == counted(held.every), name
        assert counted(found[name].current) == counted(held.current), name
    if case == "files":
        beside(folder, outcomes)


def beside(folder: Path, outcomes: Sequence[Outcome]) -> None:
    """What is written beside the answers: late rows, bad ones, all rows; and to sinks that keep no ledger."""
    late = Counter((row["team"], row["points"], row["late_by"]) for row in ps.read_files(folder / "late").to_pylist())
    assert late
    assert late == Counter(
        (one.row["team"], one.row["points"], one.late_by) for batch in outcomes for one in batch.late
    )
    bad = ps.read_files(folder / "quarantine").to_pylist()
    assert len(bad) == 2
    assert {(one["source"], one["partition"], one["offset"]) for one in bad} == {
        (one.source, one.partition, one.offset) for batch in outcomes for one in batch.quarantined
    }
    archived = Counter(row["archive_source"] for row in ps.read_files(folder / "archive").to_pylist())
    assert archived == {"json": 31, "csv": 30, "parquet": 30}
    lines = [line.split() for line in (folder / "batches.txt").read_text().splitlines()]
    shown = {number: len(batch.panes) for number, batch in enumerate(outcomes) if batch.panes}
    assert {int(number): int(rows) for number, rows, _ in lines} == shown
    assert len(ps.memory("golden_files").rows) == sum(rows for number, rows in shown.items() if number >= 3)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_dataframe_goes_on(version: str, spark: Any, tmp_path: Path) -> None:
    """In any batches: what is late is within the lateness. It catches up first, for the batch that is run again was
    planned before the last files came, and a run to the end would take it for the last."""
    folder = laid_out(version, "frame", tmp_path)
    case = CASES["frame"]
    case.more(folder)
    totals = ended(case, folder, spark)
    lines = [line for file in sorted((folder / "in").rglob("*.json")) for line in file.read_text().splitlines()]
    names = ("team", "points", "share", "at")
    rows = [json.loads(line) if line.endswith("}") else dict.fromkeys(names) for line in lines]
    arrivals = [Arrival("rows", "0", n, {**row, "at": row["at"] and from_datetime(datetime.fromisoformat(row["at"]))})
                for n, row in enumerate(rows)]  # fmt: skip
    outcomes = batches(case, folder, arrivals)
    assert (totals.read, totals.quarantined, totals.late) == (32, 2, 0)
    (held,), (found,) = answers(case.made, folder, outcomes).values(), written(case.made, folder).values()
    assert held.current
    assert [row[:5] for row in sorted(found.current or [])] == [row[:5] for row in sorted(held.current)]


def test_records_of_kafka_are_the_same_bytes() -> None:
    """Rows and ledgers; that they are gone on with is shown beside the tests of that sink."""
    assert records() == json.loads((HERE / "0.1.0" / "kafka.json").read_text())
