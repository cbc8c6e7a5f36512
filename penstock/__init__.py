"""Penstock: the whole Dataflow model on Spark.

A pipeline says what is computed, where in event time, when it is shown, and how panes relate:

    scores = ps.events("team string, points long, at timestamp")
    totals = (
        scores.event_time("at", watermark=ps.bounded("2 minutes"))                # event time
        .key_by("team")
        .window(ps.tumbling("5 minutes"), lateness="1 hour")                      # where
        .trigger(ps.at_watermark(early=ps.every("1 minute"), late=ps.count(1)))   # when
        .accumulating()                                                           # how
        .aggregate(points=ps.sum("points"), plays=ps.rows())                      # what
    )
    print(totals.explain())
"""

import typing as _typing
from types import FunctionType as _FunctionType

from penstock.api.events import events as events
from penstock.api.overloads import count as count
from penstock.api.pipeline import Pipeline as Pipeline, pipeline as pipeline
from penstock.api.progress import Progress as Progress
from penstock.api.stream import Rows as Rows, Stream as Stream
from penstock.api.windowed import Panes as Panes, Windowed as Windowed
from penstock.connectors.console import console as console
from penstock.connectors.duckdb import duckdb as duckdb
from penstock.connectors.files.sink import files as files, published as published, read_files as read_files
from penstock.connectors.files.source import directory as directory
from penstock.connectors.foreach_batch import foreach_batch as foreach_batch
from penstock.connectors.formats.limits import Limits as Limits
from penstock.connectors.game_scores import Faults as Faults, game_scores as game_scores
from penstock.connectors.kafka.errors import DataLost as DataLost, SourceError as SourceError
from penstock.connectors.kafka.sink import to_kafka as to_kafka
from penstock.connectors.kafka.source import kafka as kafka
from penstock.connectors.memory import memory as memory
from penstock.connectors.postgres.sink import postgres as postgres
from penstock.connectors.sink import Batch as Batch
from penstock.connectors.sink_errors import (
    ColumnsDiffer as ColumnsDiffer,
    Fenced as Fenced,
    ForeignLineage as ForeignLineage,
    OutcomeUnknown as OutcomeUnknown,
    OutOfStep as OutOfStep,
    ReplayDiverged as ReplayDiverged,
    SinkBusy as SinkBusy,
    SinkDown as SinkDown,
    SinkError as SinkError,
    TornBatch as TornBatch,
)
from penstock.connectors.sqlite import sqlite as sqlite
from penstock.connectors.table import table as table
from penstock.credentials import Secret as Secret, secret as secret
from penstock.diagnostics.unknown_names import (
    explained_call as _explained_call,
    unknown_in_package as _unknown_in_package,
)
from penstock.errors import (
    CaseError as CaseError,
    DataError as DataError,
    PenstockError as PenstockError,
    PlanError as PlanError,
    TooManyBadRows as TooManyBadRows,
)
from penstock.expressions.builder import col as col, lit as lit
from penstock.model.aggregates import (
    Aggregate as Aggregate,
    Fold as Fold,
    approx_distinct as approx_distinct,
    approx_quantile as approx_quantile,
    arg_max as arg_max,
    arg_min as arg_min,
    collect as collect,
    distinct as distinct,
    first as first,
    fold as fold,
    last as last,
    max as max,
    mean as mean,
    min as min,
    rows as rows,
    sum as sum,
    top_k as top_k,
    variance as variance,
)
from penstock.model.panes import Given as Given, Late as Late, Pane as Pane, Quarantined as Quarantined
from penstock.model.triggers import (
    Trigger as Trigger,
    after as after,
    at_expiry as at_expiry,
    at_watermark as at_watermark,
    every as every,
    never as never,
    repeat as repeat,
    when as when,
)
from penstock.model.watermarks import (
    ascending as ascending,
    bounded as bounded,
    by_hand as by_hand,
    from_column as from_column,
    percentile as percentile,
    punctuated as punctuated,
)
from penstock.model.windows import (
    Window as Window,
    calendar as calendar,
    custom as custom,
    event_pairs as event_pairs,
    global_window as global_window,
    session as session,
    sliding as sliding,
    tumbling as tumbling,
)
from penstock.plan.operators.pattern import (
    Pattern as Pattern,
    no_skip as no_skip,
    past_last as past_last,
    pattern as pattern,
    to_first as to_first,
    to_last as to_last,
    to_next as to_next,
)
from penstock.plan.operators.process import (
    KeyedFunction as KeyedFunction,
    Timer as Timer,
    items as items,
    mapping as mapping,
    value as value,
)
from penstock.plan.stages import Plan as Plan
from penstock.storage.local import CheckpointError as CheckpointError

# Last, for a module of the package has this name too.
from penstock.connectors.spark_dataframe import stream as stream  # isort: skip

__version__ = "0.1.0"


def _explain_calls() -> None:
    """Let every function of the package answer a call that does not fit with the line to write."""
    for name, function in list(globals().items()):
        if isinstance(function, _FunctionType) and not name.startswith("_"):
            globals()[name] = _explained_call(function, f"ps.{name}")


_explain_calls()

if not _typing.TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        raise _unknown_in_package(name, globals())
