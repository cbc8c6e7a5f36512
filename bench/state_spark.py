"""What would a PySpark user write instead: Spark's own join and dedup, and its state by the key where there is none."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pandas as pd
from pyspark.sql import functions as f
from pyspark.sql.streaming import StatefulProcessor, StatefulProcessorHandle

HOUR = 3_600_000


class FailedLogins(StatefulProcessor):
    """Three failed logins in a row raise an alert; a success resets. In order within a batch, and not across batches.

    It is called once for each key of a batch, reads its state once and writes it once: what a hand that knows the
    price of a call would write.
    """

    def init(self, handle: StatefulProcessorHandle) -> None:
        self.failures = handle.getValueState("failures", "tries long", HOUR)

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Any]:  # noqa: N802, N803
        held = self.failures.get()
        before = tries = 0 if held is None else held[0]
        alerts = []
        for frame in rows:
            for at, ok in sorted(zip(frame["at"].tolist(), frame["ok"].tolist(), strict=True)):
                tries = 0 if ok else tries + 1
                if tries == 3:
                    alerts.append((key[0], tries, at))
                    tries = 0
        if tries == 0 and before:
            self.failures.clear()
        elif tries != before:
            self.failures.update((tries,))
        if alerts:
            yield pd.DataFrame(alerts, columns=["user", "tries", "at"])

    def close(self) -> None:
        """Nothing is open."""


def failed_logins(logins: Any) -> Any:
    """The detector, by `transformWithStateInPandas`; its time to live can only count by the processing clock."""
    return logins.groupBy("user").transformWithStateInPandas(
        FailedLogins(), "user string, tries long, at timestamp", "Append", "ProcessingTime"
    )


def clicked(impressions: Any, clicks: Any) -> Any:
    """Spark's own join of two streams."""
    left = impressions.withWatermark("at", "10 seconds")
    right = clicks.withWatermark("clicked", "10 seconds").withColumnRenamed("ad", "its_ad")
    near = "ad = its_ad and clicked >= at and clicked <= at + interval 5 minutes"
    return left.join(right, f.expr(near))


def paid(orders: Any, rates: Any) -> Any:
    """Spark has no temporal join: all rates of the hour before, and of those the last; older rates are not found."""
    left = orders.withWatermark("at", "10 seconds")
    right = rates.withWatermark("since", "10 seconds").withColumnRenamed("currency", "its_currency")
    near = "currency = its_currency and since <= at and since >= at - interval 1 hour"
    pairs = left.join(right, f.expr(near)).groupBy("id", f.window("at", "1 minute"))
    return pairs.agg(f.first("amount").alias("amount"), f.max_by("rate", "since").alias("rate"))


def once(retried: Any) -> Any:
    """Spark's own dedup, whose horizon is the delay of its watermark."""
    return retried.withWatermark("at", "1 minute").dropDuplicatesWithinWatermark(["id"])
