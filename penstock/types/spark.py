"""Which of our types stands for which of Spark SQL's, by name; the others are refused, with a remedy."""

from __future__ import annotations

import re

from penstock.errors import PlanError

SAME = {
    "boolean": "boolean",
    "tinyint": "int",
    "byte": "int",
    "smallint": "int",
    "short": "int",
    "int": "int",
    "integer": "int",
    "bigint": "long",
    "long": "long",
    "float": "float",
    "real": "float",
    "double": "double",
    "string": "string",
    "binary": "binary",
    "date": "date",
    "timestamp": "timestamp",
    "timestamp_ltz": "timestamp",
    "timestamp_ntz": "timestamp",
}
_DECIMAL = re.compile(r"(?:decimal|dec|numeric)(?:\((\d+)(?:,(-?\d+))?\))?")
_TEXT = re.compile(r"(?:varchar|char|character)\(\d+\)|string collate \S+")
_REFUSED = (
    (r"struct<.*", "a struct", "take its fields apart: df.select({path} + '.field', …)"),
    (r"array<.*", "an array", "make rows of it with explode({path}), or text with to_json({path})"),
    (r"map<.*", "a map", "take out what you need with {path}['key'], or make text with to_json({path})"),
    (r"variant", "a variant", "take out what you need with variant_get({path}, '$.field', 'string')"),
    (r"interval.*", "an interval", "make a number of it, such as its length in microseconds"),
    (r"time(\(\d\))?", "a time of day", "cast it to string, or join it with its date to a timestamp"),
    (r"(void|null)", "nothing but null", "cast it to the type that it is meant to have"),
    (r"(object|udt|geometry|geography|calendarinterval).*", "of a kind of its own", "cast it to string or binary"),
)


def column_type(spark_type: str, column: str) -> str:
    """The type of ours for a column of a DataFrame; timestamps without zone are UTC.

    >>> column_type("decimal(10,2)", "price")
    'decimal(10,2)'
    """
    word = re.sub(r"\s*([<>(),:])\s*", r"\1", " ".join(spark_type.lower().split()))
    if word in SAME:
        return SAME[word]
    if decimal := _DECIMAL.fullmatch(word):
        return _decimal(int(decimal[1] or 10), int(decimal[2] or 0), column)
    if _TEXT.fullmatch(word):
        return "string"
    for pattern, what, remedy in _REFUSED:
        if re.fullmatch(pattern, word, re.DOTALL):
            raise _refused(spark_type, column, f"it is {what}, and rows are flat", remedy.format(path=column))
    raise _refused(spark_type, column, "it is none of the types that are known here", "cast it to a plain type first")


def _decimal(precision: int, scale: int, column: str) -> str:
    if not 0 <= scale <= precision <= 38:
        raise _refused(
            f"decimal({precision},{scale})", column, "a scale is from 0 to the precision", "cast it to decimal(38,0)"
        )
    return f"decimal({precision},{scale})"


def _refused(spark_type: str, column: str, why: str, remedy: str) -> PlanError:
    shown = spark_type if len(spark_type) <= 80 else f"{spark_type[:77]}…"
    return PlanError(f"the column {column!r} is of type {shown}, which is not supported", why, remedy)
