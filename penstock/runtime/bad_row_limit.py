"""How much bad input is borne: the count of quarantined rows against `max_bad`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from penstock.errors import TooManyBadRows
from penstock.model.panes import Quarantined
from penstock.plan.graph import Flow
from penstock.plan.stages import Plan, Source
from penstock.runtime.batch import Arrival


def refuse_bad(
    plan: Plan | Flow, seen: dict[str, list[int]], arrivals: Sequence[Arrival], bad: Sequence[Quarantined]
) -> None:
    """Count rows and bad rows per source, and stop where a source gives more bad ones than it may."""
    for arrival in arrivals:
        seen.setdefault(arrival.source, [0, 0])[0] += 1
    for row in bad:
        seen.setdefault(row.source, [0, 0])[1] += 1
    for one in plan.inputs:
        reasons = [row.reason for row in bad if row.source == one.source.name]
        _refuse(one.source, seen, f"the last reason was: {reasons[-1] if reasons else 'not of this batch'}")


def refuse_counts(
    plan: Plan | Flow, seen: Mapping[str, Sequence[int]], more: Mapping[str, Sequence[int]]
) -> dict[str, list[int]]:
    """The rows and bad rows of each source with a batch more; stops where a source gives more bad ones than it may."""
    sums = {name: list(counts) for name, counts in seen.items()}
    for name, (read, bad) in more.items():
        held = sums.setdefault(name, [0, 0])
        sums[name] = [held[0] + read, held[1] + bad]
    for one in plan.inputs:
        _refuse(one.source, sums, "the quarantine has each with its reason")
    return sums


def _refuse(source: Source, seen: Mapping[str, Sequence[int]], why: str) -> None:
    read, rejected = seen.get(source.name, (0, 0))
    if source.max_bad is not None and source.max_bad.exceeded(rejected, read):
        raise TooManyBadRows(
            f"{rejected} of {read} rows of {source.name} were quarantined",
            f"max_bad allows {source.max_bad}; {why}",
            "mend the producer, or raise max_bad on the source",
        )
