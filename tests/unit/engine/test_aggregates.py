"""Do the columnar accumulators give what the reference's give: any split into batches, any groups, any type."""

from __future__ import annotations

import math
from collections import Counter
from datetime import date
from decimal import Decimal
from functools import cache, reduce
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from penstock.engine.aggregates.protocol import Accumulator, Columns, Grouped
from penstock.engine.aggregates.registry import accumulator_of
from penstock.engine.columns.sorting import in_order
from penstock.errors import DataError
from penstock.model.aggregates import (
    Aggregate,
    approx_distinct,
    approx_quantile,
    arg_max,
    arg_min,
    collect,
    distinct,
    first,
    fold,
    last,
    max,
    min,
    top_k,
)
from penstock.reference import aggregates
from penstock.reference.aggregates import Record
from penstock.types.arrow import arrow_type
from penstock.types.schema import Schema, schema
from penstock.types.timestamps import from_datetime

GROUPS = 4
LAST = 2**63 - 1
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "long": st.sampled_from([0, 1, -1, 2, LAST, -LAST - 1]) | st.integers(-5, 5),
    "double": st.sampled_from([0.0, -0.0, 1.5, -1.5, math.nan, -math.nan, math.inf, -math.inf]),
    "string": st.sampled_from(["", "a", "ab", "z", "é", "\uffff", "𝄞", "\x00"]),
    "boolean": st.booleans(),
    "date": st.sampled_from([date(1, 1, 1), date(1969, 12, 31), date(2024, 2, 29), date(9999, 12, 31)]),
    "timestamp": st.sampled_from([0, -1, 1, 1_700_000_000_000_001, -62_135_596_800_000_000]),
    "decimal(5,2)": st.sampled_from([Decimal("0.00"), Decimal("-1.50"), Decimal("1.50"), Decimal("999.99")]),
    "decimal(38,0)": st.sampled_from([Decimal(10**37), Decimal(-(10**37)), Decimal(0), Decimal(2**64 + 1)]),
    "binary": st.sampled_from([b"", b"\x00", b"\xff", b"a"]),
}
ORDERABLE = [kind for kind in VALUES if kind != "binary"]
law = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])


class Histogram:
    """How often each value comes, as text; tuples and shared zeros on purpose."""

    empty: tuple[dict[str, int], list[Any]] = ({}, [])

    def zero(self) -> Any:
        return self.empty

    def add(self, accumulator: Any, value: Any) -> Any:
        counts, seen = accumulator
        counts[repr(value)] = counts.get(repr(value), 0) + 1
        return counts, (*seen[-2:], repr(value))

    def combine(self, left: Any, right: Any) -> Any:
        return dict(Counter(left[0]) + Counter(right[0])), [*left[1], *right[1]]

    def result(self, accumulator: Any) -> Any:
        return repr(accumulator) if accumulator[0] else None


@st.composite
def batches(draw: st.DrawFn, kind: str, by: str = "long") -> list[list[tuple[int, Record]]]:
    """Batches of (group, record), each in order of partition and offset; offsets may come twice."""
    row = st.fixed_dictionaries({"v": st.none() | VALUES[kind], "by": st.none() | VALUES[by]})
    record = st.builds(
        Record, st.integers(-2, 2), st.sampled_from(["e/0", "e/1", "e/10", "f/é", "f/𝄞"]), st.integers(0, 6), row
    )
    drawn = draw(st.lists(st.lists(st.tuples(st.integers(0, GROUPS - 1), record), max_size=12), max_size=4))
    return [sorted(batch, key=lambda pair: (pair[0], pair[1].partition, pair[1].offset)) for batch in drawn]


def rows_of(aggregate: Aggregate, fields: Schema, batch: list[tuple[int, Record]]) -> tuple[np.ndarray, Grouped]:
    """The groups of a batch, and its rows in columns."""
    present, starts = np.unique(np.array([group for group, _ in batch], np.int64), return_index=True)
    records = [record for _, record in batch]

    def column(name: str) -> pa.Array:
        return pa.array([record.row[name] for record in records], arrow_type(fields.type_of(name, "")))

    grouped = Grouped(
        starts, column(aggregate.column or ""), None if aggregate.by is None else column(aggregate.by),
        np.array([record.time for record in records], np.int64),
        pa.array([record.partition for record in records], pa.string()),
        np.array([record.offset for record in records], np.int64),
    )  # fmt: skip
    return present, grouped


def put(state: Columns, groups: np.ndarray, made: Columns) -> Columns:
    """The state with the rows of these groups replaced."""
    places = np.arange(len(state[0]))
    places[groups] = len(places) + np.arange(len(groups))
    return tuple(pa.concat_arrays([old, new]).take(pa.array(places)) for old, new in zip(state, made, strict=True))


def played(aggregate: Aggregate, fields: Schema, given: list[list[tuple[int, Record]]]) -> Columns:
    """The columnar accumulators of all groups after these batches."""
    accumulator = accumulator_of("x", aggregate, fields)
    state = accumulator.zero(GROUPS)
    for batch in given:
        groups, rows = rows_of(aggregate, fields, batch)
        old = tuple(column.take(pa.array(groups)) for column in state)
        state = put(state, groups, checked(accumulator, accumulator.pairwise(old, accumulator.partial(rows))))
    return checked(accumulator, state)


def expected(aggregate: Aggregate, given: list[list[tuple[int, Record]]]) -> list[Any]:
    """The reference's accumulators of all groups after these batches."""
    held = [aggregates.zero(aggregate) for _ in range(GROUPS)]
    for batch in given:
        for group in sorted({group for group, _ in batch}):
            partial = aggregates.add_all(aggregate, [record for at, record in batch if at == group])
            held[group] = aggregates.combine(aggregate, held[group], partial)
    return held


def checked(accumulator: Accumulator, columns: Columns) -> Columns:
    """The columns, if they are of the declared types and whole."""
    assert tuple(column.type for column in columns) == accumulator.types()
    assert len({len(column) for column in columns}) == 1
    for column in columns:
        column.validate(full=True)
    return columns


def plain(answers: pa.Array) -> list[str]:
    """Answers as text that tells zeros and types apart; times as microseconds."""
    kind = answers.type.value_type if pa.types.is_list(answers.type) else answers.type
    listed = answers.to_pylist()
    if pa.types.is_timestamp(kind):
        listed = [
            [from_datetime(one) for one in value] if isinstance(value, list) else value and from_datetime(value)
            for value in listed
        ]
    return [repr(value) for value in listed]


def agrees(aggregate: Aggregate, fields: Schema, given: list[list[tuple[int, Record]]], cut: int) -> None:
    """Both engines give the same answers for every group, and for two runs of groups combined."""
    accumulator = accumulator_of("x", aggregate, fields)
    state, held = played(aggregate, fields, given), expected(aggregate, given)
    answers = [aggregates.result(aggregate, one, 1) for one in held]
    assert plain(accumulator.result(state)) == [repr(answer) for answer in answers]
    runs = [held[:cut], held[cut:]]
    answers = [aggregates.result(aggregate, reduce(lambda a, b: aggregates.combine(aggregate, a, b), run), 1)
               for run in runs]  # fmt: skip
    combined = checked(accumulator, accumulator.grouped(state, np.array([0, cut])))
    assert plain(accumulator.result(combined)) == [repr(answer) for answer in answers]
    sliced = accumulator.grouped(tuple(column.slice(1) for column in state), np.array([0]))
    rest = reduce(lambda a, b: aggregates.combine(aggregate, a, b), held[1:])
    assert plain(accumulator.result(sliced)) == [repr(aggregates.result(aggregate, rest, 1))]


cuts = st.integers(1, GROUPS - 1)


@cache
def fields_of(kind: str, by: str = "long") -> Schema:
    return schema(f"v {kind}, by {by}")


@law
@given(st.data(), st.sampled_from([min, max]), cuts)
def test_extremes_of_what_is_not_a_number(data: st.DataObject, maker: Any, cut: int) -> None:
    kind = data.draw(st.sampled_from([kind for kind in ORDERABLE if kind not in ("long", "double")]))
    agrees(maker("v"), fields_of(kind), data.draw(batches(kind)), cut)


@settings(law, max_examples=200)
@given(st.data(), st.sampled_from(["first", "last", "arg_min", "arg_max", "top_k", "top_k by", "collect"]), cuts)
def test_the_first_in_an_order(data: st.DataObject, kind: str, cut: int) -> None:
    size = data.draw(st.sampled_from([1, 2, 3, 9, 20]))
    aggregate = {
        "first": first("v"), "last": last("v"), "arg_min": arg_min("v", "by"), "arg_max": arg_max("v", "by"),
        "top_k": top_k("v", size), "top_k by": top_k("v", size, by="by"), "collect": collect("v", size),
    }[kind]  # fmt: skip
    held = data.draw(st.sampled_from(ORDERABLE if kind == "top_k" else list(VALUES)))
    by = data.draw(st.sampled_from(ORDERABLE))
    agrees(aggregate, fields_of(held, by), data.draw(batches(held, by)), cut)


@law
@given(st.data(), st.sampled_from(list(VALUES)), cuts)
def test_distinct(data: st.DataObject, kind: str, cut: int) -> None:
    agrees(distinct("v"), fields_of(kind), data.draw(batches(kind)), cut)


@law
@given(st.data(), st.sampled_from(list(VALUES)), cuts)
def test_approx_distinct(data: st.DataObject, kind: str, cut: int) -> None:
    agrees(approx_distinct("v"), fields_of(kind), data.draw(batches(kind)), cut)


@law
@given(st.data(), st.sampled_from([0.0, 0.5, 0.9]), cuts)
def test_approx_quantile(data: st.DataObject, q: float, cut: int) -> None:
    kind = data.draw(st.sampled_from(["long", "double"]))
    agrees(approx_quantile("v", q), fields_of(kind), data.draw(batches(kind)), cut)


@law
@given(st.data(), st.sampled_from(list(VALUES)), cuts)
def test_folds(data: st.DataObject, kind: str, cut: int) -> None:
    agrees(fold("v", Histogram(), type="string"), fields_of(kind), data.draw(batches(kind)), cut)
    assert Histogram.empty == ({}, [])


@law
@given(st.data(), st.sampled_from(list(VALUES)))
def test_equal_sets_are_equal_bytes(data: st.DataObject, kind: str) -> None:
    drawn = data.draw(batches(kind))
    whole = [sorted((pair for batch in drawn for pair in batch), key=lambda pair: pair[0])]
    apart, together = (played(distinct("v"), fields_of(kind), given) for given in (drawn, whole))
    assert [repr(one) for one in apart[0].to_pylist()] == [repr(one) for one in together[0].to_pylist()]


ALL = [min("v"), max("v"), first("v"), last("v"), arg_min("v", "by"), arg_max("v", "by"), top_k("v", 2), collect("v"),
       distinct("v"), approx_distinct("v"), fold("v", Histogram(), type="string")]  # fmt: skip


@pytest.mark.parametrize("aggregate", ALL, ids=str)
def test_nothing_at_all(aggregate: Aggregate) -> None:
    accumulator, none = accumulator_of("x", aggregate, fields_of("string")), np.array([], np.int64)
    _, rows = rows_of(aggregate, fields_of("string"), [])
    for columns in (accumulator.zero(0), accumulator.partial(rows), accumulator.grouped(accumulator.zero(0), none)):
        assert len(checked(accumulator, columns)[0]) == 0
    assert len(accumulator.result(accumulator.pairwise(accumulator.zero(0), accumulator.zero(0)))) == 0


@pytest.mark.parametrize("aggregate", ALL, ids=str)
def test_only_nulls_are_zero(aggregate: Aggregate) -> None:
    accumulator = accumulator_of("x", aggregate, fields_of("string"))
    batch = [(group, Record(0, "e/0", group, {"v": None, "by": 1})) for group in (0, 0, 1)]
    _, rows = rows_of(aggregate, fields_of("string"), batch)
    made = checked(accumulator, accumulator.partial(rows))
    assert [column.to_pylist() for column in made] == [column.to_pylist() for column in accumulator.zero(2)]


def test_ties_go_to_the_earlier_place() -> None:
    batch = [(0, Record(0, place, at, {"v": f"{place}@{at}", "by": 7})) for place in ("e/0", "e/1") for at in (1, 2)]
    later, earlier = batch[1:], batch[:1]
    for aggregate in (first("v"), last("v"), arg_min("v", "by"), arg_max("v", "by")):
        state = played(aggregate, fields_of("string"), [later, earlier])
        assert accumulator_of("x", aggregate, fields_of("string")).result(state)[0].as_py() == "e/0@1"


def test_codes_that_do_not_fit_side_by_side_are_sorted_all_the_same() -> None:
    groups = np.array([1, 0, 1, 0, 1])
    wide = np.array([LAST, 3, -LAST - 1, 3, LAST])
    codes = [wide, np.array([5, 9, 0, 8, 4]), np.array([LAST, 0, 0, 0, -LAST])]
    assert in_order(groups, codes).tolist() == [3, 1, 2, 4, 0]


class Broken(Histogram):
    """A fold with one method replaced."""

    def __init__(self, **methods: Any) -> None:
        for name, method in methods.items():
            setattr(self, name, method)


BROKEN = [
    (Broken(zero=lambda: 1 / 0), "the fold over 'v' failed in zero: ZeroDivisionError: division by zero"),
    (Broken(add=lambda a, v: v["x"]), "the fold over 'v' failed in add: TypeError: "),
    (Broken(combine=lambda a, b: [][0]), "the fold over 'v' failed in combine: IndexError: list index out of range"),
    (Broken(result=lambda a: int("x")), "the fold over 'v' failed in result: ValueError: "),
    (Broken(result=lambda a: 7), "the fold over 'v' gave an answer that does not fit: 7 is not text"),
    (Broken(add=lambda a, v: {v}), "the accumulator of the fold over 'v' cannot be stored: "),
    (Broken(add=lambda a, v: [{1: v}]), "the accumulator of the fold over 'v' cannot be stored: the key 1 is not text"),
]


@pytest.mark.parametrize(("function", "what"), BROKEN, ids=[what for _, what in BROKEN])
def test_a_broken_fold_stops_both_engines_alike(function: Any, what: str) -> None:
    aggregate = fold("v", function, type="string")
    given = [[(0, Record(0, "e/0", at, {"v": at, "by": None}))] for at in (1, 2)]
    with pytest.raises(DataError) as ours:
        accumulator_of("x", aggregate, fields_of("long")).result(played(aggregate, fields_of("long"), given))
    with pytest.raises(DataError) as theirs:
        aggregates.result(aggregate, expected(aggregate, given)[0], 1)
    assert ours.value.args == theirs.value.args
    assert ours.value.what.startswith(what)
    assert ours.value.why
    assert ours.value.instead


def test_an_accumulator_keeps_infinities_and_big_integers() -> None:
    aggregate = fold("v", Broken(add=lambda a, v: [v, math.inf, 2**70, -0.0, None], result=str), type="string")
    state = played(aggregate, fields_of("long"), [[(0, Record(0, "e/0", 0, {"v": 1, "by": 1}))]])
    answers = accumulator_of("x", aggregate, fields_of("long")).result(state)
    assert answers[0].as_py() == f"[1, inf, {2**70}, -0.0, None]"
