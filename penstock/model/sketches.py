"""Approximate answers in bounded space: Apache DataSketches, with the choices that make equal input give equal bytes.

HyperLogLog counts; the t-digest gives quantiles, because KLL tosses coins and would not give the same bytes twice.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from penstock.errors import PlanError
from penstock.model.aggregates import Aggregate

LOG_REGISTERS = 12
COMPRESSION = 200


def new_sketch(aggregate: Aggregate) -> bytes:
    """The sketch of nothing."""
    return b""


def update_sketch(aggregate: Aggregate, held: bytes, values: Iterable[Any]) -> bytes:
    """The sketch with these values added; still nothing if there are none."""
    values = list(values)
    if not values:
        return held
    sketch = _read(aggregate, held)
    for value in values:
        if aggregate.kind == "approx_distinct":
            sketch.update(value if isinstance(value, (int, float, str)) else str(value))
        else:
            sketch.update(float(value))
    return _written(aggregate, sketch)


def union_sketches(aggregate: Aggregate, left: bytes, right: bytes) -> bytes:
    """The sketch of both."""
    if not left or not right:
        return left or right
    if aggregate.kind == "approx_distinct":
        union = _library().hll_union(LOG_REGISTERS)
        union.update(_read(aggregate, left))
        union.update(_read(aggregate, right))
        return _written(aggregate, union.get_result(_library().tgt_hll_type.HLL_8))
    sketch = _read(aggregate, left)
    sketch.merge(_read(aggregate, right))
    return _written(aggregate, sketch)


def sketch_result(aggregate: Aggregate, held: bytes) -> Any:
    """What the sketch says."""
    if aggregate.kind == "approx_distinct":
        # Through a union, so that the estimate depends on what was counted and not on how it was put together.
        union = _library().hll_union(LOG_REGISTERS)
        if held:
            union.update(_read(aggregate, held))
        return round(union.get_estimate())
    sketch = _read(aggregate, held)
    return None if sketch.is_empty() else float(sketch.get_quantile(aggregate.q))


def _read(aggregate: Aggregate, held: bytes) -> Any:
    library = _library()
    if aggregate.kind == "approx_distinct":
        hll = library.hll_sketch
        return hll.deserialize(held) if held else hll(LOG_REGISTERS, library.tgt_hll_type.HLL_8)
    return library.tdigest_double.deserialize(held) if held else library.tdigest_double(COMPRESSION)


def _written(aggregate: Aggregate, sketch: Any) -> bytes:
    if aggregate.kind == "approx_distinct":
        return bytes(sketch.serialize_updatable())
    return bytes(sketch.serialize())


def _library() -> Any:
    try:
        import datasketches
    except ImportError:
        raise PlanError(
            "approximate aggregates need the package datasketches",
            "it is an optional part and is not installed",
            "pip install 'penstock[sketches]'",
        ) from None
    return datasketches
