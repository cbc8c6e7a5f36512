"""A directory read as a log: files in order, each once, the same rows in any batches."""

from __future__ import annotations

import gzip
import json
import os
import pickle
import shutil

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings, strategies as st

from penstock.connectors.files.source import FILE, directory
from penstock.connectors.source import came_after
from penstock.errors import DataError, PlanError
from tests.unit.connectors.sources.reading import NOW, batches, between, logged, reader_of, rows_by_offset

SCHEMA = "k string, v long"


def put(path, values, written=None):
    """A Parquet file of these values, a JSON or a CSV one, by its name."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".parquet":
        table = pa.table({"k": pa.array([f"k{v}" for v in values], pa.string()), "v": pa.array(values, pa.int64())})
        pq.write_table(table, path, row_group_size=3)
    elif path.suffix == ".csv":
        path.write_text("k,v\n" + "".join(f"k{v},{v}\n" for v in values))
    else:
        text = "".join(json.dumps({"k": f"k{v}", "v": v}) + "\n" for v in values)
        path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    if written is not None:
        os.utime(path, ns=(written, written))


def values(stream, limit=None):
    return [row["v"] for row in rows_by_offset(stream, limit).values()]


def read_from(reader, since, limit=None):
    upto = logged(reader.latest(since, NOW, limit))
    return [v for chunk in between(reader, since, upto) for v in chunk.rows.column("v").to_pylist()], upto


@pytest.mark.parametrize("suffix", [".parquet", ".json", ".csv", ".jsonl", ".json.gz"])
def test_files_are_read_in_order_of_time_then_name(tmp_path, suffix):
    put(tmp_path / f"b{suffix}", [3, 4], 1_000)
    put(tmp_path / f"a{suffix}", [5], 1_000_000)
    put(tmp_path / f"aa{suffix}", [1, 2], 1_000)
    stream = directory(tmp_path, schema=SCHEMA)
    assert values(stream) == [1, 2, 3, 4, 5]
    assert values(stream, 1) == [1, 2, 3, 4, 5]
    found = rows_by_offset(stream, None)
    assert [offset // FILE for _, offset in found] == [0, 0, 1, 1, 2]
    assert {partition for partition, _ in found} == {"0"}


@settings(deadline=None, max_examples=15)
@given(
    sizes=st.lists(st.tuples(st.sampled_from([".parquet", ".json", ".csv"]), st.integers(0, 12)), max_size=12),
    limit=st.none() | st.integers(1, 20),
    tasks=st.integers(1, 4),
)
def test_any_batches_give_the_same_rows(tmp_path_factory, sizes, limit, tasks):
    import penstock.connectors.files.source as module

    where, n = tmp_path_factory.mktemp("log"), 0
    for i, (suffix, size) in enumerate(sizes):
        put(where / f"f{i}{suffix}", list(range(n, n + size)), i % 3 + 1)
        n += size
    stream = directory(where, schema=SCHEMA)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(module, "SMALL", 1)
        found = rows_by_offset(stream, limit)
    assert found == rows_by_offset(stream, None)
    assert sorted(row["v"] for row in found.values()) == list(range(n))


def test_files_that_appear_are_read_once_also_those_that_come_late(tmp_path):
    reader = reader_of(directory(tmp_path, schema=SCHEMA))
    got, at = read_from(reader, reader.start())
    assert got == []
    put(tmp_path / "a.json", [1])
    got, at = read_from(reader, at)
    assert got == [1]
    assert reader.latest(at, NOW, None) == at
    put(tmp_path / "b.json", [2], written=1_000)  # rsync -t: older than what was read
    assert reader.behind(at, NOW) == ["0"]
    got, at = read_from(reader, at)
    assert got == [2]
    put(tmp_path / "_c.json", [3])
    put(tmp_path / ".d.json", [3])
    put(tmp_path / "_temporary" / "d.json", [3])
    assert read_from(reader, at)[0] == []
    (tmp_path / "_c.json").rename(tmp_path / "c.json")
    got, at = read_from(reader, at)
    assert got == [3]
    assert reader.behind(at, NOW) == []


def test_each_directory_may_be_a_partition(tmp_path):
    for part in (1, 2):
        for day in (1, 2):
            put(tmp_path / f"part={part}" / f"{day}.json", [part * 10 + day], day * 1_000)
    put(tmp_path / "0.json", [0], 10)
    stream = directory(tmp_path, schema=SCHEMA, partition="directory")
    reader = reader_of(stream)
    first = reader.latest(reader.start(), NOW, 1)
    assert reader.partitions(first) == [".", "part=1", "part=2"], "those with files to read are known before"
    assert reader.partitions(reader.start()) == []
    assert reader.behind(first, NOW) == ["part=1", "part=2"]
    found = rows_by_offset(stream, None)
    assert {(partition, row["v"]) for (partition, _), row in found.items()} == {
        (".", 0), ("part=1", 11), ("part=1", 12), ("part=2", 21), ("part=2", 22),
    }  # fmt: skip
    (batch,) = batches(reader, None)
    assert [chunk.partition for chunk in batch] == [".", "part=1", "part=2"], "files of a partition are put together"


def test_a_limit_of_rows_is_kept_to_by_whole_files(tmp_path):
    for i in range(4):
        put(tmp_path / f"{i}.parquet", list(range(10)), i + 1)
    sizes = [sum(len(c.offsets) for c in batch) for batch in batches(reader_of(directory(tmp_path, schema=SCHEMA)), 25)]
    assert sizes == [20, 20]


def test_a_large_parquet_file_is_cut_by_row_groups(tmp_path, monkeypatch):
    import penstock.connectors.files.source as module

    monkeypatch.setattr(module, "SMALL", 100)
    put(tmp_path / "a.parquet", list(range(100)))
    reader = reader_of(directory(tmp_path, schema=SCHEMA))
    upto = reader.latest(reader.start(), NOW, None)
    splits = reader.splits(reader.start(), upto)
    assert len(splits) == 2
    read = [[v for c in reader.read(split) for v in c.rows.column("v").to_pylist()] for split in splits]
    assert read[0] + read[1] == list(range(100))
    assert 40 <= len(read[0]) <= 60


def test_few_tasks_and_large_chunks(tmp_path):
    for i in range(30):
        put(tmp_path / f"{i}.json", [i], i + 1)
    reader = reader_of(directory(tmp_path, schema=SCHEMA))
    upto = reader.latest(reader.start(), NOW, None)
    assert len(reader.splits(reader.start(), upto)) == 1
    (chunk,) = between(reader, reader.start(), upto)
    assert chunk.rows.num_rows == 30


def test_a_chunk_has_a_million_rows_at_most(tmp_path, monkeypatch):
    monkeypatch.setattr("penstock.connectors.formats.chunks.MAX_ROWS", 4)
    monkeypatch.setattr("penstock.connectors.formats.parquet.MAX_ROWS", 4)
    put(tmp_path / "a.parquet", list(range(10)), 1)
    put(tmp_path / "b.json", list(range(10, 21)), 2)
    stream = directory(tmp_path, schema=SCHEMA)
    sizes = [len(chunk.offsets) for batch in batches(reader_of(stream), None) for chunk in batch]
    assert max(sizes) == 4
    assert values(stream) == list(range(21))


def test_with_an_end_it_is_what_was_there_at_the_start(tmp_path):
    put(tmp_path / "a.json", [1], 5)
    put(tmp_path / "b.json", [2], 6)
    stream = directory(tmp_path, schema=SCHEMA, end=True)
    reader = reader_of(stream)
    assert stream.inputs[0].source.bounded
    assert not reader.finished(reader.start(), NOW)
    got, at = read_from(reader, reader.start(), 1)
    assert not reader.finished(at, NOW)
    os.chmod(tmp_path / "b.json", 0o600)
    future = at["until"] + 10**10
    put(tmp_path / "c.json", [3])
    os.utime(tmp_path / "c.json", ns=(future, future))
    more, at = read_from(reader, at, 1)
    assert got + more == [1, 2]
    assert reader.finished(at, NOW)
    assert reader.behind(at, NOW) == []
    assert reader.latest(at, NOW, None) == at


def later(folder, *names):
    """Files that are written after any that are there now."""
    for number, name in enumerate(names):
        put(folder / name, [100 + number], 2 * 10**18 + number)


def test_what_comes_after_the_end_is_named(tmp_path):
    put(tmp_path / "a.json", [1])
    reader = reader_of(directory(tmp_path, schema=SCHEMA, end=True))
    assert came_after(reader, reader.start(), NOW) == [], "it is not at its end"
    _, at = read_from(reader, reader.start())
    assert came_after(reader, at, NOW) == []
    later(tmp_path, "b.json")
    assert reader.beyond(at) == [f"1 file came to {tmp_path} after its end, unread: b.json"]
    later(tmp_path, "b.json", "c.json", "d.json", "e.json", "f.json")
    assert reader.latest(at, NOW, None) == at
    assert reader.behind(at, NOW) == []
    (note,) = came_after(reader, at, NOW)
    assert note.startswith(f"5 files came to {tmp_path} after its end, unread: b.json, c.json, d.json and 2 more; end=")
    endless = reader_of(directory(tmp_path, schema=SCHEMA))
    assert came_after(endless, at, NOW) == []


def test_an_end_may_be_taken_away_and_come_again(tmp_path):
    put(tmp_path / "a.json", [1])
    bounded = reader_of(directory(tmp_path, schema=SCHEMA, end=True))
    endless = reader_of(directory(tmp_path, schema=SCHEMA))
    _, at = read_from(bounded, bounded.start())
    later(tmp_path, "b.json")
    assert endless.behind(at, NOW) == ["0"]
    assert not endless.finished(at, NOW)
    more, at = read_from(endless, at)
    assert (more, at["until"]) == ([100], None)
    none, at = read_from(bounded, at)
    assert none == []
    assert at["until"] >= 2 * 10**18
    put(tmp_path / "c.json", [7], 3 * 10**18)
    assert read_from(bounded, at) == ([], at)
    assert bounded.beyond(at) == [f"1 file came to {tmp_path} after its end, unread: c.json"]


def test_an_end_taken_away_where_nothing_came_is_forgotten(tmp_path):
    put(tmp_path / "a.json", [1])
    _, at = read_from(reader_of(directory(tmp_path, schema=SCHEMA, end=True)), reader_of(
        directory(tmp_path, schema=SCHEMA)).start())  # fmt: skip
    _, at = read_from(reader_of(directory(tmp_path, schema=SCHEMA)), at)
    assert at["until"] is None


def test_an_empty_directory_that_ends_is_finished(tmp_path):
    reader = reader_of(directory(tmp_path, schema=SCHEMA, end=True))
    at = reader.latest(reader.start(), NOW, None)
    assert reader.finished(at, NOW)
    assert reader.splits(reader.start(), at) == []
    assert reader.latest(at, NOW, None) == at


def test_a_position_is_small_however_many_files_there_are(tmp_path):
    for i in range(1_500):
        (tmp_path / f"part-{i:05d}.json").touch()
    reader = reader_of(directory(tmp_path, schema=SCHEMA))
    first = reader.latest(reader.start(), NOW, None)
    assert (first["count"], first["left"]) == (1_000, 500)
    last = reader.latest(first, NOW, None)
    (tmp_path / "new.json").write_text('{"v": 1}\n')
    new = reader.latest(last, NOW, None)
    assert len(json.dumps(new)) < 8_000
    assert reader.latest(new, NOW, None) == new
    (tmp_path / "new.json").unlink()
    idle = reader.latest(last, NOW, None)
    assert len(json.dumps(idle)) < 8_000, "the files of a large batch are forgotten when there is nothing more"
    assert reader.splits(last, idle) == []
    assert reader.latest(idle, NOW, None) == idle


def test_a_file_system_by_its_uri(tmp_path):
    put(tmp_path / "a.json", [1])
    assert values(directory(f"file://{tmp_path}", schema=SCHEMA)) == [1]
    pa_fs = pytest.importorskip("pyarrow.fs")
    memory = pa_fs._MockFileSystem()
    memory.create_dir("log/_hidden")
    for name, text in {"log/a.json": '{"v": 1}', "log/p/b.json": '{"v": 2}', "log/_hidden/c.json": "x"}.items():
        memory.create_dir(os.path.dirname(name))
        with memory.open_output_stream(name) as stream:
            stream.write(text.encode())
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("penstock.storage.listing.system_of", lambda uri: (memory, uri.removeprefix("mock://")))
        found = directory("mock://log", schema=SCHEMA, name="log")
        assert sorted(values(found)) == [1, 2]
        with pytest.raises(DataError, match="there is no directory mock://none"):
            values(directory("mock://none", schema=SCHEMA, name="log"))


@pytest.mark.parametrize(
    ("harm", "said"),
    [
        (lambda path: path.unlink(), "a.json is not there any more"),
        (lambda path: path.write_text("{}"), "a.json was changed after it had been listed"),
        (lambda path: os.utime(path, ns=(1, 1)), "a.json was changed after it had been listed"),
    ],
)
def test_a_planned_file_must_stay_as_it_is(tmp_path, harm, said):
    put(tmp_path / "a.json", [1])
    reader = reader_of(directory(tmp_path, schema=SCHEMA))
    upto = reader.latest(reader.start(), NOW, None)
    harm(tmp_path / "a.json")
    with pytest.raises(DataError, match=said):
        between(reader, reader.start(), upto)


def test_a_file_that_is_not_what_it_says_is_named(tmp_path):
    (tmp_path / "a.parquet").write_bytes(b"PAR1 nothing")
    stream = directory(tmp_path, schema=SCHEMA)
    for limit in (None, 5):
        with pytest.raises(DataError, match=r"a\.parquet cannot be read as Parquet") as error:
            values(stream, limit)
        assert "rename them when they are whole" in error.value.instead


def test_a_damaged_parquet_file_is_named(tmp_path):
    put(tmp_path / "a.parquet", list(range(1_000)))
    data = bytearray((tmp_path / "a.parquet").read_bytes())
    data[4:200] = b"\xff" * 196
    (tmp_path / "a.parquet").write_bytes(data)
    with pytest.raises(DataError, match=r"a\.parquet cannot be read as Parquet"):
        values(directory(tmp_path, schema=SCHEMA))


def test_a_file_of_no_known_format_is_named(tmp_path):
    (tmp_path / "notes.txt").write_text("x")
    with pytest.raises(DataError, match=r"notes\.txt does not say by its name"):
        values(directory(tmp_path, schema=SCHEMA))
    assert values(directory(tmp_path, schema=SCHEMA, format="csv", header=True)) == []


def test_bytes_in_a_file_of_text_are_refused_by_name(tmp_path):
    put(tmp_path / "a.json", [1])
    with pytest.raises(PlanError, match="the column 'k' is binary, and json has no bytes"):
        values(directory(tmp_path, schema="k binary"))


def test_a_directory_that_is_not_there_is_named(tmp_path):
    with pytest.raises(DataError, match="there is no directory"):
        values(directory(tmp_path / "none", schema=SCHEMA))


def test_positions_of_batches_that_do_not_follow_one_another_are_refused(tmp_path):
    put(tmp_path / "a.json", [1], 1)
    put(tmp_path / "b.json", [2], 2)
    reader = reader_of(directory(tmp_path, schema=SCHEMA))
    first = reader.latest(reader.start(), NOW, 1)
    second = reader.latest(first, NOW, 1)
    assert reader.splits(second, second) == []
    with pytest.raises(DataError, match="not of successive batches"):
        reader.splits(reader.start(), second)


def test_what_was_read_may_be_moved_away(tmp_path):
    for i in range(5):
        put(tmp_path / "in" / f"{i}.json", [i], i + 1)
    reader = reader_of(directory(tmp_path / "in", schema=SCHEMA))
    _, at = read_from(reader, reader.start())
    shutil.move(tmp_path / "in" / "0.json", tmp_path / "0.json")
    put(tmp_path / "in" / "9.json", [9])
    assert read_from(reader, at)[0] == [9]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"format": "xml"}, "there is no format 'xml'"),
        ({"partition": "day"}, "partition is 'day'"),
        ({"schema": "a struct<b:int>"}, "struct<b:int> are not supported"),
        ({"schema": "a binary", "format": "json"}, "'a' is binary, and json has no bytes"),
        ({"schema": "a binary", "format": "csv"}, "'a' is binary, and csv has no bytes"),
        ({"max_bad": "lots"}, "max_bad is 'lots'"),
        ({"name": "a/b"}, "cannot be called"),
    ],
)
def test_a_mistake_is_refused_in_three_parts(options, said):
    with pytest.raises(PlanError, match=said) as error:
        directory("data", **{"schema": SCHEMA, **options})
    assert error.value.why
    assert error.value.instead


def test_a_source_is_called_after_its_directory_and_travels():
    stream = directory("data/clicks/", schema=SCHEMA)
    assert stream.inputs[0].source.name == "clicks"
    assert pickle.loads(pickle.dumps(reader_of(stream))) == reader_of(stream)
    assert np.int64(2**62) // FILE > 10**7
