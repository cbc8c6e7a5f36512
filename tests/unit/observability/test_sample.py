"""A task's sample: bounded, the same each time, and fair to every key."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from penstock.connectors.source import Chunk
from penstock.engine.ingest.row_steps import Read
from penstock.observability.hot_keys import COUNTERS, HotKeys
from penstock.observability.sampling import DOTS, KEYS, LONGEST, Sample, even, row_text


def given(count: int, keys: Any, logged: tuple[int, int] | None = None) -> tuple[Chunk, Read]:
    rows = pa.RecordBatch.from_pydict({"team": [str(key) for key in keys], "at": list(range(count)),
                                       "points": list(range(count))})  # fmt: skip
    chunk = Chunk("3", np.arange(100, 100 + count), rows, (), logged)
    return chunk, Read(rows, np.arange(count) * 10)


def sampled(*chunks: tuple[Chunk, Read], now: int = 0) -> dict[str, Any]:
    sample = Sample("scores", ("team",), "at")
    for chunk, read in chunks:
        sample.add(chunk, read, now)
    return json.loads(json.dumps(sample.plain()))


@pytest.mark.parametrize(("count", "most"), [(0, 4), (3, 4), (4, 4), (5, 4), (1_000, 4)])
def test_places_are_even_and_the_last_is_among_them(count, most):
    places = even(count, most).tolist()
    assert len(places) == min(count, most)
    assert len(set(places)) == len(places)
    assert not count or places[-1] == count - 1


def test_a_million_rows_give_as_little_as_a_hundred():
    many = sampled(given(100_000, np.arange(100_000) % 7), given(50_000, np.zeros(50_000)))
    assert len(many["dots"]) == DOTS
    assert many["dots"] == sampled(given(100_000, np.arange(100_000) % 7), given(50_000, np.zeros(50_000)))["dots"]
    assert len(sampled(given(5_000, range(5_000)))["keys"]) == KEYS


def test_a_dot_is_its_event():
    dots = sampled(given(10, range(10)))["dots"]
    assert dots[4] == {"partition": "3", "offset": 104, "event_time": 40, "key": "4", "text": "4"}


def test_rows_that_were_filtered_keep_their_offsets():
    chunk, read = given(10, range(10))
    read.keep(np.array([2, 7]))
    assert [dot["offset"] for dot in sampled((chunk, read))["dots"]] == [102, 107]


def test_the_time_to_the_log_and_from_it():
    assert sampled(given(10, range(10), logged=(109, 500)), now=800)["skew"] == {"3": [410, 300]}


def test_a_hot_key_is_told_with_its_share():
    keys = np.where(np.random.default_rng(1).random(200_000) < 0.8, 0, np.arange(200_000))
    hot = HotKeys()
    for _ in range(5):
        told = sampled(given(200_000, keys))
        hot.batch([(key, number) for key, number in told["keys"]], told["looked"])
    (key, share, error), *_ = hot.shares()
    assert key == "0"
    assert share == pytest.approx(0.8, abs=0.06)
    assert error < 0.01


def test_the_sketch_is_bounded_and_lets_a_key_go_that_cools_down():
    hot = HotKeys()
    hot.batch([("once", 900)], 1_000)
    for batch in range(400):
        hot.batch([(f"{batch}-{one}", 1) for one in range(50)] + [("now", 100)], 150)
    assert len(hot.counts) <= COUNTERS
    names = [key for key, _, _ in hot.shares()]
    assert names[0] == "now"
    assert "once" not in names


def test_long_values_are_cut_and_null_is_said():
    assert len(row_text({"a": "x" * 1_000})) == LONGEST
    assert row_text({"a": None, "b": 2}) == "a null, b 2"


def test_events_without_a_key_are_counted_nowhere():
    sample = Sample("scores", ())
    sample.add(*given(10, range(10)), now=0)
    assert (sample.plain()["keys"], sample.plain()["looked"]) == ([], 0)
    assert SimpleNamespace(**sample.plain()["dots"][0]).key == ""


def test_a_value_that_python_cannot_show_stops_nothing():
    moments = pa.array([-(2**62)], pa.timestamp("us", tz="UTC"))
    with pytest.raises((ValueError, OverflowError)):
        moments.to_pylist()
    rows = pa.RecordBatch.from_arrays([pa.array(["red"]), moments], ["team", "born"])
    assert sampled((Chunk("0", np.arange(1), rows), Read(rows, np.zeros(1, np.int64))))["dots"] == []
