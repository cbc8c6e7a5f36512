"""How much bad input is borne: the count of quarantined rows against `max_bad`."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.batch import Arrival
from penstock.errors import TooManyBadRows
from penstock.pane import Quarantined
from penstock.plan import Plan


def refuse_bad(plan: Plan, seen: dict[str, list[int]], arrivals: Sequence[Arrival], bad: Sequence[Quarantined]) -> None:
    """Count rows and bad rows per source, and stop where a source gives more bad ones than it may."""
    for arrival in arrivals:
        seen.setdefault(arrival.source, [0, 0])[0] += 1
    for row in bad:
        seen.setdefault(row.source, [0, 0])[1] += 1
    for one in plan.inputs:
        read, rejected = seen.get(one.source.name, (0, 0))
        if one.source.max_bad is not None and one.source.max_bad.exceeded(rejected, read):
            reasons = [row.reason for row in bad if row.source == one.source.name]
            last = reasons[-1] if reasons else "not of this batch"
            raise TooManyBadRows(
                f"{rejected} of {read} rows of {one.source.name} were quarantined",
                f"max_bad allows {one.source.max_bad}; the last reason was: {last}",
                "mend the producer, or raise max_bad on the source",
            )
