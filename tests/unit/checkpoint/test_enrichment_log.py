"""Answers that are written down: once, by whoever is first, whole or not at all, and no longer than they are needed."""

from __future__ import annotations

import itertools
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import fs

import penstock as ps
from penstock.checkpoint.enrichment_log import WrittenDown, answers_place, forget_answers
from penstock.engine.operators.enrich import Answers
from penstock.plan.graph import Flow, flow_of
from penstock.storage import arrow
from penstock.storage.arrow import ArrowStore, store_at
from penstock.storage.local import CheckpointError, LocalStore, Store


class Fickle:
    """Answers each question otherwise each time, and fails at every third."""

    def __init__(self) -> None:
        self.asked: list[Any] = []

    def answers(self, questions: pa.RecordBatch) -> Answers:
        numbers = [len(self.asked) + i for i in range(questions.num_rows)]
        self.asked += questions.column(0).to_pylist()
        failed = ["down" if number % 3 == 2 else None for number in numbers]
        return Answers(pa.RecordBatch.from_arrays([pa.array(numbers)], names=["n"]), pa.array(failed, pa.string()))


def ask(place: Path | str, outside: Any, *asked: Any, batch: int = 3, stage: int = 1, shard: int = 7) -> list[Any]:
    questions = pa.RecordBatch.from_arrays([pa.array(asked, pa.string())], names=["q"])
    made = WrittenDown(str(place), batch, stage, shard, outside).answers(questions)
    return list(zip(made.batch.column(0).to_pylist(), made.failed.to_pylist(), strict=True))


def test_a_batch_that_is_played_again_hears_the_same(tmp_path: Path) -> None:
    outside = Fickle()
    first = ask(tmp_path, outside, "a", None, "c", "d")
    assert first == [(0, None), (1, None), (2, "down"), (3, None)]
    assert ask(tmp_path, outside, "a", None, "c", "d") == first
    assert ask(tmp_path, outside, "d", "a") == [(3, None), (0, None)]
    assert outside.asked == ["a", None, "c", "d"]
    assert [one.name for one in tmp_path.iterdir()] == ["000000000003-1-7-0"]


def test_batches_stages_and_shards_are_told_apart(tmp_path: Path) -> None:
    outside = Fickle()
    heard = [ask(tmp_path, outside, "a", **{**{"batch": 3, "stage": 1, "shard": 7}, **other})
             for other in ({}, {"batch": 4}, {"stage": 0}, {"shard": 8}, {})]  # fmt: skip
    assert [one for ((one, _),) in heard] == [0, 1, 2, 3, 0]


def test_questions_that_are_new_when_a_batch_is_played_again_are_asked_and_written_too(tmp_path: Path) -> None:
    outside = Fickle()
    ask(tmp_path, outside, "a", "b")
    assert ask(tmp_path, outside, "x", "b", "a") == [(2, "down"), (1, None), (0, None)]
    assert ask(tmp_path, outside, "y", "x") == [(3, None), (2, "down")]
    assert ask(tmp_path, outside, "y", "x", "a", "b") == [(3, None), (2, "down"), (0, None), (1, None)]
    assert len(outside.asked) == 4


def test_of_two_attempts_the_first_that_has_written_wins(tmp_path: Path) -> None:
    class Slow(Fickle):
        def answers(self, questions: pa.RecordBatch) -> Answers:
            ask(tmp_path, other, "a", "b")
            return super().answers(questions)

    other, slow = Fickle(), Slow()
    other.asked = ["before"] * 3
    assert ask(tmp_path, slow, "b", "c", "a") == [(4, None), (3, None), (3, None)]
    assert slow.asked == ["b", "c", "a", "c"]


def test_a_file_that_was_changed_is_refused(tmp_path: Path) -> None:
    ask(tmp_path, Fickle(), "a")
    (file,) = tmp_path.iterdir()
    data = bytearray(file.read_bytes())
    data[-9] ^= 1
    file.write_bytes(bytes(data))
    with pytest.raises(CheckpointError, match="000000000003-1-7-0 are damaged"):
        ask(tmp_path, Fickle(), "a")


def test_answers_leave_when_the_batch_after_theirs_is_committed(tmp_path: Path) -> None:
    for batch, shard in itertools.product((7, 8, 9, 10), (0, 1)):
        ask(tmp_path, Fickle(), "a", batch=batch, shard=shard)
    forget_answers(str(tmp_path), 9)
    assert sorted(one.name for one in tmp_path.iterdir()) == [
        f"{batch:012d}-1-{shard}-0" for batch, shard in itertools.product((9, 10), (0, 1))
    ]
    forget_answers(str(tmp_path / "not there"), 9)


# Where ----------------------------------------------------------------------------------------------------------------


def flow(enriched: bool = True) -> Flow:
    events = ps.events("ip string, at timestamp").event_time("at", watermark=ps.bounded("1 minute"))
    rows = events.enrich(lambda row: None, output="country string") if enriched else events.dedup("ip", within="1 s")
    return flow_of((rows.stage,))


def test_answers_lie_under_the_checkpoint_or_where_tasks_can_write(tmp_path: Path) -> None:
    assert answers_place(flow(), str(tmp_path), None) == f"{tmp_path}/penstock/answers"
    assert answers_place(flow(), f"file://{tmp_path}", "s3://bucket/staging") == f"{tmp_path}/penstock/answers"
    assert (
        answers_place(flow(), "viewfs://x/check", f"file://{tmp_path}/staging/") == f"file://{tmp_path}/staging-answers"
    )
    assert answers_place(flow(enriched=False), "viewfs://x/check", None) is None


def test_a_checkpoint_that_tasks_cannot_reach_is_refused() -> None:
    with pytest.raises(ps.PlanError, match="cannot write its answers down under the checkpoint viewfs://x/check") as it:
        answers_place(flow(), "viewfs://x/check", None)
    assert "staging=" in it.value.instead


@pytest.fixture(params=["local", "pyarrow"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    """Both kinds of places; pyarrow's own local file system stands for those that only it reaches."""
    if request.param == "local":
        return LocalStore(str(tmp_path))
    return ArrowStore(f"file://{tmp_path}")


def test_a_store_keeps_the_first_of_each_name(store: Store, tmp_path: Path) -> None:
    assert store.read("a/b") is None
    assert store.names("a") == []
    assert store.create("a/b", b"one")
    assert not store.create("a/b", b"two")
    assert (store.read("a/b"), store.names("a"), store.names("")) == (b"one", ["b"], ["a"])
    store.delete("a/b")
    store.delete("a/b")
    assert store.read("a/b") is None
    assert list((tmp_path / "a").iterdir()) == []


def test_a_store_that_cannot_be_read_or_written_says_so(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("no folder")
    store = ArrowStore(f"file://{tmp_path}")
    with pytest.raises(CheckpointError, match="cannot be written"):
        store.create("a/b", b"one")
    (tmp_path / "c").mkdir()
    with pytest.raises(CheckpointError, match="cannot be read"):
        store.read("c")


def test_other_places_are_those_of_pyarrow(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    made = fs.SubTreeFileSystem(str(tmp_path), fs.LocalFileSystem())
    reaching = SimpleNamespace(from_uri=lambda uri: (made, uri.partition("://")[2]))
    known = SimpleNamespace(FileSystem=reaching, FileSelector=fs.FileSelector, FileType=fs.FileType)
    monkeypatch.setattr(arrow, "fs", known)
    outside = Fickle()
    assert isinstance(store_at("mem://bucket/answers"), ArrowStore)
    first = ask("mem://bucket/answers", outside, "a")
    assert ask("mem://bucket/answers", outside, "a") == first
    assert [one.name for one in (tmp_path / "bucket/answers").iterdir()] == ["000000000003-1-7-0"]
