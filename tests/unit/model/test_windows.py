"""Where: which windows an event belongs to, by every rule."""

from __future__ import annotations

import re
from datetime import UTC, datetime

import pytest

import penstock as ps
from penstock.testing import Script
from penstock.types.timestamps import MAX_TIME, MIN_TIME, parse, plus

HOUR = 3_600_000_000


def spans(rule, at):
    """The windows of an instant, as pairs of text."""
    return [tuple(str(window).split(" to ")) for window in rule.assign(parse(at))]


def hours(rule, at):
    """How many hours the window of an instant is long."""
    (window,) = rule.assign(parse(at))
    return (window.end - window.start) / HOUR


@pytest.fixture
def play(engine):
    """A script that counts events per window, its watermark given by hand."""

    def made(rule, lateness="0"):
        stream = ps.events("at timestamp, name string").event_time("at", watermark=ps.by_hand(max_skew=None))
        windowed = stream.window(rule, lateness=lateness).accumulating()
        return Script(windowed.aggregate(n=ps.rows(), names=ps.collect("name")), engine)

    return made


def at(*times):
    return [{"at": time, "name": time} for time in times]


def test_a_window_holds_its_start_and_not_its_end():
    assert spans(ps.tumbling("5 minutes"), "12:00") == [("12:00:00", "12:05:00")]
    assert spans(ps.tumbling("5 minutes"), "12:04:59.999999") == [("12:00:00", "12:05:00")]
    assert spans(ps.tumbling("5 minutes"), "12:05") == [("12:05:00", "12:10:00")]


def test_tumbling_offset_shifts_every_window():
    assert spans(ps.tumbling("1 hour", offset="15 minutes"), "12:10") == [("11:15:00", "12:15:00")]
    assert ps.tumbling("1 hour", offset="-45 minutes") == ps.tumbling("1 hour", offset="15 minutes")


def test_sliding_puts_an_event_into_every_window_around_it():
    assert spans(ps.sliding("10 minutes", every="5 minutes"), "12:07") == [
        ("12:00:00", "12:10:00"),
        ("12:05:00", "12:15:00"),
    ]


def test_sliding_whose_size_is_no_multiple_of_its_slide():
    rule = ps.sliding("10 minutes", every="4 minutes")
    assert [len(spans(rule, time)) for time in ("12:00", "12:01", "12:02", "12:03")] == [3, 3, 2, 2]


def test_sliding_offset_shifts_every_window():
    found = spans(ps.sliding("10 minutes", every="5 minutes", offset="1 minute"), "12:07")
    assert found == [("12:01:00", "12:11:00"), ("12:06:00", "12:16:00")]


def test_windows_before_1970_are_cut_as_those_after():
    assert spans(ps.tumbling("1 hour"), "1969-12-31T23:59:59") == [("1969-12-31 23:00:00", "00:00:00")]


def test_windows_are_shown_by_every_engine(play):
    script = play(ps.sliding("10 minutes", every="5 minutes"))
    script.batch(at("12:07"))
    script.end()
    script.expect({"start": "12:00", "end": "12:10", "n": 1}, {"start": "12:05", "end": "12:15", "n": 1})


def test_a_window_larger_than_the_data_waits_for_its_end(play):
    script = play(ps.tumbling("1000 days"))
    script.batch(at("12:00", "13:00"))
    script.expect()
    script.end()
    script.expect({"n": 2, "start": "00:00"})


@pytest.mark.parametrize(("zone", "day", "length"), [
    ("Europe/Berlin", "2026-03-29T10:00Z", 23), ("Europe/Berlin", "2026-10-25T10:00Z", 25),
    ("Europe/Berlin", "2026-06-01T10:00Z", 24), ("America/New_York", "2026-03-08T12:00Z", 23),
    ("America/Sao_Paulo", "2018-11-04T12:00Z", 23), ("America/Sao_Paulo", "2018-02-17T12:00Z", 25),
    ("Africa/Cairo", "2024-04-26T10:00Z", 23), ("Africa/Cairo", "2024-10-31T10:00Z", 25),
    ("Australia/Lord_Howe", "2026-04-05T00:00Z", 24.5), ("America/Havana", "2026-03-08T12:00Z", 23),
])  # fmt: skip
def test_calendar_days_are_as_long_as_the_clocks_say(zone, day, length):
    assert hours(ps.calendar("day", zone=zone), day) == length


def test_calendar_day_of_a_zone_without_that_midnight_begins_with_the_first_instant_there_is():
    before, after = "2018-11-04T02:59:59.999999Z", "2018-11-04T03:00Z"  # 00:00 is skipped: the clock says 01:00
    rule = ps.calendar("day", zone="America/Sao_Paulo")
    assert rule.assign(parse(before))[0].end == rule.assign(parse(after))[0].start == parse(after)


def test_calendar_day_that_a_zone_left_out_is_no_window():
    rule = ps.calendar("day", zone="Pacific/Apia")  # Samoa had no 30 December 2011
    assert spans(rule, "2011-12-30T09:59:59Z") == [("2011-12-29 10:00:00", "2011-12-30 10:00:00")]
    assert spans(rule, "2011-12-30T10:00:00Z") == [("2011-12-30 10:00:00", "2011-12-31 10:00:00")]


def test_calendar_day_when_the_clock_is_set_back_over_midnight():
    rule = ps.calendar("day", zone="America/St_Johns")  # at 00:01 back to 23:01, in 2010
    late_evening = parse("2010-11-07T03:00Z")  # 23:30 by the clock, after midnight has struck once
    assert rule.assign(late_evening)[0].start == parse("2010-11-07T02:30Z")


def test_calendar_days_follow_one_another_without_gap_or_overlap():
    for zone in ("America/Sao_Paulo", "Africa/Cairo", "Pacific/Apia", "America/St_Johns", "Asia/Kathmandu"):
        rule, moment = ps.calendar("day", zone=zone), parse("2010-01-01T00:00Z")
        (window,) = rule.assign(moment)
        while window.end < parse("2012-02-01T00:00Z"):
            (following,) = rule.assign(window.end)
            assert following.start == window.end
            assert rule.assign(window.end - 1) == (window,)
            window = following


def test_calendar_weeks_begin_on_monday():
    assert spans(ps.calendar("week"), "2026-02-01T12:00Z") == [("2026-01-26 00:00:00", "2026-02-02 00:00:00")]
    assert hours(ps.calendar("week", zone="Europe/Berlin"), "2026-03-28T00:00Z") == 7 * 24 - 1


def test_calendar_months_are_as_long_as_they_are():
    assert spans(ps.calendar("month"), "2024-02-29T12:00Z") == [("2024-02-01 00:00:00", "2024-03-01 00:00:00")]
    assert spans(ps.calendar("month"), "2025-12-31T23:00Z") == [("2025-12-01 00:00:00", "2026-01-01 00:00:00")]
    assert hours(ps.calendar("month", zone="Europe/Berlin"), "2026-10-15T00:00Z") == 31 * 24 + 1


def test_calendar_is_the_same_on_every_engine(play):
    script = play(ps.calendar("day", zone="Europe/Berlin"))
    script.batch(at("2026-03-28T22:59:59", "2026-03-28T23:00", "2026-03-29T21:59:59", "2026-03-29T22:00"))
    script.end()
    script.expect({"n": 1}, {"start": "2026-03-28T23:00", "end": "2026-03-29T22:00", "n": 2}, {"n": 1})


def test_session_events_exactly_one_gap_apart_belong_together(play):
    script = play(ps.session("10 minutes"))
    script.batch(at("12:00", "12:10", "12:20:00.000001"))
    script.end()
    script.expect(
        {"start": "12:00", "end": "12:20", "n": 2},
        {"start": "12:20:00.000001", "end": "12:30:00.000001", "n": 1},
    )


def test_session_is_complete_only_when_the_watermark_has_passed_its_end(play):
    script = play(ps.session("10 minutes"))
    script.batch(at("12:00"))
    script.watermark("12:10")
    script.expect()
    script.watermark("12:10:00.000001")
    script.expect({"n": 1, "event_time": "12:10"})


def test_session_merges_two_that_a_third_event_joins(play):
    script = play(ps.session("10 minutes"))
    script.batch(at("12:00", "12:15"))
    script.batch(at("12:08"))
    script.end()
    script.expect({"start": "12:00", "end": "12:25", "names": ["12:00", "12:08", "12:15"]})


def test_session_an_event_behind_the_watermark_joins_a_live_session(play):
    script = play(ps.session("10 minutes"))
    script.batch(at("12:10"))
    script.batch(at("12:00", "11:49"), watermark="12:15")
    script.expect_late({"name": "11:49", "windows": [["11:49", "11:59"]]})
    script.end()
    script.expect({"start": "12:00", "end": "12:20", "n": 2})


def test_event_pairs_are_kafka_streams_sliding_windows(play):
    """Two events 5 apart, within 10: each alone, and both."""
    script = play(ps.event_pairs("10 minutes"))
    script.batch(at("12:00", "12:05"))
    script.end()
    script.expect(
        {"start": "11:50", "end": "12:00", "names": ["12:00"]},
        {"start": "11:55", "end": "12:05", "names": ["12:00", "12:05"]},
        {"start": "12:00:00.000001", "end": "12:10:00.000001", "names": ["12:05"]},
    )


def test_event_pairs_exactly_the_distance_apart_share_a_window(play):
    script = play(ps.event_pairs("10 minutes"))
    script.batch(at("12:00", "12:10"))
    script.end()
    assert ["12:00", "12:10"] in [pane.values["names"] for pane in script.panes]


def test_event_pairs_remember_events_of_earlier_batches(play):
    script = play(ps.event_pairs("10 minutes"))
    script.batch(at("12:05"))
    script.batch(at("12:00"))
    script.end()
    assert sorted(pane.values["names"] for pane in script.panes) == [["12:00"], ["12:00", "12:05"], ["12:05"]]


def test_event_pairs_are_complete_when_the_watermark_has_passed_their_end(play):
    script = play(ps.event_pairs("10 minutes"))
    script.batch(at("12:00"))
    script.watermark("12:00")
    script.expect()
    script.watermark("12:00:00.000001")
    script.expect({"end": "12:00", "event_time": "12:00"})


def test_event_pairs_an_event_behind_the_watermark_enters_windows_that_live(play):
    script = play(ps.event_pairs("10 minutes"))
    script.batch(at("12:08"))
    script.batch(at("12:00", "11:40"), watermark="12:05")
    script.expect_late({"name": "11:40", "windows": [["11:30", "11:40"]]})
    script.end()
    assert ["12:00", "12:08"] in [pane.values["names"] for pane in script.panes]


def test_custom_assign_gives_any_windows(play):
    script = play(ps.custom(lambda t: [(t, t + HOUR), (0, 24 * HOUR)]))
    script.batch(at("12:00"))
    script.end()
    script.expect({"start": "12:00", "end": "13:00"}, {"start": "00:00", "end": "1970-01-02"})


def test_custom_merge_several_to_one_is_a_merge(play):
    script = play(ps.custom(lambda t: [(t, t + HOUR)], overlapping))
    script.batch(at("12:00"))
    script.batch(at("12:30", "15:00"))
    script.end()
    script.expect({"start": "12:00", "end": "13:30", "n": 2}, {"start": "15:00", "end": "16:00", "n": 1})


def test_custom_merge_one_to_one_is_a_resize(play):
    from_the_hour = lambda windows: {w: (w.start // HOUR * HOUR, w.end) for w in windows}  # noqa: E731
    script = play(ps.custom(lambda t: [(t, t + HOUR)], from_the_hour))
    script.batch(at("12:30"))
    script.end()
    script.expect({"start": "12:00", "end": "13:30", "n": 1})


@pytest.mark.parametrize("assign", [
    lambda t: [], lambda t: [(t, t)], lambda t: 1 / 0, lambda t: [(t + 1, t)],
], ids=["none", "empty", "throws", "backwards"])  # fmt: skip
def test_custom_assign_that_gives_no_window_quarantines_the_row(play, assign):
    script = play(ps.custom(assign))
    script.batch(at("12:00"))
    assert [row.step for row in script.quarantined] == ["window"]


NO_WINDOWS = {
    # name: (what assign gives, the reason)
    "nothing": (None, "assign gave None, which is not a list of windows"),
    "a number": (5, "assign gave 5, which is not a list of windows"),
    "a bare pair": ((0, HOUR), "0 is not a window, a pair of start and end"),
    "three bounds": ([(0, 1, 2)], "(0, 1, 2) is not a window"),
    "text": ("ab", "'a' is not a window"),
    "a float": ([(0, 1.5)], "ends at 1.5, which is not whole microseconds"),
    "a boolean": ([(False, 1)], "at False, which is not whole microseconds"),
    "a datetime": ([(datetime(2026, 1, 1), datetime(2026, 1, 2))], "which is not whole microseconds"),
    "null": ([(None, 1)], "at None, which is not whole microseconds"),
    "beyond 64 bits": ([(0, 2**63)], "at 9223372036854775808, which does not fit into 64 bits"),
    "below 64 bits": ([(-(2**63) - 1, 0)], "which does not fit into 64 bits"),
    "backwards": ([(5, 4)], "the window from 5 to 4 does not end after it starts"),
}


@pytest.mark.parametrize("given", NO_WINDOWS, ids=str)
def test_custom_assign_of_what_is_no_window_quarantines_the_row_with_the_reason(play, given):
    windows, reason = NO_WINDOWS[given]
    script = play(ps.custom(lambda t: windows))
    script.batch(at("12:00"))
    (row,) = script.quarantined
    assert row.step == "window"
    assert reason in row.reason
    assert "\n" not in row.reason


@pytest.mark.parametrize("given", sorted(NO_WINDOWS.keys() - {"nothing", "a number", "a bare pair", "text"}))
def test_custom_merge_into_what_is_no_window_stops_the_run(play, given):
    ((window,), reason) = NO_WINDOWS[given]
    script = play(ps.custom(lambda t: [(t, t + HOUR)], lambda windows: dict.fromkeys(windows, window)))
    with pytest.raises(ps.DataError, match=re.escape(reason)):
        script.batch(at("12:00"))


@pytest.mark.parametrize("given", [None, [], 5, "ab"], ids=repr)
def test_custom_merge_that_gives_no_mapping_stops_the_run(play, given):
    script = play(ps.custom(lambda t: [(t, t + HOUR)], lambda windows: given))
    with pytest.raises(ps.DataError, match="does not map windows to windows"):
        script.batch(at("12:00"))


def test_custom_windows_may_reach_both_ends_of_time():
    assert ps.custom(lambda t: [(MIN_TIME, MAX_TIME)]).assign(0) == (ps.Window(MIN_TIME, MAX_TIME),)


def overlapping(windows):
    """Unites windows that overlap."""
    groups = []
    for window in windows:
        if groups and window.start < groups[-1][1]:
            groups[-1] = (groups[-1][0], max(groups[-1][1], window.end))
        else:
            groups.append(tuple(window))
    return {w: next(g for g in groups if g[0] <= w.start < g[1]) for w in windows}


def test_time_arithmetic_saturates():
    assert plus(MAX_TIME - 1, HOUR) == MAX_TIME
    assert plus(MIN_TIME + 1, -HOUR) == MIN_TIME
    assert (plus(MAX_TIME, -HOUR), plus(MIN_TIME, HOUR)) == (MAX_TIME, MIN_TIME)


@pytest.mark.parametrize("rule", [
    ps.tumbling("1000 days"), ps.sliding("2 days", every="1 day"), ps.session("365 days"), ps.event_pairs("365 days"),
    ps.calendar("day", zone="America/New_York"), ps.calendar("month", zone="Asia/Tokyo"), ps.calendar("week"),
], ids=str)  # fmt: skip
def test_the_first_and_the_last_instant_have_windows(play, rule):
    script = play(rule, lateness="1000000 days")
    first, last = datetime(1, 1, 1, tzinfo=UTC), datetime.max.replace(tzinfo=UTC)
    script.batch([{"at": first, "name": "first"}, {"at": last, "name": "last"}])
    script.end()
    assert {name for pane in script.panes for name in pane.values["names"]} == {"first", "last"}
