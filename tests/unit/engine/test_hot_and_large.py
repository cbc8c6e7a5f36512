"""Rows 16, 17 and 26 of the faults, where no JVM is needed: a hot key, a key with very many items, a leap second."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import penstock as ps
from penstock.engine.ingest.windows import SourceBatch, ingest
from penstock.engine.shuffle.cells import combined_blob, written_blob
from penstock.engine.state.snapshot import saved
from penstock.engine.windows.compiled import Compiled
from penstock.engine.windows.lifecycle import Clock
from penstock.engine.windows.step import start, step
from penstock.types.timestamps import MIN_TIME

EVENTS = ps.events("key string, v long, at timestamp").event_time("at", watermark=ps.bounded("1 minute"))
NOON = 1_767_268_800_000_000


def blob_of(compiled, keys, start_at=0):
    """What a task sends for a million events or fewer, ten microseconds apart."""
    count = len(keys)
    rows = pa.RecordBatch.from_arrays(
        [pa.array(keys), pa.array(np.ones(count, np.int64)),
         pa.array(NOON + 10 * np.arange(count)).cast(pa.timestamp("us", "UTC"))],
        names=["key", "v", "at"],
    )  # fmt: skip
    given = SourceBatch("events", "0", np.arange(start_at, start_at + count), rows)
    part = ingest(compiled, given, MIN_TIME, NOON + 60_000_000)
    return combined_blob(compiled, [part.blob])


def test_row_16_a_hot_key_is_added_up_before_the_shuffle():
    """Four in five of 200,000 events have one key: what is sent is a row for each key and window."""
    compiled = Compiled(EVENTS.key_by("key").window(ps.tumbling("1 second")).aggregate(total=ps.sum("v")).plan)
    random = np.random.default_rng(7)
    uniform = [f"key{number}" for number in random.integers(0, 1_000, 200_000)]
    hot = [one if chance > 0.8 else "hot" for one, chance in zip(uniform, random.random(200_000), strict=True)]
    sizes = {name: len(written_blob(blob_of(compiled, keys))) for name, keys in (("uniform", uniform), ("hot", hot))}
    assert sizes["hot"] <= 1.05 * sizes["uniform"]
    assert sizes["hot"] < 200_000


@pytest.mark.parametrize("windows", [ps.tumbling("1 hour"), ps.session("1 hour"), ps.global_window()], ids=str)
def test_row_17_a_key_with_a_million_items_is_a_few_numbers(windows):
    """A sum holds what it needs, however many rows it has seen, with a trigger that remembers as well."""
    panes = (
        EVENTS.key_by("key").window(windows).trigger(ps.at_watermark(early=ps.count(100_000))).accumulating()
        .aggregate(total=ps.sum("v"), n=ps.rows())
    )  # fmt: skip
    compiled = Compiled(panes.plan)
    memory = start(compiled)
    for batch in range(4):
        blob = blob_of(compiled, ["one"] * 250_000, batch * 250_000)
        memory = step(compiled, memory, [blob], Clock(MIN_TIME, NOON + 60_000_000)).memory
    made = saved(compiled, memory, set())
    assert len(made.head) + sum(map(len, made.parts.values())) < 50_000


def test_row_26_a_leap_second_is_no_time_of_ours_and_is_quarantined():
    """POSIX time has no place for 23:59:60: the row is kept with the reason, and moves nothing."""
    stream = ps.events("at string, v long").with_columns(at="cast(at as timestamp)")
    timed = stream.event_time("at", watermark=ps.bounded("1 minute"))
    from penstock.testing import Script

    for engine in ("reference", "columnar"):
        script = Script(timed.window(ps.tumbling("1 minute")).aggregate(n=ps.rows()), engine)
        script.batch([{"at": "2016-12-31T23:59:59Z", "v": 1}, {"at": "2016-12-31T23:59:60Z", "v": 2}],
                     now="2017-01-01T00:00:00Z")  # fmt: skip
        script.end()
        assert [pane.values["n"] for pane in script.panes] == [1]
        (bad,) = script.quarantined
        assert bad.row["v"] == 2
