"""Random plans and random streams for the laws: every window, trigger tree, mode and lateness, with disorder."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

import penstock as ps
from penstock.plan import Plan
from penstock.window import Global

SCHEMA = "k string, v long, x double, at timestamp"
KEYS = ["a", "b", None]
PARTITIONS = ["0", "1", "2"]


def us(n: int) -> str:
    """A duration of so many microseconds."""
    return f"{n} us"


@dataclass(frozen=True)
class Step:
    """One batch of a script."""

    rows: tuple[dict[str, Any], ...]
    now: int
    watermark: int | None
    restart: bool


def half_windows(t: int) -> list[tuple[int, int]]:
    """Two overlapping custom windows."""
    base = t // 20 * 20
    return [(base, base + 20), (base, base + 40)]


def until_next(t: int) -> list[tuple[int, int]]:
    """A window that lasts until the next event."""
    return [(t, ps_max())]


def cut_at_next(windows: list[ps.Window]) -> dict[ps.Window, ps.Window]:
    """Each window ends where the next one starts."""
    starts = sorted({window.start for window in windows})
    after = dict(zip(starts, [*starts[1:], ps_max()], strict=True))
    return {window: ps.Window(window.start, after[window.start]) for window in windows}


def ps_max() -> int:
    """The end of time."""
    return 2**63 - 1


def near(t: int) -> list[tuple[int, int]]:
    """A half-open session of ten."""
    return [(t, t + 10)]


def join_overlapping(windows: list[ps.Window]) -> dict[ps.Window, ps.Window]:
    """Overlapping windows become one."""
    goes: dict[ps.Window, ps.Window] = {}
    group: list[ps.Window] = []
    for window in [*sorted(windows), None]:
        if window is not None and (not group or window.start < max(one.end for one in group)):
            group.append(window)
            continue
        whole = ps.Window(group[0].start, max(one.end for one in group)) if group else None
        goes.update({one: whole for one in group if whole is not None})
        group = [window] if window is not None else []
    return goes


windows = st.one_of(
    st.builds(lambda n, o: ps.tumbling(us(n), offset=us(o)), st.integers(1, 40), st.integers(0, 10)),
    st.builds(lambda s, m, o: ps.sliding(us(s * m), every=us(s), offset=us(o)), st.integers(1, 12), st.integers(2, 4),
              st.integers(0, 5)),
    st.sampled_from([ps.sliding(us(25), every=us(10)), ps.sliding(us(7), every=us(3), offset=us(1))]),
    st.builds(lambda n: ps.session(us(n)), st.integers(1, 20)),
    st.just(ps.global_window()),
    st.builds(lambda n: ps.event_pairs(us(n)), st.integers(1, 20)),
    st.just(ps.custom(half_windows)),
    st.just(ps.custom(until_next, cut_at_next)),
    st.just(ps.custom(near, join_overlapping)),
    st.just(ps.calendar("day", zone="Europe/Berlin")),
)  # fmt: skip

leaves = st.one_of(
    st.builds(ps.count, st.integers(1, 5)),
    st.builds(lambda n: ps.after(us(n)), st.integers(0, 20)),
    st.builds(lambda n, o: ps.every(us(n), offset=us(o)), st.integers(1, 20), st.integers(0, 5)),
    st.builds(lambda n, once: ps.when(f"n > {n}", once=once), st.integers(0, 4), st.booleans()),
    st.just(ps.never()),
)


def compositions(inner: st.SearchStrategy[ps.Trigger]) -> st.SearchStrategy[ps.Trigger]:
    """Triggers made of triggers."""
    return st.one_of(
        st.builds(lambda a, b: a | b, inner, inner),
        st.builds(lambda a, b: a & b, inner, inner),
        st.builds(lambda a, b: a.then(b), inner, inner),
        st.builds(lambda a, b: a.until(b), inner, inner),
        st.builds(ps.repeat, inner),
    )


parts = st.recursive(leaves, compositions, max_leaves=4)
at_watermarks = st.builds(
    lambda e, la: ps.at_watermark(early=e, late=la), st.none() | parts, st.none() | parts
)  # fmt: skip
triggers = st.one_of(
    at_watermarks, st.just(ps.at_watermark()), st.just(ps.at_expiry()),
    st.recursive(leaves | at_watermarks | st.just(ps.at_expiry()), compositions, max_leaves=5),
)  # fmt: skip

exact_aggregates = {
    "total": ps.sum("v"),
    "mean": ps.mean("x"),
    "var": ps.variance("x"),
    "low": ps.min("x"),
    "high": ps.max("v"),
    "positive": ps.rows(where="v > 0"),
    "known": ps.count("v"),
    "first": ps.first("v"),
    "last": ps.last("v"),
    "best": ps.arg_max("v", by="x"),
    "worst": ps.arg_min("k", by="v"),
    "top": ps.top_k("v", 2),
    "all": ps.collect("v", 5),
    "kinds": ps.distinct("v"),
    "xs": ps.sum("x", where="v is not null"),
    "least_k": ps.min("k"),
}


@st.composite
def plans(draw: st.DrawFn, *, few: bool = False) -> Plan:
    """A plan that is allowed."""
    window = draw(windows)
    trigger = draw(triggers)
    names = draw(st.lists(st.sampled_from(sorted(exact_aggregates)), max_size=2 if few else 4, unique=True))
    lateness = draw(st.sampled_from([0, 0, 5, 15, 60]))
    rule = draw(st.sampled_from([ps.by_hand(), ps.bounded(us(0)), ps.bounded(us(7), idle=us(10)),
                                 ps.percentile(0.8, us(1), us(20), idle=us(15), when_idle="advance"),
                                 ps.bounded(us(3), idle=None), ps.ascending(idle=us(12), when_idle="advance"),
                                 ps.punctuated("v = 3", idle=us(9))]))  # fmt: skip
    stream = ps.events(SCHEMA, bounded=isinstance(window, Global))
    if draw(st.booleans()):
        stream = stream.where("v is null or v <> -2")
    stream = stream.event_time("at", watermark=rule)
    if draw(st.booleans()):
        stream = stream.where("v is null or v <> -1")
    if draw(st.booleans()):
        stream = stream.key_by("k")
    windowed = stream.window(window, lateness=us(lateness)).trigger(trigger)
    mode = draw(st.sampled_from(["accumulating", "discarding", "retracting"]))
    windowed = getattr(windowed, mode)()
    return windowed.aggregate(n=ps.rows(), **{name: exact_aggregates[name] for name in names}).plan


numbers = st.one_of(st.integers(-3, 9), st.none(), st.sampled_from([2**40, -(2**40)]))
floats = st.one_of(st.none(), st.floats(-8, 8, width=16), st.sampled_from([0.0, -0.0, 1.5, float("nan")]))


@st.composite
def scripts(draw: st.DrawFn, *, max_batches: int = 6) -> list[Step]:
    """Batches in which event time moves on, more or less, and so do the clock and the watermark."""
    steps, now, base, given = [], 1000, 0, 0
    for _ in range(draw(st.integers(1, max_batches))):
        base += draw(st.integers(0, 25))
        rows = tuple(
            {
                "k": draw(st.sampled_from(KEYS)), "v": draw(numbers), "x": draw(floats),
                "at": max(base - draw(st.sampled_from([0, 0, 1, 2, 5, 10, 11, 30, 70])), 0) if draw(
                    st.integers(0, 20)) else draw(st.sampled_from([None, 10**12])),
                "@partition": draw(st.sampled_from(PARTITIONS)),
            }
            for _ in range(draw(st.integers(0, 8)))
        )  # fmt: skip
        now += draw(st.integers(0, 12))
        given = max(given, base - draw(st.integers(-10, 30)))
        mark = draw(st.sampled_from([None, None, given]))
        steps.append(Step(rows, now, mark, draw(st.integers(0, 3)) == 0))
    if draw(st.booleans()):
        steps.append(Step((), now + 1, 2**63 - 1, False))
    return steps
