"""What lies in a directory of files, and who reads it."""

from __future__ import annotations

import json
import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.fs as pafs
import pyarrow.parquet as pq
import pytest

from penstock.connectors.delivery import deliver
from penstock.connectors.files.manifest import manifests
from penstock.connectors.files.sink import files, published, read_files
from penstock.connectors.sink import Stages
from penstock.connectors.sink_errors import Fenced, ForeignLineage, TornBatch
from penstock.errors import PenstockError
from penstock.storage import files as places
from penstock.storage.files import LocalPlace, RemotePlace, place_of
from tests.unit.connectors.sinks.outputs import PANES, answers, batch_of, every, give, pane, panes

TABLE = panes(pane("red", 1), pane("blue", 2))


def test_published_files_are_plain_parquet(tmp_path):
    give(files(tmp_path), TABLE)
    (path,) = published(tmp_path)
    assert pq.read_table(path).equals(TABLE)


def test_json_is_one_object_a_line(tmp_path):
    give(files(tmp_path, format="json"), TABLE)
    (path,) = published(tmp_path)
    lines = [json.loads(line) for line in Path(path).read_text("utf-8").splitlines()]
    assert lines[0] == {"team": "red", "window_start": "2026-01-31T12:00:00Z", "window_end": "2026-01-31T12:05:00Z",
                        "points": 1, "pane_index": 0, "pane_timing": "early", "pane_final": False, "op": 1}  # fmt: skip


def test_tasks_stage_and_the_driver_publishes(tmp_path):
    sink = pickle.loads(pickle.dumps(files(tmp_path)))
    assert isinstance(sink, Stages)
    receipts = [sink.stage(PANES, "../7/shard 3", TABLE.slice(0, 1))]
    assert receipts[0]["file"].startswith("data/..-7-shard-3-")
    assert published_or_nothing(tmp_path) == []
    assert give(sink, TABLE, 7, receipts=json.loads(json.dumps(receipts)), parts=[TABLE.slice(1)])
    assert len(published(tmp_path)) == 2
    assert read_files(tmp_path).equals(TABLE)
    (manifest,) = manifests(place_of(str(tmp_path)))
    assert [one["rows"] for one in manifest.files] == [1, 1]
    assert (tmp_path / "_penstock" / "L1" / "000000007.json").exists()


def published_or_nothing(path: Path) -> list[str]:
    try:
        return published(path)
    except PenstockError:
        return []


def test_what_was_staged_for_a_batch_that_is_there_is_removed(tmp_path):
    sink = files(tmp_path)
    give(sink, TABLE)
    receipt = sink.stage(PANES, "0", TABLE)
    assert not give(sink, TABLE, receipts=[receipt], parts=[])
    assert len(list((tmp_path / "data").glob("*.parquet"))) == 1


def test_a_stranger_file_is_neither_data_nor_removed(tmp_path):
    sink = files(tmp_path)
    give(sink, TABLE)
    (tmp_path / "data" / "mine.parquet").write_bytes(b"mine")
    sink.stage(PANES, "dead attempt", TABLE)
    give(sink, TABLE, 1)
    assert (tmp_path / "data" / "mine.parquet").exists()
    assert len(list((tmp_path / "data").glob("*.parquet"))) == 3
    assert len(read_files(tmp_path)) == 4


def test_a_file_that_went_missing_is_noticed(tmp_path):
    give(files(tmp_path), TABLE)
    manifest = tmp_path / "_penstock" / "L1" / "000000000.json"
    told = json.loads(manifest.read_text())
    manifest.write_text(json.dumps({**told, "files": told["files"][1:]}))
    with pytest.raises(TornBatch, match=r"batch 0 of .* has 2 rows by its count, and 0 are there"):
        read_files(tmp_path)


def test_a_manifest_of_another_version_is_refused(tmp_path):
    give(files(tmp_path), TABLE)
    manifest = tmp_path / "_penstock" / "L1" / "000000000.json"
    manifest.write_text(json.dumps({**json.loads(manifest.read_text()), "version": 99}))
    with pytest.raises(PenstockError, match="has the version 99, and this Penstock knows 1"):
        read_files(tmp_path)


def test_a_path_without_manifests_is_refused(tmp_path):
    for read in (read_files, published):
        with pytest.raises(PenstockError, match="nothing was ever published"):
            read(tmp_path)


def test_late_rows_have_no_current_answer(tmp_path):
    give(files(tmp_path), TABLE, target=replace(PANES, mode="discarding"))
    with pytest.raises(PenstockError, match="discarding panes, which have no current answer"):
        read_files(tmp_path, current=True)


def test_an_empty_directory_has_its_columns(tmp_path):
    give(files(tmp_path), panes(), parts=[])
    assert read_files(tmp_path).schema.equals(PANES.schema)
    assert published(tmp_path) == []


def test_a_zombie_that_publishes_after_its_last_look_changes_nothing(tmp_path, monkeypatch):
    """It looked at the epoch, slept, and links its manifest: the name is taken, or the rows are the same."""
    sink = files(tmp_path)
    zombie = sink.open(PANES)
    zombie.begin("L1", 1)
    zombie.write(batch_of(0, TABLE), [TABLE])
    monkeypatch.setattr("penstock.connectors.files.manifest.superseded", lambda place, epoch: False)
    give(sink, TABLE, epoch=2)
    with pytest.raises(FileExistsError):
        zombie.commit(batch_of(0, TABLE))
    assert every(sink) == [("blue", 2, 1), ("red", 1, 1)]


def test_a_zombie_that_published_first_is_believed_if_its_rows_are_the_same(tmp_path, monkeypatch):
    sink = files(tmp_path)
    zombie = sink.open(PANES)
    zombie.begin("L1", 1)
    zombie.write(batch_of(0, TABLE), [TABLE])

    def stages_then_zombie_wins():
        with monkeypatch.context() as patch:
            patch.setattr("penstock.connectors.files.manifest.superseded", lambda place, epoch: False)
            zombie.commit(batch_of(0, TABLE))
        yield TABLE

    assert give(sink, TABLE, epoch=2, parts=stages_then_zombie_wins())
    assert every(sink) == [("blue", 2, 1), ("red", 1, 1)]


def test_what_a_lineage_publishes_after_it_was_taken_over_is_no_data(tmp_path, monkeypatch):
    sink = files(tmp_path)
    give(sink, TABLE)
    zombie = sink.open(PANES)
    zombie.begin("L1", 1)
    table = panes(pane("red", 100))
    zombie.write(batch_of(1, table), [table])
    give(replace(sink, takeover=True), panes(pane("red", 3)), lineage="L2")
    monkeypatch.setattr("penstock.connectors.files.manifest.superseded", lambda place, epoch: False)
    zombie.commit(batch_of(1, table))
    assert answers(sink) == [("blue", 0, 2), ("red", 0, 3)]


def test_two_that_take_the_next_epoch_at_once_do_not_both_have_it(tmp_path, monkeypatch):
    sink = files(tmp_path)
    give(sink, TABLE)
    create, seen = LocalPlace.create, []

    def beaten(self: LocalPlace, name: str, content: bytes) -> bool:
        if "epochs" in name and not seen:
            seen.append(name)
            give(sink, panes(pane("red", 5)), 1, epoch=3)
        return create(self, name, content)

    monkeypatch.setattr(LocalPlace, "create", beaten)
    with pytest.raises(Fenced, match="epoch 3 has begun"):
        give(sink, panes(pane("red", 9)), 1, epoch=2)
    assert answers(sink) == [("blue", 0, 2), ("red", 0, 5)]


def test_ten_thousand_batches_are_listed_in_a_moment(tmp_path):
    import time

    sink = files(tmp_path)
    give(sink, panes(pane("red", 1)))
    made = (tmp_path / "_penstock" / "L1" / "000000000.json").read_text()
    for number in range(1, 10_000):
        text = made.replace('"batch": 0', f'"batch": {number}').replace('"rows": 1', '"rows": 0')
        (tmp_path / "_penstock" / "L1" / f"{number:09d}.json").write_text(text)
    began = time.perf_counter()
    writer = sink.open(PANES)
    found = writer.begin("L1", 2)
    took = time.perf_counter() - began
    assert found is not None
    assert found.batch == 9_999
    assert took < 2
    assert writer.begin("L1", 2) == found


def test_a_file_uri_is_a_local_place(tmp_path):
    sink = files(f"file://{tmp_path}")
    assert isinstance(place_of(sink.path), LocalPlace)
    give(sink, TABLE)
    assert answers(sink) == [("blue", 0, 2), ("red", 0, 1)]
    assert "no fence" not in sink.describe()


def test_another_file_system_has_whole_batches_too(tmp_path, monkeypatch):
    """As an object store: the same protocol through pyarrow's file system, without exclusive creation."""

    def remote(path: str) -> RemotePlace:
        return RemotePlace(pafs.LocalFileSystem(), str(tmp_path))

    monkeypatch.setattr(places, "place_of", remote)
    monkeypatch.setattr("penstock.connectors.files.formats.place_of", remote)
    sink = files("s3://me:secret@bucket/scores")
    assert "secret" not in sink.describe() + sink.place
    assert "no fence against a second writer" in sink.describe()
    writers: dict[str, Any] = {}
    for number in (0, 1):
        assert deliver(sink, PANES, writers, batch_of(number, TABLE), [TABLE])
        assert not deliver(sink, PANES, writers, batch_of(number, TABLE), [TABLE])
    assert len(every(sink)) == 4
    assert published(sink.path)[0].startswith("file:///")
    with pytest.raises(ForeignLineage):
        give(sink, TABLE, lineage="L2")
    with pytest.raises(Fenced):
        give(sink, TABLE, 2, epoch=0)
    sink.open(PANES).discard([{"file": "data/none"}])
