"""The numbers that dashboard, terminal and metrics share."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from penstock.observability.overview import lagging, overview, recent
from penstock.types.timestamps import MAX_TIME, MIN_TIME
from tests.unit.observability.test_attention import CALM, MINUTE, NOON, SECOND, partition, run_of


def test_nothing_observed_is_no_overview():
    assert overview([]) is None


def test_rates_are_of_the_last_ten_seconds():
    seen = run_of(30, counts=lambda number: {"read": 100 if number < 20 else 400},
                  rows=lambda number: {"panes": 2, "1/rows:hits": 3, "late": 9})  # fmt: skip
    found = overview(seen)
    assert found is not None
    assert (found.events_per_second, found.panes_per_second) == (400.0, 5.0)
    slow = overview(run_of(2, 30.0, counts=lambda _: {"read": 600}))
    assert slow is not None
    assert slow.events_per_second == 20.0


def test_shares_are_of_ten_minutes_and_count_as_long_as_a_batch_lasted():
    long = replace(CALM, elapsed=3.0, wall=999.0, shares={"read": 1.0}, counts={"read": 100, "late": 50})
    found = overview([replace(long, wall=1.0), long, replace(CALM, shares={"sinks": 1.0}, counts={"read": 100})])
    assert found is not None
    assert found.shares == {"read": 0.75, "sinks": 0.25}
    assert found.late_share == 0.25


def test_the_watermark_and_how_far_it_is_behind():
    seen = run_of(watermark=NOON - MINUTE, partitions=[partition("0", MINUTE), partition("1", SECOND)])
    found = overview(seen)
    assert found is not None
    assert (found.behind, found.laggard, found.held_back) == (MINUTE, "scores/0", 59 * SECOND)
    for infinite in (MIN_TIME, MAX_TIME):
        unknown = overview(run_of(watermark=infinite))
        assert unknown is not None
        assert unknown.behind is None


@pytest.mark.parametrize(
    ("partitions", "expected"),
    [
        ([], (None, None)),
        ([partition("0", idle=True)], (None, None)),
        ([partition("0")], ("scores/0", None)),
        ([partition("0"), partition("1", watermark=MIN_TIME)], ("scores/1", None)),
        ([partition("0", 5), partition("1"), partition("2", 9, idle=True)], ("scores/0", 5)),
    ],
)
def test_the_laggard(partitions, expected):
    assert lagging(replace(CALM, partitions=partitions)) == expected


def test_lag_and_sizes_are_unknown_where_nobody_tells_them():
    found = overview(run_of())
    assert found is not None
    assert (found.lag, found.state_bytes, found.checkpoint_bytes) == (None, None, None)
    known = overview(run_of(partitions=[partition("0", lag=5), partition("1", lag=7), partition("2")],
                            state={"open": 3, "rows": 4, "bytes": 5}, checkpoint={"bytes": 6}))  # fmt: skip
    assert known is not None
    assert (known.lag, known.open_windows, known.state_rows, known.state_bytes) == (12, 3, 4, 5)
    assert known.checkpoint_bytes == 6
    assert json.loads(json.dumps(known.plain()))["lag"] == 12
    stages = overview(run_of(state={"open": 9}, held={"1: join": 5, "2: windows": 3, "3: windows": 1}))
    assert stages is not None
    assert (stages.open_windows, stages.state_rows) == (4, 9)


def test_recent_batches_end_with_the_last():
    seen = run_of(20, 100.0)
    assert [one.batch for one in recent(seen)] == list(range(14, 20))
    assert recent(seen, 0.0) == [seen[-1]]
