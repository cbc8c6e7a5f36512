"""When is a run at its end: by which batch, by whose rows, and what is told of what came after the end."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import penstock as ps
from penstock.checkpoint.spark_logs import checked, foreign
from penstock.connectors.spark_dataframe import Frame
from penstock.coordinator.commit import Commit
from penstock.coordinator.messages import COUNTS, TICK
from penstock.runtime.batch import Counts
from penstock.spark.source import FusedReader, Readers
from penstock.storage.local import LocalStore
from penstock.types.timestamps import MAX_TIME
from tests.unit.spark.test_tasks import Still, logged

LATER = 2_000_000_000
STEP = 1_000_000


def put(folder: Path, name: str, written: int) -> None:
    (folder / name).write_text('{"n": 1}\n')
    os.utime(folder / name, (written, written))


def tick(reader: FusedReader, start: dict[str, Any], end: dict[str, Any]) -> dict[str, Any]:
    """What the shards and the driver are told of a batch."""
    (told,) = [json.loads(part.value)["tick"] for part in reader.partitions(start, end) if "tick" in part.value]
    return dict(json.loads(told))


def test_a_note_says_what_came_after_the_end_and_not_what_is_still_to_be_read(tmp_path: Path) -> None:
    put(tmp_path, "a.json", 1_000)
    put(tmp_path, "b.json", 1_001)
    (one,) = ps.directory(tmp_path, schema="n long", name="in", end=True).inputs
    job: Any = SimpleNamespace(flow=SimpleNamespace(inputs=[one]))
    reader = FusedReader(Readers(job, {"in": one.source.reader}, Still(), batch_rows=1))
    start = reader.initialOffset()
    middle = logged(reader.latestOffset(start, None))
    put(tmp_path, "late.json", LATER)
    told = tick(reader, start, middle)
    assert (told["finished"], told["behind"], told["notes"]) == (False, [["in", "0"]], [])
    end = logged(reader.latestOffset(middle, None))
    told = tick(reader, middle, end)
    assert (told["finished"], told["behind"]) == (True, [])
    (note,) = told["notes"]
    assert note.startswith(f"1 file came to {tmp_path} after its end, unread: late.json; end= holds")
    # A copy that keeps an old time has come before the end: a batch to come reads it.
    put(tmp_path, "old.json", 1_000)
    told = tick(reader, middle, end)
    assert (told["behind"], told["notes"]) == ([["in", "0"]], [])


def test_the_offsets_of_others_are_what_spark_wrote_beside_ours(tmp_path: Path) -> None:
    ours = json.dumps(checked({"now": 1, "sources": {}}))
    lines = ["v1", '{"batchTimestampMs":0}', ours, '{"logOffset":3}', "-", "7"]
    store = LocalStore(str(tmp_path))
    store.create("offsets/0", "\n".join(lines).encode())
    store.create("offsets/1", "\n".join([*lines[:3], "-"]).encode())
    assert foreign(store, 0) == ['{"logOffset":3}', "7"]
    assert foreign(store, 1) == []
    assert foreign(store, 2) == []


def committed(store: LocalStore, until: str, replaying: int | None, *, framed: bool = False) -> Commit:
    """What Spark calls with each batch, and nobody who writes or hears of anything."""
    rows = ps.events("team string, at timestamp", name="rows", bounded=True)
    if framed:
        (one,) = rows.inputs
        rows = replace(rows, inputs=(replace(one, source=replace(one.source, reader=Frame(None))),))
    timed = rows.event_time("at", watermark=ps.ascending()).key_by("team").window(ps.tumbling("1 minute"))
    pipeline = ps.pipeline("ending", timed.aggregate(n=ps.rows()).write(ps.memory("ending")))
    fake: Any = SimpleNamespace(write=lambda *_, **__: {}, refuse_if_lost=lambda: None, ledgers={}, epoch=1)

    def unheard(_: Any) -> Any: ...

    return Commit(pipeline, "lineage", store, fake, fake, until, unheard, unheard, unheard, replaying=replaying)


def batch(commit: Commit, number: int, rows: int, *, behind: bool = False) -> bool:
    """One batch of so many rows of a source that says it is at its end; whether the run is over then."""
    told = {"now": STEP * number, "partitions": [["rows", "0"]], "behind": [["rows", "0"]] if behind else [],
            "finished": True}  # fmt: skip
    counts = {"counts": asdict(Counts(read=rows)), "source": "rows", "read": rows, "bad": 0}
    heads = {TICK: told, COUNTS: counts}
    words = [{"kind": kind, "shard": 0, "head": json.dumps(head), "payload": b""} for kind, head in heads.items()]
    commit(SimpleNamespace(collect=lambda: words), number)
    return commit.done


@pytest.mark.parametrize("clock_too", [False, True])
def test_a_batch_that_is_run_again_does_not_say_that_all_is_read(tmp_path: Path, clock_too: bool) -> None:
    """It was planned before the run was killed: whether its clock was written then or not, another batch looks."""
    store = LocalStore(str(tmp_path))
    commit = committed(store, "caught_up", None)
    assert [batch(commit, 0, 5), batch(commit, 1, 0)] == [False, True]
    if clock_too:
        store.delete("penstock/clock/000000000002")
    again = committed(store, "caught_up", 1)
    assert not batch(again, 1, 0)
    assert [batch(again, 2, 3), batch(again, 3, 0, behind=True), batch(again, 4, 0)] == [False, False, True]


def test_what_has_ended_is_at_its_end_also_when_its_last_batch_is_run_again(tmp_path: Path) -> None:
    store = LocalStore(str(tmp_path))
    commit = committed(store, "end", None)
    assert [batch(commit, number, rows) for number, rows in enumerate([5, 0, 0])] == [False, False, True]
    assert batch(committed(store, "end", 2), 2, 0)


def test_a_batch_that_is_run_again_does_not_begin_the_end(tmp_path: Path) -> None:
    """It was planned before the run was killed: what has come since would be late."""
    store = LocalStore(str(tmp_path))
    assert not batch(committed(store, "end", None), 0, 5)
    again = committed(store, "end", 1)
    batch(again, 1, 0)
    assert again.clocks.watermark < MAX_TIME
    assert [batch(again, 2, 3), batch(again, 3, 0), batch(again, 4, 0)] == [False, False, True]


def test_the_watermark_is_held_while_there_is_more_to_read(tmp_path: Path) -> None:
    """A source may say that it is at its end, and that more has come of what belongs to it: that is on time."""
    commit = committed(LocalStore(str(tmp_path)), "end", None)
    batch(commit, 0, 0, behind=True)
    held = commit.clocks.watermark
    batch(commit, 1, 0)
    assert held < commit.clocks.watermark


@pytest.mark.parametrize("until", ["caught_up", "end"])
def test_a_batch_that_spark_gave_something_is_not_the_last(tmp_path: Path, until: str) -> None:
    """Spark's own source has moved, though no row of it came as far as here."""
    store = LocalStore(str(tmp_path))
    commit = committed(store, until, None, framed=True)
    for number, offset in enumerate([1, 2, 2, 2]):
        lines = ["v1", "{}", json.dumps(checked({"now": 1, "sources": {}})), f'{{"logOffset":{offset}}}']
        store.create(f"offsets/{number}", "\n".join(lines).encode())
    assert [batch(commit, 0, 0), batch(commit, 1, 0)] == [False, False]
    assert batch(commit, 2, 0) is (until == "caught_up")
