"""How far behind events come: counted by the rule of the percentile watermark, coarse, and the same however split."""

from __future__ import annotations

import json
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, strategies as st

from penstock.observability import lateness_histogram
from penstock.observability.lateness_histogram import (
    LOOKED_AT,
    OTHERS,
    PARTITIONS,
    Behind,
    Lateness,
    counted,
    together,
    told_of,
)
from penstock.observability.sampling import Sample
from penstock.types.timestamps import EARLIEST, LATEST, MIN_TIME
from tests.unit.observability.test_sample import given as chunk_of


def exact(times: list[int]) -> list[int]:
    """The delays of a partition's events, one by one."""
    newest, found = times[0], []
    for time in times:
        newest = max(newest, time)
        found.append(newest - time)
    return found


@given(st.lists(st.integers(0, 2**62), min_size=1, max_size=40))
def test_a_length_is_never_too_short_and_hardly_too_long(delays):
    for delay in delays:
        ((length, number),) = counted(np.array([delay])).counts.items()
        assert delay <= length <= delay * (1 + 1 / 16) + 1
        assert number == 1
    assert counted(np.array(delays)).longest == max(delays)
    assert counted(np.array(delays)).total == len(delays)


@given(st.lists(st.integers(EARLIEST, LATEST), min_size=1, max_size=60), st.lists(st.integers(0, 60), max_size=4))
def test_delays_are_the_same_however_the_events_are_split(times, cuts):
    places = sorted({0, len(times), *(cut for cut in cuts if cut < len(times))})
    behind, found = Behind(), Lateness()
    for low, high in pairwise(places):
        found.add(behind.more("0", np.array(times[low:high], dtype=np.int64)))
    whole = counted(np.array(exact(times), dtype=np.int64))
    assert (found.counts, found.longest) == (whole.counts, whole.longest)


@given(st.lists(st.integers(0, 10**9), min_size=1, max_size=80), st.sampled_from([0.5, 0.9, 0.99, 1.0]))
def test_a_quantile_is_that_of_the_delays_rounded_up(delays, p):
    found = counted(np.array(delays))
    right = sorted(delays)[max(-(-int(p * 100) * len(delays) // 100), 1) - 1]
    assert right <= found.quantile(p) <= right * (1 + 1 / 16) + 1
    assert found.beyond(found.quantile(p)) <= len(delays) - sum(one <= right for one in delays)


def test_of_very_many_some_are_counted_and_the_longest_is_kept():
    times = np.arange(10 * LOOKED_AT) * 1_000
    times[7] = -1_000_000_000
    found = Behind().more("0", times)
    assert found.longest == 1_000_006_000
    assert found.total == 10 * LOOKED_AT
    assert len(found.counts) < 10


def test_they_come_back_from_json_and_add_up():
    found = {str(number): Lateness(Counter({0: 5, number: 1}), number) for number in range(1, PARTITIONS + 4)}
    told = json.loads(json.dumps(told_of(found)))
    assert len(told) == PARTITIONS + 1
    assert told[-1]["partition"] == OTHERS
    assert sum(one.total for one in together([told, told]).values()) == 2 * 6 * len(found)


def test_a_task_goes_on_from_the_newest_event_before_its_batch():
    sample = Sample("scores", ("team",), "at", behind=Behind({"3": 500}))
    sample.add(*chunk_of(10, range(10)), now=0)
    told = sample.plain()["behind"]["3"]
    assert told["longest"] == 500
    assert sum(number for _, number in told["counts"]) == 10
    alone = Sample("scores", ("team",), "at")
    alone.add(*chunk_of(10, range(10)), now=0)
    assert alone.plain()["behind"]["3"] == {"counts": [[0, 10]], "longest": 0}


@pytest.mark.parametrize("block", [1, 7, 64, 100_000])
def test_blocks_change_nothing(block, monkeypatch):
    monkeypatch.setattr(lateness_histogram, "BLOCK", block)
    monkeypatch.setattr(lateness_histogram, "LOOKED_AT", 50)
    random = np.random.default_rng(3)
    behind = Behind()
    newest = MIN_TIME
    for count in (1, 49, 50, 51, 1_000):
        times = random.integers(0, 1_000_000, count)
        running = np.maximum(np.maximum.accumulate(times), newest)
        newest = int(running[-1])
        step = -(-count // 50)
        expected = counted((running - times)[step - 1 :: step], step)
        found = behind.more("0", times)
        assert (found.counts, found.longest) == (expected.counts, int((running - times).max()))
        assert behind.newest == {"0": newest}


@pytest.mark.parametrize("events", [1_000_000])
def test_a_million_events_take_a_moment(events):
    import time

    times = np.random.default_rng(1).integers(0, 10**9, events)
    begun = time.perf_counter()
    Behind().more("0", times)
    assert time.perf_counter() - begun < 0.5  # about ten milliseconds; a loop in Python would take longer than this
