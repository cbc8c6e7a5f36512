"""Does event time move? Who holds the watermark back, who stepped aside, what waits in silence, how much is late."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from penstock.humanize import clock, harmless, many, percent, span
from penstock.observability.health.concern import NOTE, URGENT, WARNING, Concern
from penstock.observability.health.run_state import Situation
from penstock.observability.observation import Observation
from penstock.observability.overview import finite, name_of
from penstock.types.durations import words
from penstock.types.timestamps import MIN_TIME

HELD_BACK = 30_000_000  # microseconds by which one partition may hold the watermark back
HELD_BACK_LONG = 600_000_000  # by which it is urgent
UNREAD_BATCHES = 3  # in which a partition that was never read may hold the watermark at its beginning
LATE_SHARE = 0.01  # of the events of ten minutes
LEAST_EVENTS = 1_000  # of which a share says something
NAMED = 5  # partitions or windows that are named; of more, the number is told


def holding(observed: Sequence[Observation], now: Situation) -> Iterator[Concern]:
    """The partition that the watermark waits for, if it would be much further without it."""
    if not observed or _held_on_purpose(observed[-1]):
        return
    active = sorted((one for one in observed[-1].partitions if not one["idle"]), key=lambda one: one["watermark"])
    if not active:
        return
    if active[0]["newest"] is None or active[0]["watermark"] <= MIN_TIME:
        yield from _never_spoke(observed, [one for one in active if one["watermark"] <= MIN_TIME])
        return
    others = [one for one in active[1:] if finite(one["watermark"])]
    held = others[0]["watermark"] - active[0]["watermark"] if others else 0
    if held < HELD_BACK or not finite(active[0]["watermark"]):
        return
    slowest = active[0]
    why, instead = _slow(slowest, observed[-1])
    yield Concern(
        URGENT if held >= HELD_BACK_LONG else WARNING,
        "watermark",
        f"partition {_named(slowest)} holds the watermark back by {span(held)}",
        f"{why}; the watermark is {clock(slowest['watermark'])}, that of the next partition "
        f"{clock(others[0]['watermark'])}",
        instead,
    )


def _never_spoke(observed: Sequence[Observation], silent: list[dict[str, Any]]) -> Iterator[Concern]:
    """Partitions that are known and have brought no event yet: until they have, or step aside, nothing is complete."""
    if len(observed) < UNREAD_BATCHES:
        return
    one = silent[0]
    idle = _settings(observed[-1], one["source"]).get("idle") or 0
    steps = f"it steps aside after {words(idle)} of silence, and has been silent for {span(one['silent_for'])}"
    waits = "idle is None, so it is waited for without end"
    known = f"{many(len(silent), 'partition')} {'has' if len(silent) == 1 else 'have'} brought no event yet"
    if one.get("lag"):
        yield Concern(
            WARNING,
            "watermark",
            f"{known}, and the watermark waits: {_names(silent)}",
            f"its log has {many(one['lag'], 'row')} that were not read",
            "let it be read: see the lag",
        )
        return
    yield Concern(
        WARNING if idle else URGENT,
        "watermark",
        f"{known}, and the watermark waits: {_names(silent)}",
        steps if idle else waits,
        "wait, or see whether its producer writes"
        if idle
        else 'write idle="1 minute" in the watermark, or see whether its producer writes',
    )


def _slow(one: dict[str, Any], last: Observation) -> tuple[str, str]:
    if one["silent_for"]:
        idle = _settings(last, one["source"]).get("idle")
        if idle is None:
            return (
                f"it has been silent for {span(one['silent_for'])}, and idle is None: it is waited for without end",
                'write idle="1 minute" in the watermark, or see whether its producer writes',
            )
        return (
            f"it has been silent for {span(one['silent_for'])}, and steps aside after {words(idle)}",
            "wait for that, or see whether its producer writes",
        )
    if one.get("lag"):
        return (
            f"it is read more slowly than it is written: {many(one['lag'], 'row')} of its log are unread",
            "give the run more cores, or deal the keys more evenly to the partitions",
        )
    return (
        "its events are older than those of the others: its producer is behind, or its clock is",
        "look at that producer and its clock",
    )


def silence(observed: Sequence[Observation], now: Situation) -> Iterator[Concern]:
    """All partitions are silent, the watermark holds, and windows wait for it."""
    if not observed or not observed[-1].partitions or now.finished:
        return
    last = observed[-1]
    still = all(one["idle"] for one in last.partitions)
    holds = any(_settings(last, one["source"]).get("when_idle") == "hold" for one in last.partitions)
    waiting = last.state.get("open", 0)
    if not still or not holds or not waiting or not finite(last.watermark):
        return
    named = open_windows(observed, last.watermark)
    which = f", among them {', '.join(named)}" if named else ""
    silent = min(one["silent_for"] for one in last.partitions)
    yield Concern(
        WARNING,
        "silence",
        f"every partition is silent and the watermark holds at {clock(last.watermark)}: "
        f"{many(waiting, 'window')} {'waits' if waiting == 1 else 'wait'}{which}",
        f'nothing has come for {span(silent)}, and with when_idle="hold" silence is no evidence that '
        "events are complete",
        'see whether the producers write; with when_idle="advance" the windows would close by themselves',
    )


def open_windows(observed: Sequence[Observation], watermark: int) -> list[str]:
    """Some of the windows that wait for the watermark, as far as panes of theirs were among the samples."""
    latest: dict[tuple[int, str, int, int], bool] = {}
    for one in observed:
        for pane in one.panes:
            latest[pane["stage"], pane["key"], pane["start"], pane["end"]] = pane["final"] or pane["op"] < 0
    found = {(start, end) for (stage, _, start, end), gone in latest.items() if not (stage or gone) and finite(end)}
    spans = [f"{clock(start)}–{clock(end)}" for start, end in sorted(found) if end > watermark]
    return [*spans[:NAMED], *([f"{len(spans) - NAMED} more"] if len(spans) > NAMED else [])]


def idle(observed: Sequence[Observation], now: Situation) -> Iterator[Concern]:
    """Partitions that stepped aside while others speak."""
    if not observed:
        return
    last = observed[-1]
    aside = [one for one in last.partitions if one["idle"]]
    if not aside or len(aside) == len(last.partitions):
        return
    longest = max(one["silent_for"] for one in aside)
    limit = _settings(last, aside[0]["source"]).get("idle")
    are, them = ("is", "it") if len(aside) == 1 else ("are", "them")
    yield Concern(
        NOTE,
        "idle",
        f"{len(aside)} of {many(len(last.partitions), 'partition')} {are} idle and nobody "
        f"waits for {them}: {_names(aside)}",
        f"silent for up to {span(longest)}" + (f", longer than idle={words(limit)!r}" if limit else ""),
        "nothing, if they have nothing to say; if they come back with old events, these may be late",
    )


def late(observed: Sequence[Observation], now: Situation) -> Iterator[Concern]:
    """Too many events come after all of their windows have expired."""
    read = sum(one.counts.get("read", 0) for one in observed)
    lost = sum(one.counts.get("late", 0) for one in observed)
    if read < LEAST_EVENTS or lost < LATE_SHARE * read:
        return
    rows = [row for one in observed for row in one.late]
    worst = Counter(row["partition"] for row in rows).most_common(1)
    by = sorted(row["late_by"] for row in rows if row.get("late_by") is not None)
    where = f"; most of those that were sampled are of {harmless(worst[0][0])}" if worst else ""
    how = f", by {span(by[len(by) // 2])} in the median and {span(by[-1])} at most" if by else ""
    yield Concern(
        WARNING,
        "late",
        f"{percent(lost / read)} of the events of the last ten minutes were late",
        f"{lost:,} of {read:,} came when every window of theirs had expired{how}{where}",
        "ask `penstock advise` which delay to choose, or allow more lateness; the rows are kept",
    )


def _held_on_purpose(last: Observation) -> bool:
    """A run until the end holds its watermark until there is no more input."""
    return last.settings.get("until") == "end"


def _settings(one: Observation, source: str) -> dict[str, Any]:
    held: dict[str, Any] = one.settings.get("sources", {}).get(source, {})
    return held


def _named(one: dict[str, Any]) -> str:
    return harmless(name_of(one))


def _names(some: list[dict[str, Any]]) -> str:
    named = ", ".join(_named(one) for one in some[:NAMED])
    return named + (f" and {len(some) - NAMED} more" if len(some) > NAMED else "")
