"""The same question in Spark's own words, where it has them: groupBy(window(...)) over a static DataFrame."""

from __future__ import annotations

from functools import reduce
from typing import Any

from penstock.errors import PenstockError
from penstock.expressions.builder import show
from penstock.model.aggregates import Aggregate
from penstock.model.windows import Session, Sliding
from penstock.plan.row_steps import Project, RowStep, Where
from penstock.plan.stages import Input, Plan
from penstock.types.timestamps import plus

UNITS = {"s": 1_000_000, "ms": 1_000, "us": 1}
AGGREGATES = ("sum", "count", "min", "max", "mean", "rows")
WINDOW, TIME = "__window", "__time"


class Unsaid(PenstockError):
    """Spark SQL has no words for this plan."""

    def __str__(self) -> str:
        return self.what


def said_in_sql(plan: Plan, tables: list[Any], spark: Any) -> dict[tuple[Any, ...], tuple[Any, ...]]:
    """The answers of Spark's own windows over the rows of each source; Unsaid where it has none."""
    from pyspark.sql import functions as sql

    _refuse(plan)
    frames = [_timed(one, table, spark) for one, table in zip(plan.inputs, tables, strict=True)]
    whole = reduce(lambda one, other: one.unionByName(other), frames).where(f"{TIME} is not null")
    grouped = whole.groupBy(*[sql.col(f"`{key}`") for key in plan.keys], _window(plan).alias(WINDOW))
    shown = grouped.agg(*[_aggregate(one).alias(name) for name, one in plan.aggregates])
    closed = 1 if isinstance(plan.window, Session) else 0
    answers = {}
    for row in shown.select(
        *[sql.col(f"`{key}`") for key in plan.keys],
        sql.expr(f"unix_micros({WINDOW}.start)"),
        sql.expr(f"unix_micros({WINDOW}.end) - {closed}"),
        *[sql.col(f"`{name}`") for name, _ in plan.aggregates],
    ).collect():
        width = len(plan.keys) + 2
        answers[tuple(row)[:width]] = tuple(row)[width:]
    return answers


def _refuse(plan: Plan) -> None:
    why = ""
    if not isinstance(plan.window, (Sliding, Session)):
        why = f"it has no windows like these: {plan.window}"
    for name, aggregate in plan.aggregates:
        if aggregate.kind not in AGGREGATES:
            why = why or f"it has no {aggregate.kind} that promises the same answer ({name})"
    for one in plan.inputs:
        for step in (*one.before, *one.after):
            if not isinstance(step, (Where, Project)) or callable(getattr(step, "predicate", None)):
                why = why or f"{step} is Python"
        if one.time is None or one.time.column is None or _stamp(one) is None:
            why = why or "event time is neither a timestamp nor a number with a unit"
    if why:
        raise Unsaid(why, "Spark SQL has its own windows and aggregates, and no others", "compare with the batch alone")


def _timed(one: Input, table: Any, spark: Any) -> Any:
    """A source's rows after their steps, with the event time beside them."""
    frame = spark.createDataFrame(table)
    frame = reduce(_stepped, one.before, frame).withColumn(TIME, _stamp(one))
    assert one.time is not None
    skew = one.time.watermark.max_skew
    if skew is not None:
        # These are quarantined, and Spark has no such rule.
        frame = frame.where(f"unix_micros({TIME}) <= {plus(one.source.reader.now, skew)}")
    return reduce(_stepped, one.after, frame)


def _stepped(frame: Any, step: RowStep) -> Any:
    from pyspark.sql import functions as sql

    if isinstance(step, Where):
        return frame.where(show(step.predicate))  # type: ignore[arg-type]
    assert isinstance(step, Project)
    made = [sql.expr(show(node)).alias(name) for name, node in step.columns]
    names = [name for name, _ in step.columns]
    kept = [name for name in frame.columns if name not in names and (step.keep or name == TIME)]
    return frame.select(*[sql.col(f"`{name}`") for name in kept], *made)


def _stamp(one: Input) -> Any:
    """The event time as a timestamp of Spark's, or None where the two would read it differently."""
    from pyspark.sql import functions as sql

    assert one.time is not None
    assert one.time.column is not None
    kind = one.stamped_schema.type_of(one.time.column, "event_time")
    column = sql.col(f"`{one.time.column}`")
    if kind == "timestamp":
        return column
    if kind in ("int", "long") and one.time.unit in UNITS:
        return sql.timestamp_micros(column * UNITS[one.time.unit])
    return None


def _window(plan: Plan) -> Any:
    from pyspark.sql import functions as sql

    rule = plan.window
    if isinstance(rule, Session):
        # Ours takes an event that comes exactly the gap later, Spark's does not: a microsecond is the difference.
        return sql.session_window(TIME, f"{rule.gap + 1} microseconds")
    assert isinstance(rule, Sliding)
    return sql.window(TIME, *(f"{length} microseconds" for length in (rule.size, rule.slide, rule.offset)))


def _aggregate(one: Aggregate) -> Any:
    from pyspark.sql import functions as sql

    value = sql.lit(1) if one.column is None else sql.col(f"`{one.column}`")
    if one.where is not None:
        value = sql.when(sql.expr(show(one.where)), value)
    made = {"sum": sql.sum, "count": sql.count, "rows": sql.count, "min": sql.min, "max": sql.max, "mean": sql.avg}
    return made[one.kind](value)
