"""Every type of Spark SQL is one of ours, or is refused by name with the remedy."""

from __future__ import annotations

import pytest

from penstock.errors import PlanError
from penstock.types.schema import schema
from penstock.types.spark import SAME, column_type


@pytest.mark.parametrize(
    ("spark", "ours"),
    [
        *SAME.items(),
        ("decimal(10,2)", "decimal(10,2)"),
        ("DECIMAL(38, 18)", "decimal(38,18)"),
        ("decimal", "decimal(10,0)"),
        ("varchar(10)", "string"),
        ("char(3)", "string"),
        ("string collate UTF8_LCASE", "string"),
    ],
)
def test_a_type_that_is_supported(spark, ours):
    assert column_type(spark, "c") == ours
    assert schema(f"c {ours}").columns[0].type == ours


@pytest.mark.parametrize(
    ("spark", "remedy"),
    [
        ("struct<a:int,b:struct<c:string>>", "df.select(c + '.field', …)"),
        ("array<int>", "explode(c)"),
        ("map<string,int>", "c['key']"),
        ("variant", "variant_get(c"),
        ("interval day to second", "length in microseconds"),
        ("interval year", "length in microseconds"),
        ("time(6)", "cast it to string"),
        ("void", "cast it"),
        ("geometry(4326)", "cast it to string or binary"),
        ("decimal(5,-2)", "cast it to decimal(38,0)"),
        ("something new", "cast it to a plain type"),
        ("struct<" + "a:int," * 50 + "b:int>", "take its fields apart"),
    ],
)
def test_a_type_that_is_refused_by_name(spark, remedy):
    with pytest.raises(PlanError, match="the column 'c' is of type") as error:
        column_type(spark, "c")
    assert remedy in error.value.instead
    assert error.value.why
