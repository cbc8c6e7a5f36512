"""What every embedded sink writes is what Python's own readers find there, in the forms that docs/sinks.md names."""

from __future__ import annotations

import base64
import itertools
import json
import math
import sqlite3
import struct
from contextlib import closing
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, strategies as st

import penstock as ps
from penstock.connectors.sink import Sink
from penstock.plan.output_schemas import Target
from tests.properties import values_by_python as by_python
from tests.properties.profile import law
from tests.properties.values_by_python import EPOCH
from tests.unit.connectors.sinks.outputs import give

SEEDS = st.integers(0, 2**48)
SIGNS = "aZ0 '\"\\,;\0\x01\t\n\r\x85ß\u0660\u2028\u2029\ufeff\U0001f600"
STAMP = pa.timestamp("us", tz="UTC")
SCALES = {"cents": (5, 2), "whole": (38, 0), "half": (38, 19), "parts": (38, 38), "one": (1, 0)}
SCHEMA = pa.schema(
    [
        ("k", pa.int64()),
        ("n", pa.int64()),
        ("x", pa.float64()),
        ("yes", pa.bool_()),
        ("s", pa.string()),
        ("b", pa.binary()),
        ("d", pa.date32()),
        ("t", STAMP),
        *((name, pa.decimal128(*parts)) for name, parts in SCALES.items()),
        ("xs", pa.list_(pa.float64())),
        ("ts", pa.list_(STAMP)),
        ("pairs", pa.list_(pa.struct([("m", pa.decimal128(38, 19)), ("w", pa.string())]))),
    ]
)
ROWS = Target("values/rows/0", "rows", SCHEMA)
OP = pa.field("op", pa.int8())
ANSWERS = Target("values/panes/0", "panes", SCHEMA.append(OP), ("k",), withdraws=True)
_names = itertools.count()


def row(rng: Random, key: int) -> dict[str, Any]:
    """A row with a value of each type, many of them at the ends."""
    made = {name: draw(rng) for name, draw in DRAWN.items()}
    return {"k": key, **{name: None if rng.random() < 0.05 else value for name, value in made.items()}}


def integer(rng: Random) -> int:
    """Of 64 bits."""
    return rng.choice((0, -1, 2**63 - 1, -(2**63), 2**53 + 1, rng.randint(-(2**63), 2**63 - 1)))


def real(rng: Random) -> float:
    """Any double."""
    (value,) = struct.unpack("<d", rng.randbytes(8))
    return rng.choice(
        (value, value, 0.0, -0.0, math.nan, math.inf, -math.inf, 5e-324, 1.7976931348623157e308, 0.1, 1e22, 3.0)
    )


def text(rng: Random) -> str:
    """Odd signs, among them NUL and ends of lines."""
    return rng.choice(
        ("".join(rng.choices(SIGNS, k=rng.choice((0, 1, 5, 40)))), "NaN", "null", "1e5", "007", " ", "x" * 3_000)
    )


def micros(rng: Random) -> int:
    """A moment of the years 1 to 9999."""
    edge = rng.choice((by_python.FIRST, by_python.LAST, 0, rng.randint(by_python.FIRST, by_python.LAST)))
    moved = edge + rng.choice((0, 0, 1, -1, 1_000_000, 999_999))
    return min(max(moved, by_python.FIRST), by_python.LAST)


def moment(rng: Random) -> datetime:
    """The same as Python has it."""
    return EPOCH + timedelta(microseconds=micros(rng))


def decimal(precision: int, scale: int) -> Any:
    """Decimals of a type, to their last digit."""

    def draw(rng: Random) -> Decimal:
        number = rng.choice((10**precision - 1, 1, 0, rng.randrange(10**precision), 10 ** (precision - 1)))
        return Decimal((rng.randrange(2) if number else 0, tuple(map(int, str(number))), -scale))

    return draw


def some(draw: Any) -> Any:
    """A list of values, nulls among them."""
    return lambda rng: [None if rng.random() < 0.2 else draw(rng) for _ in range(rng.randrange(4))]


DRAWN: dict[str, Any] = {
    "n": integer,
    "x": real,
    "yes": lambda rng: rng.random() < 0.5,
    "s": text,
    "b": lambda rng: rng.choice((b"", b"\0", rng.randbytes(20))),
    "d": lambda rng: date.fromordinal(rng.choice((1, 2, date.max.toordinal(), rng.randint(1, date.max.toordinal())))),
    "t": moment,
    **{name: decimal(*parts) for name, parts in SCALES.items()},
    "xs": some(real),
    "ts": some(moment),
    "pairs": some(lambda rng: {"m": decimal(38, 19)(rng), "w": text(rng)}),
}


def stamped(value: datetime, between: str, end: str) -> str:
    """A moment in words: six digits of a second where there are any."""
    return value.replace(tzinfo=None).isoformat(between) + end


def in_json(value: Any) -> Any:
    """A value as the page says that JSON lines have it."""
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, datetime):
        return stamped(value, "T", "Z")
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, list):
        return [in_json(one) for one in value]
    return {name: in_json(one) for name, one in value.items()} if isinstance(value, dict) else value


def in_sqlite(value: Any) -> Any:
    """A value as the page says that SQLite has it."""
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else value + 0.0
    if isinstance(value, datetime):
        return stamped(value, " ", "")
    if isinstance(value, list):
        return in_json(value)
    return int(value) if isinstance(value, bool) else value if isinstance(value, bytes) else in_json(value)


def found_in_sqlite(sink: Any) -> list[dict[str, Any]]:
    """What Python's module for SQLite finds; lists are JSON."""
    with closing(sqlite3.connect(sink.path)) as connection:
        asked = connection.execute(f"SELECT {', '.join(SCHEMA.names)} FROM {sink.table}")
        rows = [dict(zip(SCHEMA.names, row, strict=True)) for row in asked]
    nested = ("xs", "ts", "pairs")
    return [
        {name: json.loads(value) if name in nested and value is not None else value for name, value in row.items()}
        for row in rows
    ]


def found_in_duckdb(sink: Any) -> list[dict[str, Any]]:
    """What DuckDB says, times as their microseconds: its driver has no words for some that Python has."""
    import duckdb

    with duckdb.connect(sink.path, read_only=True) as connection:
        names = [
            {"t": "epoch_us(t)", "ts": "list_transform(ts, lambda one: epoch_us(one))"}.get(one, one)
            for one in SCHEMA.names
        ]
        rows = connection.execute(f"SELECT {', '.join(names)} FROM {sink.table}").fetchall()
    return [dict(zip(SCHEMA.names, row, strict=True)) for row in rows]


def in_duckdb(value: Any) -> Any:
    """A value as it is, times as their microseconds."""
    if isinstance(value, datetime):
        return (value - EPOCH) // timedelta(microseconds=1)
    return [in_duckdb(one) for one in value] if isinstance(value, list) else value


def found_in_lines(sink: Any) -> list[dict[str, Any]]:
    """What Python's json finds in the published files."""
    return [
        json.loads(line) for path in ps.published(sink.path) for line in Path(path).read_bytes().split(b"\n") if line
    ]


def found_in_parquet(sink: Any) -> list[dict[str, Any]]:
    """What is in the published files."""
    rows: list[dict[str, Any]] = pa.concat_tables([pq.read_table(path) for path in ps.published(sink.path)]).to_pylist()
    return rows


def found_again(sink: Any) -> list[dict[str, Any]]:
    """What ps.read_files gives."""
    rows: list[dict[str, Any]] = ps.read_files(sink.path).to_pylist()
    return rows


def as_it_is(value: Any) -> Any:
    """A value as Python has it."""
    return value


def differing(found: list[dict[str, Any]], sent: list[dict[str, Any]], form: Any) -> list[str]:
    """Where what was found is not what was sent, in the form that it should have."""
    there = {row["k"]: row for row in found}
    assert len(there) == len(found)
    assert there.keys() == {row["k"] for row in sent}
    pairs = [(name, there[row["k"]].get(name), form(value)) for row in sent for name, value in row.items()]
    return [f"{name}: {left!r} instead of {right!r}" for name, left, right in pairs if not equal(left, right)]


def equal(left: Any, right: Any) -> bool:
    """Whether two values are one, down to the sign of a zero in a list."""
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(equal, left, right))
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(equal(left[name], right[name]) for name in left)
    return by_python.same(left, right)


def delivered(sink: Sink, rng: Random) -> list[dict[str, Any]]:
    """Rows that a sink was given: appended, or as answers that take the place of older ones."""
    rows = [row(rng, key) for key in range(rng.choice((1, 5, 20)))]
    if rng.random() < 0.5 or not (hasattr(sink, "table") and hasattr(sink, "history")):
        give(sink, pa.Table.from_pylist(rows, SCHEMA), target=ROWS)
        return rows
    older = [row(rng, key) for key in range(len(rows))]
    for number, these in enumerate((older, rows)):
        give(sink, pa.Table.from_pylist([{**one, "op": 1} for one in these], ANSWERS.schema), number, target=ANSWERS)
    return rows


@law(8, part=10)
@given(SEEDS)
@pytest.mark.parametrize("name", ["sqlite", "parquet", "json", "memory"])
def test_what_is_written_is_found_again(tmp_path_factory, name, seed):
    rng, where = Random(seed), tmp_path_factory.mktemp("written", numbered=True)
    try:
        if name == "sqlite":
            sink: Any = ps.sqlite(where / "a.db", table="v")
            sent = delivered(sink, rng)
            assert differing(found_in_sqlite(sink), sent, in_sqlite) == []
        elif name == "memory":
            sink = ps.memory(f"values {next(_names)}")
            sent = delivered(sink, rng)
            assert differing(sink.rows, sent, as_it_is) == []
            sink.clear()
        else:
            sink = ps.files(where / "f", format=name)
            sent = delivered(sink, rng)
            found = found_in_lines(sink) if name == "json" else found_in_parquet(sink)
            assert differing(found, sent, in_json if name == "json" else as_it_is) == []
            assert differing(found_again(sink), sent, as_it_is) == []
    finally:
        for path in sorted(where.rglob("*"), reverse=True):
            path.unlink() if path.is_file() else path.rmdir()


@law(4, part=20)
@given(SEEDS)
def test_what_is_written_to_duckdb_is_found_again(tmp_path_factory, seed):
    sink = ps.duckdb(tmp_path_factory.mktemp("written") / "a.duckdb", table="v")
    sent = delivered(sink, Random(seed))
    assert differing(found_in_duckdb(sink), sent, in_duckdb) == []
