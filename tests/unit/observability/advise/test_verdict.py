"""Does a job want a stream at all: it is said where it does not, with the cheaper thing to write."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import penstock as ps
from penstock.cli.main import main
from penstock.observability.advise.verdict import (
    BATCH,
    NOW_AND_THEN,
    PLAIN,
    SLOWER,
    STREAM,
    Arriving,
    arriving_batches,
    arriving_files,
    freshness,
    verdict,
)
from penstock.observability.observation import Observation
from penstock.types.durations import HOUR, MINUTE, SECOND

HOURLY = ps.tumbling("1 hour")
TEN = ps.tumbling("10 seconds")
DAILY = """
import penstock as ps

plays = ps.directory("plays", schema="team string, points long, at timestamp")
timed = plays.event_time("at", watermark=ps.bounded("1 hour"))
totals = timed.key_by("team").window(ps.calendar("day")).aggregate(points=ps.sum("points"))
daily = ps.pipeline("daily", totals.write(ps.memory("totals")))
"""


def scores(**more: Any) -> ps.Stream:
    return ps.game_scores(**more).event_time("at", watermark=ps.bounded("5 seconds")).key_by("team")


def flow_of(windowed: Any) -> Any:
    return ps.pipeline("p", windowed.aggregate(n=ps.rows()).write(ps.memory("p"))).flow


@pytest.mark.parametrize(("windowed", "fresh"), [
    (scores().window(TEN), 10 * SECOND),
    (scores().window(ps.sliding("1 hour", every="1 minute")), MINUTE),
    (scores().window(ps.calendar("day")), 24 * HOUR),
    (scores().window(ps.session("5 minutes")), 5 * MINUTE),
    (scores().window(HOURLY).trigger(ps.at_watermark(early=ps.every("1 minute"))).accumulating(), MINUTE),
    (scores().window(HOURLY).trigger(ps.at_watermark(early=ps.count(1))).accumulating(), None),
])  # fmt: skip
def test_how_often_an_answer_can_change(windowed, fresh):
    assert freshness(flow_of(windowed)) == fresh


def test_input_that_ends_is_a_batch():
    said = verdict(flow_of(scores(events=100).window(TEN)), Arriving(), "game.py")
    assert (said.wants, said.instead) == (BATCH, ("penstock run game.py --until end",))


def test_a_dashboard_of_each_minute_is_a_slower_stream():
    said = verdict(flow_of(scores().window(ps.tumbling("1 minute"))), Arriving(), "game.py")
    assert said.wants == SLOWER
    assert said.instead == ('penstock run game.py --batch-every "30 seconds"',)
    assert said.facts["fewer"] == 30
    assert verdict(flow_of(scores().window(ps.tumbling("1 minute"))), Arriving(batch_every=30 * SECOND)).wants == STREAM


def test_rows_that_are_answered_one_by_one_want_no_event_time():
    rows = ps.game_scores().event_time("at", watermark=ps.bounded("0")).where("points > 3")
    assert verdict(ps.pipeline("p", rows.write(ps.memory("p"))).flow, Arriving()).wants == PLAIN


def test_short_windows_want_a_stream():
    assert verdict(flow_of(scores().window(ps.tumbling("5 seconds"))), Arriving(rate=1_000)).wants == STREAM


def test_heaps_that_are_hours_apart():
    one = Observation(0, 0, 0.0, 1.0, 1.0, 0, [0])
    seen = [replace(one, batch=n, now=n * 6 * HOUR, counts={"read": 5}) for n in range(4)]
    assert arriving_batches(seen).gap == 6 * HOUR
    assert verdict(None, arriving_batches(seen)).wants == NOW_AND_THEN
    steady = [replace(one, batch=n, now=n * SECOND, counts={"read": 5}) for n in range(40)]
    assert (arriving_batches(steady).gap, arriving_batches(steady).batch_every) == (None, SECOND)
    assert verdict(None, arriving_batches(steady)).wants == STREAM


def test_files_of_each_night(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("plays").mkdir()
    for night in range(4):
        for part in range(2):
            file = Path(f"plays/{night}-{part}.json")
            file.write_text(json.dumps({"team": "red", "points": 1, "at": f"2026-05-0{night + 1}T12:00:00Z"}) + "\n")
            os.utime(file, (night * 86_400 + part + 1_777_000_000,) * 2)
    Path("daily.py").write_text(DAILY)
    assert main(["advise", "daily.py"]) == 0
    out = capsys.readouterr().out
    assert "a stream? No: events come in heaps, 24 h apart" in out.replace("1 d", "24 h").replace("23 h 59 min", "24 h")
    assert "penstock run daily.py --until caught_up" in out


def test_files_that_come_all_the_time(tmp_path: Path) -> None:
    for number in range(5):
        (tmp_path / f"{number}.json").write_text("{}\n")
    flow = flow_of(ps.directory(tmp_path, schema="team string, at timestamp").event_time(
        "at", watermark=ps.bounded("0")).key_by("team").window(TEN))  # fmt: skip
    assert arriving_files(flow) is None
