"""Every cell of the table in docs/triggers.md for the single triggers: ready, on fire, finished, merge."""

from __future__ import annotations

import pytest

import penstock as ps
from penstock.testing import Script

SESSIONS = ps.session("10 minutes")


@pytest.fixture
def play(engine):
    """A script of one window (12:00 to 13:00, lateness one hour) with this trigger, its watermark given by hand."""

    def made(trigger, window=None, mode="accumulating", lateness="1 hour"):
        stream = ps.events("at timestamp, v long").event_time("at", watermark=ps.by_hand(max_skew=None))
        windowed = stream.window(window or ps.tumbling("1 hour"), lateness=lateness).trigger(trigger)
        return Script(getattr(windowed, mode)().aggregate(n=ps.rows(), total=ps.sum("v")), engine)

    return made


def shows(script, records=0, at="12:00", **time):
    """What each pane of the next batch counts, after so many records arrived."""
    outcome = script.batch([{"at": at, "v": 1}] * records, **time)
    return [pane.values["n"] for pane in outcome.panes if pane.op == 1]


def sessions(script, left=0, right=0, bridge=0, **time):
    """The panes of a batch that brings records to a session, to another one, and to the gap between them."""
    rows = [{"at": at, "v": 1} for at, n in (("12:00", left), ("12:15", right), ("12:08", bridge)) for _ in range(n)]
    return [pane.values["n"] for pane in script.batch(rows, **time).panes if pane.op == 1]


def timings(script, records=0, **time):
    return [pane.timing for pane in script.batch([{"at": "12:00", "v": 1}] * records, **time).panes]


# at_watermark


def test_at_watermark_is_ready_when_the_window_is_complete(play):
    script = play(ps.at_watermark())
    assert shows(script, 2, watermark="12:59:59.999999") == []
    assert shows(script, watermark="13:00") == [2]


def test_at_watermark_is_ready_even_if_nothing_is_new(play):
    script = play(ps.at_watermark(early=ps.count(1)))
    assert timings(script, 4) == ["early"]
    assert timings(script, watermark="13:00") == ["on_time"]


def test_at_watermark_without_late_shows_every_batch_that_brings_something(play):
    script = play(ps.at_watermark())
    assert timings(script, 1, watermark="13:00") == ["late"]
    script = play(ps.at_watermark())
    shows(script, 1)
    assert timings(script, watermark="13:00") == ["on_time"]
    assert timings(script) == []
    assert timings(script, 1) == ["late"]
    assert timings(script, 2) == ["late"]


def test_at_watermark_late_part_decides_about_late_panes(play):
    script = play(ps.at_watermark(late=ps.count(2)))
    shows(script, 1)
    assert shows(script, watermark="13:00") == [1]
    assert shows(script, 1) == []
    assert shows(script, 1) == [3]


def test_at_watermark_on_fire_its_parts_repeat(play):
    script = play(ps.at_watermark(early=ps.count(2), late=ps.count(2)))
    assert [shows(script, 2), shows(script, 2)] == [[2], [4]]
    shows(script, watermark="13:00")
    assert [shows(script, 2), shows(script, 2)] == [[6], [8]]


def test_at_watermark_includes_the_arrivals_of_the_batch_in_which_it_is_due(play):
    script = play(ps.at_watermark())
    shows(script, 1)
    assert shows(script, 1, watermark="13:00") == [2]


def test_at_watermark_never_finishes(play):
    script = play(ps.at_watermark().then(ps.count(1)))
    shows(script, 1)
    assert shows(script, watermark="13:00") == [1]
    assert shows(script, 1) == [2]  # still the late part of at_watermark, in every batch
    assert not ps.at_watermark(early=ps.count(1), late=ps.count(1)).can_finish


def test_at_watermark_merge_forgets_that_it_was_on_time(play):
    script = play(ps.at_watermark(), SESSIONS)
    sessions(script, left=1)
    sessions(script, watermark="12:10:00.000001")
    assert script.panes[-1].timing == "on_time"
    script.batch([{"at": "12:09", "v": 1}])
    script.watermark("12:19")
    assert [pane.timing for pane in script.panes] == ["on_time"]
    script.watermark("12:30")
    assert [(pane.timing, pane.index) for pane in script.panes if pane.op == 1] == [("on_time", 0), ("on_time", 0)]


def test_at_watermark_merge_into_the_unchanged_window_remembers_it_was_on_time(play):
    script = play(ps.at_watermark(), SESSIONS)
    script.batch([{"at": "12:00", "v": 1}, {"at": "12:05", "v": 1}])
    script.watermark("12:16")
    script.batch([{"at": "12:03", "v": 1}])
    assert [(pane.timing, pane.index) for pane in script.panes] == [("on_time", 0), ("late", 1)]


def test_at_watermark_merge_merges_its_parts(play):
    script = play(ps.at_watermark(early=ps.count(3)), SESSIONS)
    assert sessions(script, left=1, right=1) == []
    assert sessions(script, bridge=1) == [3]


# count


def test_count_is_ready_with_n_unshown_records_looked_at_once_a_batch(play):
    script = play(ps.repeat(ps.count(2)))
    assert shows(script, 1) == []
    assert shows(script, 1) == [2]
    assert shows(script, 7) == [9]


def test_count_on_fire_counts_from_nothing_whoever_fired(play):
    script = play(ps.repeat(ps.count(3)) | ps.every("1 minute"))
    assert shows(script, 2, now="12:00:30") == []
    assert shows(script, now="12:01") == [2]
    assert shows(script, 2, now="12:01:10") == []
    assert shows(script, 1, now="12:01:20") == [5]


def test_count_is_finished_after_one_firing(play):
    script = play(ps.count(1))
    assert shows(script, 1) == [1]
    assert shows(script, 5) == []
    assert shows(script, watermark="14:00") == [6]


def test_count_merge_adds(play):
    script = play(ps.count(3), SESSIONS)
    assert sessions(script, left=1, right=1) == []
    assert sessions(script, bridge=1) == [3]


def test_count_merge_is_finished_if_any_part_was(play):
    script = play(ps.count(2), SESSIONS)
    assert sessions(script, left=2, right=1) == [2]
    assert sessions(script, bridge=3) == []
    assert sessions(script, watermark="+inf") == [6]


# after


def test_after_is_ready_a_while_after_the_first_unshown_record(play):
    script = play(ps.repeat(ps.after("1 minute")))
    assert shows(script, 1, now="12:00:10") == []
    assert shows(script, 1, now="12:01:09") == []
    assert shows(script, now="12:01:10") == [2]


def test_after_on_fire_waits_for_the_next_record(play):
    script = play(ps.repeat(ps.after("1 minute")))
    shows(script, 1, now="12:00")
    assert shows(script, now="12:01") == [1]
    assert shows(script, now="12:05") == []
    assert shows(script, 1, now="12:06") == []
    assert shows(script, now="12:07") == [2]


def test_after_is_finished_after_one_firing(play):
    script = play(ps.after("1 minute"))
    shows(script, 1, now="12:00")
    assert shows(script, now="12:01") == [1]
    shows(script, 1, now="12:02")
    assert shows(script, now="12:30") == []


def test_after_merge_takes_the_earliest(play):
    script = play(ps.after("1 minute"), SESSIONS)
    sessions(script, left=1, now="12:00")
    sessions(script, right=1, now="12:00:30")
    assert sessions(script, bridge=1, now="12:00:50") == []
    assert sessions(script, now="12:01") == [3]


# every


def test_every_is_ready_at_the_first_tick_after_the_first_unshown_record(play):
    script = play(ps.every("1 minute"))
    assert shows(script, 1, now="12:00:59") == []
    assert shows(script, now="12:01") == [1]


def test_every_does_not_count_a_tick_at_the_arrival_itself(play):
    script = play(ps.every("1 minute"))
    assert shows(script, 1, now="12:01") == []
    assert shows(script, now="12:02") == [1]


def test_every_counts_ticks_from_its_offset(play):
    script = play(ps.every("1 minute", offset="20 seconds"))
    shows(script, 1, now="12:00:30")
    assert shows(script, now="12:01:19") == []
    assert shows(script, now="12:01:20") == [1]


def test_every_ticks_for_all_windows_together(play):
    script = play(ps.every("1 minute"))
    shows(script, 1, at="12:00", now="12:00:10")
    shows(script, 1, at="15:00", now="12:00:50")
    assert shows(script, now="12:01") == [1, 1]


def test_every_on_fire_waits_for_something_new(play):
    script = play(ps.every("1 minute"))
    shows(script, 1, now="12:00:30")
    assert [shows(script, now=now) for now in ("12:01", "12:02", "12:03")] == [[1], [], []]


def test_every_never_finishes(play):
    script = play(ps.every("1 minute"))
    found = [shows(script, 1, now=now) for now in ("12:00:30", "12:01:30", "12:02:30", "12:03:30")]
    assert found == [[], [2], [], [4]]
    assert not ps.every("1 minute").can_finish


def test_every_merge_takes_the_earliest(play):
    script = play(ps.every("1 minute"), SESSIONS)
    sessions(script, left=1, now="12:00:30")
    assert sessions(script, bridge=1, now="12:01") == [2]


# when


def test_when_is_ready_while_the_pane_satisfies_it_and_something_is_new(play):
    script = play(ps.when("total > 1"))
    assert [shows(script, n) for n in (1, 1, 0, 1)] == [[], [2], [], [3]]


def test_when_looks_at_the_pane_that_would_be_shown(play):
    script = play(ps.when("total > 1"), mode="discarding")
    assert [shows(script, n) for n in (2, 1, 1)] == [[2], [], [2]]


def test_when_is_not_ready_on_null(play):
    script = play(ps.when("if(n > 1, null, true)"))
    assert [shows(script, n) for n in (1, 1)] == [[1], []]


def test_when_once_is_the_crossing(play):
    script = play(ps.when("total > 1", once=True))
    assert [shows(script, n) for n in (1, 1, 1)] == [[], [2], []]
    assert shows(script, watermark="14:00") == [3]


def test_when_merge_looks_at_the_merged_window(play):
    script = play(ps.when("total > 2"), SESSIONS)
    assert sessions(script, left=1, right=1) == []
    assert sessions(script, bridge=1) == [3]


def test_when_once_merge_is_finished_if_any_part_was(play):
    script = play(ps.when("total > 1", once=True), SESSIONS)
    assert sessions(script, left=2, right=1) == [2]
    assert sessions(script, bridge=1) == []


def test_when_that_cannot_be_computed_stops_the_run(play):
    script = play(ps.when("10 / (n - 1) > 0"))
    with pytest.raises(ps.DataError, match="division by zero"):
        shows(script, 1)
