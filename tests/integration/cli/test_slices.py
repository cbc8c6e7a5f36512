"""Is a stretch of a log the same rows however it is read, and is a difference between two answers found?"""

from __future__ import annotations

import json
import os
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given, strategies as st

pytest.importorskip("pyspark")

import penstock as ps
from penstock.connectors.game_scores import game_scores
from penstock.errors import PlanError
from penstock.spark.log_slice import sliced
from penstock.spark.sql_translation import Unsaid
from penstock.spark.verify import _compared, _verifiable, as_batch
from tests.properties.profile import law
from tests.unit.connectors.sources.reading import reader_of

NOW = time.time_ns() // 1000


def reader(**given):
    (one,) = game_scores(**given).inputs
    return one.source.reader


def offsets(chunks):
    found = {}
    for chunk in chunks:
        found.setdefault(chunk.partition, []).extend(chunk.offsets.tolist())
    return {partition: sorted(numbers) for partition, numbers in found.items()}


@pytest.mark.parametrize("realtime", [True, False])
def test_a_slice_is_the_same_in_batches_and_at_once(realtime):
    cut = sliced(reader(rate=100, realtime=realtime), False, 1_000, NOW)
    at, found = cut.start(), []
    while not cut.finished(at, NOW):
        upto = cut.latest(at, NOW, None)
        assert cut.behind(at, NOW) == ["0", "1"]
        found += [chunk for split in cut.splits(at, upto) for chunk in cut.read(split)]
        at = upto
    assert offsets(found) == offsets(cut.chunks())
    assert 900 <= sum(map(len, offsets(found).values())) <= 1_100
    assert cut.behind(at, NOW) == []


@pytest.mark.parametrize("realtime", [True, False])
def test_a_log_that_ends_is_taken_whole(realtime):
    cut = sliced(reader(rate=1_000, events=5_000, realtime=realtime), True, 1_000, NOW)
    assert sum(map(len, offsets(cut.chunks()).values())) == 5_000
    newest = max(time.as_py() for chunk in cut.chunks() for time in chunk.rows.column("at") if time.is_valid)
    assert newest.timestamp() * 1_000_000 <= NOW


KINDS = ("json", "csv", "parquet")
FILES = st.lists(
    st.tuples(st.sampled_from(KINDS), st.integers(0, 12), st.integers(0, 2), st.integers(0, 2), st.integers(1, 3)),
    max_size=12,
)
"""Of each file its kind, its rows, how many lines of it are no rows, its folder, and when it was written."""


def put(path, kind, numbers, bad):
    path.parent.mkdir(exist_ok=True)
    if kind == "parquet":
        pq.write_table(pa.table({"n": pa.array(numbers, pa.int64())}), path)
    elif kind == "csv":
        path.write_text("n\n" + "".join(f"{n}\n" for n in numbers) + "1,2\n" * bad)
    else:
        path.write_text("".join(json.dumps({"n": n}) + "\n" for n in numbers) + "no JSON\n" * bad)


def found_in(chunks):
    """The numbers of each partition, each with its offset, and how many rows are bad."""
    numbers, bad = [], 0
    for chunk in chunks:
        bad += len(chunk.undecoded)
        rows = chunk.rows.column("n").to_pylist()
        numbers += [(chunk.partition, offset, n) for offset, n in zip(chunk.offsets.tolist(), rows, strict=True)]
    return sorted(numbers), bad


@example([("json", 1, 0, 0, 1)] * 2, 10, False, False)
@example([("csv", 3, 1, 1, 1), ("parquet", 0, 0, 0, 2), ("json", 5, 2, 1, 1)], 1, True, True)
@given(FILES, st.integers(1, 60), st.booleans(), st.booleans())
@law(60)
def test_a_directory_of_any_files_is_the_same_in_batches_and_at_once(files, rows, by_folder, end):
    """Whatever the files are, and of a directory that does not end those that were written first."""
    with tempfile.TemporaryDirectory() as scratch:
        wrote, first = [], 0
        for number, (kind, count, bad, folder, written) in enumerate(files):
            name, numbers = f"{number:02d}.{kind}", range(first, first + count)
            put(Path(scratch, f"f{folder}", name), kind, numbers, bad)
            os.utime(Path(scratch, f"f{folder}", name), ns=(written, written))
            # What bad lines a Parquet file has, nobody could write.
            wrote.append((written, f"f{folder}/{name}", [*numbers], 0 if kind == "parquet" else bad))
            first += count
        partition = "directory" if by_folder else None
        stream = ps.directory(scratch, schema="n long", partition=partition, end=end)
        cut = sliced(reader_of(stream), end, rows, NOW)
        at, steps = cut.start(), []
        while not cut.finished(at, NOW):
            upto = cut.latest(at, NOW, None)
            steps += [chunk for split in cut.splits(at, upto) for chunk in cut.read(split)]
            at = upto
        together, bad = found_in(cut.chunks())
    assert found_in(steps) == (together, bad)
    assert len({(partition, offset) for partition, offset, _ in together}) == len(together)
    read = sorted(n for _, _, n in together)
    wrote.sort()
    prefixes = [wrote] if end else [wrote[:some] for some in range(len(wrote) + 1)]
    assert (read, bad) in [
        (sorted(n for one in some for n in one[2]), sum(one[3] for one in some)) for some in prefixes
    ]
    where = {n: os.path.dirname(name) if by_folder else "0" for _, name, numbers, _ in wrote for n in numbers}
    assert all(where[n] == partition for partition, _, n in together)


def totals(stream):
    timed = stream.event_time("at", watermark=ps.bounded("5 seconds"))
    return timed.key_by("team").window(ps.tumbling("2 seconds")).aggregate(plays=ps.rows()).plan


def test_all_rows_are_in_the_answers_of_the_batch():
    plan = totals(game_scores(rate=100, events=500, realtime=False))
    (one,) = plan.inputs
    cut = replace(one, source=replace(one.source, reader=sliced(one.source.reader, True, 100, NOW)))
    answers = as_batch(replace(plan, inputs=(cut,)))
    assert sum(plays for (plays,) in answers.values()) == 500


def test_differences_are_found_and_the_first_are_shown():
    stream = {("a", n): (n, 1.0) for n in range(10)}
    assert _compared(stream, "same", lambda: {key: (n, 1.0 + 1e-12) for key, (n, _) in stream.items()}).different == 0
    other = {**stream, ("a", 3): (4, 1.0), ("b", 0): (1, 1.0)}
    del other["a", 5]
    found = _compared(stream, "other", lambda: other)
    assert (found.answers, found.different) == (11, 3)
    assert [(one.key, one.stream, one.other) for one in found.first] == [
        (("a", 3), (3, 1.0), (4, 1.0)), (("a", 5), (5, 1.0), None), (("b", 0), None, (1, 1.0)),
    ]  # fmt: skip


def test_a_way_that_has_no_words_is_left_out():
    def unsaid():
        raise Unsaid("it has none", "", "")

    assert _compared({}, "SQL", unsaid).skipped == "it has none"


def test_what_cannot_be_compared_is_refused():
    with pytest.raises(PlanError, match="cannot be read twice"):
        _verifiable(totals(ps.events("team string, at timestamp")))
    timed = game_scores().processing_time().window(ps.tumbling("1 minute"))
    with pytest.raises(PlanError, match="processing clock"):
        _verifiable(timed.aggregate(plays=ps.rows()).plan)
