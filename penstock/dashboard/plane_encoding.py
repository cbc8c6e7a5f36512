"""What does a page hear of one batch? The observation, with lists for dots and panes, of which there are many.

Infinite times are the ends of 64 bits, as in the record: to look at every value of every batch would cost more than all
the rest.
"""

from __future__ import annotations

import json
from typing import Any

from penstock.observability.observation import Observation

PARTITIONS = 32  # whose clocks are told of every batch; how all of them stand is told of the last one


def compact(one: Observation) -> dict[str, Any]:
    """A batch as values that JSON has; an event that was late or could not be used is only among those."""
    fates = {(held["partition"], held["offset"]) for held in (*one.late, *one.bad)}
    dots = [
        [held["event_time"], held["key"], held["text"], held["partition"], held["offset"]]
        for held in one.dots
        if (held["partition"], held["offset"]) not in fates
    ]
    panes = [
        [
            held["stage"],
            held["key"],
            held["start"],
            held["end"],
            held["index"],
            held["timing"],
            bool(held["final"]),
            held["op"],
            held["text"],
        ]
        for held in one.panes
    ]
    return {
        "batch": one.batch,
        "now": one.now,
        "wall": one.wall,
        "seconds": one.seconds,
        "elapsed": one.elapsed,
        "watermark": one.watermark,
        "watermarks": one.watermarks,
        "shares": one.shares,
        "counts": one.counts,
        "rows": one.rows,
        "partitions": by_name(one.partitions)[:PARTITIONS],
        "state": one.state,
        "held": one.held,
        "hot": one.hot,
        "dots": dots,
        "panes": panes,
        "given": one.given,
        "late": one.late,
        "bad": one.bad,
        "sinks": one.sinks,
        "notes": one.notes,
        "replayed": one.replayed,
        "ledgers": one.ledgers,
        "waited": one.waited,
        "checkpoint": one.checkpoint,
    }


def line(value: Any) -> bytes:
    """A value in one line of ASCII: nothing in it can end a message of a stream before its time."""
    return json.dumps(value, separators=(",", ":")).encode("ascii")


def by_name(partitions: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Partitions in an order that does not change, those with a number by their number."""
    return sorted(partitions, key=lambda one: (one["source"], len(one["partition"]), one["partition"]))
