"""The shard of a key is the same on every machine and in every version: golden vectors, checked against Appleby's C."""

from __future__ import annotations

import math
from collections import Counter
from datetime import date, timedelta
from decimal import Decimal, localcontext
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

from penstock.engine.columns.keys import canonical, hashes
from penstock.engine.shuffle.partition import key_hash, murmur64a, shard_of
from penstock.types.arrow import arrow_type

# A change of any of these moves keys to other shards than the checkpoints of users have them in.
GOLDEN = [
    ((True,), 0x783ED3D29CB4198F),
    ((False,), 0x37B3D8ADDCE1B441),
    ((0,), 0x37B3D8ADDCE1B441),
    ((1,), 0x783ED3D29CB4198F),
    ((42,), 0x4FD189FA239369FC),
    ((-1,), 0xF54F51C9DFBC2D1F),
    ((-(2**63),), 0x53FDC363868BC2AD),
    ((2**63 - 1,), 0x27A23030F04DC4A2),
    ((0.0,), 0x37B3D8ADDCE1B441),
    ((-0.0,), 0x37B3D8ADDCE1B441),
    ((1.5,), 0xEF510C680C95B093),
    ((math.inf,), 0x8CD353C05B375C4E),
    ((math.nan,), 0xC93A6876B031D121),
    ((-math.nan,), 0xC93A6876B031D121),
    (("a",), 0x36B215B867DD15B2),
    (("penstock",), 0x975726446062FA9D),
    (("nine byte",), 0x22C4BF35BCC5CC88),
    (("",), 0x6740AD73F526EB34),
    (("Grüße 𝄞",), 0xE098653C86C96AD3),
    (("x" * 512,), 0x173F5DAF265996ED),
    (("x" * 513,), 0x246E9C603CAFEA88),
    ((b"",), 0x6740AD73F526EB34),
    ((b"\x00\xff",), 0xFAE884B92CB5D9B7),
    ((date(1970, 1, 1),), 0x37B3D8ADDCE1B441),
    ((date(2026, 3, 1),), 0x5A9490D05852EE32),
    ((date(1, 1, 1),), 0xEF932B5A29302763),
    ((1_700_000_000_000_000,), 0x3D670F039F12F36F),
    ((Decimal("1.10"),), 0x1362A3BAA46C741B),
    ((Decimal("1.1"),), 0x1362A3BAA46C741B),
    ((Decimal("-0.05"),), 0xB1937F050C33FADE),
    ((Decimal(100),), 0x83103176924FB656),
    ((Decimal("0.00"),), 0x51DF622A8DF16C42),
    ((None,), 0x02C8EEB7357074AC),
    ((), 0x70656E73746F636B),
    (("a", 1), 0x3A909C74714FD38A),
    ((1, "a"), 0x68B53CD8FC7C59E2),
    (("a", None), 0xA0C2263B94DAA54E),
    ((None, "a"), 0x3E566C4BE68FAF6C),
    ((None, None), 0x824389E386F3D4A7),
    (("a", "b", 2.5), 0x7C89F6E480E34635),
    (("ab", ""), 0x503C0FD577233BF9),
    (("", "ab"), 0xCD82C3FBEDC98327),
]
# From Austin Appleby's MurmurHash2.cpp, compiled: every length of a tail, and a seed.
APPLEBY = [
    (b"", 0, 0x0000000000000000),
    (b"penstock", 0, 0x7AC9CFB809BB3669),
    (bytes(range(1, 2)), 0x0123456789ABCDEF, 0x929A6B2728083B1F),
    (bytes(range(1, 3)), 0x0123456789ABCDEF, 0x5021B7B32582FF63),
    (bytes(range(1, 4)), 0x0123456789ABCDEF, 0x484B85FD550BE2B7),
    (bytes(range(1, 5)), 0x0123456789ABCDEF, 0x8EDB3BC40BDC6C0A),
    (bytes(range(1, 6)), 0x0123456789ABCDEF, 0x7EDA92718A979229),
    (bytes(range(1, 7)), 0x0123456789ABCDEF, 0xF40B357A0EED6B6B),
    (bytes(range(1, 8)), 0x0123456789ABCDEF, 0x28726DAD3E6E2711),
    (bytes(range(1, 10)), 0x0123456789ABCDEF, 0xD172100D1457E906),
    (bytes(range(1, 16)), 0x0123456789ABCDEF, 0xF53E83C3EEC1A487),
    (bytes(range(1, 17)), 0x0123456789ABCDEF, 0x8E22B865968956C8),
]
COLUMNS = {
    "boolean": st.booleans(),
    "int": st.integers(-(2**31), 2**31 - 1),
    "long": st.integers(-(2**63), 2**63 - 1) | st.sampled_from([0, -1, 2**63 - 1, -(2**63)]),
    "double": st.floats() | st.sampled_from([0.0, -0.0, math.nan, -math.nan]),
    "string": st.text(st.characters(codec="utf-8"), max_size=20) | st.sampled_from(["", "x" * 512, "é" * 300]),
    "binary": st.binary(max_size=20) | st.sampled_from([b"\x00" * 8, b"y" * 600]),
    "date": st.dates(),
    "timestamp": st.integers(-(2**55), 2**55),
    "decimal(10,2)": st.decimals(-99_999_999, 99_999_999, places=2),
    "decimal(19,0)": st.integers(-(10**18), 10**18).map(Decimal),
}


@pytest.mark.parametrize(("key", "expected"), GOLDEN, ids=lambda part: None)
def test_golden_vectors(key: tuple[Any, ...], expected: int) -> None:
    assert key_hash(key) == expected
    assert shard_of(key, 64) == expected % 64
    assert shard_of(key, 7) == expected % 7


@pytest.mark.parametrize(("data", "seed", "expected"), APPLEBY, ids=lambda part: None)
def test_the_algorithm_is_the_named_one(data: bytes, seed: int, expected: int) -> None:
    assert murmur64a(data, seed) == expected


@st.composite
def keys_of_rows(draw: st.DrawFn) -> tuple[list[str], list[tuple[Any, ...]]]:
    """The types of some key columns, and the keys of some rows."""
    types = draw(st.lists(st.sampled_from(sorted(COLUMNS)), max_size=3))
    row = st.tuples(*(st.none() | COLUMNS[kind] for kind in types))
    return types, draw(st.lists(row, max_size=12))


def in_columns(types: list[str], rows: list[tuple[Any, ...]]) -> tuple[pa.Array, ...]:
    return tuple(canonical(pa.array([row[i] for row in rows], arrow_type(kind))) for i, kind in enumerate(types))


@given(keys_of_rows())
def test_the_engine_hashes_columns_as_the_shard_does_keys(given_keys: tuple[list[str], list[tuple[Any, ...]]]) -> None:
    types, rows = given_keys
    assert hashes(in_columns(types, rows), len(rows)).tolist() == [key_hash(row) for row in rows]


@given(keys_of_rows(), st.integers(0, 5), st.integers(0, 12))
def test_a_slice_of_a_column_hashes_as_its_rows(
    given_keys: tuple[list[str], list[tuple[Any, ...]]], start: int, length: int
) -> None:
    types, rows = given_keys
    part = tuple(column.slice(start, length) for column in in_columns(types, rows))
    mine = rows[start : start + length]
    assert hashes(part, len(mine)).tolist() == [key_hash(row) for row in mine]


@pytest.mark.parametrize(
    "keys",
    [
        [(i,) for i in range(6_400)],
        [(i * 1024,) for i in range(6_400)],
        [(f"user-{i}",) for i in range(6_400)],
        [(date(2000, 1, 1) + timedelta(days=i),) for i in range(6_400)],
        [(i / 8,) for i in range(6_400)],
        [("tenant", i % 80, i // 80) for i in range(6_400)],
    ],
    ids=["counting", "multiples", "texts", "days", "eighths", "several columns"],
)
@pytest.mark.parametrize("shards", [64, 48, 7])
def test_keys_spread_over_the_shards(keys: list[tuple[Any, ...]], shards: int) -> None:
    held = Counter(shard_of(key, shards) for key in keys)
    fair = len(keys) / shards
    spread = 6 * math.sqrt(fair)  # six standard deviations of a fair choice
    assert all(abs(held[shard] - fair) < spread for shard in range(shards))


def test_the_shard_of_a_decimal_does_not_depend_on_the_decimal_context() -> None:
    key = (Decimal("123456.78"),)
    expected = key_hash(key)
    with localcontext() as context:
        context.prec = 5
        assert key_hash(key) == expected


def test_long_texts_among_short_ones_hash_as_each_alone() -> None:
    texts = ["", "a", "b" * 520, None, "c" * 512, "d" * 9, "e" * 4_000, "f" * 8]
    assert hashes((pa.array(texts),), len(texts)).tolist() == [key_hash((text,)) for text in texts]


def test_a_signalling_nan_is_hashed_as_any_other():
    signalling = np.array([0x7FF0000000000001], dtype=np.uint64).view(np.float64)
    (quiet,) = hashes((pa.array([float("nan")]),), 1)
    assert list(hashes((pa.array(signalling),), 1)) == [quiet]
