"""Which accumulator computes which aggregate."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from itertools import pairwise

import numpy as np
import pyarrow as pa

from penstock.engine.aggregates.distinct import Distinct
from penstock.engine.aggregates.exact_sum import WholeSum
from penstock.engine.aggregates.folds import Folded
from penstock.engine.aggregates.min_max import Extreme
from penstock.engine.aggregates.numeric import Native
from penstock.engine.aggregates.ordered import ordered
from penstock.engine.aggregates.protocol import Accumulator, Columns, Grouped
from penstock.engine.aggregates.retractable import SignedCount, SignedFloat, SignedWhole, multiset, signs_of
from penstock.engine.aggregates.sketches import Sketch
from penstock.engine.aggregates.variance import Variance
from penstock.engine.columns.arrays import plain_values
from penstock.model.aggregates import ORDERED, SKETCHES, Aggregate
from penstock.model.folds import fold_corrected
from penstock.plan.stages import Plan
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


def signed_accumulator(name: str, aggregate: Aggregate, plan: Plan) -> Accumulator:
    """The accumulator of an aggregate over rows of which some are withdrawn."""
    kind, schema = aggregate.kind, plan.schema
    if kind in ("rows", "count"):
        return SignedCount()
    if kind == "fold":
        return SignedFold(aggregate)
    if kind in ("sum", "mean"):
        whole = schema.type_of(aggregate.column or "", f"{name} = {kind}") in INTEGERS
        return SignedWhole(name, aggregate, plan.pieces) if whole else SignedFloat(aggregate, plan.pieces)
    return multiset(name, aggregate, schema)


@dataclass(frozen=True, slots=True)
class SignedFold(Folded):
    """A fold whose function can take a value back."""

    def partial(self, rows: Grouped) -> Columns:
        """The accumulator of each group of rows, values added and taken back in their order."""
        signs = signs_of(rows)
        counted = np.concatenate([[0], np.cumsum(signs != 0)])
        bounds = counted[np.append(rows.starts, len(signs))].tolist()
        items = list(zip(plain_values(rows.values), signs[signs != 0].tolist(), strict=True))
        made = partial(fold_corrected, self.aggregate)
        return (pa.array([made(items[a:b]) for a, b in pairwise(bounds)], pa.string()),)
