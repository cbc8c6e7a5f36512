"""Rows 2, 14, 15, 20, 22: a checkpoint or a sink that is not what it was; each a sentence with the remedy."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
from pathlib import Path

import pytest

from penstock.checkpoint.checksummed_json import checksum, sealed
from penstock.checkpoint.lease import FOLDER as EPOCHS, _started
from penstock.connectors.sink_errors import ForeignLineage
from penstock.errors import PenstockError
from penstock.storage.local import CheckpointError
from tests.faults.small import every_pane, last, run, small

CLOCKS, IDENTITY = "penstock/clock", "penstock/identity"


def flipped(path: Path) -> None:
    """Flip one bit in the middle of a file."""
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def truncated(path: Path) -> None:
    """Cut a file in half."""
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def emptied(path: Path) -> None:
    """Leave nothing of a file but its name."""
    path.write_bytes(b"")


def newer(path: Path) -> None:
    """Let a newer version have written a file."""
    held = json.loads(path.read_bytes().partition(b"\n")[2])
    body = json.dumps({**held, "format": 99}).encode()
    path.write_bytes(checksum(body).encode() + b"\n" + body + b"\n")


def refused(held: Path, words: str, kind: type[PenstockError] = CheckpointError) -> str:
    """Run it: it must be refused in those words, with all three parts, and write nothing."""
    before = every_pane(held)
    with pytest.raises(kind, match=words) as raised:
        run(held)
    error = raised.value
    assert error.args
    said = str(error)
    assert "why:" in said
    assert "instead:" in said
    assert every_pane(held) == before
    return said


@pytest.mark.parametrize("damage", [flipped, truncated, emptied])
@pytest.mark.parametrize("file", ["identity", "clock"])
def test_row_22_a_damaged_file_of_ours(held, file, damage):
    path = held / "checkpoint" / IDENTITY if file == "identity" else last(held, CLOCKS)
    damage(path)
    said = refused(held, "is damaged")
    assert str(path) in said
    assert "restore the checkpoint from a copy" in said


def test_row_22_a_clock_that_is_missing(held):
    """The one before it is not taken instead: windows would close later than they should."""
    last(held, CLOCKS).unlink()
    said = refused(held, "has no clock for batch")
    assert "restore the checkpoint from a copy" in said


@pytest.mark.parametrize("damage", [flipped, truncated, emptied])
def test_row_22_a_damaged_offset_file_of_spark(held, damage):
    path = last(held, "offsets")
    damage(path)
    said = refused(held, "is damaged")
    assert str(path) in said
    assert "restore the checkpoint from a copy" in said


@pytest.mark.parametrize("damage", [flipped, truncated])
def test_row_22_a_damaged_state_file(held, damage):
    for path in (held / "checkpoint" / "state").rglob("*"):
        if path.suffix in (".changelog", ".zip", ".delta", ".sst"):
            damage(path)
    said = refused(held, "checkpoint", PenstockError)
    assert "restore the checkpoint from a copy" in said


@pytest.mark.parametrize("file", ["identity", "clock", "lease"])
def test_row_20_a_file_of_a_newer_version(held, file):
    epochs = held / "checkpoint" / EPOCHS
    if file == "lease":
        (epochs / "000000002").write_bytes(sealed({"host": "elsewhere", "pid": 1, "started": "1"}))
    newer({"identity": held / "checkpoint" / IDENTITY, "clock": last(held, CLOCKS), "lease": last(held, EPOCHS)}[file])
    said = refused(held, "has the format 99")
    assert "run it with the version that wrote it" in said


@pytest.mark.parametrize("file", ["identity", "clock"])
def test_a_checkpoint_that_cannot_be_read(held, file):
    """A directory where a file should be: not even root reads it."""
    path = held / "checkpoint" / IDENTITY if file == "identity" else last(held, CLOCKS)
    path.unlink()
    path.mkdir()
    assert "give this user the right to read it" in refused(held, "cannot be read")


def test_a_checkpoint_of_another_pipeline(held):
    with pytest.raises(CheckpointError, match="belongs to the pipeline 'small'"):
        run(held, name="other")


def test_a_checkpoint_of_another_query_of_spark(held):
    (held / "checkpoint" / IDENTITY).unlink()
    refused(held, "not of a Penstock pipeline")


def test_a_checkpoint_that_is_deleted_while_the_sink_keeps_its_ledger(held):
    shutil.rmtree(held / "checkpoint")
    said = refused(held, "belongs to small/panes/sqlite:totals of lineage", ForeignLineage)
    assert "takeover=True" in said


def test_row_15_two_pipelines_with_one_sink(held):
    """The owner is named, for SQLite and for files."""
    before = every_pane(held)
    for gone in (None, held / "a.db"):
        if gone is not None:
            gone.rename(held / "b.db")
        shutil.rmtree(held / "elsewhere", ignore_errors=True)
        with pytest.raises(ForeignLineage, match=r"belongs to small/panes/\w+:\w+ of lineage"):
            small(held, name="other").run(checkpoint=f"{held}/elsewhere", batch_every="0", until="caught_up")
    (held / "a.db").unlink()
    (held / "b.db").rename(held / "a.db")
    assert every_pane(held) == before


def test_row_14_a_second_instance_is_refused(held):
    """The process that holds the lease lives: it is named, with what to type."""
    with subprocess.Popen(["sleep", "1000"]) as other:
        try:
            owner = {"host": os.uname().nodename, "pid": other.pid, "started": _started(other.pid)}
            (held / "checkpoint" / EPOCHS / "000000002").write_bytes(sealed(owner))
            assert f"kill {other.pid}" in refused(held, "is in use")
        finally:
            other.kill()


def test_row_2_the_last_commit_of_spark_is_deleted(held):
    """The ledger says that the batch is done: it is run again, and not written again."""
    before = every_pane(held)
    connection = sqlite3.connect(held / "a.db")
    ((batch,),) = connection.execute("SELECT batch FROM penstock_ledger").fetchall()
    connection.close()
    # Batches after the last that had rows are forgotten, as if it had been killed then.
    while int(last(held, "offsets").name) > batch:
        last(held, "offsets").unlink()
    while int(last(held, "commits").name) >= batch:
        last(held, "commits").unlink()
    run(held)
    assert every_pane(held) == before
