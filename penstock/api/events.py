"""A stream whose rows are handed in, and how many bad ones of a source are borne."""

from __future__ import annotations

from penstock.api.stream import Stream
from penstock.errors import PlanError
from penstock.plan.stages import Input, Source, max_bad_of
from penstock.types.schema import Schema, schema


def events(
    columns: str | Schema, *, name: str = "events", bounded: bool = False, max_bad: int | str | None = None
) -> Stream:
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
    return Stream((Input(Source(name, schema(columns), bounded, max_bad_of(max_bad))),))
