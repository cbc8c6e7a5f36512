"""Does the plane of a script hold all that was played: events with both times, their end and its cause, W, panes?"""

from __future__ import annotations

import doctest

import pytest

import penstock as ps
from penstock.errors import CaseError
from penstock.observability.time_plane import COUNTED, LATE, QUARANTINED, Dot, Mark, Shown
from penstock.picture import Watched, inputs, of_case
from penstock.testing import Script
from penstock.testing.cases import Case, Step
from penstock.types.timestamps import MAX_TIME, MIN_TIME, parse


def by_team(**watermark: object) -> Script:
    stream = ps.events("team string, points long, at timestamp").where("points >= 0")
    timed = stream.event_time("at", watermark=ps.bounded("0", max_skew="1 hour"))
    windowed = timed.with_columns(side="upper(team)").key_by("side").window(ps.tumbling("1 minute"))
    return Script(windowed.aggregate(points=ps.sum("points")))


def test_events_have_both_times_their_key_and_their_end() -> None:
    watched = Watched(by_team())
    script = watched.script
    script.batch([{"team": "red", "points": 3, "at": "12:00:10"}], now="12:00:30")
    script.batch([{"team": "blue", "points": 4, "at": "12:01:00"}], now="12:01:10", partition="0")
    script.batch(
        [
            {"team": "red", "points": 5, "at": "12:00:20"},
            {"team": "red", "points": 6, "at": "13:30:00"},
            {"team": "red", "points": 7, "at": None},
            {"team": "red", "points": -1, "at": "12:01:05"},
        ],
        now="12:01:30",
    )
    now = parse("12:01:30")
    assert watched.dots == [
        Dot(parse("12:00:10"), parse("12:00:30"), "RED", "3", "events/0", offset=0),
        Dot(parse("12:01:00"), parse("12:01:10"), "BLUE", "4", "events/0", offset=1),
        Dot(parse("12:00:20"), now, "RED", "5", "events/0", LATE,
            "the watermark was at 12:01:00, beyond [12:00:00 to 12:01:00] and its lateness", 2),
        Dot(parse("13:30:00"), now, "", "6", "events/0", QUARANTINED,
            "event time is ahead of the processing clock by more than max_skew", 3),
        Dot(None, now, "", "7", "events/0", QUARANTINED, "event time is null", 4),
    ]  # fmt: skip
    assert watched.panes == [
        Shown("RED", parse("12:00"), parse("12:01"), now, 0, "on_time", "3", True),
    ]


def test_the_watermark_is_that_after_each_batch() -> None:
    watched = Watched(by_team())
    watched.script.batch([], now="12:00")
    watched.script.batch([{"team": "red", "points": 3, "at": "12:00:10"}], now="12:00:30")
    watched.script.end(now="12:01")
    assert watched.marks == [
        Mark(parse("12:00"), MIN_TIME), Mark(parse("12:00:30"), parse("12:00:10")), Mark(parse("12:01"), MAX_TIME),
    ]  # fmt: skip


def test_a_restart_is_seen_through() -> None:
    watched = Watched(by_team())
    watched.script.batch([{"team": "red", "points": 3, "at": "12:00:10"}], now="12:00:30")
    watched.script.restart()
    watched.script.batch([{"team": "red", "points": 4, "at": "12:00:11"}], now="12:00:31")
    watched.script.end()
    assert [dot.text for dot in watched.dots] == ["3", "4"]
    assert [pane.text for pane in watched.panes] == ["7"]


def test_several_aggregates_are_named() -> None:
    stream = ps.events("v long, w double, at timestamp").event_time("at", watermark=ps.by_hand())
    panes = stream.window(ps.tumbling("1 minute")).aggregate(
        n=ps.rows(), v=ps.sum("v"), last=ps.max("at"), w=ps.sum("w")
    )
    watched = Watched(Script(panes))
    watched.script.batch([{"v": 2, "w": 0.5, "at": "12:00:10"}])
    watched.script.end()
    assert watched.dots[0].text == "v 2, at 43210000000, w 0.5"
    assert watched.panes[0].text == "n 1, v 2, last 12:00:10, w 0.5"


def test_in_processing_time_an_event_happens_when_it_is_seen() -> None:
    stream = ps.events("v long").processing_time()
    watched = Watched(Script(stream.window(ps.tumbling("1 minute")).aggregate(v=ps.sum("v"))))
    watched.script.batch([{"v": 2}], now="12:00:10")
    assert [(dot.event_time, dot.now, dot.fate) for dot in watched.dots] == [(parse("12:00:10"),) * 2 + (COUNTED,)]


def test_a_key_that_is_empty_or_null_is_told_from_none() -> None:
    stream = ps.events("k string, v long, at timestamp").event_time("at", watermark=ps.by_hand()).key_by("k")
    watched = Watched(Script(stream.window(ps.tumbling("1 minute")).aggregate(v=ps.sum("v"))))
    watched.script.batch([{"k": "", "v": 1, "at": "12:00"}, {"k": None, "v": 1, "at": "12:00"}])
    assert [dot.key for dot in watched.dots] == ['""', "null"]


def test_withdrawals_are_kept() -> None:
    step = Step(rows=[{"key": "a", "value": 1, "at": "12:00"}], now="12:00")
    again = Step(rows=[{"key": "a", "value": 2, "at": "12:00"}], now="12:01")
    says = {"window": 'tumbling("1 minute")', "trigger": "repeat(count(1))", "mode": "retracting",
            "aggregate": {"total": 'sum("value")'}}  # fmt: skip
    plane = of_case(Case("s", "twice", says, (step, again)))
    assert plane.title == "twice"
    assert [(pane.op, pane.text) for pane in plane.panes] == [(1, "1"), (-1, "1"), (1, "3")]


def test_a_case_that_is_refused_has_no_picture() -> None:
    with pytest.raises(CaseError, match="has nothing to draw"):
        of_case(Case("s", "no", {}, refused="because"))


def test_the_example_runs() -> None:
    assert doctest.testmod(inputs).failed == 0
    assert doctest.testmod(inputs).attempted > 0
