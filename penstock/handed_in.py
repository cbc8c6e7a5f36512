"""A stream whose rows are handed in, and how many bad ones of a source are borne."""

from __future__ import annotations

from penstock.errors import PlanError
from penstock.plan import Input, MaxBad, Source
from penstock.schema import Schema, schema
from penstock.stream import Stream


def events(columns: str | Schema, *, name: str = "events", bounded: bool = False,
           max_bad: int | str | None = None) -> Stream:  # fmt: skip
    """A stream whose rows are handed in: by a test, a notebook, or a runner with data of its own."""
    if not isinstance(name, str) or not name or "/" in name:
        raise PlanError(
            f"a source cannot be called {name!r}",
            "partitions are named source/partition, so the name of a source is text without a slash",
            'write name="events"',
        )
    if not isinstance(bounded, bool):
        raise PlanError(
            f"bounded is {bounded!r}",
            "bounded=True says that the source comes to an end, bounded=False that it may not",
            "write bounded=True, or leave it out",
        )
    return Stream((Input(Source(name, schema(columns), bounded, _max_bad(max_bad))),))


def _max_bad(limit: int | str | None) -> MaxBad | None:
    if limit is None:
        return None
    if isinstance(limit, int) and not isinstance(limit, bool) and limit >= 0:
        return MaxBad(limit, None)
    try:
        share = float(str(limit).removesuffix("%")) / 100 if str(limit).endswith("%") else None
    except ValueError:
        share = None
    if share is None or not 0 <= share <= 1:
        raise PlanError(
            f"max_bad is {limit!r}",
            "it is a number of rows, or a share of them in percent",
            'write max_bad=100 or max_bad="1%"',
        )
    return MaxBad(None, share)
