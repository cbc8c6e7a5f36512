"""The table of delays is what the reference engine drops with each of them, on the same events in the same batches."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, strategies as st

import penstock as ps
from penstock.observability.advise.goals import Goals
from penstock.observability.advise.inputs import Gathered
from penstock.observability.advise.report import of_record, of_run, of_stream, recommended
from penstock.observability.advise.trade_offs import Row, delays, nice, tried
from penstock.observability.lateness_histogram import Lateness, counted
from penstock.observability.why.batches import observations
from penstock.reference.engine import ReferenceRun
from penstock.runtime.batch import Arrival, Tick
from penstock.storage.local import LocalStore
from penstock.testing.recording import play
from penstock.types.timestamps import parse

SECOND = 1_000_000
WINDOWS = [ps.tumbling("30 seconds"), ps.sliding("1 minute", every="20 seconds"), ps.session("15 seconds")]
STREAMS = st.lists(
    st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 400)), max_size=8), min_size=1, max_size=8
)  # fmt: skip


def windows(rule: Any, lateness: Any = "0", delay: Any = "0", idle: Any = "1 minute") -> Any:
    stream = ps.events("team string, at timestamp").event_time("at", watermark=ps.bounded(delay, idle=idle))
    made = stream.key_by("team").window(rule, lateness=lateness).accumulating()
    return made.aggregate(n=ps.rows()).plan


def gathered(stream: list[list[tuple[str, int]]]) -> Gathered:
    """A batch every twenty seconds, as the sources would have given it."""
    found, at = Gathered(), {"a": 0, "b": 0}
    for number, batch in enumerate(stream):
        rows = []
        for partition, second in batch:
            rows.append(Arrival("events", partition, at[partition], {"team": "red", "at": second * SECOND}))
            at[partition] += 1
        found.batches.append((rows, Tick((400 + 20 * number) * SECOND)))
    return found


@given(STREAMS, st.sampled_from(WINDOWS), st.integers(0, 30), st.sets(st.integers(0, 300), min_size=1, max_size=3))
def test_the_table_is_what_the_reference_drops(stream, rule, lateness, waits):
    found = gathered(stream)
    rows = tried(windows(rule, timedelta(seconds=lateness)), found, sorted(w * SECOND for w in waits), None)
    for row in rows:
        run = ReferenceRun(windows(rule, timedelta(seconds=lateness), timedelta(microseconds=row.delay)))
        held = 0
        for arrivals, tick in found.batches:
            run.batch(arrivals, tick)
            held = max(held, run.open_windows())
        assert row.late == run.totals.late
        assert row.held == held
        assert row.share == run.totals.late / max(found.events, 1)


@given(STREAMS, st.sampled_from(WINDOWS))
@example([[("a", 0)], [("a", 0)]], ps.sliding("1 minute", every="20 seconds"))  # W a moment after the beginning of time
def test_behind_is_at_least_what_is_late(stream, rule):
    """Nobody is late who is not behind the newest of its own partition: without idleness, shares never understate."""
    found, newest = gathered(stream), {}
    lateness = Lateness()
    for arrivals, _ in found.batches:
        for one in arrivals:
            newest[one.partition] = max(newest.get(one.partition, one.row["at"]), one.row["at"])
            lateness.add(counted(np.array([newest[one.partition] - one.row["at"]])))
    for arrivals, tick in list(found.batches)[:1]:
        found.batches[0] = (arrivals, Tick(tick.now, None, (("events", "a"), ("events", "b"))))
    for row in tried(windows(rule, idle=None), found, [0, 10 * SECOND, 60 * SECOND], None):
        assert row.late <= lateness.beyond(row.delay)


def test_waiting_longer_holds_more_and_drops_less():
    stream = [[("a", second), ("a", max(second - 45, 0))] for second in range(0, 300, 5)]
    rows = tried(windows(WINDOWS[0]), gathered(stream), [0, 20 * SECOND, 60 * SECOND], 20 * SECOND)
    assert [row.late for row in rows] == sorted((row.late for row in rows), reverse=True)
    assert rows[0].late > 0 == rows[-1].late
    assert [row.held for row in rows] == sorted(row.held for row in rows if row.held is not None)
    assert [row.after_end for row in rows] == sorted(row.after_end for row in rows if row.after_end is not None)
    assert [row.now for row in rows] == [False, True, False]


def test_delays_are_those_that_were_seen_and_the_one_in_use():
    lateness = counted(np.array([0] * 90 + [5 * SECOND] * 9 + [61_234_567]))
    found = delays(lateness, 7 * SECOND)
    assert found[0] == 0
    assert 7 * SECOND in found
    assert nice(61_234_567) == 62 * SECOND == found[-1]


@pytest.mark.parametrize(("rows", "delay", "tail"), [
    ([Row(0, 100, 0.1, 0, 0), Row(5, 5, 0.005, 0, 0), Row(6, 0, 0.0, 0, 0)], 6, False),
    ([Row(0, 100, 0.1, 0, 0), Row(5, 5, 0.005, 0, 0), Row(600, 0, 0.0, 0, 0)], 5, True),
    ([Row(0, 0, 0.0, 0, 0), Row(5, 0, 0.0, 0, 0)], 0, False),
])  # fmt: skip
def test_a_long_tail_is_corrected_and_not_waited_for(rows, delay, tail):
    said = recommended(rows, 700, Goals(complete=0.0, late=0.001))
    assert said is not None
    assert (said.delay, said.tail) == (delay, tail)
    assert (said.lateness > 0) is (next(row for row in rows if row.delay == delay).late > 0)


def game(**more: Any) -> ps.Pipeline:
    faults = ps.Faults(stragglers=0.02, silent={1: ("6 seconds", "9 seconds")})
    scores = ps.game_scores(rate=300, teams=3, keys=10, partitions=2, realtime=False, start="2026-05-01T12:00:00Z",
                            faults=faults, **more)  # fmt: skip
    timed = scores.event_time("at", watermark=ps.bounded("2 seconds", idle="3 seconds", max_skew=None))
    sums = timed.key_by("team").window(ps.tumbling("5 seconds")).aggregate(points=ps.sum("points"))
    return ps.pipeline("game", sums.write(ps.memory("advised")), batch_rows=300)


def test_a_run_is_tried_under_its_own_clocks(tmp_path: Path) -> None:
    """With the delay that the run had, as many are late as were: silence and all."""
    pipeline = game()
    begin = parse("2026-05-01T12:00:00Z")
    recording = play(pipeline, str(tmp_path), [begin + n * SECOND for n in range(40)], batch_rows=300)
    store = LocalStore(str(tmp_path))
    told = of_run(pipeline, "game.py", store, rows=10**9)
    (now,) = [row for row in told.rows if row.now]
    assert (now.delay, now.late) == (2 * SECOND, recording.run.totals.late)
    assert now.late > 0
    assert told.events == recording.run.totals.read
    counts = of_record("game", observations(store))
    assert counts.events == told.events
    assert counts.lateness == told.lateness
    assert counts.current == 2 * SECOND


def test_part_of_a_run_goes_on_from_what_was_before(tmp_path: Path) -> None:
    pipeline = game()
    begin = parse("2026-05-01T12:00:00Z")
    play(pipeline, str(tmp_path), [begin + n * SECOND for n in range(20)], batch_rows=300)
    told = of_run(pipeline, "game.py", LocalStore(str(tmp_path)), rows=900)
    assert 900 <= told.events < 3_000


def test_a_stream_is_read_without_spark() -> None:
    told = of_stream(game(), "game.py", rows=3_000)
    assert told.exact
    assert 3_000 <= told.events < 4_000
    assert list(told.lateness) == ["p50", "p90", "p99", "p99.9", "max"]
    assert list(told.lateness.values()) == sorted(told.lateness.values())
    assert told.rows[-1].late == 0
