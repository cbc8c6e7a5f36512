"""Parquet: which Arrow types stand for which of ours, and what becomes of values that do not fit."""

from __future__ import annotations

import datetime
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.connectors.files.source import directory
from penstock.connectors.source import Undecoded
from penstock.types.timestamps import parse
from tests.unit.connectors.sources.reading import reader_of, rows_by_offset

NOON = parse("2026-01-31T12:00:00Z")


def read(tmp_path, columns, schema, **options):
    pq.write_table(pa.table(columns), tmp_path / "a.parquet", **options)
    return list(rows_by_offset(directory(tmp_path, schema=schema), None).values())


def column(tmp_path, array, kind, **options):
    return [
        row if isinstance(row, Undecoded) else row["c"] for row in read(tmp_path, {"c": array}, f"c {kind}", **options)
    ]


FITTING = [
    (pa.array([1, None], pa.int8()), "long", [1, None]),
    (pa.array([1, 2], pa.uint32()), "long", [1, 2]),
    (pa.array([1, -(2**31)], pa.int32()), "int", [1, -(2**31)]),
    (pa.array([1, 2], pa.int64()), "int", [1, 2]),
    (pa.array([1.5, None], pa.float32()), "double", [1.5, None]),
    (pa.array([1, 2]), "double", [1.0, 2.0]),
    (pa.array([1.5]), "float", [1.5]),
    (pa.array([True, None]), "boolean", [True, None]),
    (pa.array(["a", None]), "string", ["a", None]),
    (pa.array(["a"], pa.large_string()), "string", ["a"]),
    (pa.array(["a", "b", "a", None]).dictionary_encode(), "string", ["a", "b", "a", None]),
    (pa.array([b"\xc3\xbc"]), "string", ["ü"]),
    (pa.array([b"\xff"]), "binary", [b"\xff"]),
    (pa.array([b"ab"], pa.binary(2)), "binary", [b"ab"]),
    (pa.array([datetime.date(2026, 1, 31)]), "date", [datetime.date(2026, 1, 31)]),
    (pa.array(["2026-01-31"]), "date", [datetime.date(2026, 1, 31)]),
    (pa.array([NOON], pa.timestamp("us", tz="UTC")), "timestamp", [NOON]),
    (pa.array([NOON], pa.timestamp("us")), "timestamp", [NOON]),
    (pa.array([NOON], pa.timestamp("us", tz="Europe/Berlin")), "timestamp", [NOON]),
    (pa.array([NOON // 1_000, None], pa.timestamp("ms")), "timestamp", [NOON, None]),
    (pa.array([NOON * 1_000 + 999, -1, None], pa.timestamp("ns")), "timestamp", [NOON, -1, None]),
    (pa.array(["2026-01-31 12:00:00", None]), "timestamp", [NOON, None]),
    (pa.array([NOON]), "timestamp", [NOON]),
    (pa.array([Decimal("1.50")]), "decimal(6,2)", [Decimal("1.50")]),
    (pa.array([Decimal("1.5000")]), "decimal(6,2)", [Decimal("1.50")]),
    (pa.array([7]), "decimal(6,2)", [Decimal("7.00")]),
    (pa.nulls(2), "string", [None, None]),
]


@pytest.mark.parametrize(("array", "kind", "expected"), FITTING, ids=[f"{a.type}-{k}" for a, k, _ in FITTING])
def test_types_that_stand_for_ours(tmp_path, array, kind, expected):
    assert column(tmp_path, array, kind) == expected


def test_the_timestamps_that_spark_writes_as_int96(tmp_path):
    stamps = pa.array([NOON, parse("9999-12-31T23:59:59Z")], pa.timestamp("us"))
    found = column(tmp_path, stamps, "timestamp", use_deprecated_int96_timestamps=True)
    assert found == [NOON, parse("9999-12-31T23:59:59Z")]


MISFITS = [
    (pa.array([1, 2**31]), "int", [1], "2147483648 does not fit into 32 bits"),
    (pa.array([1, 2**63], pa.uint64()), "long", [1], "does not fit into 64 bits"),
    (pa.array([1.0]), "long", [], "1.0 is not an integer"),
    (pa.array(["1"]), "long", [], "'1' is not an integer"),
    (pa.array([1]), "string", [], "1 is not text"),
    (pa.array([True]), "long", [], "True is not an integer"),
    (pa.array([1]), "boolean", [], "1 is not a boolean"),
    (pa.array(["a"]), "binary", [], "'a' is not bytes"),
    (pa.array([b"ok", b"\xff"]), "string", ["ok"], "invalid start byte"),
    (pa.array([Decimal("1.50"), Decimal("1.505")]), "decimal(6,2)", [Decimal("1.50")], "does not fit in decimal(6,2)"),
    (pa.array([1.5]), "decimal(6,2)", [], "1.5 is not a decimal"),
    (pa.array([10**5]), "decimal(6,2)", [], "does not fit in decimal(6,2)"),
    (pa.array(["never", "2026-01-31"]), "date", [datetime.date(2026, 1, 31)], "'never' is not a date"),
    (pa.array([NOON, 2**62], pa.timestamp("us")), "timestamp", [NOON], "outside the years 1 to 9999"),
    (pa.array([2**60], pa.timestamp("ms")), "timestamp", [], "outside the years 1 to 9999"),
    (pa.array([datetime.date(2026, 1, 31)]), "timestamp", [], "is not a timestamp"),
    (pa.array([[1]]), "long", [], "[1] is not an integer"),
    (pa.array([{"a": 1}]), "long", [], "{'a': 1} is not an integer"),
    (pa.array([datetime.time(1)]), "string", [], "is not text"),
    (pa.array([NOON], pa.timestamp("us", tz="No/Where")), "string", [], "No/Where"),
]


@pytest.mark.parametrize(("array", "kind", "good", "reason"), MISFITS, ids=[f"{a.type}-{k}" for a, k, _, _ in MISFITS])
def test_values_that_do_not_fit_are_quarantined_each_with_the_reason(tmp_path, array, kind, good, reason):
    found = column(tmp_path, array, kind)
    assert [value for value in found if not isinstance(value, Undecoded)] == good
    (bad,) = (value for value in found if isinstance(value, Undecoded))
    assert reason in bad.reason
    assert bad.reason.startswith("a.parquet: column 'c': ")
    assert bad.raw.startswith('{"c": ')


def test_columns_that_are_not_declared_are_not_read_whatever_they_are(tmp_path):
    columns = {"v": [1, 2], "nested": [{"a": [1]}, None], "list": [[1], []]}
    columns["map"] = pa.array([[("a", 1)], None], pa.map_(pa.string(), pa.int64()))
    assert read(tmp_path, columns, "v long") == [{"v": 1}, {"v": 2}]


def test_a_column_that_a_file_does_not_have_is_null(tmp_path):
    assert read(tmp_path, {"v": [1]}, "v long, later string") == [{"v": 1, "later": None}]
    assert read(tmp_path, {"x": [1, 2]}, "v long") == [{"v": None}] * 2


def test_files_whose_types_differ_are_read_each_by_its_own(tmp_path):
    pq.write_table(pa.table({"v": pa.array([1], pa.int32())}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"v": pa.array([2.0])}), tmp_path / "b.parquet")
    pq.write_table(pa.table({"v": pa.array([3]), "new": ["x"]}), tmp_path / "c.parquet")
    found = list(rows_by_offset(directory(tmp_path, schema="v long"), None).values())
    assert [row["v"] for row in found if isinstance(row, dict)] == [1, 3]
    assert [row.raw for row in found if isinstance(row, Undecoded)] == ['{"v": 2.0}']


def test_a_bad_row_keeps_what_cannot_be_shown(tmp_path):
    odd = pa.Array.from_buffers(
        pa.string(), 1, [None, pa.py_buffer(np.array([0, 2], np.int32)), pa.py_buffer(b"\xffx")]
    )
    (bad,) = read(tmp_path, {"s": odd, "t": pa.array([2**62], pa.timestamp("us"))}, "s string, t timestamp")
    assert bad.raw == '{"s": "\\\\xffx", "t": 4611686018427387904}'
    assert bad.reason.startswith("a.parquet: column 's': ")


def test_a_bad_row_among_many_is_found(tmp_path):
    numbers = np.arange(10_000)
    numbers[[17, 9_999]] = 2**40
    found = read(tmp_path, {"v": numbers}, "v int")
    assert [i for i, row in enumerate(found) if isinstance(row, Undecoded)] == [17, 9_999]
    assert [row["v"] for row in found if isinstance(row, dict)] == [n for n in range(10_000) if n not in (17, 9_999)]


def test_empty_files_hold_no_rows(tmp_path):
    assert read(tmp_path, {"v": pa.array([], pa.int64())}, "v long") == []
    reader = reader_of(directory(tmp_path, schema="v long"))
    assert reader.latest(reader.start(), 0, 10)["count"] == 1


def test_row_groups_of_long_rows_are_read_a_few_at_a_time(tmp_path, monkeypatch):
    monkeypatch.setattr("penstock.connectors.formats.parquet.MAX_BYTES", 2_500)
    texts = [f"{at:1000d}" for at in range(10)]
    pq.write_table(pa.table({"c": texts}), tmp_path / "a.parquet", row_group_size=1, write_statistics=False)
    from penstock.connectors.formats.parquet import parquet_pieces
    from penstock.types.schema import schema

    sizes = [len(piece.offsets) for piece in parquet_pieces(tmp_path / "a.parquet", schema("c string"), "a", (0, 1), 0)]
    assert sum(sizes) == 10
    assert len(sizes) == 5
