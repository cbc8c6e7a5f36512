"""Is the data as it should be? Rows that cannot be used, rows that nobody takes, a hot key, a state that grows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from penstock.diagnostics.user_functions import kind_of
from penstock.humanize import harmless, many, percent, size, span
from penstock.observability.health.concern import NOTE, URGENT, WARNING, Concern
from penstock.observability.health.event_time_checks import LEAST_EVENTS
from penstock.observability.health.run_state import Situation
from penstock.observability.observation import Observation

BAD_SHARE = 0.01  # of the events of ten minutes
NEAR_CAP = 0.5  # of max_bad, or of the room for rows that nobody writes
HOT_SHARE = 0.3  # of the events, that one key has for certain
HOT_TIMES = 2.0  # as much as it would have if all keys had the same
GROWN = 1.5  # times as large as the state was
GROWN_SECONDS = 120.0  # within which nothing is called growth
GROWN_ROWS = 10_000  # by which it has grown at least
STATE_BYTES = 512 << 20  # of a shard's state
LARGEST_BYTES = 32 << 20  # of one part of it: parts are split near 4 MB, unless a single row is larger


def quarantine(observed: Sequence[Observation], now: Situation) -> Iterator[Concern]:
    """Rows that could not be used: how many, why, and how far it is to the cap."""
    if not observed:
        return
    common = _commonest(observed)
    mend = "look at them: `penstock quarantine list`; mend the producer, then replay them"
    near = False
    # What is read by several stages, or becomes several rows, may be bad more often than it was read.
    alone = not any(one.counts.get("given") or one.counts.get("added") for one in observed)
    for source, held in observed[-1].sources.items():
        if alone and held["bad"] >= held["read"] > 0 and held.get("max_bad_share") != 1:
            near = True
            yield Concern(
                URGENT,
                "quarantine",
                f"all {held['read']:,} rows of {harmless(source)} were quarantined: none was of use",
                f"most often: {common}",
                mend,
            )
            continue
        used = _of_cap(held)
        if used >= NEAR_CAP:
            near = True
            yield Concern(
                URGENT,
                "quarantine",
                f"{held['bad']:,} of {held['read']:,} rows of {harmless(source)} were "
                f"quarantined, {percent(used)} of what max_bad allows",
                f"beyond that the run stops; most often: {common}",
                mend,
            )
    read, bad = (sum(one.counts.get(name, 0) for one in observed) for name in ("read", "quarantined"))
    used = any(one.counts.get(name) for one in observed for name in ("kept", "filtered", "late", "dropped"))
    if near or not bad:
        return
    if bad >= read and not used and all(held.get("max_bad_share") != 1 for held in observed[-1].sources.values()):
        yield Concern(
            URGENT,
            "quarantine",
            f"every row of the last ten minutes was quarantined, {many(bad, 'row')}",
            f"most often: {common}",
            mend,
        )
        return
    many_ = read >= LEAST_EVENTS and bad >= BAD_SHARE * read
    what = f"{percent(bad / read)} of the events" if many_ else many(bad, "row")
    yield Concern(
        WARNING if many_ else NOTE,
        "quarantine",
        f"{what} of the last ten minutes {'was' if what == '1 row' else 'were'} quarantined",
        f"most often: {common}",
        mend,
    )


def _commonest(observed: Sequence[Observation]) -> str:
    """The commonest kind of reason, by one of them."""
    reasons = [row["why"] for one in observed for row in one.bad]
    if not reasons:
        return "the quarantine has the reason of each"
    kind = Counter(map(kind_of, reasons)).most_common(1)[0][0]
    return harmless(next(reason for reason in reasons if kind_of(reason) == kind))


def _of_cap(held: dict[str, Any]) -> float:
    """Which part of what it may is a source's count of bad rows; 0 where there is no cap, or too little was read."""
    if held.get("max_bad_rows"):
        return float(held["bad"] / held["max_bad_rows"])
    if (held.get("max_bad_share") or 1) < 1 and held["read"] >= LEAST_EVENTS:
        return float(held["bad"] / (held["max_bad_share"] * held["read"]))
    return 0.0


def kept(observed: Sequence[Observation], now: Situation) -> Iterator[Concern]:
    """Late or quarantined rows that nobody writes anywhere, and for which there is little room left."""
    room: int = observed[-1].settings.get("kept_bytes", 0) if observed else 0
    for name, held in observed[-1].sinks.items() if observed and room else ():
        if name.startswith("kept/") and held >= NEAR_CAP * room:
            rows = harmless(name.partition("/")[2])
            yield Concern(
                URGENT,
                "kept",
                f"the {rows} rows that nobody writes have filled {percent(held / room)} of their room, {size(room)}",
                "nothing is dropped in silence: when it is full, the run stops",
                "write them to a sink of your own, or move the folder under the checkpoint away",
            )


def hot_keys(observed: Sequence[Observation], now: Situation) -> Iterator[Concern]:
    """A key that has far more than its share of the events."""
    if not observed or sum(one.counts.get("read", 0) for one in observed) < LEAST_EVENTS:
        return
    shown = observed[-1].hot
    for key, share, error in shown[:1]:
        sure = share - error
        if sure >= max(HOT_SHARE, HOT_TIMES / len(shown)):
            next_ = f"; the next one has {percent(shown[1][1])}" if len(shown) > 1 else ""
            yield Concern(
                WARNING,
                "hot_key",
                f"the key {harmless(str(key))!r} has {percent(sure)} of the events",
                f"all of a key is in one shard{next_}; sums are added up before they get there, so that "
                "windows bear it, and rows that travel one by one do not",
                "where its shard is slow: add up in two stages, first by the key and a second column, or "
                'leave the key out if it stands for "unknown"',
            )


def state(observed: Sequence[Observation], now: Situation) -> Iterator[Concern]:
    """A state that is very large, holds one very large key, or grows and grows."""
    if not observed:
        return
    last = observed[-1].state
    shards = observed[-1].settings.get("shards") or 1
    if last.get("bytes", 0) > STATE_BYTES * shards:
        yield Concern(
            WARNING,
            "state",
            f"the state has {size(last['bytes'])} in {many(shards, 'shard')}",
            f"that is more than {size(STATE_BYTES)} a shard, {many(_rows(observed[-1]), 'row')}: it lies on "
            "disk and is read as it is needed, and a restart takes longer",
            "shorten the lateness or the windows, or run a new checkpoint with more shards",
        )
    if last.get("largest", 0) > LARGEST_BYTES:
        yield Concern(
            WARNING,
            "state",
            f"one part of the state has {size(last['largest'])}",
            "parts are split near 4 MB unless a single row of it is larger: a key holds very many items",
            "collect fewer of them (top_k, a sketch, a shorter window), or split the key",
        )
    yield from _growth(observed, now)


def _growth(observed: Sequence[Observation], now: Situation) -> Iterator[Concern]:
    length = observed[-1].wall - observed[0].wall
    if now.ended or len(observed) < 9 or length < GROWN_SECONDS:
        return
    third = len(observed) // 3
    rows = [_rows(one) for one in observed]
    before, after = max(rows[:third]), min(rows[-third:])
    middle = rows[third:-third]
    if after < GROWN * before or after - before < GROWN_ROWS or not before <= min(middle) <= max(middle) <= after:
        return
    yield Concern(
        WARNING,
        "state",
        f"the state grows: from {before:,} to {after:,} rows in {span(length * 1e6)}",
        "more windows open than expire: new keys come all the time, the watermark does not move, or nothing "
        "ever expires (a global window, no `within`)",
        "see whether the watermark moves; shorten the lateness, or give what is remembered an end",
    )


def _rows(one: Observation) -> int:
    return one.state.get("rows", one.state.get("open", 0))
