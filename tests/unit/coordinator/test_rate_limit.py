"""How much a batch takes: less when it lasts too long, more when it was full and quick."""

import pytest

from penstock.coordinator.rate_limit import FIRST_ROWS, LEAST_ROWS, Throttle, allowed, next_rows
from penstock.coordinator.sink_retry import Times


@pytest.mark.parametrize(
    ("rows", "events", "seconds", "then"),
    [
        (100_000, 100_000, 20.0, 50_000),  # twice as long as it should: half
        (100_000, 20_000, 20.0, 10_000),  # not even full, and too long
        (100_000, 100_000, 5.0, 200_000),  # full and quick: up, but no more than twice
        (100_000, 100_000, 0.1, 200_000),
        (100_000, 90_000, 9.0, 100_000),  # about right
        (100_000, 10, 0.2, 100_000),  # all there was: says nothing
        (100_000, 0, 60.0, 100_000),  # it waited for something else
        (2_000, 1_500, 600.0, LEAST_ROWS),
    ],
)
def test_a_batch_teaches_the_next(rows, events, seconds, then):
    assert next_rows(rows, events, seconds, 10.0) == then


@pytest.mark.parametrize(("fixed", "each"), [(0.3, 1e-6), (0.3, 1e-4), (2.0, 1e-3)])
def test_it_settles_near_the_target_from_either_side(tmp_path, fixed, each):
    """A backlog without end: a batch costs something for itself and something for each row."""
    throttle = Throttle(str(tmp_path / "rows"), 5.0)
    for first in (LEAST_ROWS, FIRST_ROWS):
        throttle.tell(first)
        for _ in range(40):
            seconds = fixed + each * throttle.rows
            throttle.took(throttle.rows, seconds)
        assert 0.7 * 5.0 <= fixed + each * throttle.rows <= 1.25 * 5.0
        assert allowed(throttle.path) == throttle.rows


def test_rows_of_a_batch_are_a_bound(tmp_path):
    throttle = Throttle(str(tmp_path / "rows"), 10.0, most=500)
    assert allowed(throttle.path) == 500
    throttle.took(500, 0.1)
    assert allowed(throttle.path) == 500
    assert allowed("") is None


def test_the_shares_of_a_batch_are_all_of_its_time():
    times = Times(begun=100.0, stepping=101.0, heard=103.0, written=104.0)
    assert times.shares(10.0) == {"read": 0.1, "step": 0.2, "sinks": 0.1, "waiting": pytest.approx(0.6)}
    assert sum(times.shares(1.0).values()) == pytest.approx(1.0)


def test_the_clock_of_another_machine_does_not_make_a_share_negative():
    times = Times(begun=0.0)
    times.collected(1e12)
    assert times.stepping == times.heard
    times.collected(0.0)
    assert times.stepping == times.begun
