"""What is computed: the aggregates, each with what it takes and the type of what it gives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol

from penstock.diagnostics.unknown_names import unknown_name
from penstock.errors import DataError, PlanError, not_a_column
from penstock.expressions.builder import Col, Name, Node, columns_of, expression, show, type_of
from penstock.types.schema import INTEGERS, NUMBERS, Schema, canonical_type

Kind = Literal[
    "rows",
    "count",
    "sum",
    "min",
    "max",
    "mean",
    "variance",
    "first",
    "last",
    "arg_min",
    "arg_max",
    "top_k",
    "collect",
    "distinct",
    "approx_distinct",
    "approx_quantile",
    "fold",
]
ZERO_WHEN_EMPTY = ("rows", "count", "sum", "distinct", "approx_distinct")
LISTS = ("top_k", "collect")
SKETCHES = ("approx_distinct", "approx_quantile")
INVERTIBLE = ("rows", "count", "sum", "mean")
ORDERED = ("first", "last", "arg_min", "arg_max", "top_k", "collect")


class Fold(Protocol):
    """An aggregate of the user's own; accumulators are made of None, booleans, numbers, text, lists and dicts.

    One that also has `retract(accumulator, value)`, the opposite of add, takes values back that are withdrawn.
    """

    def zero(self) -> Any:
        """The accumulator of no records."""

    def add(self, accumulator: Any, value: Any) -> Any:
        """The accumulator with one more value."""

    def combine(self, left: Any, right: Any) -> Any:
        """The accumulator of both."""

    def result(self, accumulator: Any) -> Any:
        """The answer."""


@dataclass(frozen=True, slots=True)
class Aggregate:
    """One aggregate over a window's records, or over those for which `where` holds."""

    kind: Kind
    column: str | None = None
    by: str | None = None
    size: int | None = None
    q: float | None = None
    where: Node | None = None
    function: Fold | None = None
    type: str | None = None

    if not TYPE_CHECKING:
        __getattr__ = unknown_name

    def __post_init__(self) -> None:
        """Refuse at once what cannot be the name of a column."""
        if self.kind != "rows" and not isinstance(self.column, str):
            raise not_a_column(self.column, f"ps.{self.kind}", "points")
        optional = self.kind not in ("arg_min", "arg_max")
        if not isinstance(self.by, str) and not (self.by is None and optional):
            raise not_a_column(self.by, f"by= of ps.{self.kind}", "points")

    def result_type(self, schema: Schema, name: str) -> str:
        """The type of the answer; refuses what cannot be computed."""
        if self.where is not None and type_of(self.where, schema, f"{name}'s where") != "boolean":
            raise PlanError(
                f"{name} counts rows where {show(self.where)!r}, which is not a boolean",
                "where= keeps the rows for which it is true",
                f'write a comparison, such as where="{show(self.where)} > 0"',
            )
        if self.column is None:
            return "long"
        held = self._type_of(self.column, schema, name)
        if self.by is not None:
            _refuse_unordered(self._type_of(self.by, schema, name), self.by, name, self.kind)
        if self.kind in ("sum", "mean", "variance", "approx_quantile") and held not in NUMBERS:
            raise PlanError(
                f"{name} = {self.kind}({self.column!r}) is over a column of type {held}",
                f"{self.kind} adds numbers: int, long, float or double",
                f'write .with_columns({self.column}="cast({self.column} as double)") before the window'
                if held == "string" or held.startswith("decimal")
                else f"count its values with ps.count({self.column!r}), or name a column of numbers",
            )
        if self.kind in ("min", "max") or (self.kind == "top_k" and self.by is None):
            _refuse_unordered(held, self.column, name, self.kind)
        return self._result_of(held)

    def _type_of(self, column: str, schema: Schema, name: str) -> str:
        if column not in schema.names and _computed(column):
            raise PlanError(
                f"{name} = {self.kind} names the column {column!r}, which the stream does not have",
                "an aggregate takes the name of a column; what is computed must become a column first",
                f'write .with_columns({name}_="{column}") before the window, and ps.{self.kind}("{name}_") in it',
            )
        return schema.type_of(column, f"{name} = {self.kind}")

    def _result_of(self, held: str) -> str:
        if self.kind in ("count", "distinct", "approx_distinct"):
            return "long"
        if self.kind == "sum":
            return "long" if held in INTEGERS else "double"
        if self.kind in ("mean", "variance", "approx_quantile"):
            return "double"
        if self.kind in LISTS:
            return f"array<{held}>"
        return self.type if self.type is not None else held

    @property
    def keeps_values(self) -> bool:
        """Whether it must keep every value to take one back that is withdrawn; the others undo it."""
        return self.kind not in (*INVERTIBLE, "fold")

    @property
    def columns(self) -> frozenset[str]:
        """The columns it reads."""
        named = {column for column in (self.column, self.by) if column is not None}
        return frozenset(named) | (columns_of(self.where) if self.where is not None else frozenset())

    def __str__(self) -> str:
        inside = [self.column] if self.column else []
        inside += [f"by {self.by}"] if self.by else []
        inside += [f"{self.size}"] if self.size is not None else []
        inside += [f"{self.q:g}"] if self.q is not None else []
        where = f" where {show(self.where)}" if self.where is not None else ""
        return f"{self.kind}({', '.join(inside)}){where}"


Predicate = str | Col | Node | None


def rows(*, where: Predicate = None) -> Aggregate:
    """How many records."""
    return Aggregate("rows", where=_where(where))


def count(column: str, *, where: Predicate = None) -> Aggregate:
    """How many records have a value in the column."""
    return Aggregate("count", column, where=_where(where))


def sum(column: str, *, where: Predicate = None) -> Aggregate:
    """The sum; an integer sum beyond 64 bits is an error."""
    return Aggregate("sum", column, where=_where(where))


def min(column: str, *, where: Predicate = None) -> Aggregate:
    """The least value; NaN is greater than every number."""
    return Aggregate("min", column, where=_where(where))


def max(column: str, *, where: Predicate = None) -> Aggregate:
    """The greatest value; NaN is greater than every number."""
    return Aggregate("max", column, where=_where(where))


def mean(column: str, *, where: Predicate = None) -> Aggregate:
    """The arithmetic mean."""
    return Aggregate("mean", column, where=_where(where))


def variance(column: str, *, where: Predicate = None) -> Aggregate:
    """The sample variance; null below two values."""
    return Aggregate("variance", column, where=_where(where))


def first(column: str, *, where: Predicate = None) -> Aggregate:
    """The value with the earliest event time."""
    return Aggregate("first", column, where=_where(where))


def last(column: str, *, where: Predicate = None) -> Aggregate:
    """The value with the latest event time."""
    return Aggregate("last", column, where=_where(where))


def arg_min(column: str, by: str, *, where: Predicate = None) -> Aggregate:
    """The value of `column` where `by` is least."""
    return Aggregate("arg_min", column, by, where=_where(where))


def arg_max(column: str, by: str, *, where: Predicate = None) -> Aggregate:
    """The value of `column` where `by` is greatest."""
    return Aggregate("arg_max", column, by, where=_where(where))


def top_k(column: str, k: int, *, by: str | None = None, where: Predicate = None) -> Aggregate:
    """The `k` values of `column` that are greatest, or where `by` is greatest, best first."""
    return Aggregate("top_k", column, by, _size(k, "k"), where=_where(where))


def collect(column: str, limit: int = 1000, *, where: Predicate = None) -> Aggregate:
    """The values in order of event time, the first `limit` of them."""
    return Aggregate("collect", column, None, _size(limit, "limit"), where=_where(where))


def distinct(column: str, *, where: Predicate = None) -> Aggregate:
    """How many different values, exactly."""
    return Aggregate("distinct", column, where=_where(where))


def approx_distinct(column: str, *, where: Predicate = None) -> Aggregate:
    """How many different values, within about 2 %, in bounded space."""
    return Aggregate("approx_distinct", column, where=_where(where))


def approx_quantile(column: str, q: float, *, where: Predicate = None) -> Aggregate:
    """The value below which a share `q` lies, approximately, in bounded space."""
    if isinstance(q, bool) or not isinstance(q, (int, float)) or not 0 <= q <= 1:
        raise PlanError(f"there is no quantile {q!r}", "q is a share from 0 to 1", "write ps.approx_quantile(…, 0.5)")
    return Aggregate("approx_quantile", column, q=float(q), where=_where(where))


def fold(column: str, function: Fold, *, type: str, where: Predicate = None) -> Aggregate:
    """An aggregate of your own: an object with zero, add, combine and result, and the type of its answer."""
    missing = [name for name in ("zero", "add", "combine", "result") if not callable(getattr(function, name, None))]
    if missing:
        raise PlanError(
            f"the fold over {column!r} lacks {', '.join(missing)}",
            "an aggregate is zero(), add(accumulator, value), combine(left, right) and result(accumulator)",
            "give the object those four methods",
        )
    return Aggregate("fold", column, where=_where(where), function=function, type=canonical_type(type))


def overflow(name: str, aggregate: Aggregate) -> DataError:
    """The error for a sum that 64 bits cannot hold."""
    return DataError(
        f"{name} = sum({aggregate.column!r}) does not fit into 64 bits",
        f"the integers of the column {aggregate.column!r} add up to more than a long can hold",
        f'sum doubles instead: .with_columns({aggregate.column}="cast({aggregate.column} as double)")',
    )


def _where(where: Predicate) -> Node | None:
    return None if where is None else expression(where)


def _computed(text: str) -> bool:
    """Whether a text is an expression rather than a name."""
    try:
        return not isinstance(expression(text), Name)
    except PlanError:
        return False


def _size(size: object, what: str) -> int:
    if isinstance(size, bool) or not isinstance(size, int) or size < 1:
        raise PlanError(f"{what} is {size!r}", f"{what} is a whole number from 1 on", f"write {what}=10")
    return size


def _refuse_unordered(held: str, column: str, name: str, kind: str) -> None:
    if held in ("binary",):
        raise PlanError(
            f"{name} = {kind} orders by the column {column!r} of type {held}",
            "bytes have no order that means anything",
            "order by a number, a text, a date or a time",
        )
