"""Does the run keep up? Sinks that take the time, a lag that grows, batches that last too long, what logs say."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence

from penstock.humanize import harmless, many, percent, span
from penstock.observability.health.concern import NOTE, WARNING, Concern
from penstock.observability.health.run_state import Situation
from penstock.observability.observation import Observation
from penstock.observability.overview import lag_of, name_of, shares_of
from penstock.types.durations import words

SINK_SHARE = 0.5  # of the time that sinks may take
WAITED_SHARE = 0.05  # of the time that may be spent waiting for a sink that does not answer
LAG_BATCHES = 6  # that are looked at, at least, before a lag is said to grow
LAG_SECONDS = 30.0  # and for so long
LAG_GROWTH = 1.2  # times what it was
LAG_LEAST = 1_000  # rows by which it has grown
LONG_BATCH = 1.5  # times what a batch should last
LONG_BATCHES = 5  # of which the median counts


def sinks(observed: Sequence[Observation], now: Situation) -> Iterator[Concern]:
    """Sinks that take most of the time, or were down for a while."""
    whole = sum(one.elapsed for one in observed)
    waited = sum(one.waited for one in observed)
    if whole and waited / whole > WAITED_SHARE:
        yield Concern(
            WARNING,
            "sink",
            f"{percent(waited / whole)} of the last ten minutes went into waiting for a sink",
            f"a sink did not answer for {span(waited * 1e6)} in all, and batches waited",
            "see that the sink stays up; nothing was lost",
        )
    share = shares_of(observed).get("sinks", 0.0)
    if len(observed) >= LONG_BATCHES and share > SINK_SHARE:
        yield Concern(
            WARNING,
            "sink",
            f"the sinks take {percent(share)} of the time",
            "the source is read more slowly so that nothing piles up",
            "write fewer rows (fewer early panes), or give the sink more room: an index, more connections",
        )


def lag(observed: Sequence[Observation], now: Situation) -> Iterator[Concern]:
    """A log that is written faster than it is read."""
    known = [(one.wall, lag) for one in observed if (lag := lag_of(one)) is not None]
    if now.ended or len(known) < LAG_BATCHES or known[-1][0] - known[0][0] < LAG_SECONDS:
        return
    third = len(known) // 3
    before = statistics.mean(number for _, number in known[:third])
    after = statistics.mean(number for _, number in known[-third:])
    if after < LAG_GROWTH * before or after - before < LAG_LEAST or known[-1][1] < before:
        return
    worst = max(observed[-1].partitions, key=lambda one: one.get("lag") or 0)
    pace = (known[-1][1] - known[0][1]) / (known[-1][0] - known[0][0])
    rate = sum(one.counts.get("read", 0) for one in observed) / max(sum(one.elapsed for one in observed), 1e-9)
    yield Concern(
        WARNING,
        "lag",
        f"the lag grows: {many(known[-1][1], 'row')} unread, {pace:,.0f} more every second",
        f"the run reads {rate:,.0f} events a second and the log is written faster; "
        f"{harmless(name_of(worst))} has the largest share, {worst.get('lag') or 0:,}",
        "see where the time goes, and give the run more cores or more partitions to read side by side",
    )


def batches(observed: Sequence[Observation], now: Situation) -> Iterator[Concern]:
    """Batches that last longer than they should."""
    if now.ended or len(observed) < LONG_BATCHES:
        return
    some = observed[-LONG_BATCHES:]
    took = statistics.median(one.seconds - one.waited for one in some)
    target, every = (some[-1].settings.get(name) for name in ("batch_target", "batch_every"))
    where = max(shares_of(some).items(), key=lambda one: one[1] if one[0] != "waiting" else 0.0, default=("", 0.0))[0]
    goes = {"read": "reading", "step": "the windows and their state", "sinks": "the sinks"}.get(where, "work")
    if target and took * 1e6 > LONG_BATCH * target:
        yield Concern(
            WARNING,
            "batches",
            f"a batch takes {span(took * 1e6)}, and should take {words(target)}",
            f"it is made as small as can be and is still too long; most of it goes into {goes}",
            "give the run more cores, or look at the sinks and at hot keys",
        )
    elif every and took * 1e6 > LONG_BATCH * every and not lag_of(some[-1]):
        yield Concern(
            NOTE,
            "batches",
            f"a batch takes {span(took * 1e6)}, and batch_every is {words(every)}",
            f"batches follow one another without a pause; most of the time goes into {goes}",
            f'nothing, if results may be that old; batch_every="{words(_whole_second(took))}" says what is true',
        )


def log_notes(observed: Sequence[Observation], now: Situation) -> Iterator[Concern]:
    """What the logs say of themselves: an open transaction, cores without work."""
    for note in observed[-1].notes if observed and not now.ended else ():
        what, _, why = harmless(note).partition(": ")
        yield Concern(
            WARNING if "transaction" in note else NOTE,
            "log",
            what,
            why or "the log says so",
            "see docs/kafka.md and docs/sources.md, which have these notes",
        )


def _whole_second(seconds: float) -> int:
    return max(1, round(seconds)) * 1_000_000
