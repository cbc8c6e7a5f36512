"""Do the commands that start Spark run, stop and compare? Two JVMs: one for what ends, one for what is stopped."""

from __future__ import annotations

import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.integration.cli.conftest import ONE
from tests.integration.cli.test_ui import opened

pytestmark = pytest.mark.spark
SECONDS = 600
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path), "COLUMNS": "100"}
SHAPES = (
    ONE
    + """
by_user = timed.where("points > 2").with_columns(twice="points * 2").key_by("user")
bursts = by_user.window(ps.session("2 seconds")).aggregate(n=ps.rows(), twice=ps.sum("twice"), mean=ps.mean("points"))
sessions = ps.pipeline("sessions", bursts.write(ps.sqlite("s.db", table="s")))
"""
)
FILES = """
import penstock as ps

rows = ps.directory("in", schema="team string, points long, at timestamp", partition="directory")
timed = rows.event_time("at", watermark=ps.bounded("1 second")).key_by("team").window(ps.tumbling("10 seconds"))
totals = timed.aggregate(points=ps.sum("points"), plays=ps.rows())
files = ps.pipeline("files", totals.write(ps.memory("files")), shards=2)
"""
STATIC = """
import penstock as ps
from penstock.spark.session import session

rows = "concat('t', id % 3) AS team, id AS points, timestamp_seconds(1767225600 + id * 7 % 100) AS at"
scores = ps.stream(session().sql(f"SELECT {rows} FROM range(500)"))
timed = scores.event_time("at", watermark=ps.bounded("5 seconds")).key_by("team")
totals = timed.window(ps.tumbling("10 seconds")).aggregate(points=ps.sum("points"), plays=ps.rows())
static = ps.pipeline("static", totals.write(ps.sqlite("static.db", table="totals")))
"""
SEVERAL = """
import contextlib, io, json, sys
from penstock.cli.main import main

told = []
for arguments in json.loads(sys.argv[1]):
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(arguments)
    told.append([code, out.getvalue(), err.getvalue()])
print(json.dumps(told))
"""


def several(folder: Path, *commands: list[str]) -> list[tuple[int, str, str]]:
    """Commands one after the other in one process, which share its Spark session."""
    done = subprocess.run([sys.executable, "-c", SEVERAL, json.dumps(commands)], cwd=folder, env=ENVIRONMENT,
                          capture_output=True, text=True, timeout=SECONDS, check=False)  # fmt: skip
    assert done.returncode == 0, done.stderr
    return [(code, out, err) for code, out, err in json.loads(done.stdout.splitlines()[-1])]


def put_files(folder: Path) -> None:
    """Files of each kind in folders of their own, some of them without a row, and rows that are none: torn, without a
    time, ahead of the clock."""
    for number in range(30):
        place = folder / "in" / f"site-{number % 3}" / f"{number}.{'csv' if number % 2 else 'json'}"
        place.parent.mkdir(parents=True, exist_ok=True)
        rows = [(f"t{i % 4}", i, f"2026-01-01T00:{number % 7:02d}:{i:02d}Z") for i in range(number % 11)]
        csv = "team,points,at\n" + "".join(f"{team},{points},{at}\n" for team, points, at in rows)
        lines = "".join(json.dumps(dict(zip(("team", "points", "at"), row, strict=True))) + "\n" for row in rows)
        odd = '{"team": "t1"}\n{"team": "t1", "points": 1, "at": "2999-01-01T00:00:00Z"}\ntorn\n'
        place.write_text(csv if number % 2 else lines + odd * (number % 5 == 0))


def equal(found: dict[str, Any]) -> bool:
    """Whether all three other ways were gone and gave the same."""
    ways = [(one["different"], one["skipped"], one["answers"] > 0) for one in found["comparisons"]]
    return bool(found["equal"]) and ways == [(0, None, True)] * 3


def test_a_run_to_the_end_then_its_status_then_the_comparison(tmp_path: Path) -> None:
    (tmp_path / "shapes.py").write_text(SHAPES)
    (tmp_path / "static.py").write_text(STATIC)
    run = ["run", "shapes.py:team_scores", "--until", "end", "--batch-every", "0", "--json"]
    (tmp_path / "files.py").write_text(FILES)
    put_files(tmp_path)
    ran, stood, again, verified, batch, static, files = several(
        tmp_path,
        run,
        ["status", "checkpoints/team-scores", "--json"],
        run,
        ["verify", "shapes.py:sessions", "--json"],
        ["run", "static.py"],
        ["verify", "static.py", "--json"],
        ["verify", "files.py", "--json"],
    )
    assert ran[0] == 0, ran[2]
    lines = [json.loads(line) for line in ran[1].splitlines()]
    assert {one["type"] for one in lines[:-1]} == {"batch"}
    assert (lines[-1]["type"], lines[-1]["reason"]) == ("ended", "ended")
    assert lines[-2]["totals"]["read"] == 1_000
    status = json.loads(stood[1])
    assert (status["finished"], status["running"], status["totals"]["read"]) == (True, False, 1_000)
    with closing(sqlite3.connect(tmp_path / "scores.db")) as answers:
        ((plays,),) = answers.execute("SELECT sum(plays) FROM totals").fetchall()
    assert plays + status["totals"]["quarantined"] == 1_000
    assert again[0] == 1
    assert "is finished" in again[2]
    assert verified[0] == 0, verified
    assert equal(json.loads(verified[1]))
    assert batch[0] == 0, batch
    assert "static: ended after batch 0" in batch[1]
    assert static[0] == 0, static
    assert equal(json.loads(static[1]))
    assert files[0] == 0, files
    compared = json.loads(files[1])
    assert equal(compared)
    assert compared["rows"] == sum(number % 11 for number in range(30)) + 3 * 3


def test_the_demo_is_stopped_by_a_signal_and_says_what_was_seen(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "penstock", "demo", "--seconds", "600"]
    with subprocess.Popen(command, cwd=tmp_path, env=ENVIRONMENT, stdout=subprocess.PIPE, text=True) as demo:
        assert demo.stdout is not None
        deadline, said, address, dashboard = time.monotonic() + SECONDS, "", None, ""
        for line in demo.stdout:
            said += line
            address = address or re.search(r"http://127\.0\.0\.1:\d+/\?token=\S+", line)
            if ", corrected: " in line or time.monotonic() > deadline:
                assert address, said
                dashboard = opened(address[0])
                demo.send_signal(signal.SIGTERM)
                break
        said += demo.stdout.read()
    assert demo.returncode == 0, said
    assert "<h1" in dashboard
    for part in (", early: ", ", on time: ", "stopped after batch ", "What you have seen", "corrected by stragglers",
                 "SELECT window_start, team, points", "What to try next", "status demo/checkpoint",
                 "ui demo/team_scores.py demo/checkpoint"):  # fmt: skip
        assert part in said
