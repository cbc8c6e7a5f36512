"""A shard's memory: a batch writes and fetches near what it touches, and damaged bytes are refused by name."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pytest

import penstock as ps
from penstock.engine.ingest.row_steps import SourceBatch
from penstock.engine.ingest.windows import ingest
from penstock.engine.state import codec
from penstock.engine.state.cache import CACHE, LEAST_MB, MOST_MB, Cache, default_mb, machine_memory
from penstock.engine.state.snapshot import part_names, restored, saved
from penstock.engine.windows.compiled import Compiled
from penstock.engine.windows.lifecycle import Clock
from penstock.engine.windows.step import Memory, Stepped, held_cells, open_records, open_windows, start, step
from penstock.errors import DataError

HOUR = 3_600_000_000
BEGUN = Clock(0, 0)
EARLY = ps.at_watermark(early=ps.count(1))


def compiled(window=None, trigger=EARLY, **options) -> Compiled:
    stream = ps.events("key long, value long, at timestamp").event_time("at", watermark=ps.by_hand()).key_by("key")
    windowed = stream.window(window or ps.tumbling("1 hour"), **options).trigger(trigger).accumulating()
    return Compiled(windowed.aggregate(total=ps.sum("value"), n=ps.rows()).plan)


def batch(plan: Compiled, memory: Memory, keys: np.ndarray, *, hour: int = 0, clock: Clock = BEGUN) -> Stepped:
    """One event of each key, in this hour of 1970."""
    at = pa.array(np.full(len(keys), hour * HOUR + 1)).cast(pa.timestamp("us", tz="UTC"))
    rows = pa.RecordBatch.from_arrays([pa.array(keys), pa.array(keys), at], names=["key", "value", "at"])
    given = SourceBatch("events", "0", np.arange(len(keys)), rows)
    return step(plan, memory, [ingest(plan, given, clock.watermark, 100 * HOUR).blob], clock)


class Store:
    """A place for parts that writes down what was fetched."""

    def __init__(self) -> None:
        self.parts: dict[str, bytes] = {}
        self.fetched: list[str] = []

    def turned(self, plan: Compiled, memory: Memory) -> tuple[Memory, int]:
        """The memory saved and restored in a process that has nothing in its cache, and how much was written."""
        diff = saved(plan, memory, self.parts)
        self.parts |= diff.parts
        CACHE.clear()
        self.fetched.clear()
        return restored(plan, diff.head, self.fetch), len(diff.head) + sum(map(len, diff.parts.values()))

    def fetch(self, name: str) -> bytes:
        self.fetched.append(name)
        return self.parts[name]


WINDOWS = {"tumbling": ps.tumbling("1 hour"), "sessions": ps.session("1 hour"), "pairs": ps.event_pairs("1 second")}


@pytest.mark.parametrize("window", WINDOWS.values(), ids=WINDOWS.keys())
def test_a_batch_writes_what_it_touches_and_not_all_that_is_open(window):
    plan, store = compiled(window), Store()
    memory, whole = store.turned(plan, batch(plan, start(plan), np.arange(50_000)).memory)
    touched = []
    for i in range(5):
        stepped = batch(plan, memory, np.arange(i, 50_000, 500))
        memory, written = store.turned(plan, stepped.memory)
        touched.append(written)
    assert open_windows(plan, memory) == 50_000
    assert max(touched) < whole / 10


def test_many_arrivals_of_new_keys_do_not_write_those_that_are_open_again():
    plan, store = compiled(), Store()
    memory, first = store.turned(plan, batch(plan, start(plan), np.arange(20_000)).memory)
    memory, second = store.turned(plan, batch(plan, memory, np.arange(19_000, 39_000)).memory)
    assert open_windows(plan, memory) == 39_000
    assert second < 1.2 * first


def test_a_run_of_which_much_is_touched_is_written_as_a_whole():
    plan, store = compiled(), Store()
    memory, _ = store.turned(plan, batch(plan, start(plan), np.arange(20_000)).memory)
    memory, _ = store.turned(plan, batch(plan, memory, np.arange(0, 20_000, 2)).memory)
    assert len(memory.windows) == 1
    assert open_windows(plan, memory) == 20_000


def test_slices_write_a_batch_once_and_merge_seldom():
    plan, store = compiled(trigger=ps.at_watermark()), Store()
    memory, whole = store.turned(plan, batch(plan, start(plan), np.arange(50_000)).memory)
    for i in range(10):
        memory, written = store.turned(plan, batch(plan, memory, np.arange(i, 50_000, 500)).memory)
        assert written < whole / 10
        assert not store.fetched
    assert (open_windows(plan, memory), open_records(plan, memory), held_cells(memory)) == (50_000, 51_000, 51_000)


def test_a_run_out_of_reach_is_not_fetched_until_it_is_due():
    plan, store = compiled(), Store()
    memory, _ = store.turned(plan, batch(plan, start(plan), np.arange(10_000)).memory)
    old = part_names(saved(plan, memory, store.parts).head)
    memory, _ = store.turned(plan, batch(plan, memory, np.arange(5_000), hour=1).memory)
    stepped = batch(plan, memory, np.arange(3_000), hour=1, clock=Clock(HOUR - 1, 1))
    assert store.fetched
    assert not set(store.fetched) & set(old)
    memory, _ = store.turned(plan, stepped.memory)
    stepped = batch(plan, memory, np.arange(0), clock=Clock(HOUR, 2))
    assert set(old) <= set(store.fetched)
    assert stepped.panes.num_rows == 10_000
    assert (open_windows(plan, stepped.memory), open_records(plan, stepped.memory)) == (5_000, 8_000)


def test_a_batch_with_nothing_to_do_changes_and_fetches_nothing():
    plan, store = compiled(), Store()
    memory, _ = store.turned(plan, batch(plan, start(plan), np.arange(10_000)).memory)
    stepped = batch(plan, memory, np.arange(0), clock=Clock(5, 5))
    assert stepped.memory.windows == memory.windows
    assert not store.fetched
    assert not saved(plan, stepped.memory, store.parts).parts


def test_what_was_taken_is_known_after_a_cold_start():
    plan, store = compiled(), Store()
    memory, _ = store.turned(plan, batch(plan, start(plan), np.arange(20_000)).memory)
    for i in range(3):
        memory, _ = store.turned(plan, batch(plan, memory, np.arange(i * 2_500, (i + 1) * 2_500)).memory)
    assert len(memory.windows) > 1
    stepped = batch(plan, memory, np.arange(0), clock=Clock(HOUR, 1))
    counts = stepped.panes.column("n").to_pylist()
    assert (len(counts), sum(counts)) == (20_000, 27_500)
    assert open_windows(plan, stepped.memory) == 0
    assert stepped.memory.windows == ()


def test_rows_beyond_the_largest_run_lie_in_several(monkeypatch):
    monkeypatch.setattr("penstock.engine.state.runs.LARGEST", 4_000)
    monkeypatch.setattr("penstock.engine.windows.slices.LARGEST", 4_000)
    monkeypatch.setattr("penstock.engine.windows.slices.MANY_RUNS", 1)
    for trigger in (EARLY, ps.at_watermark()):
        plan = compiled(trigger=trigger)
        memory = batch(plan, start(plan), np.arange(10_000)).memory
        memory = batch(plan, memory, np.arange(10_000)).memory
        pieces = memory.windows or memory.slices.runs[0].pieces
        assert len(pieces) > 2
        assert open_windows(plan, memory) == 10_000
        shown = batch(plan, memory, np.arange(0), clock=Clock(HOUR, 1)).panes
        assert shown.column("n").to_pylist() == [2] * 10_000


def test_a_column_that_is_one_value_costs_one_at_rest():
    plan = compiled()
    few, many = (saved(plan, batch(plan, start(plan), np.arange(n)).memory) for n in (5_000, 10_000))
    # key, hash and sum differ from row to row; the other fifteen columns are one value each.
    sizes = [sum(map(len, one.parts.values())) for one in (few, many)]
    assert sizes[1] - sizes[0] < 5_000 * 3 * 8.5


def test_a_damaged_part_is_named():
    plan = compiled()
    kept = saved(plan, batch(plan, start(plan), np.arange(10)).memory)
    (name,) = part_names(kept.head)
    CACHE.clear()
    memory = restored(plan, kept.head, lambda asked: kept.parts[asked][:-1] + b"?")
    with pytest.raises(DataError, match=f"part {name} of a shard's memory is damaged"):
        batch(plan, memory, np.arange(10))


def test_a_damaged_head_and_other_formats_are_refused(monkeypatch):
    plan = compiled()
    head = saved(plan, start(plan)).head
    for bad in (b"", b"PSTK", b"what is this?" * 9, head[:-1], head.replace(b"clock", b"clack")):
        with pytest.raises(DataError, match="these bytes are not a shard's memory"):
            part_names(bad)
    monkeypatch.setattr(codec, "FORMAT", 3)
    with pytest.raises(DataError, match="this memory has the format 2"):
        restored(plan, head, {}.__getitem__)
    assert json.loads(head[24:])["format"] == 2


def test_the_cache_lets_go_of_what_was_used_least():
    cache = Cache(10)
    for name in "abc":
        cache.put(name, name, 4)
    assert cache.held == 8
    assert cache.get("b", lambda: ("made", 4)) == "b"
    cache.put("d", "d", 4)
    assert cache.get("b", lambda: ("made", 4)) == "b"
    assert cache.get("c", lambda: ("made", 4)) == "made"
    cache.put("huge", "huge", 11)
    assert cache.get("huge", lambda: ("made", 1)) == "made"


def test_the_cache_lets_go_of_what_a_memory_has_no_more():
    cache = Cache(100)
    for name in ("a", "b", "c", "other"):
        cache.put(name, name, 10)
    cache.only("shard 0", before=[], after=["a", "b"])
    assert cache.held == 40
    # What another worker has added meanwhile, and what this one had when it last saw the shard.
    cache.only("shard 0", before=["b", "c"], after=["b"])
    assert cache.held == 20
    assert cache.get("b", lambda: pytest.fail("it is here")) == "b"
    assert cache.get("other", lambda: pytest.fail("it is another's")) == "other"
    cache.only("shard 0", before=["b", "never here"], after=[])
    assert cache.held == 10


def test_workers_keep_a_quarter_of_the_machine_together_within_bounds():
    assert default_mb(memory=24 << 30, cores=2) == 3072
    assert default_mb(memory=1 << 30, cores=8) == LEAST_MB
    assert default_mb(memory=1 << 40, cores=2) == MOST_MB
    assert machine_memory() > 0
