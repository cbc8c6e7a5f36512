"""How does a run stand, in a few numbers? The same for the dashboard, for `penstock top` and for metrics."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from penstock.observability.observation import Observation
from penstock.types.timestamps import MAX_TIME, MIN_TIME

RECENT_SECONDS = 600.0  # before the last batch: what shares and medians are of
RATE_SECONDS = 10.0  # that a rate is taken over: of one batch alone it would jump


@dataclass(frozen=True, slots=True)
class Overview:
    """A run after a batch.

    `behind` is how far the watermark is behind the processing clock, and `held_back` how much further it would be
    without the `laggard`: both in microseconds, None where they are not finite. Totals are of all batches so far;
    `late_share`, `quarantined_share`, `shares`, `batch_seconds` and `waited_share` are of the last ten minutes. `lag`
    is None where no log can tell, sizes where they are not known.
    """

    batch: int
    now: int
    wall: float
    watermark: int
    behind: int | None
    laggard: str | None
    held_back: int | None
    events_per_second: float
    panes_per_second: float
    events: int
    panes: int
    filtered: int
    late: int
    quarantined: int
    duplicates: int
    late_share: float
    quarantined_share: float
    open_windows: int
    state_rows: int
    state_bytes: int | None
    checkpoint_bytes: int | None
    lag: int | None
    partitions: int
    idle_partitions: int
    last_batch_seconds: float
    batch_seconds: float
    waited_share: float
    shares: dict[str, float] = field(default_factory=dict)

    def plain(self) -> dict[str, Any]:
        """The same as values that JSON has."""
        return asdict(self)


def recent(observed: Sequence[Observation], seconds: float = RECENT_SECONDS) -> list[Observation]:
    """The batches that ended so many seconds before the last one, or after; the last one is always among them."""
    if not observed:
        return []
    since = observed[-1].wall - seconds
    return [one for one in observed if one.wall > since or one is observed[-1]]


def overview(observed: Sequence[Observation]) -> Overview | None:
    """The numbers of a run after the last of its observations, which are in order; None where there is none."""
    if not observed:
        return None
    last, some = observed[-1], recent(observed)
    fast = _lately(some)
    seconds = sum(one.elapsed for one in fast)
    elapsed = sum(one.elapsed for one in some)
    read = sum(one.counts.get("read", 0) for one in some)
    totals = last.totals
    laggard, held_back = lagging(last)
    return Overview(
        batch=last.batch,
        now=last.now,
        wall=last.wall,
        watermark=last.watermark,
        behind=last.now - last.watermark if finite(last.watermark) else None,
        laggard=laggard,
        held_back=held_back,
        events_per_second=_per(sum(one.counts.get("read", 0) for one in fast), seconds),
        panes_per_second=_per(sum(results(one) for one in fast), seconds),
        events=totals.get("read", 0),
        panes=last.total_panes,
        filtered=totals.get("filtered", 0) + totals.get("dropped", 0),
        late=totals.get("late", 0),
        quarantined=totals.get("quarantined", 0),
        duplicates=totals.get("deduplicated", 0),
        late_share=_per(sum(one.counts.get("late", 0) for one in some), read),
        quarantined_share=_per(sum(one.counts.get("quarantined", 0) for one in some), read),
        open_windows=_windows(last),
        state_rows=last.state.get("rows", last.state.get("open", 0)),
        state_bytes=last.state.get("bytes"),
        checkpoint_bytes=last.checkpoint.get("bytes"),
        lag=lag_of(last),
        partitions=len(last.partitions),
        idle_partitions=sum(1 for one in last.partitions if one["idle"]),
        last_batch_seconds=last.seconds,
        batch_seconds=statistics.median(one.seconds for one in some),
        waited_share=_per(sum(one.waited for one in some), elapsed),
        shares=shares_of(some),
    )


def _windows(last: Observation) -> int:
    """The windows that are held; before stages said it each for itself, all that is held."""
    if not last.held:
        return last.state.get("open", 0)
    return sum(held for name, held in last.held.items() if name.endswith(": windows"))


def lagging(one: Observation) -> tuple[str | None, int | None]:
    """The active partition that the watermark waits for, and by how much it is behind the next one.

    The length is None where no other partition is active, or where one of the two has brought no event yet.
    """
    active = sorted((held for held in one.partitions if not held["idle"]), key=lambda held: held["watermark"])
    if not active:
        return None, None
    slowest = active[0]["watermark"]
    if len(active) == 1 or not finite(slowest) or not finite(active[1]["watermark"]):
        return name_of(active[0]), None
    return name_of(active[0]), active[1]["watermark"] - slowest


def name_of(partition: dict[str, Any]) -> str:
    """What a partition is called."""
    return f"{partition['source']}/{partition['partition']}"


def lag_of(one: Observation) -> int | None:
    """What the logs had beyond a batch, where they can tell."""
    known = [held["lag"] for held in one.partitions if held.get("lag") is not None]
    return sum(known) if known else None


def results(one: Observation) -> int:
    """The panes and rows of a batch, whatever the stage."""
    return sum(
        number
        for stream, number in one.rows.items()
        if stream.rpartition("/")[2].partition(":")[0] in ("panes", "rows")
    )


def shares_of(observed: Sequence[Observation]) -> dict[str, float]:
    """Where the time of several batches went: each counts as long as it lasted."""
    whole = sum(one.elapsed for one in observed)
    spent: dict[str, float] = {}
    for one in observed:
        for name, share in one.shares.items():
            spent[name] = spent.get(name, 0.0) + share * one.elapsed
    return {name: _per(seconds, whole) for name, seconds in spent.items()}


def finite(instant: int) -> bool:
    """Whether a watermark is a point in time."""
    return MIN_TIME < instant < MAX_TIME


def _lately(some: Sequence[Observation]) -> list[Observation]:
    found: list[Observation] = []
    seconds = 0.0
    for one in reversed(some):
        if found and seconds >= RATE_SECONDS:
            break
        found.append(one)
        seconds += one.elapsed
    return found


def _per(number: float, whole: float) -> float:
    return number / whole if whole else 0.0
