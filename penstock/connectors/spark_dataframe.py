"""Any DataFrame as a source: every connector Spark has, with ingest right behind it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from penstock.api.events import events
from penstock.api.stream import Stream
from penstock.errors import PlanError, unknown_column
from penstock.types.schema import Column, Schema
from penstock.types.spark import column_type


@dataclass(frozen=True, slots=True)
class Frame:
    """A DataFrame, and the column that tells its source partitions apart; without one it is a single partition."""

    frame: Any = field(compare=False)
    partition: str | None = None
    kind: str = "dataframe"


def stream(df: Any, *, partition: str | None = None, name: str = "events", max_bad: int | str | None = None) -> Stream:
    """A stream of a DataFrame's rows: of a streaming one as they come, of a static one until they end."""
    if not hasattr(df, "isStreaming") or not hasattr(df, "schema"):
        raise PlanError(
            f"ps.stream was given {type(df).__name__}, which is not a Spark DataFrame",
            "it takes a DataFrame, streaming or static",
            'write ps.stream(spark.readStream.format("kafka").load()), or ps.events(...) for a test',
        )
    columns = Schema(tuple(Column(one.name, column_type(one.dataType.simpleString(), one.name)) for one in df.schema))
    if partition is not None and partition not in columns.names:
        raise unknown_column(partition, columns.names, "partition=")
    made = events(columns, name=name, bounded=not df.isStreaming, max_bad=max_bad)
    (one,) = made.inputs
    return replace(made, inputs=(replace(one, source=replace(one.source, reader=Frame(df, partition))),))
