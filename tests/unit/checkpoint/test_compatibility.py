"""Which changes of a plan a checkpoint bears; what binds is compared whole, and every other is refused."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import penstock as ps
from penstock.checkpoint.compatibility import binding, refuse_change
from penstock.checkpoint.plan_fingerprint import MOST, fingerprint_stage
from penstock.connectors.sink_errors import ForeignLineage
from penstock.coordinator.sink_router import refuse_exchanged, refuse_moved
from penstock.engine.state.cache import CACHE
from penstock.errors import DataError
from penstock.plan.graph import AnyStage, flow_of
from penstock.storage.local import CheckpointError
from penstock.testing import Script

CLICKS = "ad string, user string, price double, at timestamp"
SHOWN = "ad string, cost double, gone boolean, at timestamp"
WRITTEN_BEFORE = json.loads((Path(__file__).parent / "written_before.json").read_text())


def events(columns: str = CLICKS, name: str = "clicks") -> ps.Stream:
    return ps.events(columns, name=name).event_time("at", watermark=ps.bounded("5 seconds"))


def shown() -> ps.Stream:
    return events(SHOWN, "shown")


class Count(ps.KeyedFunction):
    """With a piece of state of two shapes, and a timer."""

    output = "n long"
    n = ps.value("long", default=0, ttl="1 hour")
    recent = ps.items("timestamp")

    def on_event(self, event: Any, key: Any, context: Any) -> None:
        self.n += 1

    def on_timer(self, timer: Any, key: Any, context: Any) -> None:
        pass


def function(*, timers: bool = False, called: str = "F", **fields: Any) -> ps.KeyedFunction:
    """A keyed function with these fields, which adds one to each value and gives them all."""

    def on_event(self: Any, event: Any, key: Any, context: Any) -> None:
        for name in fields:
            setattr(self, name, (getattr(self, name) or 0) + 1)

    body = {"output": "n long", "on_event": on_event, **fields}
    body |= {"on_timer": lambda self, timer, key, context: None} if timers else {}
    return type(called, (ps.KeyedFunction,), body)()


async def look_up(row: dict[str, Any]) -> None:
    """A function that knows nothing."""


def everything() -> list[AnyStage]:
    """A stage of every kind that remembers, as the pipeline of `written_before.json` has them."""
    clicks, other = events(), shown()
    joined = clicks.join(other.select("ad", "cost"), on="ad", between=("0", "5 minutes"), lateness="1 minute")
    high = ps.pattern("high", "price > 100").then("low", "price < high.price").within("5 minutes")
    trigger = ps.at_watermark(early=ps.count(10), late=ps.count(1))
    late = joined.key_by("user").window(ps.tumbling("1 minute"), lateness="1 minute").trigger(trigger).accumulating()
    return [
        counted(clicks.where("price > 1")).plan,
        joined.stage,
        clicks.temporal_join(other, on="ad", deleted="gone", prefix="s_").stage,
        clicks.join_table(other, on="ad", deleted="gone", prefix="t_").stage,
        clicks.key_by("user").match(high, output={"top": "max(high.price)"}).stage,
        clicks.dedup("user", within="1 hour").stage,
        clicks.dedup("user", within="1 hour", keep="last").stage,
        clicks.key_by("ad").top(3, by="price").stage,
        clicks.key_by("user").process(Count(), ordered=True).stage,
        clicks.enrich(look_up, output="country string", on="user").stage,
        late.aggregate(cost=ps.sum("cost"), n=ps.rows()).plan,
    ]


def counted(stream: ps.Stream, **more: Any) -> ps.Panes:
    return stream.key_by("user").window(ps.tumbling("1 minute")).aggregate(n=ps.rows(), **more)


def bound(*results: Any) -> dict[str, str]:
    """What binds of results that are written in this order, as it is read again from a checkpoint."""
    stages = [
        result if not hasattr(result, "write") else result.plan if isinstance(result, ps.Panes) else result.stage
        for result in results
    ]
    read: dict[str, str] = json.loads(json.dumps(binding(flow_of(stages), 2)))
    return read


def refused(before: Sequence[Any], after: Sequence[Any]) -> str:
    """Why a plan is refused by the checkpoint of another; nothing where it goes on."""
    try:
        refuse_change("here", bound(*before), bound(*after))
    except CheckpointError as error:
        return f"{error.why} / {error.instead}"
    return ""


def keyed(**fields: Any) -> ps.Rows:
    return events().key_by("user").process(function(**fields))


def matched(stream: ps.Stream | None = None, condition: Any = "price > 1", **more: Any) -> ps.Rows:
    pattern = ps.pattern("a", condition).then("b", "price > a.price").within("1 hour")
    return (stream or events()).key_by("user").match(pattern, output={"most": "max(a.price)"}, **more)


def joined(left: ps.Stream, right: ps.Stream, **more: Any) -> ps.Rows:
    return left.join(right, on="user", between=("0", "1 minute"), prefix="r_", **more)


def fired(trigger: ps.Trigger, *, stream: ps.Stream | None = None, **more: Any) -> ps.Panes:
    panes = (stream or events()).key_by("user").window(ps.tumbling("1 minute"), lateness="1 minute").trigger(trigger)
    return panes.accumulating().aggregate(n=ps.rows(), **more)


LONG, TEXT = ps.value("long"), ps.value("string")
HOT, COLD = (events().where(f"price {sign} 100") for sign in (">", "<="))
IN_TWO = ps.count(1).then(ps.count(2))
SIDE = events(name="others")


def thrice(start: int) -> list[tuple[int, int]]:
    return [(start, start + 3)]


def whole(windows: Sequence[Any]) -> dict[Any, Any]:
    return {}


def custom(**more: Any) -> ps.Panes:
    return events().key_by("user").window(ps.custom(thrice, **more)).aggregate(n=ps.rows())


CHANGES: dict[str, tuple[Sequence[Any], Sequence[Any], str]] = {
    "two fields renamed": (
        [keyed(x=LONG, y=LONG)],
        [keyed(z=LONG, y=LONG)],
        "state z: it has none, the plan has 'long'",
    ),
    "one field renamed": ([keyed(x=LONG)], [keyed(z=LONG)], "state x: it has 'long', the plan has none"),
    "a field more": ([keyed(x=LONG)], [keyed(x=LONG, y=LONG)], "state y: it has none, the plan has 'long'"),
    "a field less": ([keyed(x=LONG, y=LONG)], [keyed(x=LONG)], "state y: it has 'long', the plan has none"),
    "a field's type": ([keyed(x=LONG)], [keyed(x=TEXT)], "state x: it has 'long', the plan has 'string'"),
    "a field's shape": ([keyed(x=LONG)], [keyed(x=ps.items("long"))], "the plan has 'list of long'"),
    "a ttl more": ([keyed(x=LONG)], [keyed(x=ps.value("long", ttl="1 hour"))], "with ttl by event time"),
    "another clock": (
        [keyed(x=ps.value("long", ttl="1 s"))],
        [keyed(x=ps.value("long", ttl="1 s", ttl_by="processing"))],
        "by processing time",
    ),
    "types of two fields": ([keyed(x=LONG, y=TEXT)], [keyed(x=TEXT, y=LONG)], "state x"),
    "timers taken away": ([keyed(x=LONG, timers=True)], [keyed(x=LONG)], "timers: it has 'of each key'"),
    "rules more": (
        [keyed(x=LONG)],
        [events().key_by("user").process(function(x=LONG), rules=shown(), rule_key="ad")],
        "rules: it has none",
    ),
    "the key of rules": (
        [events().key_by("user").process(function(x=LONG), rules=SIDE, rule_key="ad")],
        [events().key_by("user").process(function(x=LONG), rules=SIDE, rule_key="user")],
        "keys: it has",
    ),
    "in order": ([keyed(x=LONG)], [events().key_by("user").process(function(x=LONG), ordered=True)], "ordered: it has"),
    "a stage put in front": (
        [counted(events())],
        [counted(events().dedup("user", within="1 hour"))],
        "stages: it has '1 windows', the plan has '1 dedup, 2 windows'",
    ),
    "a stage put behind": (
        [counted(events())],
        [counted(events()).stream.key_by("user").top(1, by="n")],
        "the plan has '1 windows, 2 top'",
    ),
    "a stage taken away": (
        [counted(events().dedup("user", within="1 hour"))],
        [counted(events())],
        "stages: it has '1 dedup, 2 windows', the plan has '1 windows'",
    ),
    "a stage replaced": ([counted(events())], [keyed(x=LONG)], "stages: it has '1 windows', the plan has '1 process'"),
    "one of two replaced": (
        [HOT.dedup("user", within="1 s"), counted(COLD)],
        [HOT.key_by("ad").top(1, by="price"), counted(COLD)],
        "stages: it has '1 dedup, 2 windows', the plan has '1 top, 2 windows'",
    ),
    "a stage of its own in front": (
        [counted(HOT)],
        [counted(COLD), counted(HOT)],
        "the plan has '1 windows, 2 windows'",
    ),
    "two stages": ([counted(HOT), counted(COLD)], [counted(COLD), counted(HOT)], "does what stage 2"),
    "two stages that differ": (
        [counted(HOT), counted(COLD, most=ps.max("price"))],
        [counted(COLD, most=ps.max("price")), counted(HOT)],
        "in the order in which the checkpoint",
    ),
    "two sinks of two stages": (
        [HOT.dedup("user", within="1 s"), COLD.dedup("user", within="1 s")],
        [COLD.dedup("user", within="1 s"), HOT.dedup("user", within="1 s")],
        "does what stage 2",
    ),
    "the first of two taken away, and another put behind": (
        [counted(HOT), counted(COLD)],
        [counted(COLD), counted(HOT.where("price > 200"))],
        "stage 1, windows, does what stage 2",
    ),
    "two stages that read another's rows, each with a trigger of other numbers": (
        [fired(ps.count(2), stream=HOT), fired(ps.count(2), stream=COLD)],
        [fired(ps.count(3), stream=COLD), fired(ps.count(3), stream=HOT)],
        "stage 1, windows, does what stage 2",
    ),
    "two sides and the lateness of a join": (
        [joined(HOT, COLD)],
        [joined(COLD, HOT, lateness="1 hour")],
        "has its sides in another order",
    ),
    "one side for the other, which is another": (
        [joined(HOT, COLD)],
        [joined(COLD, events())],
        "has its sides in another order",
    ),
    "stages below others": (
        [counted(HOT.dedup("ad", within="1 s")), counted(COLD.dedup("ad", within="1 s"))],
        [counted(COLD.dedup("ad", within="1 s")), counted(HOT.dedup("ad", within="1 s"))],
        "does what stage 3",
    ),
    "two sources": ([joined(events(), SIDE)], [joined(SIDE, events())], "sources: it has"),
    "two sides of one source": ([joined(HOT, COLD)], [joined(COLD, HOT)], "has its sides in another order"),
    "two sides that are stages": (
        [counted(HOT), counted(COLD), joined(counted(HOT).stream, counted(COLD).stream)],
        [counted(HOT), counted(COLD), joined(counted(COLD).stream, counted(HOT).stream)],
        "inputs: it has 'left: 1 windows.panes; right: 2 windows.panes'",
    ),
    "what each side is made of": (
        [joined(events().union(SIDE), events(name="third"))],
        [joined(events(), SIDE.union(events(name="third")))],
        "inputs: it has 'left: clicks, others; right: third'",
    ),
    "a side's column renamed": (
        [joined(events(), SIDE)],
        [joined(events(), SIDE.select("ad", "user", "at", cost="price"))],
        "right: it has",
    ),
    "a column's place in rows that wait": (
        [matched(events("user string, price double, other double, at timestamp"))],
        [matched(events("user string, other double, price double, at timestamp"))],
        "events: it has",
    ),
    "a column more in rows that wait": ([matched()], [matched(events(f"{CLICKS}, more long"))], "events: it has"),
    "the type of what a match keeps": (
        [matched()],
        [matched(events(CLICKS.replace("double", "float")))],
        "events: it has",
    ),
    "a pattern's step": ([matched()], [matched(condition="price > 2")], "pattern: it has"),
    "a function that wants the match": (
        [matched(condition=lambda event: True)],
        [matched(condition=lambda event, match: True)],
        "functions: it has 'a of the event', the plan has 'a of the event and the match'",
    ),
    "the lateness of a match": (
        [matched()],
        [matched(lateness="1 hour")],
        "lateness: it has '0', the plan has '1 hour'",
    ),
    "windows of functions that merge": (
        [custom()],
        [custom(merge=whole)],
        "merging: it has 'false', the plan has 'true'",
    ),
    "early for late": (
        [fired(ps.at_watermark(early=IN_TWO))],
        [fired(ps.at_watermark(late=IN_TWO))],
        "trigger parts: it has",
    ),
    "when once": (
        [fired(ps.at_watermark(early=ps.when("n > 1", once=True) | ps.count(3)))],
        [fired(ps.at_watermark(early=ps.when("n > 1") | ps.count(3)))],
        "trigger parts: it has",
    ),
    "the order of top": (
        [events().key_by("ad").top(1, by="price")],
        [events().key_by("ad").top(1, by="price", best="least")],
        "kept: it has",
    ),
    "a column of dedup": ([events().dedup("user", within="1 s")], [events().dedup("ad", within="1 s")], "key: it has"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_what_would_mean_something_else_is_refused_and_named(change: str) -> None:
    before, after, words = CHANGES[change]
    assert words in refused(before, after)
    assert refused(before, before) == ""
    assert refused(after, after) == ""


ORDERED = {"a": LONG, "b": TEXT}
FINE: dict[str, tuple[Sequence[Any], Sequence[Any]]] = {
    "fields in another order": ([keyed(**ORDERED)], [keyed(**dict(reversed(ORDERED.items())))]),
    "how long an entry lasts": ([keyed(x=ps.value("long", ttl="1 s"))], [keyed(x=ps.value("long", ttl="1 hour"))]),
    "the class of a function": ([keyed(x=LONG)], [keyed(x=LONG, called="G")]),
    "timers more": ([keyed(x=LONG)], [keyed(x=LONG, timers=True)]),
    "the where of one of two": ([counted(HOT), counted(COLD)], [counted(HOT.where("price > 200")), counted(COLD)]),
    "the where of both": ([counted(HOT), counted(COLD)], [counted(HOT.where("price > 200")), counted(events())]),
    "the where of a side, as that of the other": ([joined(HOT, COLD)], [joined(COLD, COLD)]),
    "the where of a side": ([joined(HOT, COLD)], [joined(HOT, events())]),
    "two outputs of one stage": ([counted(HOT), counted(HOT)], [counted(HOT)]),
    "the lateness of a join": ([joined(HOT, SIDE)], [joined(HOT, SIDE, lateness="1 hour")]),
    "the horizon": ([events().dedup("user", within="1 s")], [events().dedup("user", within="1 hour", lateness="1 s")]),
    "rows as they are, which remember nothing": (
        [rows.write(ps.memory(n)).plan for n, rows in (("a", HOT), ("b", COLD))],
        [rows.write(ps.memory(n)).plan for n, rows in (("b", COLD), ("a", HOT))],
    ),
    "the numbers of a trigger": (
        [fired(ps.at_watermark(early=ps.count(2)))],
        [fired(ps.at_watermark(early=ps.count(3)))],
    ),
}


@pytest.mark.parametrize("change", FINE)
def test_what_means_the_same_goes_on(change: str) -> None:
    assert refused(*FINE[change]) == ""


@pytest.mark.parametrize("plan", WRITTEN_BEFORE)
def test_a_checkpoint_that_was_written_before_goes_on(plan: str) -> None:
    """What an older version wrote of these stages, which had fewer names; nothing that it wrote is called otherwise."""
    stages = everything()
    chosen = stages if plan == "all" else [stages[int("".join(sign for sign in plan if sign.isdigit())) - 1]]
    before, now = WRITTEN_BEFORE[plan], bound(*chosen)
    refuse_change("here", before, now)
    assert {name: now[name] for name in before} == before
    for name in before:
        with pytest.raises(CheckpointError):
            refuse_change("here", {**before, name: "something else"}, now)


def test_the_old_names_are_compared_whole_too() -> None:
    """A checkpoint of one stage has its names without a number, one of two with: neither hides the other."""
    single, several = WRITTEN_BEFORE["windows1"], WRITTEN_BEFORE["all"]
    for before, now in ((single, everything()), (several, everything()[:1])):
        with pytest.raises(CheckpointError, match="stages: it has"):
            refuse_change("here", before, bound(*now))


def test_sides_and_stages_are_told_apart_by_their_functions() -> None:
    def above(least: int) -> ps.Stream:
        return events().where(lambda row: row["price"] > least)

    assert "does what stage 2" in refused(
        [counted(above(1)), counted(above(2))], [counted(above(2)), counted(above(1))]
    )
    assert refused([counted(above(1)), counted(above(2))], [counted(above(1)), counted(above(2))]) == ""


def test_a_fingerprint_is_the_same_in_every_process_whatever_users_hand_in() -> None:
    class Model:
        def __init__(self, size: int) -> None:
            self.weights, self.me, self.seen = list(range(size)), self, {"b", "a"}

        def __call__(self, row: Any) -> Any:
            return row

        def judge(self, row: Any) -> Any:
            return row

    def of(function: Callable[[Any], Any]) -> str:
        return fingerprint_stage(counted(events().map(function)).plan)

    assert of(Model(3)) == of(Model(3)) != of(Model(4))
    assert of(Model(3).judge) == of(Model(3).judge) != of(Model(4).judge)
    assert of(partial(max, 1)) == of(partial(max, 1)) != of(partial(max, 2))
    assert of(Model(2 * MOST)) == of(Model(2 * MOST))
    deep = Model(0)
    for _ in range(MOST):
        deep.weights = [deep.weights]
    assert of(deep) == of(deep)


# The parts themselves, where a checkpoint has nothing to say of what has changed.

AT = "2026-01-01T12:00:00Z"


def moved(before: Any, after: Any) -> None:
    """Play a batch of one plan and then one of another, on what the first has stored."""
    script, other = Script(before, "columnar"), Script(after, "columnar")
    row = {"user": "ann", "ad": "x", "price": 2.0, "more": 1, "at": AT}

    def of(script: Script) -> dict[str, Any]:
        return {name: row[name] for name in script.flow.inputs[0].source.schema.names}

    script.batch([of(script)], watermark=AT)
    snapshot = script.run.snapshot()
    CACHE.clear()
    other.run.restore(snapshot)
    other.batch([of(other)], watermark="2026-01-01T12:00:01Z")
    other.batch([], watermark="2026-01-01T12:00:02Z")


PARTS = {
    "a field more": (keyed(x=LONG), keyed(x=LONG, y=LONG), "(int64)"),
    "a field less": (keyed(x=LONG, y=LONG), keyed(x=LONG), "(int64) (int64)"),
    "a field's type": (keyed(x=LONG), keyed(x=ps.value("double")), "keeps the key (string) and the columns (double)"),
    "a field's shape": (keyed(x=LONG), keyed(x=ps.items("long")), "(list<item: int64>)"),
    "a row that waits": (matched(), matched(events(f"{CLICKS}, more long")), "more int64"),
    "an aggregate": (fired(ps.count(3)), fired(ps.count(3), most=ps.max("price")), "(number, number)"),
    "rows of dedup": (
        events().dedup("user", within="1 s", keep="last"),
        events(f"{CLICKS}, more long").dedup("user", within="1 s", keep="last"),
        "int64",
    ),
}


@pytest.mark.parametrize("change", PARTS)
def test_a_part_that_does_not_fit_is_refused_with_what_differs(change: str) -> None:
    before, after, words = PARTS[change]
    moved(before, before)
    with pytest.raises(DataError, match="does not fit the plan") as raised:
        moved(before, after)
    assert words in raised.value.why
    assert "new checkpoint" in raised.value.instead


# Outputs that change places.


def piped(*outputs: tuple[ps.Panes, Any]) -> ps.Pipeline:
    return ps.pipeline("p", *(panes.write(sink) for panes, sink in outputs))


def table(name: str, **how: Any) -> Any:
    return ps.sqlite("a.db", table=name, **how)


GIVEN = {"p/panes/sqlite:hot": 3, "p/1.panes/sqlite:cold": 4}


@pytest.mark.parametrize("written", [GIVEN, *({name: batch} for name, batch in GIVEN.items())])
def test_outputs_that_have_changed_places_are_refused_whatever_is_said_of_a_takeover(written: dict[str, int]) -> None:
    hot, cold = (counted(HOT), table("hot", takeover=True)), (counted(COLD), table("cold", takeover=True))
    refuse_exchanged(piped(hot, cold), written)
    refuse_moved(piped(hot, cold), written)
    with pytest.raises(ForeignLineage, match="of this checkpoint") as raised:
        refuse_exchanged(piped(cold, hot), written)
    assert "takeover=True does not help" in raised.value.why
    assert "in the order that they had" in raised.value.instead


def test_outputs_that_are_no_others_are_not_refused() -> None:
    hot, cold = counted(HOT), counted(COLD)
    late = events().key_by("user").window(ps.tumbling("1 minute"), lateness="1 s").accumulating().aggregate(n=ps.rows())
    one_stage = ps.pipeline("p", late.late.write(table("late")), late.write(table("hot")))
    refuse_exchanged(one_stage, {"p/panes/sqlite:hot": 1, "p/late/sqlite:late": 2, "kept/late": 7})
    refuse_exchanged(piped((hot, ps.console()), (cold, table("cold"))), {"p/1.panes/console": 1})
    refuse_exchanged(piped((hot, table("new")), (cold, table("cold"))), GIVEN)
    alike = ps.files("hot/out"), ps.files("cold/out")
    refuse_exchanged(piped((hot, alike[0]), (cold, alike[1])), {"p/panes/files:out": 1, "p/1.panes/files:out": 1})
