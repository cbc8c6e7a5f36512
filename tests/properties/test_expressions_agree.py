"""The law that an expression means one thing: its text reads back, and both engines give the same values and errors."""

from __future__ import annotations

import math
from datetime import date, datetime
from decimal import Decimal
from functools import cache

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from penstock.engine import expressions as engine
from penstock.errors import EvaluationError, PlanError
from penstock.expressions.builder import (
    And,
    Arithmetic,
    Call,
    Case,
    Cast,
    Col,
    Compare,
    In,
    IsNull,
    Name,
    Negate,
    Node,
    Not,
    Or,
    columns_of,
    expression,
    lit,
    show,
    type_of,
)
from penstock.reference import expressions as reference
from penstock.types import timestamps
from penstock.types.arrow import arrow_schema
from penstock.types.schema import Column, Schema, schema

SCHEMA = schema(
    "i int, n long, k long, f float, x double, s string, t string, b boolean, c boolean, at timestamp, d date, "
    "m decimal(10,2), w decimal(19,0), raw binary"
)
TYPES = ("boolean", "int", "long", "float", "double", "string", "binary", "date", "timestamp")
OPS = ("=", "!=", "<", "<=", ">", ">=")
Inner = dict[str, st.SearchStrategy[Node]]

ints = st.sampled_from([0, 1, -1, 2, 7, -7, 2**31 - 1, -(2**31)]) | st.integers(-(2**31), 2**31 - 1)
longs = st.sampled_from([0, 1, -1, 3, 2**53 + 1, 2**63 - 1, -(2**63)]) | st.integers(-(2**63), 2**63 - 1)
doubles = st.sampled_from(
    [0.0, -0.0, 0.5, -0.5, 2.5, -1.5, 1.0, math.nan, math.inf, -math.inf, 1e300, 2.0**53, 2.0**63, -(2.0**63), 2.0**31]
) | st.floats()  # fmt: skip
texts = st.sampled_from(
    ["", " ", "a", " Ab ", "12", "-7", "+3", "1.5", "1e400", "NaN", "9223372036854775808", "true", "ß", "ΑΣ", "İ", "%",
     "a.b", "ab\nc", "\ta", "2026-01-31", "2026-01-31 12:00", "0001-01-01T00:00:00+01:00", "2026-02-30", "𝄞é", "\uff13",
     "\x00"]
) | st.text(st.characters(codec="utf-8"), max_size=5)  # fmt: skip
moments = st.sampled_from([0, -1, timestamps.EARLIEST, timestamps.LATEST]) | st.integers(
    timestamps.EARLIEST, timestamps.LATEST
)
cents = st.decimals(Decimal("-99999999.99"), Decimal("99999999.99"), places=2) | st.just(Decimal("0.00"))
VALUES = {
    "boolean": st.booleans(), "int": ints, "long": longs, "float": doubles, "double": doubles, "string": texts,
    "binary": st.binary(max_size=3), "date": st.dates(), "timestamp": moments, "decimal(10,2)": cents,
    "decimal(19,0)": longs.map(Decimal),
}  # fmt: skip
ROWS = st.lists(
    st.fixed_dictionaries({column.name: st.none() | VALUES[column.type] for column in SCHEMA.columns}), max_size=5
)


@cache
def literals(kind: str) -> st.SearchStrategy[Node]:
    if kind == "timestamp":
        return moments.map(lambda moment: lit(timestamps.to_datetime(moment)).node)
    return VALUES["long" if kind == "int" else kind].map(lambda value: lit(value).node)


@cache
def leaves(kind: str) -> st.SearchStrategy[Node]:
    names = [Name(column.name) for column in SCHEMA.columns if column.type == kind]
    found = st.sampled_from(names) | st.just(Cast(lit(None).node, kind))
    return found if kind == "int" else found | literals(kind)


def inside(depth: int) -> Inner:
    return {name: st.deferred(lambda name=name: of_type(name, depth - 1)) for name in TYPES}


@cache
def of_type(kind: str, depth: int) -> st.SearchStrategy[Node]:
    """Expressions of one type, at most `depth` operations deep."""
    if depth == 0:
        return leaves(kind)
    inner = inside(depth)
    same, test = inner[kind], inner["boolean"]
    choices = [
        leaves(kind),
        st.builds(lambda c, a, b: Case(((c, a),), b), test, same, same),
        st.builds(lambda c, a, d, b: Case(((c, a), (d, b))), test, same, test, same),
        st.builds(lambda a, b: Call("coalesce", (a, b)), same, same),
        st.builds(lambda a, b: Call("nullif", (a, b)), same, same),
        st.builds(lambda c, a, b: Call("if", (c, a, b)), test, same, same),
    ]
    if kind != "boolean":
        choices.append(st.builds(lambda f, a, b: Call(f, (a, b)), st.sampled_from(["least", "greatest"]), same, same))
    own = OF_TYPE.get(kind, lambda _: [])(inner)
    # Not one_of: it likes its first choices best, and those are the dull ones.
    return st.sampled_from([*choices, *own, *own]).flatmap(lambda chosen: chosen)


def booleans(inner: Inner) -> list[st.SearchStrategy[Node]]:
    numbers = st.one_of(inner["int"], inner["long"], inner["double"])
    exact = st.sampled_from([Name("m"), Name("w"), Name("i"), Name("n"), lit(Decimal("1.5")).node])
    pattern = texts.map(lambda text: lit(text).node) | st.text("a%_.b\n\\", max_size=4).map(lambda text: lit(text).node)
    functions = st.sampled_from(["like", "starts_with", "ends_with", "contains"])
    found = [
        st.builds(And, inner["boolean"], inner["boolean"]),
        st.builds(Or, inner["boolean"], inner["boolean"]),
        st.builds(Not, inner["boolean"]),
        st.builds(Compare, st.sampled_from(OPS), numbers, numbers),
        st.builds(Compare, st.sampled_from(OPS), st.sampled_from([Name("m"), Name("w")]), exact),
        st.builds(In, st.just(Name("m")), st.lists(exact, min_size=1, max_size=2).map(tuple), st.booleans()),
        st.builds(lambda f, text, constant: Call(f, (text, constant)), functions, inner["string"], pattern),
        st.builds(Compare, st.sampled_from(OPS[:2]), inner["boolean"], inner["boolean"]),
    ]
    for kind in TYPES:
        operand, null = inner[kind], st.just(lit(None).node)
        constants = leaves(kind) if kind == "int" else literals(kind)
        choices = st.lists(constants | null, min_size=1, max_size=3).map(tuple) | st.tuples(operand)
        found.append(st.builds(IsNull, operand, st.booleans()))
        found.append(st.builds(In, operand, choices, st.booleans()))
        if kind in ("string", "binary", "date", "timestamp"):
            found.append(st.builds(Compare, st.sampled_from(OPS), operand, operand))
    return found


def longs_from(inner: Inner) -> list[st.SearchStrategy[Node]]:
    whole = inner["int"] | inner["long"]
    return [
        st.builds(Arithmetic, st.sampled_from("+-*%"), whole, whole),
        st.builds(Negate, whole),
        st.builds(lambda a: Call("abs", (a,)), whole),
        st.builds(lambda a: Call("length", (a,)), inner["string"]),
        st.builds(lambda a: Cast(a, "long"), st.one_of(inner["double"], inner["int"], inner["string"])),
        st.just(Cast(Name("m"), "long")),
        st.just(Call("floor", (Name("n"),))),
    ]


def ints_from(inner: Inner) -> list[st.SearchStrategy[Node]]:
    return [st.builds(lambda a: Cast(a, "int"), st.one_of(inner["double"], inner["long"], inner["string"]))]


def doubles_from(inner: Inner) -> list[st.SearchStrategy[Node]]:
    whole = st.one_of(inner["int"], inner["long"])
    numbers = st.one_of(whole, inner["float"], inner["double"])
    digits = st.integers(0, 15).map(lambda count: lit(count).node)
    return [
        st.builds(Arithmetic, st.sampled_from("+-*/%"), inner["double"], numbers),
        st.builds(Arithmetic, st.sampled_from("+-*/%"), numbers, inner["double"]),
        st.builds(lambda a, b: Arithmetic("/", a, b), whole, whole),
        st.builds(Negate, inner["double"]),
        st.builds(lambda f, a: Call(f, (a,)), st.sampled_from(["abs", "floor", "ceil", "round"]), inner["double"]),
        st.builds(lambda a, b: Call("round", (a, b)), inner["double"], digits),
        st.builds(lambda a: Cast(a, "double"), st.one_of(numbers, inner["string"])),
        st.just(Cast(Name("m"), "double")),
    ]


def strings_from(inner: Inner) -> list[st.SearchStrategy[Node]]:
    place = st.sampled_from([1, 2, 3, 2**63 - 1]).map(lambda count: lit(count).node)
    return [
        st.builds(lambda f, a: Call(f, (a,)), st.sampled_from(["lower", "upper", "trim"]), inner["string"]),
        st.builds(lambda *args: Call("concat", args), inner["string"], inner["string"]),
        st.builds(lambda a, b, c: Call("substring", (a, b, c)), inner["string"], place, place),
        st.builds(lambda a, b: Call("substring", (a, b)), inner["string"], place),
        st.builds(lambda a: Cast(a, "string"), st.one_of(inner["long"], inner["int"], inner["boolean"])),
    ]


OF_TYPE = {
    "boolean": booleans, "int": ints_from, "long": longs_from, "double": doubles_from, "string": strings_from,
    "date": lambda inner: [st.builds(lambda a: Cast(a, "date"), inner["string"] | inner["timestamp"])],
    "timestamp": lambda inner: [st.builds(lambda a: Cast(a, "timestamp"), inner["string"] | inner["date"])],
}  # fmt: skip
DECIMALS = st.one_of(
    st.builds(Arithmetic, st.sampled_from("+-"), st.just(Name("m")), st.sampled_from([Name("w"), Name("n")])),
    st.builds(lambda a: Cast(a, "decimal(12,3)"), of_type("string", 1) | of_type("long", 1) | st.just(Name("m"))),
    st.sampled_from([Negate(Name("m")), Call("abs", (Name("m"),)), Call("coalesce", (Name("m"), Name("m")))]),
    st.builds(lambda f: Call(f, (Name("m"), lit(Decimal("12345678.50")).node)), st.sampled_from(["least", "greatest"])),
)
# Every operation has the same chance to stand outermost, over plain operands; the rest are deep.
OUTERMOST = [chosen for rule in OF_TYPE.values() for chosen in rule(inside(1))]
DEEP = [of_type(kind, 3) for kind in TYPES]
EXPRESSIONS = st.sampled_from([*OUTERMOST, *DEEP, *DEEP, DECIMALS, DECIMALS]).flatmap(lambda chosen: chosen)


def batch_of(rows: list[dict[str, object]]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(rows, schema=arrow_schema(SCHEMA))


def plain(values: pa.Array) -> list[object]:
    """The values as the reference holds them."""
    return (values.cast(pa.int64()) if pa.types.is_timestamp(values.type) else values).to_pylist()


def outcome(compute: object) -> object:
    try:
        return compute()  # type: ignore[operator]
    except EvaluationError as error:
        return f"error: {error}"


def exact(value: object) -> object:
    """A value that equals itself: NaN is a word, and the zeros and the types are told apart."""
    if isinstance(value, float):
        return ("float", "nan" if math.isnan(value) else value.hex())
    return (type(value).__name__, value)


@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@given(EXPRESSIONS, ROWS)
def test_reference_and_engine_agree(node: Node, rows: list[dict[str, object]]) -> None:
    evaluate = reference.evaluator(node, SCHEMA)
    expected = [outcome(lambda row=row: evaluate(row)) for row in rows]
    alone = [outcome(lambda row=row: plain(engine.evaluate(node, batch_of([row]), SCHEMA))[0]) for row in rows]
    assert list(map(exact, alone)) == list(map(exact, expected))
    together = outcome(lambda: plain(engine.evaluate(node, batch_of(rows), SCHEMA)))
    failures = [value for value in expected if isinstance(value, str) and value.startswith("error: ")]
    if failures:
        assert str(together).startswith("error: ")
    else:
        assert isinstance(together, list)
        assert list(map(exact, together)) == list(map(exact, expected))


@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@given(EXPRESSIONS, ROWS)
def test_the_inferred_type_is_the_type_of_the_column(node: Node, rows: list[dict[str, object]]) -> None:
    inferred = arrow_schema(Schema((Column("it", type_of(node, SCHEMA, "test")),))).field("it").type
    values = outcome(lambda: engine.evaluate(node, batch_of(rows), SCHEMA))
    assert isinstance(values, str) or (values.type == inferred and len(values) == len(rows))


@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@given(EXPRESSIONS)
def test_shown_text_reads_back(node: Node) -> None:
    assert expression(show(node)) == node
    assert columns_of(node) <= set(SCHEMA.names)


@given(st.text(st.characters(codec="utf-8"), min_size=1), st.text(st.characters(codec="utf-8")), doubles, longs)
def test_any_name_and_any_constant_reads_back(name: str, text: str, double: float, long: int) -> None:
    whole = lit(long).node
    for node in (Name(name), Negate(Name(name)), lit(text).node, lit(double).node, whole, Negate(whole)):
        assert expression(show(node)) == node
        assert expression(f"not ({show(Compare('=', node, node))})") == Not(Compare("=", node, node))


@given(st.datetimes(), st.dates(), st.binary(), st.decimals(allow_nan=False, allow_infinity=False, places=3))
def test_any_other_constant_reads_back(at: datetime, day: date, raw: bytes, price: Decimal) -> None:
    for value in (at, day, raw, price if abs(price) < 10**30 else Decimal("1.10")):
        assert expression(show(lit(value).node)) == lit(value).node


def read(text: str) -> Node | PlanError:
    try:
        return expression(text)
    except PlanError as refusal:
        return refusal


@given(st.text(" ab1.'\"`()<>=!|+-*/%,incasewhenthenendnotbetweenlikeislnull", max_size=30))
def test_any_text_is_read_or_refused_in_three_parts(text: str) -> None:
    found = read(text)
    if isinstance(found, PlanError):
        assert all((found.what, found.why, found.instead))
    else:
        assert expression(show(found)) == expression(Col(found))


LONGS = [0, 1, -1, 3, -7, 2**31, 2**53 + 1, 2**63 - 1, -(2**63), None]
DOUBLES = [0.0, -0.0, 0.5, -1.5, 2.675, 0.49999999999999994, 1e300, 2.0**63, math.inf, -math.inf, math.nan, None]
TEXTS = ["", " ", " a ", "\ta\n", "ab\nc", "a.c", "AbC", "straße", "ΑΣ", "İ", "a%c", "a\\c", None]
TRUTHS = [True, False, None]


def edges(first: str, firsts: list[object], second: str, seconds: list[object]) -> list[dict[str, object]]:
    return [{**dict.fromkeys(SCHEMA.names), first: a, second: b} for a in firsts for b in seconds]


EDGES = [
    *edges("n", LONGS, "k", LONGS), *edges("x", DOUBLES, "f", DOUBLES), *edges("n", LONGS, "x", DOUBLES),
    *edges("b", TRUTHS, "c", TRUTHS), *edges("s", TEXTS, "t", TEXTS),
]  # fmt: skip


@pytest.mark.parametrize(
    "text",
    ["n + k", "n - k", "n * k", "n / k", "n % k", "-n", "abs(n)", "x + f", "x - f", "x * f", "x / f", "x % f", "-x",
     "abs(x)", "n + x", "x % n", "x < f", "x = f", "x != f", "x >= n", "n < k", "n = x", "least(x, f)",
     "greatest(x, f)", "least(n, x)", "floor(x)", "ceil(x)", "round(x)", "round(x, 2)", "cast(x as long)",
     "cast(x as int)", "cast(n as int)", "cast(n as double)", "nullif(n, k)", "nullif(x, f)", "x in (f, n)",
     "x in (0.0, null)", "n in (1, null)", "case when k != 0 then n / k end", "cast(n as string)",
     "cast(x as int) + 1", "coalesce(cast(n as int), n)", "b and c", "b or c", "not b", "b = c", "if(b, 1, 2)",
     "cast(b as string)", "trim(s)", "lower(s)", "upper(s)", "length(s)", "s || t", "s < t", "s = t", "least(s, t)",
     "s like 'a%c'", "s like 'a_c'", "s like '%a'", "s like 'a\\%'", "s like ''", "contains(s, '')", "contains(s, 'a')",
     "starts_with(s, 'a')", "ends_with(s, 'c')", "substring(s, 2, 2)", "s in ('', 'AbC', null)", "s in (t)"],
)  # fmt: skip
def test_every_operation_agrees_at_the_edges(text: str) -> None:
    node = expression(text)
    evaluate = reference.evaluator(node, SCHEMA)
    used = columns_of(node)
    for row in [row for row in EDGES if any(row[name] is not None for name in used)] + EDGES[-1:]:
        expected = outcome(lambda row=row: evaluate(row))
        found = outcome(lambda row=row: plain(engine.evaluate(node, batch_of([row]), SCHEMA))[0])
        assert exact(found) == exact(expected), row
