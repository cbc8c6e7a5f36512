"""What the answer to a query is: SQL over all events at once, or of a pattern plain loops."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Any

import duckdb
import pyarrow as pa

from examples.nexmark.site import AUCTION, BID, PERSON
from tests.conformance.nexmark.in_sql import SQL
from tests.conformance.nexmark.loops import LOOPS
from tests.conformance.nexmark.playing import Row, only

Wanted = tuple[tuple[str, ...], list[tuple[Any, ...]]]


def wanted(query: str, events: Sequence[Row]) -> Wanted:
    """The columns and the rows of the answer."""
    return _by_loops(query, events) if query in LOOPS else _by_sql(query, events)


def _by_sql(query: str, events: Sequence[Row]) -> Wanted:
    with duckdb.connect() as connection:
        for name, kind, columns in (("person", 0, PERSON), ("auction", 1, AUCTION), ("bid", 2, BID)):
            rows = [{column: row[column] for column in columns} for row in events if row["event_type"] == kind]
            connection.register(name, pa.Table.from_pylist(rows))
        found = connection.execute(SQL[query])
        names = tuple(column for column, *_ in found.description or ())
        answer = Counter(tuple(zip(names, row, strict=True)) for row in found.fetchall())
    return names, only(answer, names)


def _by_loops(query: str, events: Sequence[Row]) -> Wanted:
    by_both: dict[tuple[int, int], list[Row]] = defaultdict(list)
    for row in events:
        if row["event_type"] == 2:
            by_both[row["auction"], row["bidder"]].append(row)
    rows = [{"auction": auction, "bidder": bidder, **match}
            for (auction, bidder), bids in by_both.items() for match in LOOPS[query](bids)]  # fmt: skip
    names = tuple(rows[0])
    return names, only(Counter(tuple(row.items()) for row in rows), names)
