"""What: each aggregate on values, nulls, NaN, ties and nothing; `where=`; overflow; types that do not fit."""

from __future__ import annotations

import math
from datetime import date
from decimal import Decimal

import pytest

import penstock as ps
from penstock.testing import Script

NAN, INF = math.nan, math.inf


@pytest.fixture
def answer(engine):
    """What one window says of these rows; `at` and the partition of a row are its first two values."""

    def made(aggregate, values, kind="long", more="", batches=1):
        stream = ps.events(f"at timestamp, v {kind}{more}").event_time("at", watermark=ps.by_hand())
        script = Script(stream.window(ps.tumbling("1 day")).aggregate(r=aggregate), engine)
        rows = [v if isinstance(v, dict) else {"at": f"12:{i:02}", "v": v} for i, v in enumerate(values)]
        cut = -(-len(rows) // batches)
        for i in range(batches):
            script.batch(rows[i * cut : (i + 1) * cut])
        script.end()
        return script.panes[0].values["r"]

    return made


@pytest.mark.parametrize("batches", [1, 2, 3], ids="{} batches".format)
@pytest.mark.parametrize(("aggregate", "expected"), [
    (ps.rows(), 6), (ps.count("v"), 5), (ps.sum("v"), 14), (ps.min("v"), 1), (ps.max("v"), 5), (ps.mean("v"), 2.8),
    (ps.variance("v"), 2.2), (ps.first("v"), 3), (ps.last("v"), 2), (ps.top_k("v", 2), [5, 3]),
    (ps.collect("v"), [3, 1, 5, 3, 2]), (ps.collect("v", 2), [3, 1]), (ps.distinct("v"), 4),
    (ps.approx_distinct("v"), 4), (ps.approx_quantile("v", 0.5), 3.0), (ps.arg_min("v", by="v"), 1),
    (ps.arg_max("v", by="v"), 5),
], ids=str)  # fmt: skip
def test_each_aggregate_ignores_null_values(answer, aggregate, expected, batches):
    assert answer(aggregate, [3, 1, None, 5, 3, 2], batches=batches) == pytest.approx(expected)


@pytest.mark.parametrize(("aggregate", "expected"), [
    (ps.rows(), 1), (ps.count("v"), 0), (ps.sum("v"), None), (ps.min("v"), None), (ps.max("v"), None),
    (ps.mean("v"), None), (ps.variance("v"), None), (ps.first("v"), None), (ps.last("v"), None),
    (ps.top_k("v", 2), []), (ps.collect("v"), []), (ps.distinct("v"), 0), (ps.approx_distinct("v"), 0),
    (ps.approx_quantile("v", 0.5), None), (ps.arg_min("v", by="v"), None), (ps.arg_max("v", by="v"), None),
], ids=str)  # fmt: skip
def test_all_null_is_as_in_sql(answer, aggregate, expected):
    assert answer(aggregate, [None]) == expected


def test_variance_is_the_samples_and_null_below_two_values(answer):
    assert answer(ps.variance("v"), [2, 4]) == 2.0
    assert answer(ps.variance("v"), [2]) is None


def test_first_and_last_are_by_event_time_and_ties_go_to_the_smallest_partition_and_offset(answer):
    rows = [{"at": "12:00", "v": 1, "@partition": "b"}, {"at": "12:00", "v": 2, "@partition": "a"},
            {"at": "12:00", "v": 3, "@partition": "a"}]  # fmt: skip
    assert answer(ps.first("v"), rows) == 2
    assert answer(ps.last("v"), rows) == 2
    assert answer(ps.collect("v"), rows) == [2, 3, 1]


def test_arg_min_and_arg_max_take_the_value_beside_the_extreme(answer):
    rows = [{"at": "12:00", "v": 1, "by": 9.0}, {"at": "12:01", "v": 2, "by": 3.0}, {"at": "12:02", "v": 3, "by": None}]
    assert answer(ps.arg_min("v", by="by"), rows, more=", by double") == 2
    assert answer(ps.arg_max("v", by="by"), rows, more=", by double") == 1


def test_arg_ignores_rows_whose_value_is_null(answer):
    rows = [{"at": "12:00", "v": None, "by": 9.0}, {"at": "12:01", "v": 2, "by": 3.0}]
    assert answer(ps.arg_max("v", by="by"), rows, more=", by double") == 2


def test_top_k_by_another_column_is_best_first(answer):
    rows = [{"at": f"12:0{i}", "v": v, "by": by} for i, (v, by) in enumerate([("a", 1), ("b", 3), ("c", 2), ("d", 3)])]
    assert answer(ps.top_k("v", 3, by="by"), rows, "string", ", by long") == ["b", "d", "c"]


def test_nan_is_the_greatest_number_and_one_value(answer):
    assert answer(ps.min("v"), [NAN, 1.0, INF], "double") == 1.0
    assert math.isnan(answer(ps.max("v"), [NAN, 1.0, INF], "double"))
    assert answer(ps.distinct("v"), [NAN, -NAN, 1.0], "double") == 2
    assert math.isnan(answer(ps.sum("v"), [NAN, 1.0], "double"))
    assert math.isnan(answer(ps.top_k("v", 1), [1.0, NAN], "double")[0])


def test_zero_has_no_sign(answer):
    assert answer(ps.distinct("v"), [0.0, -0.0], "double") == 1
    assert math.copysign(1, answer(ps.min("v"), [-0.0], "double")) == 1.0


@pytest.mark.parametrize(("kind", "values"), [
    ("string", ["b", "a", "c"]), ("date", [date(2026, 1, 2), date(2026, 1, 1), date(2026, 1, 3)]),
    ("decimal(5,2)", [Decimal("2.00"), Decimal("1.50"), Decimal("3.00")]), ("boolean", [True, False, True]),
])  # fmt: skip
def test_min_and_max_are_of_any_type_that_has_an_order(answer, kind, values):
    assert answer(ps.min("v"), values, kind) == min(values)
    assert answer(ps.max("v"), values, kind) == max(values)


def test_where_narrows_one_aggregate_and_leaves_the_others(engine):
    stream = ps.events("at timestamp, v long").event_time("at", watermark=ps.by_hand())
    panes = stream.window(ps.tumbling("1 hour")).aggregate(
        all=ps.rows(), big=ps.rows(where="v > 2"), total=ps.sum("v", where=ps.col("v") > 2),
        none=ps.sum("v", where="v > 9"),
    )  # fmt: skip
    script = Script(panes, engine)
    script.batch([{"at": "12:00", "v": v} for v in (1, 3, 4, None)])
    script.end()
    script.expect({"all": 4, "big": 2, "total": 7, "none": None})


def test_where_that_fails_on_a_row_quarantines_the_row_for_all_aggregates(engine):
    stream = ps.events("at timestamp, v long").event_time("at", watermark=ps.by_hand())
    script = Script(stream.window(ps.tumbling("1 hour")).aggregate(n=ps.rows(), m=ps.rows(where="10 / v > 1")), engine)
    script.batch([{"at": "12:00", "v": v} for v in (5, 0)])
    script.end()
    script.expect({"n": 1, "m": 1})
    assert [(row.step, row.reason) for row in script.quarantined] == [("aggregate", "division by zero in 10 / v")]


def test_an_integer_sum_beyond_64_bits_is_an_error_that_names_the_column(answer):
    with pytest.raises(ps.DataError, match="r = sum\\('v'\\) does not fit into 64 bits") as error:
        answer(ps.sum("v"), [2**63 - 1, 1])
    assert "cast(v as double)" in error.value.instead


def test_an_integer_sum_may_leave_64_bits_and_come_back_before_it_is_shown(answer):
    assert answer(ps.sum("v"), [2**63 - 1, 1, -1]) == 2**63 - 1
    assert answer(ps.sum("v"), [2**63 - 1, 1, -1, -1], batches=2) == 2**63 - 2
    assert answer(ps.sum("v"), [-(2**63), -5, 2**62, 7], batches=4) == -(2**63) + 2**62 + 2


@pytest.mark.parametrize("base", [0, 10**12, 1_700_000_000_000_000])
def test_a_variance_far_from_zero_is_exact(answer, base):
    values = [base + step for step in (3, 1, 4, 1, 5, 9, 2, 6)]
    assert answer(ps.variance("v"), values, batches=3) == pytest.approx(7.553571428571429, rel=1e-12)


@pytest.mark.filterwarnings("error")
def test_infinities_go_through_sums_without_a_warning(answer):
    assert answer(ps.sum("v"), [1e308, 1e308], "double") == float("inf")
    assert math.isnan(answer(ps.sum("v"), [float("inf"), float("-inf")], "double"))
    assert math.copysign(1, answer(ps.sum("v"), [-0.0], "double")) == 1


def test_a_mean_of_large_integers_does_not_overflow(answer):
    assert answer(ps.mean("v"), [2**63 - 1, 2**63 - 1]) == pytest.approx(2**63 - 1)


def test_an_int_column_holds_32_bits_and_its_sum_64(answer):
    assert answer(ps.sum("v"), [2**31 - 1, 2**31 - 1], "int") == 2**32 - 2


def test_approximate_answers_are_near(engine):
    stream = ps.events("at timestamp, v long").event_time("at", watermark=ps.by_hand())
    panes = stream.window(ps.tumbling("1 hour")).aggregate(d=ps.approx_distinct("v"), q=ps.approx_quantile("v", 0.9))
    script = Script(panes, engine)
    script.batch([{"at": "12:00", "v": v} for v in range(3000)])
    script.end()
    assert script.panes[0].values["d"] == pytest.approx(3000, rel=0.05)
    assert script.panes[0].values["q"] == pytest.approx(2700, rel=0.02)


class Longest:
    """The longest text."""

    def zero(self):
        return ""

    def add(self, accumulator, value):
        return max(accumulator, value, key=len)

    def combine(self, left, right):
        return max(left, right, key=len)

    def result(self, accumulator):
        return accumulator


@pytest.mark.parametrize("batches", [1, 3], ids="{} batches".format)
def test_a_fold_of_your_own_is_zero_add_combine_and_result(answer, batches):
    assert answer(ps.fold("v", Longest(), type="string"), ["a", None, "abc", "ab"], "string", batches=batches) == "abc"


def test_a_fold_without_its_four_methods_is_refused():
    with pytest.raises(ps.PlanError, match="lacks add, combine"):
        ps.fold("v", type("Half", (), {"zero": int, "result": int})(), type="long")


@pytest.mark.parametrize(("aggregate", "kind"), [
    (ps.sum("v"), "string"), (ps.mean("v"), "boolean"), (ps.variance("v"), "timestamp"), (ps.sum("v"), "decimal(10,2)"),
    (ps.approx_quantile("v", 0.5), "date"), (ps.min("v"), "binary"), (ps.top_k("v", 1), "binary"),
    (ps.arg_max("at", by="v"), "binary"), (ps.sum("w"), "long"), (ps.rows(where="v"), "long"),
    (ps.rows(where="w > 1"), "long"), (ps.arg_min("v", by="w"), "long"),
], ids=str)  # fmt: skip
def test_an_aggregate_over_a_type_it_does_not_take_is_refused_by_name(aggregate, kind):
    stream = ps.events(f"at timestamp, v {kind}").event_time("at", watermark=ps.by_hand())
    with pytest.raises(ps.PlanError) as error:
        stream.window(ps.tumbling("1 hour")).aggregate(r=aggregate)
    assert "'v'" in str(error.value) or "r " in error.value.what or "r's" in error.value.what
    assert error.value.why
    assert error.value.instead


@pytest.mark.parametrize("mistake", [
    lambda: ps.top_k("v", 0), lambda: ps.top_k("v", True), lambda: ps.collect("v", -1),
    lambda: ps.approx_quantile("v", 2), lambda: ps.count(0), lambda: ps.count(1.5), lambda: ps.count(True),
])  # fmt: skip
def test_a_size_that_makes_no_sense_is_refused(mistake):
    with pytest.raises(ps.PlanError):
        mistake()


def test_the_type_of_an_answer_is_known_before_anything_runs():
    stream = ps.events("at timestamp, v int, x double, s string").event_time("at", watermark=ps.by_hand())
    plan = stream.window(ps.tumbling("1 hour")).aggregate(
        a=ps.sum("v"), b=ps.sum("x"), c=ps.mean("v"), d=ps.max("s"), e=ps.collect("s"), f=ps.rows(), g=ps.first("v")
    ).plan  # fmt: skip
    assert str(plan.result_schema) == "a long, b double, c double, d string, e array<string>, f long, g int"
