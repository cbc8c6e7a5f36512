"""Rows 1 and 2 between real servers: unique ids from Kafka to PostgreSQL and Kafka, and a run that is killed."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.testing.crash.kill_schedule import SHARD_POINTS
from penstock.testing.crash.verdict import Written
from penstock.testing.servers.postgres import may_look_into
from tests.faults.campaign import beside, main
from tests.faults.scenarios.ids import IDS, IdsChecker, aborted, ids_right, of_shard


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that others may look into: run by root, the database is somebody else's."""
    with tempfile.TemporaryDirectory(prefix="penstock-kills-") as folder:
        os.chmod(folder, 0o755)
        yield Path(folder)


def test_rows_1_and_2_a_dozen_kills_between_servers_change_nothing(open_folder, capsys, monkeypatch):
    """Each id that was committed is there once, none that was aborted, and no batch in part."""
    monkeypatch.chdir(open_folder)
    kept = Path("build/kills.json")
    assert main(["--servers", "--kills", "12", "--seed", "44", "--resume", str(kept)]) == 0, capsys.readouterr().out
    rows = json.loads(kept.read_text())["rows"]
    assert sum(row["kill"] is not None for row in rows) == 12
    tried = " ".join(row["at"] for row in rows)
    assert all(f"{point}@" in tried for point in SHARD_POINTS), "also between what two tasks write"
    assert "lost 0, duplicated 0, torn 0, panes equal" in capsys.readouterr().out


def test_servers_keep_their_data_where_the_database_may_look(open_folder):
    """Beside the campaign's file, unless root has it in a folder that is closed to others."""
    assert beside(open_folder / "kills.json") == open_folder / "kills.servers"
    os.chmod(open_folder, 0o700)
    assert may_look_into(beside(open_folder / "kills.json").parent)


@pytest.mark.parametrize(("wrong", "found"), [
    ([], {}),
    ([(0, 1)], {"duplicated": 1}),
    ([(399, 1)], {"foreign": 1}),
])  # fmt: skip
def test_the_checker_finds_what_is_wrong(wrong, found):
    """So that its zeros mean something."""
    right = [(number, 1) for number in range(IDS) if not aborted(number)]
    verdict = ids_right("kafka", right + wrong, ended=False)
    assert {name: getattr(verdict, name) for name in ("duplicated", "foreign")} == {
        "duplicated": 0,
        "foreign": 0,
    } | found
    assert not ids_right("kafka", right[1:], ended=True).good
    assert not ids_right("kafka", [(0, 2), *right[1:]], ended=True).good


def test_what_tasks_write_is_whole_by_the_shard():
    """A batch may be there in some shards and not yet in others; half a shard, or a gap behind it, is found."""
    batches = [[(number, 1) for number in range(first, first + 100)] for first in (0, 100, 200)]
    checker = IdsChecker({"kafka": Written("kafka", tuple(batches))})
    before, second = batches[0], of_shard(batches[1], 0)
    assert 20 < len(second) < 80
    assert checker.by_shards([*before, *second], ended=False).good
    assert checker.by_shards([*before, *second[1:]], ended=False).torn == 1
    assert checker.by_shards([*before, *second, second[0]], ended=False).duplicated == 1
    behind = checker.by_shards([*before, *of_shard(batches[2], 0)], ended=False)
    assert behind.lost == len(second)
    assert not checker.by_shards([*before, *second], ended=True).good
    assert checker.by_shards([row for batch in batches for row in batch], ended=True).good
