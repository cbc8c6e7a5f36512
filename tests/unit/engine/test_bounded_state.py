"""Does a long run hold no more than its horizons need? Stage by stage, on both engines, while keys come and go."""

from __future__ import annotations

import pickle
import random
from collections.abc import Callable
from typing import Any

import pytest

import penstock as ps
from penstock.testing import Script

BATCHES = 80
GROWN = 1.4  # what grows with the stream is twice as much after twice as many batches


class Brief(ps.KeyedFunction):
    """State of each kind that the processing clock lets go, and a timer of its after each event."""

    output = "k string, n long"
    seen = ps.value("long", default=0, ttl="25 us", ttl_by="processing")
    values = ps.items("long", ttl="25 us", ttl_by="processing")
    times = ps.mapping("long", "long", ttl="25 us", ttl_by="processing")

    def on_event(self, event: Any, key: Any, context: Any) -> None:
        self.seen += 1
        self.values.append(event["v"])
        self.times[event["v"]] = self.seen
        context.timer("30 us", str(event["v"]), kind="processing")

    def on_timer(self, timer: Any, key: Any, context: Any) -> None:
        context.emit(k=key, n=self.seen)


class Waking(Brief):
    """The timers alone: each key is woken once by the processing clock."""

    def on_event(self, event: Any, key: Any, context: Any) -> None:
        context.timer("30 us", kind="processing")


def source(name: str, time: str = "at") -> ps.Stream:
    columns = ps.events(f"k string, v long, until timestamp, {time} long", name=name)
    return columns.event_time(time, unit="us", watermark=ps.bounded("5 us", max_skew=None))


def joined(left: ps.Stream | None = None, how: Any = "inner", **said: Any) -> ps.Rows:
    right = source("two", "then").select("k", "then", w="v")
    return (source("one") if left is None else left).join(right, on="k", how=how, **said)


def corrected() -> ps.Stream:
    """Windows that take back what they have shown."""
    windows = source("one").key_by("k").window(ps.tumbling("10 us"), lateness="10 us")
    shown = windows.trigger(ps.at_watermark(early=ps.count(1), late=ps.count(1))).retracting()
    return shown.aggregate(n=ps.rows(), v=ps.sum("v")).stream.select("k", "n", "v")


def matched(skip: Any, **said: Any) -> ps.Rows:
    """Falling after rising prices: several events may begin, and each may end, more than one match."""
    rise = ps.pattern("low", "v < 5").then("mid", "v > low.v").one_or_more().then("high", "v > mid.v").within("15 us")
    return source("one").key_by("k").match(rise, output={"low": "low.v", "high": "high.v"}, skip=skip, **said)


HOWS = ("inner", "left", "right", "full", "semi", "anti")
STAGES: dict[str, Callable[[], ps.Rows]] = {
    **{f"{how} join in one window": lambda how=how: joined(how=how, window=ps.tumbling("8 us")) for how in HOWS},
    **{f"{how} join up to a column": lambda how=how: joined(how=how, between=("-4 us", "until")) for how in HOWS},
    "state by the processing clock": lambda: source("one").key_by("k").process(Brief()),
    "state by the processing clock, in order": lambda: source("one").key_by("k").process(Brief(), ordered=True),
    "timers of the processing clock": lambda: source("one").key_by("k").process(Waking()),
    "match, to the next": lambda: matched(ps.to_next()),
    "match, past the last": lambda: matched(ps.past_last(), timeouts=True),
    "match, to the first of a step": lambda: matched(ps.to_first("mid"), timeouts=True),
    "match, to the last of a step": lambda: matched(ps.to_last("mid")),
    "join over withdrawals": lambda: joined(corrected(), between=("-4 us", "6 us")),
    "join over withdrawals in one window": lambda: joined(corrected(), window=ps.tumbling("20 us")),
    "join over withdrawals on both sides": lambda: corrected().join(
        corrected().select("k", m="n"), on="k", between=("0", "10 us")),
}  # fmt: skip


def rows_of(batch: int, several: bool) -> list[dict[str, Any]]:
    """Two keys that were not there two batches ago; each row a little out of order, and some late."""
    drawn, rows = random.Random(batch), []
    for n in range(12):
        at = 10 * batch + drawn.randrange(10) - (8 if n == 11 else 0)
        two = several and n % 2 == 1
        row = {"k": f"{at // 20}-{drawn.randrange(2)}", "v": drawn.randrange(9), "until": at + drawn.randrange(12)}
        rows.append(row | ({"@source": "two", "then": at} if two else {"at": at}))
    return rows


def sizes(stage: ps.Rows, engine: str) -> tuple[Script, list[tuple[int, int]]]:
    """What is held after each batch: rows, entries and timers, and bytes of the snapshot, dead ones among them."""
    script, held = Script(stage, engine), []
    several = len(script.flow.inputs) > 1
    for batch in range(BATCHES):
        script.batch(rows_of(batch, several), now=1_000 + 10 * batch)
        if batch % 7 == 6:
            script.restart()
        held.append((script.run.open_windows(), len(pickle.dumps(script.run.snapshot()))))
    return script, held


def growth(counted: tuple[int, ...]) -> float:
    """The most of the second half of a run, by the most of its first half."""
    return max(counted[BATCHES // 2 :]) / max(counted[: BATCHES // 2])


@pytest.mark.parametrize("name", STAGES)
def test_a_long_run_holds_no_more_than_its_horizons_need(name: str, engine: str) -> None:
    script, held = sizes(STAGES[name](), engine)
    assert script.rows
    assert all(rows for rows, _ in held[BATCHES // 2 :])
    for counted in zip(*held, strict=True):
        assert growth(counted) < GROWN, counted
    script.end(now=10_000)
    script.advance(20_000)
    assert script.run.open_windows() == 0


@pytest.mark.parametrize("name", ["unbounded join", "match for ever"])
def test_what_is_kept_for_ever_is_seen_to_grow(name: str, engine: str) -> None:
    """So that the bounds above mean something."""
    for_ever = ps.pattern("low", "v < 5").then("high", "v > 99")
    stage = joined(keep="forever") if name == "unbounded join" else source("one").key_by("k").match(
        for_ever, output={"low": "low.v"}, keep="forever")  # fmt: skip
    _, held = sizes(stage, engine)
    for counted in zip(*held, strict=True):
        assert growth(counted) > GROWN, counted
