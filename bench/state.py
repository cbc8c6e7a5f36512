"""How fast is what remembers beyond a window: keyed functions, joins, patterns and dedup, beside a PySpark user's own.

Use:

    python -m bench.state [--quick] [--only TEXT] [--json FILE]

Every question is asked of all in one session, in turns, on the same Parquet files, in batches of half a million events
(of the keyed function 100,000) of 100,000 keys; results are dropped where they are made. Seconds per million events of
the warm batches (the first two are left out), and events per second. Spark's queries have what helps them, as in
`bench.spark`, and with RocksDB the format of checkpoints that a pipeline of ours has.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any

import penstock as ps
from bench import beside
from bench.beside import IN_MEMORY, OURS, ROCKSDB, Figure, Question
from bench.spark import COLD_ROUNDS
from bench.state_data import Made

KEYS = 100_000
DELAY = ps.bounded("10 seconds")
PER_KEY = "transformWithStateInPandas"


class ThreeInARow(ps.KeyedFunction):
    """Three failed logins in a row raise an alert; a success resets."""

    output = "user string, tries long, at timestamp"
    failures = ps.value("long", default=0, ttl="1 hour")

    def on_event(self, event: dict[str, Any], key: str, context: Any) -> None:
        if event["ok"]:
            del self.failures
            return
        self.failures += 1
        if self.failures == 3:
            context.emit(user=key, tries=self.failures, at=context.time)
            del self.failures


def failed_logins(logins: ps.Stream) -> Any:
    return logins.event_time("at", watermark=DELAY).key_by("user").process(ThreeInARow(), ordered=True)


def failed_logins_as_they_come(logins: ps.Stream) -> Any:
    return logins.event_time("at", watermark=DELAY).key_by("user").process(ThreeInARow())


def intrusions(logins: ps.Stream) -> Any:
    pattern = ps.pattern("failed", "not ok").times(3).consecutive().next("entered", "ok").within("10 minutes")
    return logins.event_time("at", watermark=DELAY).key_by("user").match(pattern, output={"tries": "count(failed)"})


def clicked(impressions: ps.Stream, clicks: ps.Stream) -> Any:
    shown = impressions.event_time("at", watermark=DELAY)
    return shown.join(clicks.event_time("clicked", watermark=DELAY), on="ad", between=("0", "5 minutes"))


def paid(orders: ps.Stream, rates: ps.Stream) -> Any:
    left = orders.event_time("at", watermark=DELAY)
    return left.temporal_join(rates.event_time("since", watermark=DELAY), on="currency")


def priced(orders: ps.Stream, rates: ps.Stream) -> Any:
    left = orders.event_time("at", watermark=DELAY)
    return left.join_table(rates.event_time("since", watermark=DELAY), on="currency", how="left")


def once(retried: ps.Stream) -> Any:
    return retried.event_time("at", watermark=DELAY).dedup("id", within="1 minute")


def questions(quick: bool) -> Iterator[Question]:
    """All that is asked; quickly, of few events in small files."""
    from bench import state_spark as theirs

    size, keys = (5_000, 1_000) if quick else (250_000, KEYS)
    batches = 3 if quick else 8

    def made(kind: str, share: float = 1, many: int = batches) -> Made:
        # Each key has an event in a hundred seconds, of both sides together where there are two.
        rows = round(size * share)
        return Made(kind, 2 * rows * many, rows, keys, round(keys * share / 100))

    # A call for each key takes Spark minutes for a batch of that size: smaller ones, and one that is warm must do.
    few = {"logins": made("logins", 0.2, many=3)}
    detectors = {OURS: failed_logins, "penstock, as they come": failed_logins_as_they_come}
    yield Question("failed logins, a function", few, detectors, {PER_KEY: theirs.failed_logins}, Figure(times=10))
    yield Question("failed logins then a success, a pattern", {"logins": made("logins")}, {OURS: intrusions}, {},
                   Figure(rate=100_000))  # fmt: skip
    both = {kind: made(kind, 0.5) for kind in ("impressions", "clicks")}
    yield Question("clicks within 5 minutes, a join", both, {OURS: clicked}, _native(theirs.clicked),
                   Figure(times=1.5))  # fmt: skip
    orders = {"orders": made("orders", 0.9), "rates": made("rates", 0.1)}
    yield Question("orders at their rates, a temporal join", orders, {OURS: paid}, _native(theirs.paid),
                   Figure(rate=300_000))  # fmt: skip
    yield Question("orders with rates, a table join", orders, {OURS: priced}, {})
    yield Question("dedup", {"retried": made("retried")}, {OURS: once}, _native(theirs.once))


def _native(query: Callable[..., Any]) -> dict[str, Callable[..., Any]]:
    """A query of Spark's own operators, with each of its stores."""
    return dict.fromkeys((IN_MEMORY, ROCKSDB), query)


def main() -> int:
    """The command."""
    options = beside.asking(__doc__).parse_args()
    spark = beside.roomy()
    results: list[dict[str, Any]] = []
    for question in questions(options.quick):
        if options.only in question.name:
            rounds = 0 if options.quick else 1 if results else COLD_ROUNDS
            results.append(beside.compare(spark, question, options.data, rounds))
    spark.stop()
    beside.told(results, options.json)
    return 0


if __name__ == "__main__":
    sys.exit(main())
