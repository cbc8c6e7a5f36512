"""What the benchmark of Nexmark reads: the events of its generator in Parquet files."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from examples.nexmark.columns import event_columns
from examples.nexmark.generator import COLUMNS, timeline
from penstock.types.arrow import arrow_schema
from penstock.types.schema import Schema, schema

WHOLE = schema(COLUMNS)
ALWAYS = ("event_type", "date_time")


@dataclass(frozen=True)
class Site:
    """People, auctions and bids, `a_second` of event time, out of order within groups of twenty.

    `columns` are those that a query looks at: a file has all of them, and a reader takes these.
    """

    events: int
    rows: int
    columns: tuple[str, ...] = ()
    a_second: int = 10_000
    keys: int = 0

    @property
    def schema(self) -> Schema:
        """The columns as `ps.directory` takes them."""
        wanted = {*ALWAYS, *(self.columns or WHOLE.names)}
        return Schema(tuple(column for column in WHOLE.columns if column.name in wanted))

    def table(self, number: int) -> pa.Table:
        """The rows of one file."""
        first = number * self.rows
        numbers = range(first, min(first + self.rows, self.events))
        asked = timeline(events=self.events, rate=self.a_second, group=20)
        made = event_columns(asked, 0, numbers, frozenset(WHOLE.names))
        return pa.table([made[name] for name in WHOLE.names], schema=arrow_schema(WHOLE))
