"""Penstock: the whole Dataflow model on Spark.

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
    Aggregate,
    Fold,
    approx_distinct,
    approx_quantile,
    arg_max,
    arg_min,
    collect,
    distinct,
    first,
    fold,
    last,
    max,
    mean,
    min,
    rows,
    sum,
    top_k,
    variance,
)
from penstock.counting import count
from penstock.errors import CaseError, DataError, PenstockError, PlanError, TooManyBadRows
from penstock.event_time import ascending, bounded, by_hand, from_column, percentile, punctuated
from penstock.expression import col, lit
from penstock.pane import Late, Pane, Quarantined
from penstock.plan import Plan
from penstock.stream import Panes, Stream, Windowed, events
from penstock.trigger import Trigger, after, at_expiry, at_watermark, every, never, repeat, when
from penstock.window import Window, calendar, custom, event_pairs, global_window, session, sliding, tumbling

__version__ = "0.1.0"
