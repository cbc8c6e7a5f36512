"""Wider plans and streams: every type of key and time column, row steps that throw, unions, folds and sketches."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

from hypothesis import strategies as st

import penstock as ps
from penstock.api.stream import Stream
from penstock.model.watermarks import Watermark
from penstock.model.windows import Calendar, Global, Sliding, WindowRule
from penstock.plan.stages import Plan
from tests.properties import functions
from tests.properties.plans import AGGREGATES, END_OF_TIME, cut, us, windows
from tests.properties.streams import BEHIND, PARTITIONS, Row, Step, floats, numbers

SCHEMA = (
    "k string, v long, x double, b boolean, d date, ts timestamp, m decimal(6,2), raw binary, mark timestamp, "
    "at timestamp, whole long, half double, word string, day date"
)
NAMES = [part.split()[0] for part in SCHEMA.split(", ")]
DAY = 86_400_000_000
HUGE = 3 * 2**61  # one fits into 64 bits; two do not, whatever small numbers of other partitions are added
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Time:
    """A time column: its unit, how long a tick is in it, how an instant is written, and values that are no times."""

    column: str
    unit: str | None
    tick: int
    write: Callable[[int, int], Any]
    odd: tuple[Any, ...]


def iso(t: int, form: int) -> str:
    """A text for an instant, in one of several forms."""
    moment = EPOCH + timedelta(microseconds=t)
    local = moment + timedelta(hours=1)
    return [
        moment.strftime("%Y-%m-%d %H:%M:%S.%f"), moment.strftime("%Y-%m-%dT%H:%M:%S.%f"), moment.isoformat(),
        f" {moment.isoformat()} ", local.strftime("%Y-%m-%d %H:%M:%S.%f+01:00"), moment.strftime("%Y%m%dT%H%M%S.%fZ"),
    ][form % 6]  # fmt: skip


FAR = (10**18, -(10**17), 2**63 - 1, -(2**63), None)
TIMES = [
    Time("at", None, 1, lambda t, form: t, (None, 10**12, "soon", 2**62)),
    Time("whole", "us", 1, lambda t, form: t, FAR),
    Time("whole", "ms", 1_000, lambda t, form: t, FAR),
    Time("whole", "s", 1_000_000, lambda t, form: t, FAR),
    Time("half", "us", 1, lambda t, form: t + (0.0, 0.5, 0.25, -0.5)[form % 4],
         (None, float("nan"), float("inf"), float("-inf"), 1e300, -1e17)),
    Time("half", "s", 1_000_000, lambda t, form: t + (0.0, 5e-7, 1e-9, 1.5e-6)[form % 4], (None, float("nan"), 1e12)),
    Time("word", None, 1, iso, (None, "", "soon", "2026-02-30", "0000-01-01", "10000-01-01", "9999-12-31 23:59:59")),
    Time("day", None, DAY, lambda t, form: date(1970, 1, 1) + timedelta(days=t), (None, date(9999, 12, 31), "x")),
]  # fmt: skip

KEYED = ["k", "v", "x", "b", "d", "ts", "m", "raw"]
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "k": st.sampled_from(["a", "b", "", None, "ü"]),
    "v": numbers,
    "x": floats,
    "b": st.sampled_from([True, False, None]),
    "d": st.sampled_from([date(1970, 1, 1), date(2026, 3, 1), date(1, 1, 1), None]),
    "ts": st.sampled_from([0, 5, -1, 10**15, None]),
    "m": st.sampled_from([Decimal(text) for text in ("1.10", "1.1", "-0.05", "0.00", "9999.99")] + [None]),
    "raw": st.sampled_from([b"", b"a", b"\x00\xff", None]),
}
STEPS: list[Callable[[Stream], Stream]] = [
    lambda s: s.where("v is null or v <> -2"),
    lambda s: s.where("100 / v > 1"),
    lambda s: s.where(functions.not_five),
    lambda s: s.where(functions.picky),
    lambda s: s.with_columns(v="v + 1", x="x * 2"),
    lambda s: s.with_columns(v="v * 1000000000000000"),
    lambda s: s.with_columns(x="x / v"),
    lambda s: s.map(functions.bumped),
    lambda s: s.map(functions.sloppy),
    lambda s: s.map_batches(functions.doubled),
    lambda s: s.map_batches(functions.dropping),
    lambda s: s.map_batches(functions.repeating),
    lambda s: s.select(*NAMES),
]
# These change the columns, so they come after a union.
LAST_STEPS = [
    *STEPS,
    lambda s: s.select(*[name for name in NAMES if name != "x"], x="coalesce(x, 0.5)", more="v"),
    lambda s: s.map(functions.longer, schema=f"{SCHEMA}, letters long"),
]
WIDE = {
    **AGGREGATES,
    "squares": ps.fold("v", functions.Squares(), type="long"),
    "users": ps.approx_distinct("k"), "values": ps.approx_distinct("x"), "days": ps.approx_distinct("d"),
    "prices": ps.approx_distinct("m"), "moments": ps.approx_distinct("ts"), "bytes": ps.approx_distinct("raw"),
    "median": ps.approx_quantile("x", 0.5),
    "min_d": ps.min("d"), "max_ts": ps.max("ts"), "min_m": ps.min("m"), "max_b": ps.max("b"), "max_k": ps.max("k"),
    "first_raw": ps.first("raw"), "last_m": ps.last("m"), "first_d": ps.first("d"), "last_b": ps.last("b"),
    "times": ps.collect("ts", 3), "few_m": ps.collect("m", 4), "late_d": ps.top_k("d", 2),
    "dear": ps.top_k("k", 2, by="m"), "raw_at": ps.arg_min("raw", by="ts"), "m_at": ps.arg_max("m", by="b"),
    "x_at": ps.arg_max("d", by="x"), "top_x": ps.top_k("x", 3), "all_x": ps.collect("x", 4),
    "kinds_m": ps.distinct("m"), "kinds_raw": ps.distinct("raw"), "kinds_x": ps.distinct("x"), "bs": ps.distinct("b"),
    "filled": ps.count("raw"), "true": ps.rows(where="b"), "some": ps.sum("v", where="b or d is null"),
    "failing": ps.rows(where="100 / v > 3"), "mean_v": ps.mean("v"), "var_v": ps.variance("v"), "sum_x": ps.sum("x"),
}  # fmt: skip
IN_ORDER = {"in_order": ps.fold("v", functions.InOrder(), type="string")}
LOOSE = ("median",)


def wide_rules(tick: int, skew: int | None) -> st.SearchStrategy[Watermark]:
    """Every rule, waiting and advancing, with a bound on skew or the default one."""
    far: dict[str, Any] = {} if skew is None else {"max_skew": us(skew * tick)}
    return st.sampled_from([
        ps.bounded(us(3 * tick), idle=us(10 * tick), **far), ps.from_column("mark", idle=us(15 * tick), **far),
        ps.ascending(idle=us(12 * tick), when_idle="advance", **far), ps.by_hand(**far),
        ps.percentile(0.5, us(0), us(9 * tick), idle=us(15 * tick), when_idle="advance", **far),
        ps.punctuated("v = 3", idle=us(9 * tick), **far), ps.punctuated("10 / v = 5", **far),
        ps.bounded(us(0), idle=None, **far),
    ])  # fmt: skip


def keeps_order(window: WindowRule) -> bool:
    """Whether a fold gets its values in the order of offsets; put together from slices, it does not."""
    return isinstance(window, Global | Calendar) or (isinstance(window, Sliding) and window.size == window.slide)


@dataclass(frozen=True)
class Scenario:
    """A plan, the partitions that are known beforehand, and batches for it."""

    plan: Plan
    partitions: tuple[str, ...]
    steps: list[Step]


@st.composite
def timed(draw: st.DrawFn, stream: Stream, time: Time, skew: int | None) -> Stream:
    """A stream with its clock."""
    if draw(st.integers(0, 9)) == 9:
        return stream.processing_time()
    rule = draw(wide_rules(time.tick, skew))
    if draw(st.integers(0, 6)) == 6:
        return stream.ingestion_time(time.column, unit=time.unit, watermark=rule if draw(st.booleans()) else None)
    return stream.event_time(time.column, unit=time.unit, watermark=rule)


@st.composite
def sources(draw: st.DrawFn, times: list[Time], bounded: bool, skew: int | None) -> Stream:
    """One source or two, each with steps and a clock of its own."""
    made = []
    for name, time in zip(("web", "app"), times, strict=False):
        limit = draw(st.sampled_from([None, None, None, 3, "20%"]))
        stream = ps.events(SCHEMA, name=name, bounded=bounded, max_bad=limit)
        for step in draw(st.lists(st.sampled_from(STEPS), max_size=1)):
            stream = step(stream)
        stream = draw(timed(stream, time, skew))
        for step in draw(st.lists(st.sampled_from(STEPS), max_size=1)):
            stream = step(stream)
        made.append(stream)
    stream = made[0].union(*made[1:]) if len(made) > 1 else made[0]
    for step in draw(st.lists(st.sampled_from(LAST_STEPS), max_size=1)):
        stream = step(stream)
    return stream


@st.composite
def wide_plans(draw: st.DrawFn, times: list[Time], skew: int | None) -> Plan:
    """A plan over every type of column."""
    where = draw(windows(times[0].tick))
    stream = draw(sources(times, isinstance(where, Global), skew))
    keys = draw(st.lists(st.sampled_from(KEYED), max_size=2, unique=True))
    stream = stream.key_by(*keys) if keys else stream
    choice = WIDE | IN_ORDER if keeps_order(where) else WIDE
    names = draw(st.lists(st.sampled_from(sorted(choice)), min_size=1, max_size=4, unique=True))
    names = [*names, "total"] if draw(st.booleans()) and "total" not in names else names
    if "some" in names and "total" in names:  # two sums may overflow at once, and which is named first is no law
        names.remove("some")
    windowed = draw(cut(stream, where, tick=times[0].tick))
    return windowed.aggregate(n=ps.rows(), **{name: choice[name] for name in names}).plan


@st.composite
def wide_row(draw: st.DrawFn, times: list[Time], base: int, ahead: bool, huge: bool) -> Row:
    """A row for any of the sources, its times around an instant, some of its values of no type at all."""
    t = max(base - draw(st.sampled_from(BEHIND)), 0) + (20 if ahead and draw(st.integers(0, 7)) == 7 else 0)
    row: Row = {name: draw(values) for name, values in VALUES.items()}
    row["v"] = HUGE if huge and draw(st.sampled_from([True, False, False])) else row["v"]
    row["mark"] = draw(st.sampled_from([(base - 5) * times[0].tick, None, None]))
    form = draw(st.integers(0, 5))
    row |= {time.column: time.write(t, form) for time in times}
    fault = draw(st.integers(0, 30))
    if fault == 30:
        row["v"] = draw(st.sampled_from([2**63, "many", True, 1.5]))
    elif fault == 29:
        row |= {time.column: draw(st.sampled_from(time.odd)) for time in times}
    names = ("web", "app")[: len(times)]
    return row | {"@source": draw(st.sampled_from(names)), "@partition": draw(st.sampled_from(PARTITIONS))}


@st.composite
def scenarios(draw: st.DrawFn) -> Scenario:
    """A plan over one or two sources, and batches that suit it."""
    first = draw(st.sampled_from(TIMES))
    alike = [time for time in TIMES if time.tick == first.tick and (time is first or time.column != first.column)]
    times = [first, draw(st.sampled_from(alike))] if draw(st.integers(0, 2)) == 2 else [first]
    skew = draw(st.sampled_from([None, None, 6]))
    plan = draw(wide_plans(times, skew))
    huge = draw(st.booleans())
    steps, base, given, now = [], 0, 0, 1000 if skew is None else 0
    for _ in range(draw(st.integers(2, 6))):
        base += draw(st.sampled_from([8, 3, 12, 0, 18, 25]))
        now = max(now + draw(st.integers(0, 12)), 0 if skew is None else base - 3)
        many = draw(st.sampled_from([4, 6, 8, 2, 0]))
        rows = [draw(wide_row(times, base, skew is not None, huge)) for _ in range(many)]
        given = max(given, base - draw(st.integers(-10, 25)))
        mark = draw(st.sampled_from([given * first.tick, None]))
        resumed = draw(st.integers(0, 14)) == 14
        rows = [] if resumed else rows
        steps.append(Step(tuple(rows), now * first.tick, mark, draw(st.integers(0, 3)) == 3, resumed))
    if draw(st.integers(0, 3)):
        steps.append(Step((), (now + 1) * first.tick, END_OF_TIME))
    known = draw(st.sampled_from([(), (), ("web/0",), ("web/7", "web/1")]))
    return Scenario(plan, known, steps)
