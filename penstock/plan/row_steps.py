"""Rows before windows: filter, project, compute, map; each step says what rows it leaves."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from penstock.errors import PlanError
from penstock.expressions.builder import Node, show, type_of
from penstock.types.schema import Column, Schema, checked

RowFunction = Callable[[dict[str, Any]], Mapping[str, Any]]
RowPredicate = Callable[[dict[str, Any]], bool]
BatchFunction = Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class Where:
    """Keeps the rows for which a predicate holds."""

    predicate: Node | RowPredicate

    def output(self, schema: Schema) -> Schema:
        if isinstance(self.predicate, Node):
            found = type_of(self.predicate, schema, "where")
            if found != "boolean":
                raise PlanError(
                    f"where({show(self.predicate)!r}) gives a {found}",
                    "a row is kept where the predicate is true, so it must be a boolean",
                    f'write a comparison, such as where("{show(self.predicate)} > 0")',
                )
        return schema

    def __str__(self) -> str:
        return f"where {_named(self.predicate)}"


@dataclass(frozen=True, slots=True)
class Project:
    """Computes columns: these alone (`select`), or beside those there are (`with_columns`)."""

    columns: tuple[tuple[str, Node], ...]
    keep: bool

    @property
    def name(self) -> str:
        return "with_columns" if self.keep else "select"

    def output(self, schema: Schema) -> Schema:
        made = {name: type_of(node, schema, self.name) for name, node in self.columns}
        if self.keep:
            old = [Column(c.name, made.get(c.name, c.type)) for c in schema.columns]
            new = [Column(name, kind) for name, kind in made.items() if name not in schema.names]
            return checked((*old, *new))
        return checked(tuple(Column(name, made[name]) for name, _ in self.columns))

    def __str__(self) -> str:
        return f"{self.name} " + ", ".join(f"{name} = {show(node)}" for name, node in self.columns)


@dataclass(frozen=True, slots=True)
class Map:
    """A Python function of a row."""

    function: RowFunction
    schema: Schema

    def output(self, schema: Schema) -> Schema:
        return self.schema

    def __str__(self) -> str:
        return f"map {_named(self.function)}"


@dataclass(frozen=True, slots=True)
class MapBatches:
    """A Python function of an Arrow batch; it must not depend on where batches are cut."""

    function: BatchFunction
    schema: Schema

    def output(self, schema: Schema) -> Schema:
        return self.schema

    def __str__(self) -> str:
        return f"map_batches {_named(self.function)}"


RowStep = Where | Project | Map | MapBatches


def _named(part: object) -> str:
    return show(part) if isinstance(part, Node) else getattr(part, "__name__", repr(part))
