"""How: what a pane says of itself, and how later panes relate to earlier ones in each mode."""

from __future__ import annotations

import pytest

import penstock as ps
from penstock.testing import Script

EARLY_AND_LATE = ps.at_watermark(early=ps.count(1), late=ps.count(1))
SESSIONS = ps.session("10 minutes")


@pytest.fixture
def play(engine):
    """A script of sums per key, its watermark given by hand."""

    def made(mode="accumulating", trigger=EARLY_AND_LATE, window=None, lateness="1 hour", **aggregates):
        stream = ps.events("at timestamp, v long, k string").event_time("at", watermark=ps.by_hand(max_skew=None))
        windowed = stream.key_by("k").window(window or ps.tumbling("1 hour"), lateness=lateness).trigger(trigger)
        return Script(getattr(windowed, mode)().aggregate(**(aggregates or {"v": ps.sum("v")})), engine)

    return made


def rows(*values, at="12:00"):
    return [{"at": at, "v": value, "k": "k"} for value in values]


# timing


def test_a_pane_is_early_on_time_or_late(play):
    script = play()
    script.batch(rows(4))
    script.watermark("13:00")
    script.batch(rows(5))
    script.expect({"timing": "early", "v": 4}, {"timing": "on_time", "v": 4}, {"timing": "late", "v": 9})


def test_the_first_pane_after_completion_is_on_time_whatever_the_trigger(play):
    script = play(trigger=ps.repeat(ps.count(2)))
    script.batch(rows(1))
    script.batch(rows(2), watermark="13:00")
    script.batch(rows(3, 4))
    script.expect({"timing": "on_time", "v": 3}, {"timing": "late", "v": 10})


def test_a_window_born_after_completion_waits_for_its_late_part(play):
    script = play(trigger=ps.at_watermark(late=ps.count(2)))
    script.watermark("13:00")
    script.batch(rows(4))
    script.expect()
    script.batch(rows(5))
    script.expect({"timing": "late", "v": 9, "index": 0})


def test_a_window_born_after_completion_has_only_late_panes(play):
    script = play()
    script.batch(rows(1), watermark="13:30")
    script.expect({"timing": "late", "index": 0})


def test_a_window_merged_after_completion_has_only_late_panes(play):
    script = play(window=SESSIONS, trigger=ps.at_watermark())
    script.batch(rows(1, at="12:00"))
    script.batch(rows(2, at="12:05"), watermark="12:30")
    script.expect({"timing": "late", "v": 3, "end": "12:15"})


# final, last pane


def test_final_is_the_pane_of_the_step_that_drops_the_memory(play):
    script = play(trigger=ps.at_watermark(), lateness="0")
    script.batch(rows(1))
    script.watermark("13:00")
    script.expect({"final": True, "timing": "on_time"})


def test_a_window_may_end_without_a_final_pane(play):
    script = play(trigger=ps.at_watermark())
    script.batch(rows(1))
    script.watermark("13:00")
    script.watermark("14:00")
    script.expect({"final": False, "timing": "on_time"})
    assert script.run.open_windows() == 0


def test_the_last_pane_shows_what_no_pane_has_shown(play):
    script = play(trigger=ps.at_watermark(late=ps.count(5)))
    script.batch(rows(1))
    script.watermark("13:00")
    script.batch(rows(2))
    script.watermark("14:00")
    script.expect({"timing": "on_time", "v": 1, "final": False}, {"timing": "late", "v": 3, "final": True})


def test_a_window_that_expires_at_once_leaves_without_the_arrivals_of_that_batch(play):
    script = play(trigger=ps.at_watermark())
    script.batch(rows(1))
    script.batch(rows(2), watermark="14:00")
    script.expect({"timing": "on_time", "v": 1, "final": True})
    script.expect_late({"v": 2})


def test_a_batch_shows_at_most_one_pane_of_a_window(play):
    script = play()
    script.batch(rows(1))
    script.batch(rows(2, 3, 4), watermark="13:00")
    script.expect({"v": 1}, {"timing": "on_time", "v": 10})


# modes


def test_accumulating_panes_are_the_whole_answer_so_far(play):
    script = play("accumulating")
    for value in (7, 7, 8):
        script.batch(rows(value))
    script.expect({"v": 7, "index": 0}, {"v": 14, "index": 1}, {"v": 22, "index": 2})


def test_discarding_panes_are_only_what_is_new(play):
    script = play("discarding")
    for value in (7, 7, 8):
        script.batch(rows(value))
    script.expect({"v": 7, "index": 0}, {"v": 7, "index": 1}, {"v": 8, "index": 2})


def test_retracting_panes_come_with_the_withdrawal_of_the_one_before(play):
    script = play("retracting")
    for value in (7, 7, 8):
        script.batch(rows(value))
    script.watermark("13:00")
    script.expect("""
        v   index  timing   op
        7   0      early    1
        7   0      early    -1
        14  1      early    1
        14  1      early    -1
        22  2      early    1
        22  2      early    -1
        22  3      on_time  1
    """)


def test_a_withdrawal_comes_before_what_replaces_it_and_is_never_final(play):
    script = play("retracting", lateness="0")
    script.batch(rows(1))
    script.batch(rows(2))
    script.watermark("13:00")
    assert [(pane.op, pane.final) for pane in script.panes] == [
        (1, False), (-1, False), (1, False), (-1, False), (1, True),
    ]  # fmt: skip


# empty panes


def test_an_empty_pane_is_zero_an_empty_list_or_null(play):
    script = play(
        "discarding", s=ps.sum("v"), n=ps.rows(), c=ps.count("v"), d=ps.distinct("v"), l=ps.collect("v"),
        t=ps.top_k("v", 2), least=ps.min("v"), mean=ps.mean("v"), first=ps.first("v"),
    )  # fmt: skip
    script.batch(rows(4))
    script.watermark("13:00")
    empty = {"s": 0, "n": 0, "c": 0, "d": 0, "l": [], "t": [], "least": None, "mean": None, "first": None}
    script.expect({"timing": "early"}, {"timing": "on_time", **empty})


def test_records_whose_values_are_all_null_are_as_in_sql(play):
    script = play("discarding", s=ps.sum("v"), c=ps.count("v"), n=ps.rows(), l=ps.collect("v"))
    script.batch(rows(None, None))
    script.expect({"s": None, "c": 0, "n": 2, "l": []})


# event time and identity


@pytest.mark.parametrize(("window", "instant"), [
    (ps.tumbling("1 hour"), "12:59:59.999999"), (SESSIONS, "12:10"), (ps.event_pairs("10 minutes"), "12:00"),
    (ps.global_window(), "12:00"), (ps.custom(lambda t: [(t, t + 60_000_000)]), "12:00:59.999999"),
], ids=str)  # fmt: skip
def test_the_event_time_of_a_pane_is_the_last_instant_of_its_window(play, window, instant):
    script = play(window=window)
    script.batch(rows(1))
    script.expect({"event_time": instant})


def test_the_event_time_of_a_global_pane_is_its_newest_record(play):
    script = play(window=ps.global_window())
    script.batch(rows(1, at="12:30"))
    script.batch(rows(1, at="12:10"))
    script.expect({"event_time": "12:30"}, {"event_time": "12:30"})


def test_key_window_index_and_op_are_unique_for_ever(play):
    script = play("retracting", window=SESSIONS)
    for at in ("12:00", "12:15", "12:08", "12:20", "12:03"):
        script.batch(rows(1, at=at))
    script.end()
    names = [(pane.key, pane.window, pane.index, pane.op) for pane in script.panes]
    assert len(names) == len(set(names))


# sessions shown, then merged


MERGED = [("accumulating", 7), ("discarding", 7), ("retracting", 7)]


@pytest.mark.parametrize(("mode", "total"), MERGED)
def test_a_session_that_was_shown_and_merges_is_withdrawn_in_every_mode(play, mode, total):
    script = play(mode, window=SESSIONS)
    script.batch(rows(1, at="12:00") + rows(2, at="12:15"))
    script.expect({"start": "12:00", "v": 1}, {"start": "12:15", "v": 2})
    script.batch(rows(4, at="12:08"))
    script.expect(
        {"start": "12:00", "end": "12:10", "v": 1, "op": -1},
        {"start": "12:15", "end": "12:25", "v": 2, "op": -1},
        {"start": "12:00", "end": "12:25", "v": total, "op": 1, "index": 0},
    )


def test_discarding_withdraws_the_sum_of_all_a_predecessor_showed_with_its_last_index(play):
    script = play("discarding", window=SESSIONS)
    script.batch(rows(1, at="12:00"))
    script.batch(rows(2, at="12:00"))
    script.expect({"v": 1, "index": 0}, {"v": 2, "index": 1})
    script.batch(rows(4, at="12:05"))
    script.expect({"v": 3, "index": 1, "op": -1}, {"v": 7, "index": 0, "end": "12:15"})


def test_there_is_no_withdrawal_before_the_first_pane_of_the_merged_session(play):
    script = play(trigger=ps.at_watermark(early=ps.count(2)), window=SESSIONS)
    script.batch(rows(1, 1, at="12:00"))
    script.expect({"v": 2})
    script.batch(rows(1, at="12:05"))
    script.expect()
    script.batch(rows(1, at="12:09"))
    script.expect({"v": 2, "op": -1, "end": "12:10"}, {"v": 4, "op": 1, "end": "12:19", "index": 0})


@pytest.mark.parametrize("mode", ["accumulating", "discarding", "retracting"])
def test_a_merge_that_leaves_the_window_as_it_was_goes_on_with_its_index(play, mode):
    script = play(mode, window=SESSIONS)
    script.batch(rows(1, at="12:00") + rows(1, at="12:05"))
    script.batch(rows(4, at="12:02"))
    shown = [(pane.values["v"], pane.index, pane.op) for pane in script.panes]
    expected = {
        "accumulating": [(2, 0, 1), (6, 1, 1)],
        "discarding": [(2, 0, 1), (4, 1, 1)],
        "retracting": [(2, 0, 1), (2, 0, -1), (6, 1, 1)],
    }
    assert shown == expected[mode]


def test_a_surviving_window_is_not_withdrawn_but_those_it_swallows_are(play):
    widest = lambda windows: dict.fromkeys(windows, (0, 86_400_000_000)) if len(windows) > 2 else {}  # noqa: E731
    assign = lambda t: [(0, 86_400_000_000)] if t % 2 else [(t, t + 1_000)]  # noqa: E731
    script = play("discarding", window=ps.custom(assign, widest))
    script.batch([{"at": 1, "v": 1, "k": "k"}, {"at": 2, "v": 2, "k": "k"}])
    script.expect({"v": 1, "start": 0}, {"v": 2, "start": 2})
    script.batch([{"at": 4, "v": 4, "k": "k"}])
    script.expect({"v": 2, "start": 2, "op": -1}, {"v": 6, "start": 0, "index": 1, "op": 1})


def test_a_restart_between_two_batches_changes_nothing(play):
    script, restarted = play("retracting", window=SESSIONS), play("retracting", window=SESSIONS)
    for at in ("12:00", "12:15", "12:08", "12:30"):
        script.batch(rows(1, at=at))
        restarted.batch(rows(1, at=at))
        restarted.restart()
    assert script.panes == restarted.panes
