"""Every cell of the table in docs/triggers.md for at_expiry, never and the compositions, and what is refused."""

from __future__ import annotations

import pytest

import penstock as ps
from penstock.testing import Script

SESSIONS = ps.session("10 minutes")


@pytest.fixture
def play(engine):
    """A script of one window (12:00 to 13:00, lateness one hour) with this trigger, its watermark given by hand."""

    def made(trigger, window=None, lateness="1 hour"):
        stream = ps.events("at timestamp").event_time("at", watermark=ps.by_hand(max_skew=None))
        windowed = stream.window(window or ps.tumbling("1 hour"), lateness=lateness).trigger(trigger)
        return Script(windowed.accumulating().aggregate(n=ps.rows()), engine)

    return made


def shows(script, records=0, **time):
    """What each pane of the next batch counts, after so many records arrived."""
    return [pane.values["n"] for pane in script.batch([{"at": "12:00"}] * records, **time).panes if pane.op == 1]


def sessions(script, left=0, right=0, bridge=0, **time):
    """The panes of a batch that brings records to a session, to another one, and to the gap between them."""
    rows = [{"at": at} for at, n in (("12:00", left), ("12:15", right), ("12:08", bridge)) for _ in range(n)]
    return [pane.values["n"] for pane in script.batch(rows, **time).panes if pane.op == 1]


# at_expiry


def test_at_expiry_is_ready_when_lateness_is_over(play):
    script = play(ps.at_expiry())
    assert shows(script, 1, watermark="13:00") == []
    assert shows(script, 1, watermark="13:59") == []
    assert shows(script, watermark="14:00") == [2]
    assert script.panes[0].final


def test_at_expiry_of_a_window_that_lived_before_completion_is_on_time(play):
    script = play(ps.at_expiry())
    shows(script, 1)
    shows(script, watermark="14:00")
    assert script.panes[0].timing == "on_time"


def test_at_expiry_on_fire_and_finished_the_window_is_gone(play):
    script = play(ps.at_expiry())
    shows(script, 1)
    assert shows(script, watermark="14:00") == [1]
    assert script.run.open_windows() == 0
    assert shows(script, 1) == []
    assert len(script.late) == 1


def test_at_expiry_merge_has_nothing_to_merge(play):
    script = play(ps.at_expiry(), SESSIONS)
    assert sessions(script, left=1, right=1) == []
    assert sessions(script, bridge=1) == []
    assert sessions(script, watermark="13:25:00.000001") == [3]


# never


def test_never_is_not_ready_but_the_last_pane_comes(play):
    script = play(ps.never())
    assert shows(script, 3, watermark="13:00") == []
    assert shows(script, watermark="14:00") == [3]


def test_never_as_a_part_never_fires_finishes_or_merges(play):
    script = play(ps.never() | ps.repeat(ps.count(2)), SESSIONS)
    assert sessions(script, left=1, right=1) == []
    assert sessions(script, bridge=1) == [3]
    assert not ps.never().can_finish


# a | b


def test_either_is_ready_when_one_is(play):
    script = play(ps.repeat(ps.count(3)) | ps.every("1 minute"))
    assert shows(script, 3, now="12:00:10") == [3]
    assert shows(script, 1, now="12:00:20") == []
    assert shows(script, now="12:01") == [4]


def test_either_on_fire_only_the_ready_parts_notice(play):
    script = play(ps.repeat((ps.count(1) & ps.count(2)) | ps.count(5)))
    assert [shows(script, n) for n in (1, 1, 1, 1)] == [[], [2], [], [4]]


def test_either_is_finished_when_a_branch_that_fired_finishes(play):
    script = play(ps.count(3) | ps.every("1 minute"))
    shows(script, 1, now="12:00:30")
    assert shows(script, now="12:01") == [1]  # every fired, and every does not finish
    assert shows(script, 3, now="12:01:10") == [4]  # count fired and finishes
    shows(script, 9, now="12:01:20")
    assert shows(script, now="12:05") == []
    assert shows(script, watermark="14:00") == [13]


def test_either_merge_is_finished_if_any_part_was(play):
    script = play(ps.count(2) | ps.every("1 minute"), SESSIONS)
    assert sessions(script, left=2, right=1, now="12:00:10") == [2]
    assert sessions(script, bridge=1, now="12:00:20") == []
    assert sessions(script, now="12:09") == []


# a & b


def test_both_is_ready_when_both_are(play):
    script = play(ps.count(2) & ps.after("1 minute"))
    shows(script, 1, now="12:00")
    assert shows(script, now="12:01") == []
    assert shows(script, 1, now="12:02") == [2]


def test_both_counts_a_finished_part_as_ready(play):
    script = play(ps.count(2) & ps.every("1 minute"))
    shows(script, 2, now="12:00:30")
    assert shows(script, now="12:01") == [2]
    shows(script, 1, now="12:01:30")
    assert shows(script, now="12:02") == [3]  # count(2) has finished; one record is enough


def test_both_on_fire_both_are_on_fire(play):
    script = play(ps.repeat(ps.count(2) & ps.count(3)))
    assert [shows(script, n) for n in (2, 1, 2, 1)] == [[], [3], [], [6]]


def test_both_is_finished_when_both_are(play):
    script = play(ps.count(1) & ps.count(2))
    assert [shows(script, n) for n in (2, 5)] == [[2], []]
    assert not (ps.count(1) & ps.every("1 minute")).can_finish


def test_both_merge_merges_each_part(play):
    script = play(ps.count(2) & ps.count(1), SESSIONS)
    assert sessions(script, left=2, right=1) == [2]
    assert sessions(script, bridge=5) == []
    script = play(ps.count(3) & ps.count(1), SESSIONS)
    assert sessions(script, left=1, right=1) == []
    assert sessions(script, bridge=1) == [3]


# a.then(b)


def test_then_is_ready_as_the_first_until_it_is_finished(play):
    script = play(ps.count(1).then(ps.count(3)))
    assert [shows(script, n) for n in (1, 2, 1)] == [[1], [], [4]]


def test_then_on_fire_takes_one_step_a_batch(play):
    script = play(ps.count(1).then(ps.count(1)).then(ps.count(1)))
    assert [shows(script, n) for n in (9, 1, 1, 1)] == [[9], [10], [11], []]


def test_then_is_finished_when_its_last_step_is(play):
    script = play(ps.count(1).then(ps.count(2)))
    assert [shows(script, n) for n in (1, 2, 9)] == [[1], [3], []]
    assert not ps.count(1).then(ps.every("1 minute")).can_finish


def test_then_merge_takes_the_furthest_step(play):
    script = play(ps.count(2).then(ps.count(3)), SESSIONS)
    assert sessions(script, left=2, right=1) == [2]
    assert sessions(script, bridge=1) == []  # two are unshown: the first step would fire, the second waits for three
    assert sessions(script, bridge=1) == [5]


# a.until(b)


def test_until_is_ready_when_either_is(play):
    script = play(ps.repeat(ps.count(2)).until(ps.after("1 minute")))
    assert shows(script, 2, now="12:00") == [2]
    shows(script, 1, now="12:01")
    assert shows(script, now="12:02") == [3]


def test_until_on_fire_of_the_first_goes_on(play):
    script = play(ps.repeat(ps.count(1)).until(ps.count(3)))
    assert [shows(script, n) for n in (1, 1, 2)] == [[1], [2], [4]]


def test_until_is_finished_once_the_second_was_ready(play):
    script = play(ps.repeat(ps.count(1)).until(ps.count(3)))
    assert [shows(script, n) for n in (3, 1, 5)] == [[3], [], []]
    script = play(ps.every("1 minute").until(ps.when("n > 1")))
    assert [shows(script, n) for n in (2, 2)] == [[2], []]


def test_until_goes_on_with_the_second_when_the_first_has_finished(play):
    script = play(ps.count(1).until(ps.count(3)))
    assert [shows(script, n) for n in (1, 2, 1)] == [[1], [], [4]]


def test_until_merge_is_finished_if_any_part_was(play):
    script = play(ps.repeat(ps.count(2)).until(ps.count(3)), SESSIONS)
    assert sessions(script, left=3, right=1) == [3]
    assert sessions(script, bridge=5) == []


# repeat


def test_repeat_is_ready_as_its_trigger_is_and_starts_it_anew(play):
    script = play(ps.repeat(ps.count(1).then(ps.count(2))))
    assert [shows(script, n) for n in (1, 2, 1, 1, 1)] == [[1], [3], [4], [], [6]]


def test_repeat_never_finishes(play):
    assert not ps.repeat(ps.count(1)).can_finish
    assert [shows(play(ps.repeat(ps.count(1))), n) for n in (1, 1)] == [[1], [1]]


def test_repeat_merge_merges_what_it_repeats(play):
    script = play(ps.repeat(ps.count(2)), SESSIONS)
    assert sessions(script, left=2, right=1) == [2]
    assert sessions(script, bridge=1) == [4]


# what is refused, and what the last pane covers


@pytest.mark.parametrize("trigger", [
    ps.never(), ps.at_watermark(), ps.at_expiry(), ps.count(10), ps.after("1 minute"), ps.when("n > 1", once=True),
    ps.count(1) | ps.every("1 minute"), ps.count(1) & ps.count(2), ps.count(1).then(ps.count(2)),
    ps.repeat(ps.count(1)).until(ps.count(9)), ps.never().then(ps.every("1 minute")), ps.repeat(ps.never()),
    ps.at_watermark(early=ps.never()), ps.at_watermark() | ps.never(), ps.at_watermark() & ps.every("1 minute"),
    ps.repeat(ps.at_watermark()), ps.at_watermark(late=ps.count(1)).then(ps.every("1 minute")),
    ps.count(1).then(ps.never()), ps.count(1).until(ps.never()), ps.at_watermark(early=ps.count(1).then(ps.never())),
], ids=str)  # fmt: skip
def test_a_trigger_that_could_hide_records_in_a_global_window_is_refused(trigger):
    stream = ps.events("at timestamp").event_time("at", watermark=ps.ascending())
    with pytest.raises(ps.PlanError, match="global window"):
        stream.window(ps.global_window()).trigger(trigger).accumulating().aggregate(n=ps.rows())


@pytest.mark.parametrize("trigger", [
    ps.repeat(ps.count(10)), ps.every("1 minute"), ps.at_watermark(early=ps.count(10)), ps.when("n > 1"),
    ps.count(1).then(ps.every("1 minute")), ps.at_watermark() | ps.every("1 minute"),
], ids=str)  # fmt: skip
def test_a_trigger_that_goes_on_is_welcome_in_a_global_window(trigger):
    stream = ps.events("at timestamp").event_time("at", watermark=ps.ascending())
    assert stream.window(ps.global_window()).trigger(trigger).accumulating().aggregate(n=ps.rows())


def test_a_bounded_stream_may_have_any_trigger_in_a_global_window(engine):
    stream = ps.events("at timestamp", bounded=True).event_time("at", watermark=ps.ascending())
    script = Script(stream.window(ps.global_window()).aggregate(n=ps.rows()), engine)
    script.batch([{"at": "12:00"}] * 3)
    script.end()
    script.expect({"n": 3, "timing": "on_time", "final": True})


@pytest.mark.parametrize("trigger", [
    ps.never(), ps.count(9), ps.count(1), ps.after("9 days"), ps.when("n > 9"), ps.count(1) & ps.never(),
    ps.count(1).then(ps.never()), ps.count(1).until(ps.count(1)), ps.at_watermark(late=ps.never()),
], ids=str)  # fmt: skip
def test_the_last_pane_covers_every_trigger_in_a_window_that_ends(play, trigger):
    script = play(trigger)
    shows(script, 1)
    shows(script, 1)
    shows(script, 1, watermark="13:30")
    shows(script, watermark="14:00")
    assert script.panes[-1].values["n"] == 3
