"""Random plans for the laws: every window × trigger tree × mode × lateness × watermark rule.

Lengths are counted in ticks, so that the same plans run on columns that count microseconds, seconds or days.
"""

from __future__ import annotations

from functools import cache

from hypothesis import strategies as st

import penstock as ps
from penstock.api.stream import Stream
from penstock.api.windowed import Windowed
from penstock.model.aggregates import Aggregate
from penstock.model.watermarks import Watermark
from penstock.model.windows import Custom, Global, WindowRule
from penstock.plan.stages import Plan

SCHEMA = "k string, v long, x double, at timestamp"
MODES = ("accumulating", "discarding", "retracting")
END_OF_TIME = 2**63 - 1


def us(n: int) -> str:
    """A duration of so many microseconds."""
    return f"{n} us"


def half_windows(t: int) -> list[tuple[int, int]]:
    """Two overlapping custom windows."""
    base = t // 20 * 20
    return [(base, base + 20), (base, base + 40)]


def until_next(t: int) -> list[tuple[int, int]]:
    """A window that lasts until the next event."""
    return [(t, END_OF_TIME)]


def cut_at_next(windows: list[ps.Window]) -> dict[ps.Window, ps.Window]:
    """Each window ends where the next one starts."""
    starts = sorted({window.start for window in windows})
    after = dict(zip(starts, [*starts[1:], END_OF_TIME], strict=True))
    return {window: ps.Window(window.start, after[window.start]) for window in windows}


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


OVERLAPPING = ps.custom(half_windows)
RESIZED = ps.custom(until_next, cut_at_next)
JOINED = ps.custom(near, join_overlapping)


@cache
def windows(tick: int = 1) -> st.SearchStrategy[WindowRule]:
    """Every kind of window, small enough for a few events to fill several; sessions and pairs come more often."""
    n = st.integers
    kinds = {
        "tumbling": st.builds(lambda size, o: ps.tumbling(us(size * tick), offset=us(o * tick)), n(1, 30), n(0, 10)),
        "sliding": st.builds(lambda s, m, o: ps.sliding(us(s * m * tick), every=us(s * tick), offset=us(o * tick)),
                             n(1, 12), n(2, 4), n(0, 5)),
        "uneven": st.sampled_from([ps.sliding(us(25 * tick), every=us(10 * tick)),
                                   ps.sliding(us(7 * tick), every=us(3 * tick), offset=us(tick))]),
        "session": st.builds(lambda gap: ps.session(us(gap * tick)), n(2, 15)),
        "global": st.just(ps.global_window()),
        "pairs": st.builds(lambda far: ps.event_pairs(us(far * tick)), n(1, 15)),
        "calendar": st.sampled_from([ps.calendar(unit, zone="Europe/Berlin") for unit in ("day", "week", "month")]),
    }  # fmt: skip
    if tick == 1:
        kinds |= {"custom": st.sampled_from([OVERLAPPING, RESIZED, JOINED]), "joined": st.just(JOINED)}
    often = ["session", "session", "pairs", "tumbling", *kinds]
    return st.sampled_from(often).flatmap(lambda kind: kinds[kind])


@cache
def leaves(tick: int = 1) -> st.SearchStrategy[ps.Trigger]:
    """Triggers that are no composition; the likely ones fire."""
    return st.one_of(
        st.builds(ps.count, st.integers(1, 3)),
        st.builds(lambda n: ps.after(us(n * tick)), st.integers(0, 12)),
        st.builds(lambda n, o: ps.every(us(n * tick), offset=us(o * tick)), st.integers(1, 12), st.integers(0, 5)),
        st.builds(lambda n, once: ps.when(f"n > {n}", once=once), st.integers(0, 3), st.booleans()),
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


@cache
def triggers(tick: int = 1) -> st.SearchStrategy[ps.Trigger]:
    """Every trigger, alone and in trees."""
    parts = st.none() | st.recursive(leaves(tick), compositions, max_leaves=4)
    at_watermarks = st.builds(lambda e, la: ps.at_watermark(early=e, late=la), parts, parts)
    usual = st.sampled_from([
        ps.at_watermark(), ps.at_expiry(), ps.at_watermark(early=ps.count(1), late=ps.count(1)), ps.repeat(ps.count(1)),
        ps.at_watermark(early=ps.every(us(tick)), late=ps.count(2)), ps.repeat(ps.count(1)), ps.every(us(2 * tick)),
    ])  # fmt: skip
    whole = st.recursive(leaves(tick) | at_watermarks | st.just(ps.at_expiry()), compositions, max_leaves=5)
    return st.one_of(usual, usual, at_watermarks, whole)


@cache
def rules(tick: int = 1) -> st.SearchStrategy[Watermark]:
    """Every watermark rule that needs no column of its own."""
    return st.sampled_from([
        ps.by_hand(), ps.bounded(us(0)), ps.bounded(us(7 * tick), idle=us(10 * tick)),
        ps.percentile(0.8, us(tick), us(20 * tick), idle=us(15 * tick), when_idle="advance"),
        ps.bounded(us(3 * tick), idle=None), ps.ascending(idle=us(12 * tick), when_idle="advance"),
        ps.punctuated("v = 3", idle=us(9 * tick)),
    ])  # fmt: skip


AGGREGATES = {
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
latenesses = st.sampled_from([0, 0, 5, 15, 60])


@st.composite
def plans(
    draw: st.DrawFn, *, window: st.SearchStrategy[WindowRule] | None = None,
    watermark: st.SearchStrategy[Watermark] | None = None, modes: tuple[str, ...] = MODES, filters: bool = True,
) -> Plan:  # fmt: skip
    """A plan that is allowed, over (k, v, x, at); it counts its rows in `n`."""
    where = draw(windows() if window is None else window)
    stream = ps.events(SCHEMA, bounded=isinstance(where, Global))
    if filters and draw(st.booleans()):
        stream = stream.where("v is null or v <> -2")
    stream = stream.event_time("at", watermark=draw(rules() if watermark is None else watermark))
    if filters and draw(st.booleans()):
        stream = stream.where("v is null or v <> -1")
    if draw(st.booleans()):
        stream = stream.key_by("k")
    names = draw(st.lists(st.sampled_from(sorted(AGGREGATES)), max_size=4, unique=True))
    windowed = draw(cut(stream, where, modes=modes))
    return windowed.aggregate(n=ps.rows(), **{name: AGGREGATES[name] for name in names}).plan


@st.composite
def cut(draw: st.DrawFn, stream: Stream, where: WindowRule, *, tick: int = 1, modes: tuple[str, ...] = MODES
        ) -> Windowed:  # fmt: skip
    """A stream cut into windows, with lateness, trigger and mode."""
    windowed = stream.window(where, lateness=us(draw(latenesses) * tick)).trigger(draw(triggers(tick)))
    return getattr(windowed, draw(st.sampled_from(modes)))()


def with_mode(plan: Plan, mode: str, **aggregates: Aggregate) -> Plan:
    """The same plan in another mode, with other aggregates if there are any."""
    again = Windowed(Stream(plan.inputs, plan.keys), plan.window, plan.lateness, plan.trigger, mode)  # type: ignore[arg-type]
    return again.aggregate(**(aggregates or dict(plan.aggregates))).plan


def resizes(window: WindowRule) -> bool:
    """Whether a window may become another with nothing new in it; then what it showed may stand (docs/limits.md)."""
    return isinstance(window, Custom) and window.merging and window.merged is cut_at_next
