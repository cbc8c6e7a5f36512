"""What is said of a delay is what its on-time panes held, counted by hand from the events; the goals are reached."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import penstock as ps
from penstock.observability.advise import inputs
from penstock.observability.advise.goals import Goals
from penstock.observability.advise.inputs import Gathered, from_sources, plan_with
from penstock.observability.advise.report import Advice, of_stream, recommended
from penstock.observability.advise.text import lines
from penstock.observability.advise.trade_offs import Row, Trial
from penstock.plan.stages import Plan
from penstock.reference.engine import ReferenceRun
from penstock.types.timestamps import MIN_TIME
from tests.unit.observability.advise.streams import (
    SECOND,
    ByHand,
    Event,
    bursts,
    exponential,
    in_order,
    pipeline,
    slow_partition,
    stragglers,
    visits,
)

TEN = ps.tumbling("10 seconds")
SLIDING = ps.sliding("20 seconds", every="5 seconds")
STREAMS = {"in order": in_order, "exponential": exponential, "stragglers": stragglers, "bursts": bursts,
           "slow partition": slow_partition}  # fmt: skip
WINDOWS = [(TEN, 10, 10), (SLIDING, 20, 5)]


def plan_of(made: ps.Pipeline) -> Plan:
    plan = made.flow.stages[0]
    assert isinstance(plan, Plan)
    return plan


def told_of(folder: Path, events: list[Event], window: Any = TEN, goals: Goals | None = None, **more: Any) -> Advice:
    return of_stream(pipeline(folder, events, window, **more), "counted.py", goals=goals)


def said(told: Advice) -> str:
    return "\n".join(lines(told))


@pytest.mark.parametrize(("stream", "lateness"), [
    ("in order", "0"), ("exponential", "0"), ("exponential", "3 seconds"), ("stragglers", "1 hour"),
    ("bursts", "3 seconds"), ("slow partition", "0"),
])  # fmt: skip
@pytest.mark.parametrize(("window", "size", "every"), WINDOWS, ids=["tumbling", "sliding"])
def test_complete_is_what_is_counted_by_hand(stream, window, size, every, lateness, tmp_path):
    made = pipeline(tmp_path / "events", STREAMS[stream](), window, lateness)
    found, plan = from_sources(made.flow), plan_of(made)
    trial = Trial(plan, found, Goals())
    without = ByHand(size * SECOND, every * SECOND, 0, plan.lateness).play(found.batches)
    assert trial.begun == without.first
    assert trial.settled == without.reached - trial.settling
    for delay in (0, 4 * SECOND, 31 * SECOND):
        row = trial.row(delay)
        hand = ByHand(size * SECOND, every * SECOND, delay, plan.lateness).play(found.batches)
        complete, windows = hand.judged(trial.begun, trial.settled)
        assert (row.windows, row.open + row.windows + trial.before) == (windows, len(hand.ever))
        assert row.complete == pytest.approx(complete)
        assert windows >= 10


@pytest.mark.parametrize("lateness", ["0", "1 hour"])
def test_of_sessions_each_pane_is_compared_with_what_it_became_a_part_of(lateness, tmp_path, monkeypatch):
    monkeypatch.setattr(inputs, "BATCHES", 200)
    made = pipeline(tmp_path / "events", visits(), ps.session("2 seconds"), lateness)
    found, plan = from_sources(made.flow), plan_of(made)
    trial = Trial(plan, found, Goals(complete=0.9))
    for delay in (0, 10 * SECOND):
        row = trial.row(delay)
        assert row.complete == pytest.approx(_of_sessions(plan_with(plan, delay), found, trial))
        assert row.windows >= 10
    assert trial.row(0).complete < 0.9 < 0.99 < trial.row(10 * SECOND).complete


def _of_sessions(plan: Plan, found: Gathered, trial: Trial) -> float:
    """What on-time panes of sessions held: the panes are the reference's, sessions and rows are counted by hand."""
    by_team: dict[str, list[int]] = {}
    for rows, _ in found.batches:
        for one in rows:
            by_team.setdefault(one.row["team"], []).append(one.row["at"])
    final: list[tuple[str, int, int, int]] = []
    for team, times in by_team.items():
        times.sort()
        begin, number = times[0], 0
        for at, after in zip(times, [*times[1:], 2**62], strict=True):
            number += 1
            if after - at > 2 * SECOND:
                final.append((team, begin, at + 2 * SECOND, number))
                begin, number = after, 0
    run = ReferenceRun(plan)
    panes, late, reached = [], [], MIN_TIME
    for rows, tick in found.batches:
        reached = run.watermark
        for pane in run.batch(rows, tick).panes:
            if pane.op > 0:
                (panes if pane.timing == "on_time" else late).append((pane.key[0], pane.window, pane.values["n"]))
    held = ever = 0
    for team, begin, end, number in final:
        if begin < trial.begun or end > trial.settled:
            continue
        mine = [n for key, window, n in panes if key == team and begin <= window.start and window.end <= end]
        missed = any(key == team and begin <= window.start and window.end <= end for key, window, _ in late)
        held += sum(mine)
        ever += number * (len(mine) or (1 if missed or reached > end + plan.lateness else 0))
    return held / ever


def reached(told: Advice, share: float) -> tuple[Row, Row | None]:
    """The row of what is recommended, and the longest of the shorter delays that were tried."""
    assert told.recommended is not None
    rows = [row for row in told.rows if not row.moves]
    place = next(n for n, row in enumerate(rows) if row.delay == told.recommended.delay)
    assert rows[place].complete >= share
    return rows[place], rows[place - 1] if place else None


@pytest.mark.parametrize("stream", ["exponential", "stragglers", "bursts"])
@pytest.mark.parametrize(("share", "window", "lateness"), [(0.99, TEN, "0"), (0.9, SLIDING, "1 hour")])
def test_the_delay_that_is_recommended_reaches_the_goal_and_the_next_shorter_does_not(
    stream, window, share, lateness, tmp_path
):
    told = told_of(tmp_path / "events", STREAMS[stream](), window, Goals(share), lateness=lateness)
    row, shorter = reached(told, share)
    assert told.recommended.unmet == ()
    assert told.recommended.complete == row.complete
    assert shorter is None or shorter.complete < share


@pytest.mark.parametrize(("number", "window", "goals", "needed"), [
    (300, TEN, Goals(), "10 with 1,000 are needed"),
    (3_000, TEN, Goals(0.9999), "10 with 100,000 are needed"),
    (3_000, ps.session("6 seconds"), Goals(0.9), "10 with 1,000 are needed"),  # it never rests: no session ends
])  # fmt: skip
def test_too_few_events_tell_nothing(number, window, goals, needed, tmp_path):
    told = told_of(tmp_path / "events", exponential(number=number), window, goals)
    assert told.recommended is None
    assert "not enough to tell how complete on-time panes are" in said(told)
    assert needed in said(told)


def test_a_stream_in_order_needs_no_delay(tmp_path):
    told = told_of(tmp_path / "events", in_order())
    assert (told.recommended.delay, told.recommended.complete, told.recommended.lateness) == (0, 1.0, 0)
    assert "on-time panes hold 100 % of their window's rows" in said(told)


def test_with_a_long_lateness_nothing_is_late_and_panes_are_incomplete_all_the_same(tmp_path):
    told = told_of(tmp_path / "events", exponential(4.0), lateness="1 day")
    assert {row.late for row in told.rows} == {0}
    assert told.rows[0].complete < 0.98
    assert 3 * SECOND < told.recommended.delay < 15 * SECOND


@pytest.mark.parametrize(("days", "kept"), [(0.01, True), (30, False), (700_000, False)])
def test_windows_are_not_kept_for_ages_for_one_event_whose_clock_is_wrong(tmp_path, days, kept):
    events = exponential()
    events.insert(1_500, ("a", "red", -days * 86_400))
    one = told_of(tmp_path / "events", events).recommended
    assert (one.lateness > 800 * SECOND) is kept
    assert one.lateness > 3 * SECOND
    assert 0 < one.left <= 0.001 or (kept and one.left == 0)


def test_a_slow_partition_is_waited_for_without_a_delay(tmp_path):
    told = told_of(tmp_path / "events", slow_partition())
    assert (told.recommended.delay, told.recommended.complete) == (0, 1.0)
    assert told.recommended.after_end == pytest.approx(20 * SECOND, rel=0.1)
    hasty = told_of(tmp_path / "again", slow_partition(), goals=Goals(latency=5 * SECOND))
    assert hasty.recommended.unmet == ("latency",)
    assert "cannot be had: an answer within 5 s; without any delay it comes 20 s after the end" in said(hasty)


def test_completeness_and_latency_that_cannot_be_had_together(tmp_path):
    goals = Goals(complete=0.99, latency=2 * SECOND)
    told = told_of(tmp_path / "events", exponential(), goals=goals)
    one = told.recommended
    assert one.unmet == ("complete",)
    assert one.after_end <= 2 * SECOND
    assert all(row.complete <= one.complete for row in told.rows if row.after_end <= 2 * SECOND)
    assert one.instead.complete >= 0.99
    assert one.instead.after_end > 2 * SECOND
    assert "cannot be had together: 99.00 % complete takes ps.bounded(" in said(told)


def test_few_late_rows_are_waited_for_or_corrected(tmp_path):
    """With few that are far behind the rest, waiting for them all is no advice: they come as corrections."""
    told = told_of(tmp_path / "events", stragglers(share=0.005), goals=Goals(0.99, late=0.001))
    one = told.recommended
    assert one.delay < 10 * SECOND
    assert one.share > 0.001 >= one.left
    assert one.unmet == ()
    assert one.tail
    made = plan_of(pipeline(tmp_path / "again", stragglers(share=0.005), TEN))
    found = from_sources(pipeline(tmp_path / "more", stragglers(share=0.005), TEN).flow)
    run = ReferenceRun(plan_with(made, one.delay, one.lateness))
    for rows, tick in found.batches:
        run.batch(rows, tick)
    assert run.totals.late / found.events == one.left
    near = told_of(tmp_path / "near", exponential(0.5), goals=Goals(0.5, late=0.0))
    assert (near.recommended.share, near.recommended.unmet) == (0.0, ())


def test_a_rule_that_finds_its_delay_is_played_as_it_is(tmp_path):
    made = pipeline(tmp_path / "events", exponential(), TEN, rule=ps.percentile(0.95, idle=None))
    told = of_stream(made, "counted.py")
    (own,) = [row for row in told.rows if row.now]
    found, plan = from_sources(made.flow), plan_of(made)
    run, watermarks = ReferenceRun(plan), []
    for rows, tick in found.batches:
        watermarks.append(run.watermark)
        run.batch(rows, tick)
    trial = Trial(plan, found, Goals())
    hand = ByHand(10 * SECOND, 10 * SECOND, 0, 0).play(found.batches, watermarks)
    assert own.complete == pytest.approx(hand.judged(trial.begun, trial.settled)[0])
    assert own.moves
    assert own.delay != told.recommended.delay
    assert "the pipeline's percentile rule finds its own delay" in said(told)


def test_a_global_window_is_never_complete(tmp_path):
    told = told_of(tmp_path / "events", in_order(), ps.global_window(), trigger=ps.repeat(ps.count(10)))
    assert told.recommended is None
    assert "a global window has no end" in said(told)


def rows_of(*complete: float, tells: int = 99) -> list[Row]:
    """Rows of one second of delay after the other; of all but the first few too little is known."""
    return [Row(n * SECOND, 0, 0.0, n * SECOND, 1, complete=share, windows=80, rows=9_999, tells=n < tells)
            for n, share in enumerate(complete)]  # fmt: skip


@pytest.mark.parametrize(("rows", "goals", "delay", "unmet"), [
    (rows_of(0.8, 0.95, 0.995, 1.0), Goals(), 2, ()),
    (rows_of(0.8, 0.95, 0.96, 0.96), Goals(), 2, ("complete",)),  # nearest, and no longer than that takes
    (rows_of(0.8, 0.95, 0.995, 1.0, tells=2), Goals(), 1, ("complete",)),
    (rows_of(0.8, 0.95, 0.995, 1.0), Goals(latency=SECOND), 1, ("complete",)),
    (rows_of(0.8, 0.95, 0.995, 1.0), Goals(latency=-1), 2, ("latency",)),
    (rows_of(0.8, 0.95, 0.96, 0.97), Goals(latency=-1), 3, ("complete", "latency")),
    (rows_of(0.8, 0.95, 0.995, 1.0), Goals(complete=0.0), 0, ()),
])  # fmt: skip
def test_what_comes_nearest(rows, goals, delay, unmet):
    one = recommended(rows, 0, goals)
    assert (one.delay, one.unmet) == (delay * SECOND, unmet)


def test_of_delays_of_which_too_little_is_known_that_is_said(tmp_path):
    told = told_of(tmp_path / "events", exponential(number=300))
    rows = rows_of(0.8, 0.95, 0.995, tells=2)
    short = replace(told, rows=tuple(rows), recommended=recommended(rows, 0, Goals()))
    assert "no delay of which enough windows were over makes on-time panes 99.00 % complete" in said(short)
    rows = rows_of(0.8, 0.95, 0.96)
    never = replace(told, rows=tuple(rows), recommended=recommended(rows, 0, Goals()))
    assert "cannot be had: no delay makes on-time panes 99.00 % complete; this one comes nearest" in said(never)
    assert recommended(rows_of(0.8, 0.95, tells=0), 0, Goals()) is None


def test_nearly_as_complete_and_far_sooner_is_said(tmp_path):
    told = told_of(tmp_path / "events", stragglers(share=0.012))
    assert told.recommended.delay > 15 * SECOND
    assert told.recommended.sooner.delay < 5 * SECOND
    assert 0.98 <= told.recommended.sooner.complete < 0.99
    assert "would be there far sooner, with ps.bounded(" in said(told)


def test_no_line_is_wider_than_the_terminal(tmp_path):
    told = told_of(tmp_path / "events", exponential(), goals=Goals(latency=2 * SECOND))
    for width in (80, 120):
        assert max(len(line) for line in lines(told, width)) <= width
    assert " ".join(" ".join(lines(told, 80)).split()) == " ".join(" ".join(lines(told)).split())
