"""Which accumulator computes which aggregate, where records may be withdrawn."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from itertools import pairwise

import numpy as np
import pyarrow as pa

from penstock.engine.aggregates.folds import Folded
from penstock.engine.aggregates.multiset import multiset
from penstock.engine.aggregates.protocol import Accumulator, Columns, Grouped
from penstock.engine.aggregates.retractable import SignedCount, SignedFloat, SignedWhole, signs_of
from penstock.engine.columns.plain import plain_values
from penstock.model.aggregates import Aggregate
from penstock.model.folds import fold_corrected
from penstock.plan.stages import Plan
from penstock.types.schema import INTEGERS


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
