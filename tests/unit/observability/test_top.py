"""On a terminal and for machines: attention first, everything that fits, nothing that obeys; and a clean end."""

from __future__ import annotations

import io
import json
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
from dataclasses import replace
from fcntl import ioctl
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from penstock.checkpoint.checksummed_json import sealed
from penstock.checkpoint.clock import Clocks, write_clock
from penstock.checkpoint.identity import FILE
from penstock.checkpoint.lease import take_lease
from penstock.cli.main import main
from penstock.cli.top_view import fitting, whole
from penstock.observability.health.watcher import look
from penstock.observability.journal import Recorder
from penstock.storage.local import LocalStore
from tests.unit.observability.test_attention import MINUTE, RUNNING, SECOND, partition, run_of

ROOT = Path(__file__).parents[3]
BUSY = {
    "partitions": [partition("3", 5 * MINUTE, silent_for=20 * SECOND, lag=3), partition("1", lag=1), partition("2"),
                   partition("4", idle=True, silent_for=2 * MINUTE)],
    "hot": [["red", 0.81, 0.01], *[[f"key {number}", 0.01, 0.0] for number in range(19)]],
    "counts": {"read": 500, "late": 300, "quarantined": 2}, "replayed": True,
    "ledgers": {"scores/panes": {"batch": 19, "rows": 7, "had": True, "ledgered": True},
                "scores/late": {"batch": None, "rows": None, "had": False, "ledgered": False}},
    "sinks": {"scores/panes": 19},
}  # fmt: skip


def shown(made: Any, width: int) -> list[str]:
    console = Console(file=io.StringIO(), width=width, height=100, highlight=False)
    console.print(made)
    return console.file.getvalue().splitlines()  # type: ignore[attr-defined]


@pytest.fixture
def checkpoint(tmp_path: Path) -> str:
    """What a run that was stopped has left behind."""
    store = LocalStore(str(tmp_path / "scores"))
    store.create(FILE, sealed({"name": "scores", "lineage": "abc", "shards": 2, "binding": {}}))
    lease = take_lease(store)
    recorder = Recorder(store)
    for one in run_of(**BUSY):
        recorder.write(replace(one, wall=one.wall + time.time() - 1020.0))
    write_clock(store, "abc", Clocks(20))
    lease.release()
    return store.root


@pytest.mark.parametrize(("width", "height"), [(80, 24), (140, 40), (40, 12), (200, 60), (20, 5)])
@pytest.mark.parametrize("batches", [0, 1, 20])
def test_the_view_fits_whatever_the_terminal(width, height, batches):
    lines = shown(fitting(look(run_of(batches, **BUSY) if batches else [], RUNNING), height), width)
    assert max(len(line) for line in lines) <= width
    if height >= 12:
        assert len(lines) == height
        assert lines[-1].startswith("q ends the view")


def test_attention_comes_first_and_every_table_finds_room():
    lines = shown(fitting(look(run_of(**BUSY), RUNNING), 24), 80)
    assert lines[0].startswith("scores  running  batch 19")
    assert lines[1] == "!  partition scores/3 holds the watermark back by 5 min"
    heads = [line.split()[0] for line in lines]
    assert heads.index("events") < heads.index("partition") < heads.index("sink")
    assert heads.count("batch") == 2
    (slowest,) = [line for line in lines if line.startswith("scores/3 ")]
    assert slowest.rstrip().endswith("slowest")
    assert any("keeps none" in line for line in lines)
    assert any("had it already" in line for line in lines)
    roomy = shown(fitting(look(run_of(**BUSY), RUNNING), 40), 140)
    assert roomy[3].startswith("   it has been silent for 20 s")
    assert any(line.startswith("red ") for line in roomy)


def test_a_usual_terminal_cuts_no_number_and_a_high_one_no_advice():
    made = look(run_of(total_panes=1_234, totals={"read": 318_407, "late": 168, "quarantined": 66}), RUNNING)
    lines = shown(fitting(made, 24), 80)
    batch = next(line for line in lines if line.startswith("batch  "))
    assert re.search(r"median 0.50 s: read \d+, step \d+, sinks \d+, waiting \d+ %$", batch.rstrip())
    said = "\n".join(shown(fitting(look(run_of(**BUSY), RUNNING), 60), 200))
    first = look(run_of(**BUSY), RUNNING).concerns[0]
    assert first.why.rstrip(".") in said
    assert first.instead.replace("`", "").rstrip(".") in said


def test_nothing_to_say_is_said():
    assert any(line.startswith("nothing needs attention") for line in shown(whole(look(run_of(), RUNNING)), 100))
    assert any("no batch was observed yet" in line for line in shown(whole(look([], RUNNING)), 100))


def test_names_of_other_people_are_not_obeyed():
    hostile = [["\x1b[2Jred[/]", 0.9, 0.0], ["[bold]", 0.01, 0.0], *[[str(number), 0.0, 0.0] for number in range(9)]]
    made = look(run_of(hot=hostile, partitions=[partition("\x1b]0;x\x07", 5 * MINUTE), partition("1")]), RUNNING)
    for view in (whole(made), fitting(made, 24)):
        text = "\n".join(shown(view, 80))
        assert "\x1b" not in text
        assert "\x07" not in text
        assert "\\x1b[2Jred[/]" in text


def test_printed_once_where_there_is_no_terminal(checkpoint, capsys):
    assert main(["top", checkpoint]) == 0
    text = capsys.readouterr().out
    assert "partition scores/3 holds the watermark back by 5 min" in text
    assert "the run was stopped after batch 19" in text
    assert "q ends" not in text


def test_as_json_for_machines(checkpoint, capsys):
    assert main(["top", checkpoint, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["situation"]["state"] == "stopped"
    assert told["attention"][0]["about"] == "watermark"
    assert told["overview"]["laggard"] == "scores/3"
    assert told["ledgers"]["scores/panes"]["batch"] == 19


def test_metrics_are_printed_or_written_whole(checkpoint, tmp_path, capsys):
    assert main(["metrics", checkpoint]) == 0
    text = capsys.readouterr().out
    assert 'penstock_running{pipeline="scores"} 0\n' in text
    assert main(["metrics", checkpoint, "-o", str(tmp_path / "scores.prom")]) == 0
    written = (tmp_path / "scores.prom").read_text("utf-8")
    assert 'penstock_batches_total{pipeline="scores"} 20\n' in written
    assert [one.name for one in tmp_path.iterdir() if one.is_file()] == ["scores.prom"]
    assert main(["metrics", checkpoint, "-o", str(tmp_path / "none" / "scores.prom")]) == 1
    assert "cannot be written" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["top", "metrics"])
def test_what_is_no_checkpoint_is_refused(command, tmp_path, capsys):
    assert main([command, str(tmp_path)]) == 1
    assert "is not a checkpoint of a pipeline" in capsys.readouterr().err
    assert main([command, "s3://bucket/scores"]) == 1
    assert "is not on a disk of this machine" in capsys.readouterr().err


@pytest.mark.parametrize("key", [b"q", b"\x03"], ids=["q", "ctrl-c"])
def test_a_key_ends_the_view_and_leaves_the_terminal_as_it_was(checkpoint, key):
    ours, theirs = pty.openpty()
    ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    before = termios.tcgetattr(theirs)
    environment = {**os.environ, "TERM": "xterm", "PYTHONPATH": str(ROOT)}
    child = subprocess.Popen(
        [sys.executable, "-m", "penstock", "top", checkpoint], stdin=theirs, stdout=theirs, stderr=theirs,
        env=environment, start_new_session=True, preexec_fn=lambda: ioctl(0, termios.TIOCSCTTY, 0),
    )  # fmt: skip
    try:
        seen = until(ours, b"q ends the view")
        assert b"holds the watermark back by 5 min" in seen
        os.write(ours, key)
        until(ours, b"\x1b[?1049l")  # the screen as it was before
        assert child.wait(20) == 0
        assert termios.tcgetattr(theirs) == before
    finally:
        child.kill()
        child.wait()
        os.close(ours)
        os.close(theirs)


def until(terminal: int, wanted: bytes, seconds: float = 30.0) -> bytes:
    """What a program writes until it writes this."""
    seen, end = b"", time.monotonic() + seconds
    while wanted not in seen:
        ready, _, _ = select.select([terminal], [], [], max(0.0, end - time.monotonic()))
        assert ready, f"{wanted!r} did not come, but {seen[-400:]!r}"
        seen += os.read(terminal, 65536)
    return seen
