"""What each form of a row expression means, and how each mistake in one is refused."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal

import pyarrow as pa
import pytest

from penstock.engine import expressions as engine
from penstock.errors import EvaluationError, PlanError
from penstock.expressions.builder import (
    FUNCTIONS,
    And,
    Arithmetic,
    Call,
    Case,
    Cast,
    Compare,
    In,
    IsNull,
    Literal,
    Name,
    Negate,
    Not,
    Or,
    call,
    col,
    columns_of,
    expression,
    lit,
    show,
    type_of,
)
from penstock.reference import expressions as reference
from penstock.types.arrow import arrow_schema, arrow_type
from penstock.types.schema import schema

SCHEMA = schema(
    "points long, rides int, fare double, tip float, team string, note string, paid boolean, at timestamp, day date, "
    "price decimal(10,2), huge decimal(38,2), raw binary, none long"
)
NOON = 1_767_268_800_000_000
ROW: dict[str, object] = {
    "points": 7, "rides": -2, "fare": 2.5, "tip": 0.5, "team": " Ab ", "note": "naïve ß", "paid": True, "at": NOON,
    "day": date(2026, 1, 1), "price": Decimal("9.50"), "huge": Decimal("1.25"), "raw": b"\x00\xff", "none": None,
}  # fmt: skip
A, B, C = Name("a"), Name("b"), Name("c")
ONE, TWO = Literal(1, "long"), Literal(2, "long")


@pytest.mark.parametrize(
    ("text", "node"),
    [
        ("a", A),
        ('"a b"', Name("a b")),
        ('"say ""hi"""', Name('say "hi"')),
        ("`a.b`", Name("a.b")),
        ("größe", Name("größe")),
        ("1", ONE),
        ("-9223372036854775808", Literal(-(2**63), "long")),
        ("1.5", Literal(1.5, "double")),
        (".5", Literal(0.5, "double")),
        ("1e3", Literal(1000.0, "double")),
        ("'it''s'", Literal("it's", "string")),
        ("TRUE", Literal(True, "boolean")),
        ("null", Literal(None, "null")),
        ("timestamp '2026-01-01 12:00:00'", Literal(NOON, "timestamp")),
        ("timestamp '2026-01-01T13:00+01:00'", Literal(NOON, "timestamp")),
        ("date '2026-01-01'", Literal(date(2026, 1, 1), "date")),
        ("decimal '1.50'", Literal(Decimal("1.50"), "decimal(3,2)")),
        ("x'00ff'", Literal(b"\x00\xff", "binary")),
        ("date", Name("date")),
        ("a = 1", Compare("=", A, ONE)),
        ("a == 1", Compare("=", A, ONE)),
        ("a <> 1", Compare("!=", A, ONE)),
        ("a + b * 2", Arithmetic("+", A, Arithmetic("*", B, TWO))),
        ("a - b - 2", Arithmetic("-", Arithmetic("-", A, B), TWO)),
        ("a - -1", Arithmetic("-", A, Literal(-1, "long"))),
        ("-a", Negate(A)),
        ("-(1)", Negate(ONE)),
        ("a or b and not c", Or(A, And(B, Not(C)))),
        ("not a = b", Not(Compare("=", A, B))),
        ("a is null", IsNull(A)),
        ("a is not null", IsNull(A, negated=True)),
        ("a in (1, 2)", In(A, (ONE, TWO))),
        ("a not in (1)", In(A, (ONE,), negated=True)),
        ("a between 1 and 2 and b", And(And(Compare(">=", A, ONE), Compare("<=", A, TWO)), B)),
        ("a not between 1 and 2", Not(And(Compare(">=", A, ONE), Compare("<=", A, TWO)))),
        ("a not like 'x%'", Not(Call("like", (A, Literal("x%", "string"))))),
        ("case when a then 1 else 2 end", Case(((A, ONE),), TWO)),
        ("case a when 1 then b end", Case(((Compare("=", A, ONE), B),))),
        ("CAST(a AS bigint)", Cast(A, "long")),
        ("cast(a as decimal(10, 2))", Cast(A, "decimal(10,2)")),
        ("Lower(a)", Call("lower", (A,))),
        ("a || b || c", Call("concat", (Call("concat", (A, B)), C))),
    ],
)
def test_sql_is_read(text: str, node: object) -> None:
    assert expression(text) == node
    assert expression(show(expression(text))) == node


@pytest.mark.parametrize(
    ("text", "position", "why", "instead"),
    [
        ("", 1, "a value was expected where it ends", "write it as in SQL"),
        ("a +", 4, "a value was expected where it ends", "write it as in SQL"),
        ("a b", 3, "an operator or the end was expected where there is 'b'", "write it as in SQL"),
        ("a = = b", 5, "a value was expected", "write it as in SQL"),
        ("a < b < c", 7, "and, or or the end was expected", "parentheses"),
        ("(a", 3, "')' was expected where it ends", "write it as in SQL"),
        ("'abc", 1, "the quote ' is not closed", "close it with another '"),
        ("a.b", 2, "'.' means nothing here", '"a.b"'),
        ("2nd + 1", 1, "a word cannot begin with a digit", '"2nd"'),
        ("end > 1", 1, "a value was expected where there is 'end'", "double quotes"),
        ("a not b", 7, "in, like or between was expected", "write it as in SQL"),
        ("a in ()", 7, "a value was expected", "write it as in SQL"),
        ("case else 1 end", 6, "a value was expected", "double quotes"),
        ("9223372036854775808", 1, "does not fit in 64 bits", "decimal '"),
        ("1e999", 1, "larger than any double", "write it as in SQL"),
        ("date '2026-02-30'", 6, "is not a date", "date '2026-01-01'"),
        ("timestamp 'noon'", 11, "is not a timestamp", "timestamp '2026-01-01 12:00:00'"),
        ("decimal '1e5'", 9, "is not a decimal", "decimal '1.50'"),
    ],
)
def test_bad_sql_is_refused_at_its_position(text: str, position: int, why: str, instead: str) -> None:
    with pytest.raises(PlanError) as refusal:
        expression(text)
    assert refusal.value.what == f"the expression {text!r} cannot be read at position {position}"
    assert why in refusal.value.why
    assert instead in refusal.value.instead


def test_deep_nesting_is_refused() -> None:
    for text in ("(" * 5000 + "a" + ")" * 5000, " or ".join(["a"] * 200)):
        with pytest.raises(PlanError, match="nested") as refusal:
            expression(text)
        assert "split it over several columns" in refusal.value.instead


@pytest.mark.parametrize(
    ("built", "text"),
    [
        (col("a") == 1, "a = 1"),
        (col("a") != "x", "a != 'x'"),
        ((col("a") < 1) & (col("b") <= 2) | ~(col("c") > 3), "a < 1 and b <= 2 or not c > 3"),
        (1 + col("a") - 2, "1 + a - 2"),
        (3 - col("a") * 2 / col("b") % 5, "3 - a * 2 / b % 5"),
        (2 * col("a"), "2 * a"),
        (1 / col("a"), "1 / a"),
        (5 % col("a"), "5 % a"),
        (-(col("a") >= 1), "-(a >= 1)"),
        (True & col("a"), "true and a"),
        (False | col("a"), "false or a"),
        (col("a").is_null() | col("a b").is_not_null(), 'a is null or "a b" is not null'),
        (col("a").is_in([1, None]), "a in (1, null)"),
        (col("a").between(1, 2), "a >= 1 and a <= 2"),
        (col("a").cast("bigint"), "cast(a as long)"),
        (call("Round", col("a"), 2), "round(a, 2)"),
        (lit(float("nan")), "cast('NaN' as double)"),
        (lit(float("-inf")), "cast('-Infinity' as double)"),
        (lit(-0.0), "-0.0"),
        (lit(b"\x01"), "x'01'"),
        (lit(Decimal("1E+2")), "decimal '100'"),
        (lit(date(33, 1, 2)), "date '0033-01-02'"),
        (lit(datetime(2026, 1, 1, 12)), "timestamp '2026-01-01 12:00:00'"),
        (lit(datetime(2026, 1, 1, 13, tzinfo=timezone(timedelta(hours=1)))), "timestamp '2026-01-01 12:00:00'"),
        (lit(datetime(2026, 1, 1, 12, 0, 0, 5, tzinfo=UTC)), "timestamp '2026-01-01 12:00:00.000005'"),
    ],
)
def test_python_operators_build_the_same_nodes_as_sql(built: object, text: str) -> None:
    node = expression(built)  # type: ignore[arg-type]
    assert show(node) == text
    assert node == expression(text)
    assert repr(built) == f"Col({text})"


@pytest.mark.parametrize(
    ("write", "what", "why", "instead"),
    [
        (lambda: bool(col("a") == 1), "the expression a = 1 is used as if", "a value for each row", "write & for and"),
        (lambda: col("a").is_in([]), "is_in gives a no list", "empty list", ".is_in([1, 2])"),
        (lambda: col("a").is_in("abc"), "is_in gives a no list", "text is one value", ".is_in([1, 2])"),
        (lambda: lit(object), "cannot be a constant", "a constant is null", "convert it first"),
        (lambda: lit(2**63), "cannot be a constant", "a constant is null", "convert it first"),
        (lambda: lit("\ud800"), "cannot be a constant", "a constant is null", "convert it first"),
        (lambda: lit(Decimal("1e-39")), "more than 38 digits", "at most 38", "round it"),
        (lambda: expression(3), "3 is not an expression", "SQL text", "lit(3)"),  # type: ignore[arg-type]
        (lambda: col("a").cast("lng"), "there is no type 'lng'", "as in SQL", "'long'"),
    ],
)
def test_python_mistakes_are_refused(write: object, what: str, why: str, instead: str) -> None:
    with pytest.raises(PlanError) as refusal:
        write()  # type: ignore[operator]
    assert what in refusal.value.what
    assert why in refusal.value.why
    assert instead in refusal.value.instead


@pytest.mark.parametrize(
    ("text", "what", "why", "instead"),
    [
        ("pionts + 1", "filter names the column 'pionts'", "its columns are: points", "did you mean 'points'?"),
        ("lowr(team)", "filter calls lowr, which is not a function", "fixed", "did you mean 'lower'?"),
        ("lower()", "wrong number of arguments: lower()", "lower takes 1 and has 0", "lower(team)"),
        ("coalesce()", "wrong number of arguments", "takes at least 1", "coalesce(points, 0)"),
        ("substring(team)", "wrong number of arguments", "takes 2 to 3", "substring(team, 1, 3)"),
        ("team > 3", "filter mixes types: team > 3", "team is a string; 3 is a long", "write cast(3 as string)"),
        ("at > '2026-01-01'", "mixes types", "at is a timestamp", "write timestamp '2026-01-01'"),
        ("paid = 1", "mixes types", "paid is a boolean; 1 is a long", "give values of one type"),
        ("price > 1.5", "mixes types", "price is a decimal(10,2); 1.5 is a double", "write decimal '1.5'"),
        ("if(paid, price, huge)", "mixes types", "huge is a decimal(38,2)", "write cast(huge as decimal(10,2))"),
        ("team + 'x'", "has a string in team: team + 'x'", "+ works on numbers", "||"),
        ("at - at", "has a timestamp in at", "- works on numbers", "cast"),
        ("price * 2", "has a decimal(10,2) in price", "decimals can only be added", "cast(price as double)"),
        ("huge + 1", "has a decimal(38,2) in huge", "could need 39 digits", "cast(huge as double)"),
        ("points and paid", "has a long in points", "a boolean must stand there", "points = 1"),
        ("lower(points)", "has a long in points", "a string must stand there", "cast(points as string)"),
        ("-team", "has a string in team", "it needs a number", "cast(team as long)"),
        ("round(price)", "has a decimal(10,2) in price", "not rounded", "cast(price as double)"),
        ("paid < true", "has a boolean in paid", "no order", "= or !="),
        ("least(paid, paid)", "has a boolean in paid", "no order", "case"),
        ("cast(at as string)", "has a timestamp in at", "only int, long, boolean, string can become string", "cast"),
        ("cast(fare as decimal(10,2))", "has a double in fare", "can become decimal(10,2)", "cast"),
        ("cast(points as decimal(2,3))", "no type decimal(2,3)", "from 0 to its precision", "write decimal(10,2)"),
        ("cast(points as decimal(39,0))", "no type decimal(39,0)", "from 1 to 38", "write decimal(10,2)"),
        ("starts_with(team, note)", "gives starts_with note", "must be text", "starts_with(team, 'a')"),
        ("substring(team, 0)", "gives substring 0", "counted from 1", "substring(team, 1, 3)"),
        ("round(fare, 20)", "gives round 20", "from 0 to 15", "round(price, 2)"),
        ("null", "has a value of no type: null", "any type", "cast(null as long)"),
        ("coalesce(null, null)", "has a value of no type", "any type", "cast(null as long)"),
        ("null + null", "has a value of no type", "any type", "cast(null as long)"),
        ("-null", "has a value of no type", "any type", "cast(null as long)"),
    ],
)
def test_wrong_types_are_refused(text: str, what: str, why: str, instead: str) -> None:
    with pytest.raises(PlanError) as refusal:
        type_of(expression(text), SCHEMA, "filter")
    assert what in refusal.value.what
    assert why in refusal.value.why
    assert instead in refusal.value.instead


CASES = [
    ("points", "long", 7), ("rides", "int", -2), ("rides + rides", "long", -4), ("points - 10", "long", -3),
    ("points * fare", "double", 17.5), ("points / rides", "double", -3.5), ("-points % 4", "long", -3),
    ("points % -4", "long", 3), ("none / 0", "double", None), ("fare % 2", "double", 0.5), ("abs(rides)", "long", 2),
    ("points > fare", "boolean", True), ("none = none", "boolean", None), ("none != 1", "boolean", None),
    ("none is null", "boolean", True), ("points is not null", "boolean", True), ("null is null", "boolean", True),
    ("paid and none = 1", "boolean", None), ("not paid and none = 1", "boolean", False),
    ("paid or none = 1", "boolean", True), ("not (none = 1)", "boolean", None),
    ("points in (1, 7)", "boolean", True), ("points in (1, null)", "boolean", None),
    ("points not in (1, null)", "boolean", None), ("points in (7, null)", "boolean", True),
    ("none in (1)", "boolean", None), ("points in (7.0, rides)", "boolean", True),
    ("points between 7 and 8", "boolean", True), ("points not between 7 and 8", "boolean", False),
    ("lower(team)", "string", " ab "), ("upper(note)", "string", "NAÏVE SS"), ("length(note)", "long", 7),
    ("trim(team)", "string", "Ab"), ("team || '!' || note", "string", " Ab !naïve ß"),
    ("concat(team, cast(null as string))", "string", None), ("substring(note, 3, 2)", "string", "ïv"),
    ("substring(note, 5)", "string", "e ß"), ("note like 'na_ve%'", "boolean", True),
    ("note like 'na.ve%'", "boolean", False), ("note not like '%ß'", "boolean", False),
    ("starts_with(note, 'na')", "boolean", True), ("ends_with(note, 'ß')", "boolean", True),
    ("contains(note, 've ')", "boolean", True), ("contains(note, '')", "boolean", True),
    ("coalesce(none, points)", "long", 7), ("coalesce(none, fare)", "double", 2.5), ("nullif(points, 7)", "long", None),
    ("nullif(points, none)", "long", 7), ("if(none = 1, 1, 2)", "long", 2), ("least(points, fare)", "double", 2.5),
    ("greatest(points, rides, none)", "long", None), ("greatest(team, note)", "string", "naïve ß"),
    ("floor(-fare)", "double", -3.0), ("ceil(fare)", "double", 3.0), ("floor(rides)", "int", -2),
    ("round(fare)", "double", 3.0), ("round(-fare)", "double", -3.0), ("round(fare / 3, 2)", "double", 0.83),
    ("case when points > 9 then 'many' when paid then 'few' end", "string", "few"),
    ("case when points > 9 then 1 end", "long", None), ("case points when 7 then 1 else 2.5 end", "double", 1.0),
    ("cast(-fare as long)", "long", -2), ("cast(points as double)", "double", 7.0),
    ("cast(paid as string)", "string", "true"),
    ("cast(points as string)", "string", "7"), ("cast('+12' as long)", "long", 12),
    ("cast('1e2' as double)", "double", 100.0),
    ("cast(points as int) + 1", "long", 8), ("cast(null as date)", "date", None),
    ("cast('2026-01-01 12:00' as timestamp) = at", "boolean", True), ("cast(at as date)", "date", date(2026, 1, 1)),
    ("cast(day as timestamp)", "timestamp", NOON - 43_200_000_000), ("at > timestamp '2026-01-01'", "boolean", True),
    ("day = date '2026-01-01'", "boolean", True), ("raw = x'00ff'", "boolean", True),
    ("price + 1", "decimal(22,2)", Decimal("10.50")), ("price - decimal '0.125'", "decimal(12,3)", Decimal("9.375")),
    ("price > 9 and price = decimal '9.500'", "boolean", True), ("price < huge", "boolean", False),
    ("-price", "decimal(10,2)", Decimal("-9.50")), ("abs(-price)", "decimal(10,2)", Decimal("9.50")),
    ("cast(price as double)", "double", 9.5), ("cast(price as long)", "long", 9),
    ("cast('1.5' as decimal(5,2))", "decimal(5,2)", Decimal("1.50")), ("price in (null, 3)", "boolean", None),
    ("cast('NaN' as double) = cast('NaN' as double)", "boolean", False),
    ("greatest(fare, cast('NaN' as double)) = 1", "boolean", False),
]  # fmt: skip


def batch(row: dict[str, object], rows: int = 1) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([row] * rows, schema=arrow_schema(SCHEMA))


@pytest.mark.parametrize(("text", "kind", "value"), CASES)
def test_values_in_both_engines(text: str, kind: str, value: object) -> None:
    node = expression(text)
    assert type_of(node, SCHEMA, "test") == kind
    assert reference.evaluate(node, ROW, SCHEMA) == value
    found = engine.evaluate(node, pa.Table.from_batches([batch(ROW), batch(ROW)]), SCHEMA)
    assert found.type == arrow_type(kind)
    assert found.equals(pa.array([value, value], arrow_type(kind)))


def test_every_function_has_a_case() -> None:
    used = {part.split("(")[0] for text, _, _ in CASES for part in text.split()}
    assert set(FUNCTIONS) - used - {"like"} == set()
    assert any(" like " in text for text, _, _ in CASES)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("points / 0", "division by zero in points / 0"),
        ("points % (rides + 2)", "division by zero in points % (rides + 2)"),
        ("points + 9223372036854775807", "overflow in points + 9223372036854775807"),
        ("rides * 9223372036854775807", "overflow in rides * 9223372036854775807"),
        ("-(points - 7 - 9223372036854775807 - 1)", "overflow in -(points - 7 - 9223372036854775807 - 1)"),
        ("abs(-9223372036854775808)", "overflow in abs(-9223372036854775808)"),
        ("cast(team as long)", "unreadable value in cast(team as long)"),
        ("cast('2026-02-30' as date)", "unreadable value in cast('2026-02-30' as date)"),
        ("cast('24:00' as timestamp)", "unreadable value in cast('24:00' as timestamp)"),
        ("cast('1.234' as decimal(5,2))", "unreadable value in cast('1.234' as decimal(5,2))"),
        ("cast(fare * 1e300 as long)", "value out of range in cast(fare * 1e+300 as long)"),
        ("cast(points * 1000000000 as int)", "value out of range in cast(points * 1000000000 as int)"),
        ("paid or points / 0 > 1", "division by zero in points / 0"),
        ("coalesce(points, points % 0)", "division by zero in points % 0"),
        ("if(paid, 1.0, points / 0)", "division by zero in points / 0"),
        ("points * 1000000007 * 1000000007 * 1000000007 * 1000000007 + (rides - 1000000007 - 1000000007 - 100)",
         "overflow in points * 1000000007 * 1000000007 * 1000000007"),
        ("(case when paid then points else rides end + 1000000000000000) * 10000000000000000000.0 / (rides + 2) > 1",
         "division by zero in / of paid, points, rides"),
    ],
)  # fmt: skip
def test_errors_have_one_text_in_both_engines(text: str, message: str) -> None:
    node = expression(text)
    with pytest.raises(EvaluationError) as in_reference:
        reference.evaluate(node, ROW, SCHEMA)
    with pytest.raises(EvaluationError) as in_engine:
        engine.evaluate(node, batch(ROW, 3), SCHEMA)
    assert str(in_reference.value) == str(in_engine.value) == message


def test_no_row_means_no_error() -> None:
    assert engine.evaluate(expression("1 / 0"), batch(ROW, 0), SCHEMA).equals(pa.array([], pa.float64()))


def test_columns_of() -> None:
    assert columns_of(expression("case when a = b then 1 else lower(c) || d end in (e, -f)")) == set("abcdef")
    assert columns_of(expression("1 + 1")) == frozenset()


def test_columns_in_another_physical_type_are_brought_into_ours() -> None:
    table = pa.table({"points": pa.array([1, 2], pa.int32()), "team": pa.array(["a", "b"]).dictionary_encode()})
    narrow = schema("points long, team string")
    assert engine.evaluate(expression("points + length(team)"), table, narrow).to_pylist() == [2, 3]
