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

from penstock.aggregate import (
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
from penstock.counting import count as count
from penstock.errors import (
    CaseError as CaseError,
    DataError as DataError,
    PenstockError as PenstockError,
    PlanError as PlanError,
    TooManyBadRows as TooManyBadRows,
)
from penstock.event_time import (
    ascending as ascending,
    bounded as bounded,
    by_hand as by_hand,
    from_column as from_column,
    percentile as percentile,
    punctuated as punctuated,
)
from penstock.expression import col as col, lit as lit
from penstock.pane import Late as Late, Pane as Pane, Quarantined as Quarantined
from penstock.plan import Plan as Plan
from penstock.stream import Panes as Panes, Stream as Stream, Windowed as Windowed, events as events
from penstock.trigger import (
    Trigger as Trigger,
    after as after,
    at_expiry as at_expiry,
    at_watermark as at_watermark,
    every as every,
    never as never,
    repeat as repeat,
    when as when,
)
from penstock.window import (
    Window as Window,
    calendar as calendar,
    custom as custom,
    event_pairs as event_pairs,
    global_window as global_window,
    session as session,
    sliding as sliding,
    tumbling as tumbling,
)

__version__ = "0.1.0"
