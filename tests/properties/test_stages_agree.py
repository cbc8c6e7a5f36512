"""Stages one after the other: both engines give the same, and nothing that a stage gives is late for the next."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

import pytest
from hypothesis import given, note, strategies as st

import penstock as ps
from penstock.engine.in_process import ColumnarRun
from penstock.runtime.batch import Outcome
from penstock.testing import Script
from tests.properties.comparing import same_outcome, same_panes
from tests.properties.profile import law
from tests.properties.streams import rows_near


class Third(ps.KeyedFunction):
    """Every third event of a key, and a timer after each."""

    output = "k string, n long"
    seen = ps.value("long", default=0, ttl="50 us")

    def on_event(self, event: Any, key: Any, context: Any) -> None:
        self.seen += 1
        context.timer(context.time)
        if self.seen % 3 == 0:
            context.emit(k=key, n=self.seen)

    def on_timer(self, timer: Any, key: Any, context: Any) -> None:
        context.emit(k=key, n=-self.seen)


async def weighed(row: dict[str, Any]) -> dict[str, Any]:
    """What the outside says of a value: nothing of some, and of others it throws."""
    if row["v"] is None or row["v"] % 4 == 3:
        raise ConnectionError(f"nobody knows {row['v']}")
    return {"weight": row["v"] * 2, "even": row["v"] % 2 == 0}


def enriched(on_error: str = "quarantine") -> ps.Rows:
    return source("one").key_by("k").enrich(weighed, on="v", output="weight long, even boolean", retries=0,
                                            cache="10 us", cache_rows=3, on_error=on_error)  # fmt: skip


def source(name: str, time: str = "at") -> ps.Stream:
    """Rows of integers for times, which a test draws."""
    columns = ps.events(f"k string, v long, x double, {time} long", name=name)
    return columns.event_time(time, unit="us", watermark=ps.bounded("5 us", max_skew=None, idle="20 us"))


def windows(stream: ps.Stream, size: int = 10) -> ps.Panes:
    return stream.key_by("k").window(ps.tumbling(f"{size} us")).aggregate(n=ps.rows())


def joined(how: Any) -> ps.Rows:
    right = source("two", "then").select("k", "then", w="v")
    return source("one").select("k", "v", "at").join(right, on="k", between=("-3 us", "6 us"), how=how)


def retracting(stream: ps.Stream, size: int, key: str = "k", **what: ps.Aggregate) -> ps.Panes:
    """Windows that show early and late panes, each after the withdrawal of the one before."""
    windowed = stream.key_by(key).window(ps.tumbling(f"{size} us"), lateness="10 us")
    return windowed.trigger(ps.at_watermark(early=ps.count(1), late=ps.count(1))).retracting().aggregate(**what)


def firsts() -> ps.Stream:
    """What corrected windows give: how many, their sums, and how many different values."""
    return retracting(source("one"), 10, n=ps.rows(), v=ps.sum("v"), x=ps.max("x"), d=ps.distinct("v")).stream


def of_all_time(stream: ps.Stream, **what: ps.Aggregate) -> ps.Panes:
    """What stands of each key, with every change of it."""
    return (
        stream.key_by("k").window(ps.global_window()).trigger(ps.repeat(ps.after("0"))).retracting().aggregate(**what)
    )


def split_by(*predicates: str) -> list[ps.Stream]:
    """The parts of the rows, the rest last."""
    return list(source("one").split(**{f"part{number}": one for number, one in enumerate(predicates)}).values())


RISING = ps.pattern("low").next("high", "n > low.n").one_or_more().within("40 us")
FLOWS: dict[str, Callable[[], ps.Panes | ps.Rows]] = {
    "dedup, windows": lambda: windows(source("one").dedup("v", within="8 us")),
    "join, windows": lambda: windows(joined("inner")),
    "left join, windows": lambda: windows(joined("left")),
    "full join, dedup": lambda: joined("full").dedup("k", within="10 us"),
    "windows, windows": lambda: windows(windows(source("one")).stream, 30),
    "pieces, windows": lambda: (
        source("one").key_by("k").window(ps.tumbling("10 us")).trigger(ps.at_watermark(early=ps.count(2))).discarding()
        .aggregate(n=ps.rows()).stream.key_by("k").window(ps.tumbling("30 us")).aggregate(n=ps.sum("n"))
    ),
    "process, windows": lambda: windows(source("one").key_by("k").process(Third())),
    "ordered process, windows": lambda: windows(source("one").key_by("k").process(Third(), ordered=True)),
    "windows, join with the rows": lambda: source("one").select("k", "v", "at").join(
        windows(source("one")).stream.select("k", "n", end="window_end"), on="k", between=("0", "10 us"), how="left"),
    "corrections, windows": lambda: firsts().key_by("k").window(ps.tumbling("30 us")).accumulating().aggregate(
        n=ps.sum("n"), windows=ps.rows(), values=ps.count("v"), mean=ps.mean("v"), sum_x=ps.sum("x"), xs=ps.mean("x")),
    "early panes, windows that show once": lambda: (
        source("one").key_by("k").window(ps.tumbling("10 us")).trigger(ps.at_watermark(early=ps.count(1))).retracting()
        .aggregate(n=ps.rows(), v=ps.max("v")).stream.key_by("n").window(ps.sliding("30 us", "10 us"))
        .aggregate(keys=ps.rows(), v=ps.sum("v"), low=ps.min("v"), all=ps.collect("k"))),
    "corrections, values that are kept": lambda: firsts().key_by("k").window(ps.sliding("30 us", "10 us"))
        .trigger(ps.at_watermark(early=ps.count(2), late=ps.count(1))).accumulating().aggregate(
        low=ps.min("v"), high=ps.max("x"), kinds=ps.distinct("n"), var=ps.variance("v"), all=ps.collect("v", 3),
        best=ps.top_k("v", 2, by="n"), least=ps.arg_min("x", "v"), begin=ps.first("v"), end=ps.last("n"),
        top=ps.top_k("x", 2), some=ps.rows(where="n > 1")),
    "corrections, corrections, windows": lambda: retracting(
        retracting(firsts(), 30, "n", windows=ps.rows(), v=ps.sum("v")).stream, 60, "windows",
        keys=ps.rows(), v=ps.sum("v"), n=ps.max("n")),
    "corrections, pieces, windows": lambda: (
        firsts().key_by("k").window(ps.tumbling("30 us"), lateness="10 us").trigger(ps.repeat(ps.count(2)))
        .discarding().aggregate(n=ps.sum("n"), m=ps.rows(), x=ps.sum("x"))
        .stream.key_by("k").window(ps.tumbling("60 us")).accumulating().aggregate(n=ps.sum("n"), m=ps.sum("m"))),
    "sessions, windows": lambda: (
        source("one").key_by("k").window(ps.session("6 us")).trigger(ps.at_watermark(early=ps.count(1))).retracting()
        .aggregate(n=ps.rows()).stream.where("n > 0").with_columns(m="n * 2").key_by("k").window(ps.global_window())
        .trigger(ps.repeat(ps.count(1))).retracting().aggregate(n=ps.sum("m"), most=ps.max("n"), w=ps.rows())),
    "top": lambda: source("one").key_by("k").top(2, by="v"),
    "least of windows, windows": lambda: (
        source("one").key_by("k").top(2, by="x", best="least", window=ps.tumbling("10 us"), lateness="5 us")
        .key_by("k").window(ps.tumbling("30 us")).accumulating().aggregate(n=ps.rows(), v=ps.sum("v"))),
    "corrections, top": lambda: firsts().key_by("k").top(2, by="v"),
    "corrections, top of windows": lambda: firsts().select("k", "n", "x").key_by("k").top(
        2, by="x", window=ps.tumbling("30 us")),
    "top, all time": lambda: source("one").key_by("k").top(2, by="v", best="least").key_by("k").window(
        ps.global_window()).trigger(ps.repeat(ps.count(1))).retracting().aggregate(v=ps.sum("v"), n=ps.rows()),
    "corrections, join": lambda: firsts().select("k", "n", "v").join(
        source("two", "then").select("k", "then", w="v"), on="k", between=("-8 us", "15 us")),
    "top, join for ever": lambda: source("one").key_by("k").top(2, by="v").join(
        source("two", "then").select("k", "then", w="v"), on="k", keep="forever"),
    "all time, join for ever, all time": lambda: of_all_time(of_all_time(source("one"), n=ps.rows(), v=ps.sum("v"))
        .stream.select("k", "n", "v").join(source("two", "then").select("k", "then", w="v"), on="k", keep="forever"),
        pairs=ps.rows(), v=ps.sum("v"), w=ps.max("w")),
    "windows, pattern": lambda: windows(source("one")).stream.key_by("k").match(
        RISING, output={"low": "low.n", "high": "high.n"}, timeouts=True, skip=ps.no_skip()),
    "pattern, windows": lambda: windows(source("one").key_by("k").match(
        ps.pattern("low").then("high", "v > low.v").within("15 us"), output={"by": "high.v - low.v"})),
    "temporal join, windows": lambda: windows(source("one").temporal_join(
        source("two", "then").select("k", "then", w="v"), on="k", how="left")),
    "corrections, join with themselves, windows": lambda: retracting(firsts().select("k", "n", at1="window_end").join(
        firsts().select("k", "v", "x", "pane_timing"), on="k", window=ps.tumbling("20 us")), 30, v=ps.sum("v"),
        n=ps.rows(), x=ps.min("x")),
    "split, join of its parts, windows": lambda: windows(split_by("v > 3", "v < 1")[0].select("k", "v", "at").join(
        split_by("v > 3", "v < 1")[2].select("k", w="v", then="at"), on="k", between=("-8 us", "8 us"), how="full")),
    "windows, split, join of its parts": lambda: (
        windows(source("one")).stream.split(many="n > 1")["many"].select("k", many="n", end="window_end")
        .join(windows(source("one")).stream.split(many="n > 1")["rest"].select("k", one="n"), on="k",
              between=("-20 us", "20 us"), how="left")),
    "corrections, split": lambda: firsts().split(few="n < 2", none="v is null")["rest"].write(ps.memory("rows")).plan,
    "corrections as they are": lambda: firsts().where("n > 1").write(ps.memory("rows")).plan,
    "enrich, windows": lambda: windows(enriched()),
    "enrich with nulls, dedup": lambda: enriched("null").dedup("weight", within="8 us"),
    "dedup, windows, windows": lambda: windows(windows(source("one").dedup("v", within="8 us")).stream, 30),
}  # fmt: skip


@st.composite
def steps(draw: st.DrawFn, both: bool) -> list[tuple[list[dict[str, Any]], int, bool]]:
    """Batches of rows for one source or two, with their clock, and whether the run is restored before them."""
    made, now, base = [], 1000, 0
    for _ in range(draw(st.integers(2, 7))):
        base += draw(st.sampled_from([8, 3, 12, 0, 25]))
        now += draw(st.integers(0, 12))
        rows = draw(st.lists(rows_near(base, odd=False), max_size=8))
        for row in rows:
            if both and draw(st.booleans()):
                row |= {"@source": "two", "then": row.pop("at")}
        made.append((rows, now, draw(st.integers(0, 3)) == 3))
    return made


def same_stages(left: Outcome, right: Outcome) -> None:
    same_outcome(left, right)
    for one, two in zip(left.stages, right.stages, strict=True):
        assert sorted(map(repr, one.rows)) == sorted(map(repr, two.rows))
        same_panes(one.panes, two.panes)
        assert sorted(map(repr, one.late)) == sorted(map(repr, two.late))


@pytest.mark.parametrize("name", FLOWS)
@law(10)
@given(data=st.data())
def test_both_engines_agree_on_every_stage(data: st.DataObject, name: str) -> None:
    flow = FLOWS[name]()
    reference, columnar = Script(flow, "reference"), Script(flow, "columnar")
    several = len(reference.flow.inputs) > 1
    played = [(list(rows), now, restart) for rows, now, restart in data.draw(steps(several))]
    for rows, now, restart in played:
        note(f"{rows} at {now}")
        if restart:
            reference.restart()
            columnar.restart()
        behind = {time for row in rows if (time := row.get("at", row.get("then"))) < reference.run.clock.stages[0]}
        check(reference, columnar, reference.batch(rows, now=now), columnar.batch(rows, now=now), behind)
    for _ in reference.flow.stages:
        outcomes = (one.batch((), watermark="+inf") for one in (reference, columnar))
        check(reference, columnar, *outcomes)
    assert reference.run.open_windows() == 0


# What SQL says of a row, null being neither; a comparison with null is null.
PREDICATES: dict[str, Callable[[Any, Any], bool]] = {
    "v > 3": lambda k, v: v is not None and v > 3,
    "v > 0": lambda k, v: v is not None and v > 0,
    "not v > 3": lambda k, v: v is not None and v <= 3,
    "v is null": lambda k, v: v is None,
    "k = 'a'": lambda k, v: k == "a",
    "k = 'b' or v % 2 = 0": lambda k, v: k == "b" or (v is not None and v % 2 == 0),
}


@law(20)
@given(data=st.data())
def test_a_row_is_in_the_first_part_of_a_split_whose_predicate_holds_and_in_no_other(data: st.DataObject) -> None:
    asked = data.draw(st.lists(st.sampled_from(list(PREDICATES)), min_size=1, max_size=3, unique=True))
    played = data.draw(steps(both=False))
    wanted: list[list[str]] = [[] for _ in (*asked, "rest")]
    for row in (row for rows, _, _ in played for row in rows):
        holds = [PREDICATES[one](row["k"], row["v"]) for one in asked]
        wanted[[*holds, True].index(True)].append(repr([row[name] for name in ("k", "v", "x", "at")]))
    for engine in ("reference", "columnar"):
        for part, rows_wanted in zip(split_by(*asked), wanted, strict=True):
            script = Script(part.write(ps.memory("part")).plan, engine)
            for rows, now, _ in played:
                script.batch([dict(row) for row in rows], now=now)
            assert sorted(repr(list(one.row.values())) for one in script.rows) == sorted(rows_wanted)


class TravellingRun(ColumnarRun):
    """The columnar engine with rows that two tasks have put together, each for itself, and that have been bytes."""

    def sent(self, number: int, blobs: list[Any]) -> list[Any]:
        engine = self.engines[number]
        tasks = [blob for some in (blobs[::2], blobs[1::2]) for blob in engine.together(some)]
        return [engine.read(engine.written(part)) for blob in tasks for _, part in engine.dealt(blob, 1)]


@pytest.mark.parametrize("name", ["top", "top, all time", "top, join for ever", "least of windows, windows",
                                  "corrections, top", "corrections, top of windows", "join, windows"])  # fmt: skip
@law(20)
@given(data=st.data())
def test_what_tasks_put_together_gives_the_same(data: st.DataObject, name: str) -> None:
    flow = FLOWS[name]()
    reference, travelling = Script(flow, "reference"), Script(flow, "columnar")
    travelling.run = TravellingRun(travelling.run.plan)
    several = len(reference.flow.inputs) > 1
    for rows, now, _ in data.draw(steps(several)):
        note(f"{rows} at {now}")
        one, two = (script.batch(list(rows), now=now) for script in (reference, travelling))
        same_stages(one, two)
        assert one.counts == two.counts


def check(
    reference: Script, columnar: Script, one: Outcome, two: Outcome, behind: Collection[int] = frozenset()
) -> None:
    """Both are the same, and only what came behind the watermark is late for a stage that reads another."""
    same_stages(one, two)
    assert reference.run.clock.stages == list(columnar.run.clock.stages)  # type: ignore[attr-defined]
    assert reference.run.open_windows() == columnar.run.open_windows()
    for number, stage in enumerate(one.stages):
        if not reference.flow.own_sources(number):
            late = [row for row in stage.late if row.event_time not in behind]
            assert not late, f"stage {number} calls late what stages before it gave: {late}"
