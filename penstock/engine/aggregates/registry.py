"""Which accumulator computes which aggregate."""

from __future__ import annotations

from penstock.engine.aggregates.distinct import Distinct
from penstock.engine.aggregates.exact_sum import WholeSum
from penstock.engine.aggregates.folds import Folded
from penstock.engine.aggregates.min_max import Extreme
from penstock.engine.aggregates.numeric import Native
from penstock.engine.aggregates.ordered import ordered
from penstock.engine.aggregates.protocol import Accumulator
from penstock.engine.aggregates.sketches import Sketch
from penstock.engine.aggregates.variance import Variance
from penstock.model.aggregates import ORDERED, SKETCHES, Aggregate
from penstock.types.arrow import arrow_type
from penstock.types.schema import INTEGERS, NUMBERS, Schema


def accumulator_of(name: str, aggregate: Aggregate, schema: Schema) -> Accumulator:
    """The accumulator of an aggregate over rows of a schema."""
    kind = aggregate.kind
    held = schema.type_of(aggregate.column, f"{name} = {kind}") if aggregate.column is not None else "long"
    if kind in ORDERED:
        return ordered(name, aggregate, schema)
    if kind in SKETCHES:
        return Sketch(aggregate)
    if kind == "fold":
        return Folded(aggregate)
    if kind == "distinct":
        return Distinct(arrow_type(held))
    if kind in ("min", "max") and held not in NUMBERS:
        return Extreme(arrow_type(held), kind == "max")
    made = Variance if kind == "variance" else WholeSum if kind == "sum" and held in INTEGERS else Native
    return made(name, aggregate, held in INTEGERS)
