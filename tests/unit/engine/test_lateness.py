"""Lateness apart from delay: what an event behind the watermark may still change, and what becomes of it."""

from __future__ import annotations

import pytest

import penstock as ps
from penstock.testing import Script
from penstock.types.timestamps import MAX_TIME, parse


@pytest.fixture
def play(engine):
    """A script that counts per window, its watermark given by hand."""

    def made(window=None, lateness="0", trigger=None, stream=None):
        rows = stream or ps.events("at timestamp, v long").event_time("at", watermark=ps.by_hand(max_skew=None))
        windowed = rows.window(window or ps.tumbling("10 minutes"), lateness=lateness)
        return Script(
            windowed.trigger(ps.at_watermark() if trigger is None else trigger).accumulating().aggregate(n=ps.rows()),
            engine,
        )

    return made


def at(*times):
    return [{"at": time} for time in times]


def test_lateness_is_zero_unless_said(play):
    script = play()
    script.batch(at("12:05"), watermark="12:10")
    script.expect_late({"late_by": 300_000_000})


def test_an_event_behind_the_watermark_in_a_window_that_lives_is_not_late(play):
    script = play()
    script.batch(at("12:01"), watermark="12:09:59")
    assert script.late == []


def test_a_complete_window_takes_corrections_until_lateness_is_over(play):
    script = play(lateness="5 minutes")
    script.batch(at("12:05"))
    script.watermark("12:10")
    script.batch(at("12:06"), watermark="12:14:59.999999")
    script.expect({"n": 1, "timing": "on_time"}, {"n": 2, "timing": "late"})
    script.batch(at("12:07"), watermark="12:15")
    script.expect()
    script.expect_late({"W": parse("12:15"), "windows": [["12:00", "12:10"]]})


def test_a_session_expires_only_when_the_watermark_has_passed_end_and_lateness(play):
    script = play(ps.session("10 minutes"), lateness="5 minutes")
    script.batch(at("12:00"))
    script.batch(at("12:00"), watermark="12:15")
    assert script.late == []
    script.batch(at("12:00"), watermark="12:15:00.000001")
    assert len(script.late) == 1


def test_a_late_row_says_how_late_where_from_and_which_windows_it_missed(play):
    script = play(ps.sliding("10 minutes", every="5 minutes"))
    script.batch([{"at": "12:07", "v": 3, "@partition": "p7"}], watermark="12:20")
    late = script.late[0]
    assert late.row == {"at": parse("12:07"), "v": 3}
    assert (late.event_time, late.watermark, late.late_by) == (parse("12:07"), parse("12:20"), 780_000_000)
    assert (late.source, late.partition) == ("events", "p7")
    assert [str(window) for window in late.windows] == ["12:00:00 to 12:10:00", "12:05:00 to 12:15:00"]


def test_with_one_live_window_an_event_enters_it_and_misses_the_others(play):
    script = play(ps.sliding("10 minutes", every="5 minutes"))
    script.batch(at("12:07"), watermark="12:12")
    assert script.late == []
    assert (script.counts.kept, script.counts.placed, script.counts.missed) == (1, 1, 1)
    script.end()
    script.expect({"start": "12:05", "end": "12:15", "n": 1})


def test_a_late_row_is_the_row_as_it_reached_the_window(play):
    rows = ps.events("at timestamp, v long").event_time("at", watermark=ps.by_hand()).with_columns(twice="v * 2")
    script = play(stream=rows)
    script.batch([{"at": "12:00", "v": 3}], watermark="13:00")
    script.expect_late({"v": 3, "twice": 6})


def test_a_late_session_event_names_the_session_it_would_have_been_in(play):
    script = play(ps.session("10 minutes"))
    script.batch(at("12:00", "12:08"), watermark="13:00")
    script.expect_late({"windows": [["12:00", "12:18"]]}, {"windows": [["12:00", "12:18"]]})


def test_a_late_session_event_that_reaches_a_live_one_is_not_late(play):
    script = play(ps.session("10 minutes"))
    script.batch(at("12:30"))
    script.batch(at("12:12", "12:21"), watermark="12:32")
    assert script.late == []
    script.end()
    script.expect({"start": "12:12", "end": "12:40", "n": 3})


def test_a_late_event_of_event_pairs_names_the_window_it_would_have_closed(play):
    script = play(ps.event_pairs("10 minutes"))
    script.batch(at("12:00"), watermark="13:00")
    script.expect_late({"windows": [["11:50", "12:00"]]})


def test_any_other_trigger_goes_on_unchanged_after_completion(play):
    script = play(lateness="1 hour", trigger=ps.repeat(ps.count(2)))
    script.batch(at("12:00"))
    script.watermark("12:30")
    script.batch(at("12:01"))
    script.batch(at("12:02"))
    script.expect({"n": 2, "timing": "on_time"})


def test_under_an_infinite_watermark_every_event_is_late(play):
    script = play(ps.global_window(), trigger=ps.repeat(ps.count(1)))
    script.batch(at("12:00"))
    script.watermark("+inf")
    script.batch(at("12:00", "1960-01-01"))
    assert len(script.late) == 2
    assert all(0 < late.late_by <= MAX_TIME for late in script.late)


def test_nothing_leaves_a_window_after_it_expired(play):
    script = play(lateness="5 minutes")
    script.batch(at("12:05"))
    script.watermark("12:30")
    script.expect({"n": 1, "final": True})
    script.batch(at("12:06"))
    script.watermark("13:00")
    script.expect()


def test_conservation_in_is_filtered_quarantined_late_or_in_windows(play):
    rows = ps.events("at timestamp, v long").event_time("at", watermark=ps.by_hand(max_skew=None)).where("v > 0")
    script = play(stream=rows)
    rows = (("12:00", 1), ("12:00", 0), (None, 1), ("11:00", 1), ("12:00", "x"))
    script.batch([{"at": time, "v": v} for time, v in rows], watermark="12:05")
    counts = script.counts
    assert (counts.read, counts.filtered, counts.quarantined, counts.late, counts.kept) == (5, 1, 2, 1, 1)
    script.assert_conserved()


def test_a_bigger_batch_is_never_less_complete(play):
    """In one batch nothing is late that would not be late in several."""
    times = ("12:09", "12:12", "12:03", "12:25", "12:11")
    stream = ps.events("at timestamp, v long").event_time("at", watermark=ps.ascending())
    one, many = play(stream=stream), play(stream=stream)
    one.batch(at(*times))
    for time in times:
        many.batch(at(time))
    assert len(one.late) == 0 < len(many.late)
