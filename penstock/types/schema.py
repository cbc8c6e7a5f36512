"""What a row is made of: names and types, written as in SQL's DDL."""

from __future__ import annotations

import re
from dataclasses import dataclass

from penstock.errors import PlanError, did_you_mean, not_a_column, unknown_column

_ALIASES = {
    "bool": "boolean",
    "bigint": "long",
    "int64": "long",
    "integer": "int",
    "int32": "int",
    "real": "float",
    "float32": "float",
    "float64": "double",
    "str": "string",
    "varchar": "string",
    "text": "string",
    "bytes": "binary",
    "timestamp_ntz": "timestamp",
    "datetime": "timestamp",
}
SIMPLE = ("boolean", "int", "long", "float", "double", "string", "binary", "date", "timestamp")
_DECIMAL = re.compile(r"decimal\((\d+),\s*(-?\d+)\)")
_COLON = re.compile(r"([^\s<`\":]+)\s*:\s*(.*)", re.DOTALL)
_NESTED = re.compile(r"(array|struct|map)<.*>", re.DOTALL)
INTEGERS = ("int", "long")
FLOATS = ("float", "double")
NUMBERS = INTEGERS + FLOATS


@dataclass(frozen=True, slots=True)
class Column:
    """One column: its name and the canonical name of its type."""

    name: str
    type: str


@dataclass(frozen=True, slots=True)
class Schema:
    """The columns of a stream, in order."""

    columns: tuple[Column, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)

    def type_of(self, name: str, where: str) -> str:
        """The type of a column, or the refusal that names its nearest neighbour."""
        if not isinstance(name, str):
            raise not_a_column(name, where, next(iter(self.names), "at"))
        for column in self.columns:
            if column.name == name:
                return column.type
        raise unknown_column(name, self.names, where)

    def __str__(self) -> str:
        return ", ".join(f"{column.name} {column.type}" for column in self.columns)


def schema(ddl: str | Schema) -> Schema:
    """A schema from DDL.

    >>> str(schema("team string, points bigint, at timestamp"))
    'team string, points long, at timestamp'
    """
    if isinstance(ddl, Schema):
        return ddl
    if not isinstance(ddl, str):
        raise PlanError(
            f"{ddl!r} is not a schema",
            "a schema is a list of columns, each a name and a type",
            'write it as in "team string, points long, at timestamp"',
        )
    columns = []
    for part in _split(ddl):
        if colon := _COLON.fullmatch(part):
            raise PlanError(
                f"the schema part {part!r} has a colon",
                "a column is a name and a type with a space between them",
                f'write "{colon[1]} {colon[2] or "string"}"',
            )
        words = part.split(None, 1)
        if len(words) != 2:
            raise PlanError(
                f"the schema part {part!r} is not a name and a type",
                "a schema is a list of columns, each a name and a type",
                'write it as in "team string, points long, at timestamp"',
            )
        columns.append(Column(words[0].strip('`"'), canonical_type(words[1])))
    if not columns:
        raise PlanError(
            "the schema has no columns",
            "a row holds at least one value, and an event its time",
            'write it as in "team string, points long, at timestamp"',
        )
    return checked(tuple(columns))


def checked(columns: tuple[Column, ...]) -> Schema:
    """A schema of these columns, each name once."""
    names = [column.name for column in columns]
    for name in names:
        if names.count(name) > 1:
            raise PlanError(
                f"the column {name!r} is there twice",
                "a row can hold one value under a name",
                "give each column a name of its own",
            )
        if not name or name.startswith("@"):
            raise PlanError(
                f"{name!r} cannot be the name of a column",
                "names that begin with @ are the test kit's own",
                "give the column another name",
            )
    return Schema(columns)


def canonical_type(text: str) -> str:
    """The one name of a type, whatever alias it was written with."""
    if not isinstance(text, str):
        raise PlanError(
            f"{text!r} is not the name of a type",
            "types are written as in SQL, as text",
            'write it in quotes: "long", "double", "string" or "timestamp"',
        )
    word = re.sub(r"\s+", " ", text.strip().lower())
    word = _ALIASES.get(word, word)
    if decimal := _DECIMAL.fullmatch(word):
        return _decimal(int(decimal[1]), int(decimal[2]))
    if word in SIMPLE:
        return word
    if _NESTED.fullmatch(word):
        raise PlanError(
            f"columns of type {word} are not supported",
            "rows are flat: a value is a number, text, bytes, a date or a time",
            "take it apart with the source's own means, or carry it as a string",
        )
    raise PlanError(
        f"there is no type {text.strip()!r}",
        "types are written as in SQL",
        did_you_mean(word, (*SIMPLE, *_ALIASES, "decimal(10,2)")),
    )


def _decimal(precision: int, scale: int) -> str:
    word = f"decimal({precision},{scale})"
    if not 1 <= precision <= 38 or not 0 <= scale <= precision:
        raise PlanError(
            f"there is no type {word}",
            "a decimal's precision, all its digits, is from 1 to 38, and its scale, those after the point, "
            "from 0 to its precision",
            "write decimal(10,2)",
        )
    return word


def _split(ddl: str) -> list[str]:
    parts, depth, current = [], 0, ""
    for letter in ddl:
        depth += (letter in "<(") - (letter in ">)")
        if letter == "," and depth == 0:
            parts.append(current)
            current = ""
        else:
            current += letter
    return [part.strip() for part in [*parts, current] if part.strip()]
