"""Small situations with their answers; each test can be read alone."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any, cast

import pytest

import penstock as ps
from penstock.testing import Script
from penstock.testing.case_player import play
from penstock.testing.cases import Case, read
from penstock.types.timestamps import parse

CASES = read(Path(__file__).parent / "worked.toml")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_case(case: Case, engine: str) -> None:
    assert play(case, engine).failure is None


def by_hand(columns: str = "at timestamp") -> ps.Stream:
    """Events whose watermark the test gives."""
    return ps.events(columns).event_time("at", watermark=ps.by_hand())


def values(script: Script, name: str) -> list[int]:
    """What the panes show of an aggregate; what they withdraw counts as negative."""
    return [pane.op * cast(int, pane.values[name]) for pane in script.panes]


def seconds(earlier: str, later: str) -> float:
    return (parse(later) - parse(earlier)) / 1_000_000


@pytest.mark.parametrize(
    ("mode", "shown", "added_up"),
    [
        ("accumulating", [7, 14, 22], 43),
        ("discarding", [7, 7, 8], 22),
        ("retracting", [7, -7, 14, -14, 22], 22),
    ],
)
def test_01_three_modes(mode: str, shown: list[int], added_up: int, engine: str) -> None:
    windowed = by_hand("points long, at timestamp").window(ps.tumbling("2 minutes"), lateness="1 hour")
    windowed = windowed.trigger(ps.at_watermark(early=ps.every("1 minute"), late=ps.count(1)))
    script = Script(getattr(windowed, mode)().aggregate(points=ps.sum("points")), engine)
    script.batch([{"points": 7, "at": "12:02:24"}], now="12:05:10")
    script.advance("12:06:00")
    script.batch([{"points": 3, "at": "12:03:39"}, {"points": 4, "at": "12:03:50"}], now="12:06:10")
    script.watermark("12:04")
    script.batch([{"points": 8, "at": "12:03:06"}], now="12:06:50")
    assert values(script, "points") == shown
    assert sum(values(script, "points")) == added_up


def test_02_a_window_fires_in_the_batch_after_w_reached_its_end(engine: str) -> None:
    late_by_20 = ps.events("at timestamp").event_time("at", watermark=ps.bounded("20 seconds"))
    script = Script(late_by_20.window(ps.tumbling("30 seconds")).aggregate(n=ps.rows()), engine)
    script.batch([{"at": "12:00:10"}])
    script.batch([{"at": "12:00:49.999"}])
    script.expect()
    script.batch([{"at": "12:00:50"}, {"at": "12:00:29"}])
    assert parse("12:00:30") == script.W
    script.expect()
    script.batch([{"at": "12:00:29"}])
    script.expect({"window": ["12:00:00", "12:00:30"], "n": 2, "timing": "on_time"})
    script.expect_late({"at": "12:00:29", "W": "12:00:30", "late_by": "1 second"})


@pytest.mark.parametrize(("gap", "end"), [("12 minutes", "12:37"), ("10 minutes", "12:35")])
def test_03_an_event_between_two_sessions_makes_them_one(gap: str, end: str, engine: str) -> None:
    sessions = by_hand().window(ps.session(gap), lateness="1 hour").accumulating().aggregate(n=ps.rows())
    script = Script(sessions, engine)
    script.batch([{"at": "12:10"}, {"at": "12:25"}])
    script.watermark("12:40")
    script.expect({"start": "12:10", "n": 1}, {"start": "12:25", "n": 1})
    script.batch([{"at": "12:15"}])
    script.expect(
        {"op": -1, "start": "12:10", "n": 1},
        {"op": -1, "start": "12:25", "n": 1},
        {"window": ["12:10", end], "n": 3, "timing": "late", "index": 0},
    )
    upserted = {}
    for pane in script.panes:
        if pane.op > 0:
            upserted[pane.window] = pane.values["n"]
        else:
            del upserted[pane.window]
    assert list(upserted.values()) == [3]


def test_04_purchases_by_either_clock(engine: str) -> None:
    seen = [("09:43:12", "09:00:00"), ("10:05:00", "09:55:00")]
    hour = ps.tumbling("1 hour")
    by_event = Script(by_hand().window(hour).aggregate(n=ps.rows()), engine)
    by_clock = Script(ps.events("at timestamp").processing_time().window(hour).aggregate(n=ps.rows()), engine)
    for script in (by_event, by_clock):
        for now, at in seen:
            script.batch([{"at": at}], now=now)
        script.end()
    by_event.expect({"start": "09:00", "n": 2})
    by_clock.expect({"start": "09:00", "n": 1}, {"start": "10:00", "n": 1})
    assert seconds("09:00:00", "09:43:12") == 2592


def test_05_out_of_order_is_in_order_by_processing_time(engine: str) -> None:
    minutes = ps.tumbling("5 minutes")
    by_event = Script(by_hand().window(minutes).aggregate(n=ps.rows()), engine)
    by_clock = Script(ps.events("at timestamp").processing_time().window(minutes).aggregate(n=ps.rows()), engine)
    for script in (by_event, by_clock):
        script.batch([{"at": "12:05"}], now="12:06")
        script.batch([{"at": "12:01"}], now="12:08")
        script.end()
    by_event.expect({"start": "12:00", "n": 1}, {"start": "12:05", "n": 1})
    by_clock.expect({"start": "12:05", "n": 2})


@pytest.mark.parametrize(("clock", "hour"), [("event", "11:00"), ("processing", "12:00")])
def test_06_an_event_seen_after_the_full_hour(clock: str, hour: str, engine: str) -> None:
    stream = by_hand() if clock == "event" else ps.events("at timestamp").processing_time()
    script = Script(stream.window(ps.tumbling("1 hour")).aggregate(n=ps.rows()), engine)
    script.batch([{"at": "11:59"}], now="12:01")
    script.end()
    script.expect({"start": hour, "n": 1})


def test_07_a_phone_that_was_offline(engine: str) -> None:
    minute, rows = ps.tumbling("1 minute"), [{"at": "14:32"}] * 200

    strict = Script(by_hand().window(minute).aggregate(n=ps.rows()), engine)
    strict.watermark("14:42")
    strict.batch(rows, now="14:47")
    assert (strict.counts.late, len(strict.late), strict.panes) == (200, 200, [])

    patient = Script(by_hand().window(minute, lateness="15 minutes").accumulating().aggregate(n=ps.rows()), engine)
    patient.watermark("14:42")
    patient.batch(rows, now="14:47")
    patient.expect({"start": "14:32", "n": 200, "timing": "late"})

    by_clock = Script(ps.events("at timestamp").processing_time().window(minute).aggregate(n=ps.rows()), engine)
    by_clock.batch(rows, now="14:47")
    by_clock.end()
    by_clock.expect({"start": "14:47", "n": 200})


@pytest.mark.parametrize("lateness", ["0", "1 hour"])
def test_08_after_the_on_time_pane(lateness: str, engine: str) -> None:
    counted = by_hand().window(ps.tumbling("1 minute"), lateness=lateness).accumulating().aggregate(n=ps.rows())
    script = Script(counted, engine)
    script.batch([{"at": "14:32"}], now="14:35")
    script.watermark("14:33")
    script.expect({"n": 1, "timing": "on_time"})
    script.batch([{"at": "14:32"}], now="14:50")
    if lateness == "0":
        script.expect()
        script.expect_late({"at": "14:32"})
    else:
        script.expect({"n": 2, "timing": "late"})
        script.expect_late()


def test_09_a_correction_leaves_the_next_window_alone(engine: str) -> None:
    windowed = by_hand().window(ps.tumbling("5 minutes"), lateness="1 hour")
    script = Script(windowed.accumulating().aggregate(n=ps.rows()), engine)
    script.batch([{"at": "09:56"}, {"at": "10:01"}], now="10:02")
    script.watermark("10:05", now="10:06")
    script.expect({"start": "09:55", "n": 1}, {"start": "10:00", "n": 1})
    script.batch([{"at": "09:58"}, {"at": "09:58"}], now="10:07")
    script.expect({"start": "09:55", "n": 3, "timing": "late"})


def test_10_how_long_a_bound_waits(engine: str) -> None:
    stream = ps.events("at timestamp").event_time("at", watermark=ps.bounded("30 seconds"))
    script = Script(stream.window(ps.tumbling("5 minutes")).aggregate(n=ps.rows()), engine)
    script.batch([{"at": "10:04:00"}])
    script.batch([{"at": "10:05:29.999999"}])
    script.batch([{"at": "10:05:30"}])
    script.expect()
    script.batch()
    script.expect({"window": ["10:00", "10:05"], "n": 1})


@pytest.mark.parametrize(("clock", "start"), [("event", "10:00"), ("ingestion", "10:05"), ("processing", "10:05")])
def test_11_three_clocks(clock: str, start: str, engine: str) -> None:
    stream = ps.events("at timestamp, logged timestamp")
    timed = {
        "event": lambda: stream.event_time("at", watermark=ps.by_hand()),
        "ingestion": lambda: stream.ingestion_time("logged"),
        "processing": stream.processing_time,
    }[clock]()
    script = Script(timed.window(ps.tumbling("5 minutes")).aggregate(n=ps.rows()), engine)
    script.batch([{"at": "10:00:00.000", "logged": "10:08:00.040"}], now="10:08:00.120")
    script.end()
    script.expect({"start": start, "n": 1})
    assert seconds("10:00:00.000", "10:08:00.120") == 480.120
    assert seconds("10:00:00.000", "10:08:00.040") == 480.040


@pytest.mark.parametrize(
    ("rule", "at", "windows"),
    [
        (ps.sliding("10 s", every="5 s"), "00:00:07", 2),
        (ps.sliding("5 minutes", every="1 minute"), "12:00:30", 5),
        (ps.sliding("5 minutes", every="30 seconds"), "12:00:30", 10),
    ],
)
def test_12_how_many_windows_an_event_is_in(rule: ps.window.WindowRule, at: str, windows: int, engine: str) -> None:
    script = Script(by_hand().window(rule).aggregate(n=ps.rows()), engine)
    script.batch([{"at": at}])
    script.end()
    assert values(script, "n") == [1] * windows


@pytest.mark.parametrize(("second", "sessions"), [("12:00:05", [2]), ("12:00:05.001", [1, 1])])
def test_12_a_gap_of_exactly_five_joins(second: str, sessions: list[int], engine: str) -> None:
    script = Script(by_hand().window(ps.session("5 seconds")).aggregate(n=ps.rows()), engine)
    script.batch([{"at": "12:00:00"}, {"at": second}])
    script.end()
    assert values(script, "n") == sessions


@pytest.mark.parametrize(("size", "batches", "shown"), [(1000, 3, [1000, 2000, 3000]), (700, 5, [1400, 2800, 3500])])
def test_13_a_count_is_looked_at_once_a_batch(size: int, batches: int, shown: list[int], engine: str) -> None:
    windowed = by_hand().window(ps.global_window()).trigger(ps.repeat(ps.count(1000)))
    script = Script(windowed.accumulating().aggregate(n=ps.rows()), engine)
    for _ in range(batches):
        script.batch([{"at": "12:00"}] * size)
    script.end()
    assert values(script, "n") == shown


@pytest.mark.parametrize(("idle", "after_a_minute"), [(None, "12:00"), ("1 minute", "12:10")])
def test_17_a_partition_that_falls_silent(idle: str | None, after_a_minute: str, engine: str) -> None:
    stream = ps.events("at timestamp").event_time("at", watermark=ps.bounded("0", idle=idle))
    script = Script(stream.window(ps.tumbling("1 minute")).aggregate(n=ps.rows()), engine)
    script.batch([{"at": "12:00", "@partition": "loud"}, {"at": "12:00", "@partition": "silent"}], now="12:09:30")
    script.batch([{"at": "12:10"}], partition="loud", now="12:10:00")
    assert parse("12:00") == script.W
    assert script.laggard == "silent"
    script.batch([{"at": "12:10"}], partition="loud", now="12:10:30")
    assert parse(after_a_minute) == script.W


def test_20_behind_the_watermark_is_not_yet_late(engine: str) -> None:
    minute, second = 60_000_000, 1_000_000
    start = parse("2026-01-01T00:00")

    def delay(i: int) -> int:
        """Of a thousand events 990 are up to 10 s late, nine up to a minute, and one an hour."""
        if i % 1000 == 999:
            return 60 * minute
        return 20 * second + i % 7 * second if i % 1000 >= 990 else i % 11 * second

    times = [start + i * 10_000 - delay(i) for i in range(100_000)]
    newest, behind = times[0], {10: 0, 60: 0}
    for time in times:
        newest = max(newest, time)
        for bound in behind:
            behind[bound] += newest - time > bound * second
    assert behind == {10: 1_000, 60: 100}

    stream = ps.events("at timestamp").event_time("at", watermark=ps.bounded(timedelta(seconds=10)))
    script = Script(stream.window(ps.tumbling("1 minute")).aggregate(n=ps.rows()), engine)
    for first in range(0, 100_000, 5_000):
        script.batch([{"at": time} for time in times[first : first + 5_000]])
    script.end()
    assert 0 < script.counts.late < behind[10]
    assert script.counts.late + sum(values(script, "n")) == 100_000


def test_21_how_long_the_book_waits_for_its_second_window(engine: str) -> None:
    book = read(Path(__file__).parents[1] / "book/streaming_systems.toml")
    case = next(case for case in book if "left: perfect" in case.name)
    assert play(case, engine).failure is None
    panes: list[Any] = [(step.now, pane) for step in case.steps for pane in step.panes]
    shown = next(now for now, pane in panes if pane["window"][0] == "12:02")
    assert seconds("12:02:24", str(shown)) == 6 * 60 + 36
