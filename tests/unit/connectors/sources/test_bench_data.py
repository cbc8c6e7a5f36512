"""The benchmarks' data: seeded, in order, and a file is written once."""

from __future__ import annotations

from collections import Counter

from bench.data import Data, write
from penstock.connectors.files.source import directory
from tests.unit.connectors.sources.reading import rows_by_offset


def test_the_same_seed_gives_the_same_events(tmp_path):
    data = Data(events=2_500, rows=1_000, keys=10, text=True, hot=0.8)
    paths = write(data, tmp_path / "a")
    assert [data.table(n).num_rows for n in range(3)] == [1_000, 1_000, 500]
    before = [path.stat().st_mtime_ns for path in paths]
    assert [path.stat().st_mtime_ns for path in write(data, tmp_path / "a")] == before
    write(data, tmp_path / "b")
    read = [list(rows_by_offset(directory(tmp_path / name, schema=data.schema), 1_000).values()) for name in "ab"]
    assert read[0] == read[1]
    assert len(read[0]) == 2_500
    share = Counter(row["key"] for row in read[0]).most_common(1)[0][1] / 2_500
    assert 0.78 < share < 0.86
    assert Data(keys=5).table(0) == Data(keys=5).table(0)
    assert [row["at"] for row in read[0]][-1] > read[0][0]["at"]
