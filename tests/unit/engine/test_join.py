"""Which rows meet, when one is padded, when it is let go, and which joins are refused: on both engines."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import penstock as ps
from penstock.engine.ingest.pre_aggregate import Rows
from penstock.engine.operators.join import JoinOperator
from penstock.engine.operators.join_bounds import left_reach, right_reach
from penstock.engine.windows.lifecycle import Clock
from penstock.errors import PlanError
from penstock.plan.operators.join import join_rule
from penstock.plan.operators.join_schema import on_columns
from penstock.plan.stages import Side
from penstock.reference.aggregates import Record
from penstock.reference.operators.join import JoinMachine
from penstock.types.schema import schema
from penstock.types.timestamps import MAX_TIME, parse
from tests.properties.joining import Both, Step

SHOWN = Side("impressions", schema("ad string, at timestamp"), ("ad",))
CLICKS = Side("clicks", schema("ad string, seen timestamp, who string"), ("ad",))
WITHIN = ("0", "5 minutes")


def impression(at: str, ad: str | None = "x", offset: int = 0) -> Record:
    return Record(parse(at), "imp/0", offset, {"ad": ad, "at": parse(at)})


def click(at: str, ad: str | None = "x", offset: int = 0, who: str = "ann") -> Record:
    return Record(parse(at), "clk/0", offset, {"ad": ad, "seen": parse(at), "who": who})


class Playing:
    """A join on both engines, told W and rows."""

    def __init__(self, **said: Any) -> None:
        self.both = Both(join_rule(**said), (SHOWN, CLICKS), JoinMachine, JoinOperator)

    def batch(self, lefts: list[Record], rights: list[Record], w: str | int = "-inf") -> list[dict[str, Any]]:
        self.outs = self.both.play(Step((lefts, rights), parse(w), restart=True))
        return [out.row for out in self.outs]

    @property
    def held(self) -> int:
        return self.both.machine.held()


@pytest.mark.parametrize("how", ["inner", "left", "right", "full", "semi", "anti"])
def test_worked_example_15(how: str) -> None:
    join = Playing(between=WITHIN, how=how)
    clicks = [click("10:03"), click("10:05:00", offset=1), click("10:05:01", offset=2), click("09:59", offset=3)]
    rows = join.batch([impression("10:00")], clicks)
    pairs = [(parse("10:00"), parse("10:03")), (parse("10:00"), parse("10:05:00"))]
    if how in ("semi", "anti"):
        assert len(rows) == (1 if how == "semi" else 0)
    else:
        assert [(row["at"], row["seen"]) for row in rows] == pairs
    join.batch([impression("10:20", offset=1)], [], w="10:06")
    assert join.batch([], [], w="10:25:00") == []
    rows = join.batch([], [], w="10:25:00.000001")
    alone = {"ad": "x", "at": parse("10:20")} | ({} if how == "anti" else {"seen": None, "who": None})
    assert rows == ([alone] if how in ("left", "full", "anti") else [])
    assert join.held == 0


def test_a_click_alone_is_padded_with_its_key_when_no_impression_can_come() -> None:
    join = Playing(between=WITHIN, how="right")
    assert join.batch([], [click("10:00")]) == []
    assert join.batch([], [], w="10:00") == []
    assert join.batch([], [], w="10:00:00.000001") == [{"ad": "x", "at": None, "seen": parse("10:00"), "who": "ann"}]
    assert join.outs[0].time == parse("10:00")


def test_an_exclusive_bound_is_ruled_out_one_microsecond_earlier() -> None:
    join = Playing(between=WITHIN, inclusive=(False, False), how="left")
    assert join.batch([impression("10:00")], [click("10:00"), click("10:05", offset=1)]) == []
    assert join.batch([], [], w="10:04:59.999999") == []
    assert len(join.batch([], [], w="10:05")) == 1


def test_the_event_time_is_the_later_of_the_two() -> None:
    join = Playing(between=("-5 minutes", "5 minutes"))
    join.batch([impression("10:00")], [click("09:58"), click("10:04", offset=1)])
    assert [out.time for out in join.outs] == [parse("10:00"), parse("10:04")]


def test_a_row_in_the_batch_that_would_rule_its_partner_out_still_matches() -> None:
    join = Playing(between=WITHIN, how="left", lateness="1 minute")
    join.batch([impression("10:00")], [])
    assert len(join.batch([], [click("10:05")], w="10:06")) == 1
    assert join.batch([], [], w="10:06:00.000001") == []
    assert join.held == 0


@pytest.mark.parametrize("high", ["5 minutes", "at"])
def test_what_w_has_ruled_out_cannot_match_a_row_that_is_not_late(high: str) -> None:
    rule, rng = join_rule(between=("-3 minutes", high), inclusive=(True, False)), np.random.default_rng(4)
    times = rng.integers(0, 10**9, 500)
    batch = pa.RecordBatch.from_arrays([pa.array(times + 7).cast(pa.timestamp("us", tz="UTC"))], names=["at"])
    left, right = left_reach(rule, batch, times), right_reach(rule, times)
    for bound in rng.integers(0, 2 * 10**9, 100):
        coming = rng.integers(bound, 3 * 10**9, 500)
        gone = left.until < bound
        assert not ((left.low[gone] <= coming[gone]) & (coming[gone] <= left.high[gone])).any()
        gone = right.until < bound
        shift = 3 * 60_000_000
        assert (coming[gone] - shift > times[gone]).all()


def test_a_late_row_is_not_joined_and_not_padded() -> None:
    join = Playing(between=WITHIN, how="full", lateness="1 minute")
    join.batch([impression("10:00")], [], w="10:01")
    rows = join.batch([impression("10:00:29", offset=1)], [click("10:00:30")], w="10:01:30")
    assert [row["at"] for row in rows] == [parse("10:00")]
    assert [(side, record.offset) for side, record in join.both.late] == [(0, 1)]
    assert join.batch([], [], w="+inf") == []


def test_null_keys_meet_nothing_and_are_padded_as_any_other() -> None:
    join = Playing(between=WITHIN, how="full")
    assert join.batch([impression("10:00", ad=None)], [click("10:00", ad=None)]) == []
    assert join.batch([], [], w="10:05") == [{"ad": None, "at": None, "seen": parse("10:00"), "who": "ann"}]
    assert join.batch([], [], w="10:05:01") == [{"ad": None, "at": parse("10:00"), "seen": None, "who": None}]


def test_null_keys_are_not_held_where_nothing_is_padded() -> None:
    join = Playing(between=WITHIN)
    join.batch([impression("10:00", ad=None)], [click("10:00", ad=None)])
    assert join.held == 0


def test_semi_gives_a_left_row_once_at_its_first_match() -> None:
    join = Playing(between=WITHIN, how="semi")
    assert join.batch([impression("10:00")], [click("10:04"), click("10:03", offset=1)]) == [
        {"ad": "x", "at": parse("10:00")}
    ]
    assert join.outs[0].time == parse("10:03")
    assert join.batch([], [click("10:02", offset=2)]) == []


def test_rows_of_one_window_meet_and_say_which() -> None:
    join = Playing(window=ps.tumbling("10 seconds"), how="left")
    rows = join.batch([impression("10:00:03"), impression("10:00:11", offset=1)], [click("10:00:09")])
    assert [(row["at"], row["window_start"], row["window_end"]) for row in rows] == [
        (parse("10:00:03"), parse("10:00:00"), parse("10:00:10"))
    ]
    rows = join.batch([], [], w="10:00:20")
    assert [(row["who"], row["window_start"]) for row in rows] == [(None, parse("10:00:10"))]
    assert join.held == 0


@pytest.mark.parametrize("how", ["semi", "anti"])
def test_rows_of_one_window_say_which_whatever_the_kind(how: str) -> None:
    join = Playing(window=ps.tumbling("10 seconds"), how=how)
    rows = join.batch([impression("10:00:03"), impression("10:00:11", offset=1)], [click("10:00:09")])
    rows += join.batch([], [], w="10:00:20")
    at, start, end = ("10:00:03", "10:00:00", "10:00:10") if how == "semi" else ("10:00:11", "10:00:10", "10:00:20")
    assert rows == [{"ad": "x", "at": parse(at), "window_start": parse(start), "window_end": parse(end)}]


def test_rows_of_one_day_meet_though_it_has_an_hour_less() -> None:
    join = Playing(window=ps.calendar("day", zone="Europe/Berlin"), how="left")
    first, last = "2026-03-28T23:00:00Z", "2026-03-29T21:59:59Z"
    clicks = [click(last), click("2026-03-29T22:00:00Z", offset=1)]
    rows = join.batch([impression(first), impression(last, offset=1)], clicks)
    assert [row["at"] for row in rows] == [parse(first), parse(last)]
    assert {(row["window_start"], row["window_end"]) for row in rows} == {(parse(first), parse("2026-03-29T22:00:00Z"))}
    assert join.held == 4
    join.batch([], [], w="2026-03-29T22:00:00Z")
    assert join.held == 1


def test_a_bound_may_be_a_column() -> None:
    auctions = Side("auctions", schema("id long, at timestamp, expires timestamp"), ("id",))
    bids = Side("bids", schema("auction long, bid_at timestamp"), ("auction",))
    rule = join_rule(between=("0", "expires"), how="left")
    assert rule.holds((auctions, bids))[0] == (
        "rows of auctions until W has passed the instant in its expires: bounded by the data"
    )
    assert "the data bounds the memory" in rule.check((auctions, bids))[0]
    pair = Both(rule, (auctions, bids), JoinMachine, JoinOperator)
    lefts = [
        Record(0, "a/0", 0, {"id": 1, "at": 0, "expires": 50}),
        Record(0, "a/0", 1, {"id": 1, "at": 0, "expires": None}),
    ]
    rights = [Record(t, "b/0", t, {"auction": 1, "bid_at": t}) for t in (0, 50, 51)]
    outs = pair.play(Step((lefts, rights), 0))
    assert [out.row["bid_at"] for out in outs] == [0, 50]
    # The auction without an end meets nothing: it is padded when W has passed its own time.
    assert [out.row["expires"] for out in pair.play(Step(([], []), 1))] == [None]
    assert pair.play(Step(([], []), 51)) == []
    assert pair.machine.held() == 1
    pair.play(Step(([], []), 52))
    assert pair.machine.held() == 0


def test_without_limits_rows_are_kept_until_the_end() -> None:
    join = Playing(between=None, keep="forever", how="left")
    join.batch([impression("10:00"), impression("10:00", ad="y", offset=1)], [])
    assert len(join.batch([], [click("12:00")], w="11:00")) == 1
    assert join.held == 3
    assert [row["ad"] for row in join.batch([], [], w="+inf")] == ["y"]
    assert join.held == 0


def test_hold_is_the_least_time_that_may_still_be_padded() -> None:
    join = Playing(between=WITHIN, how="left")
    given = join.both.machine.step(([impression("10:00"), impression("10:02", ad="y")], [click("10:03")]), 0, 0)
    assert given.hold == parse("10:02")
    inner = JoinMachine(join_rule(between=WITHIN), (SHOWN, CLICKS))
    assert inner.step(([impression("10:00")], []), 0, 0).hold == MAX_TIME


@pytest.mark.parametrize("how", ["inner", "full", "semi", "anti"])
def test_a_long_run_holds_no_more_than_its_horizon_needs(how: str) -> None:
    rng, operator = (
        np.random.default_rng(7),
        JoinOperator(join_rule(between=("0", "3 seconds"), how=how), (SHOWN, CLICKS)),
    )
    memory, held, runs = operator.start(), [], []
    for batch in range(120):
        arrivals = []
        for names in (("ad", "at"), ("ad", "seen", "who")):
            times = np.sort(rng.integers(batch * 10**6, (batch + 1) * 10**6, 200))
            columns = [
                pa.array(rng.integers(0, 50, 200)).cast(pa.string()),
                pa.array(times).cast(pa.timestamp("us", tz="UTC")),
            ]
            columns += [pa.array(["ann"] * 200)] * (len(names) - 2)
            offsets = np.arange(batch * 200, batch * 200 + 200)
            arrivals.append(Rows(pa.RecordBatch.from_arrays(columns, names=names), times, "s/0", offsets))
        memory = operator.step(memory, arrivals, Clock(batch * 10**6, 0)).memory
        held.append(operator.held(memory))
        runs.append(sum(map(len, memory.sides)))
    assert max(held[60:]) <= 1.2 * max(held[10:60])
    assert max(held) < 2_000
    assert max(runs) < 20


def test_a_hot_key_builds_no_more_pairs_than_it_gives() -> None:
    import tracemalloc

    n = 4_000
    operator = JoinOperator(join_rule(between=("0", "0"), how="semi"), (SHOWN, CLICKS))
    near = JoinOperator(join_rule(between=("0", "0")), (SHOWN, CLICKS))
    times = np.arange(n, dtype=np.int64)
    key, stamps = pa.array(["x"] * n), pa.array(times).cast(pa.timestamp("us", tz="UTC"))
    lefts = Rows(pa.RecordBatch.from_arrays([key, stamps], names=["ad", "at"]), times, "s/0", times)
    rights = Rows(pa.RecordBatch.from_arrays([key, stamps, key], names=["ad", "seen", "who"]), times, "t/0", times)
    for one in (operator, near):
        memory = one.step(one.start(), (lefts, rights.take(np.zeros(n, dtype=bool))), Clock(0, 0)).memory
        tracemalloc.start()
        made = one.step(memory, (lefts.take(np.zeros(n, dtype=bool)), rights), Clock(0, 0))
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert len(made.outputs["rows"].times) == n
        assert peak < 40 * 2**20  # all pairs would take 8 bytes * 16 million for each column


def test_names_of_columns() -> None:
    assert list(join_rule(between=WITHIN, prefix="click_").outputs((SHOWN, CLICKS))["rows"].names) == [
        "ad", "at", "click_seen", "click_who",
    ]  # fmt: skip
    assert on_columns(["a", "b"]) == (("a", "b"), ("a", "b"))


REFUSED: dict[str, tuple[dict[str, Any], str, str, str]] = {
    "kind": ({"how": "outer", "between": WITHIN}, "no kind 'outer'", "the kinds are", 'how="inner"'),
    "unbounded": ({}, "both sides for ever", "memory only grows", 'keep="forever"'),
    "low column": ({"between": ("at", "1 hour")}, "rows of the right for ever", "memory", 'keep="forever"'),
    "no end": ({"between": ("0", None)}, "rows of the left for ever", "memory", 'keep="forever"'),
    "keep": ({"between": WITHIN, "keep": "long"}, "keep='long'", "for ever", "between="),
    "kept for nothing": ({"between": WITHIN, "keep": "forever"}, "limits on both sides", "let go", "leave keep out"),
    "window and limits": ({"between": WITHIN, "window": ps.tumbling("1 hour")}, "a window and", "meet", "ps.tumbling"),
    "sliding": ({"window": ps.sliding("2 hours", "1 hour")}, "cannot meet", "overlap", 'ps.tumbling("1 hour")'),
    "session": ({"window": ps.session("1 hour")}, "cannot meet", "follow one another", "ps.tumbling"),
    "no pair": ({"between": "5 minutes"}, "between='5 minutes'", "a pair", '("0", "5 minutes")'),
    "inclusive": ({"between": WITHIN, "inclusive": True}, "inclusive=True", "a pair", "(True, False)"),
    "turned": ({"between": ("5 minutes", "0")}, "no time lies", "the least", "turn the two around"),
    "nothing between": ({"between": ("0", "0"), "inclusive": (True, False)}, "no time lies", "the least", "belong"),
    "no duration": ({"between": ("0", 5)}, "between is 5", "unit", "5 seconds"),
    "prefix": ({"between": WITHIN, "prefix": 3}, "prefix 3", "before the names", 'prefix="click_"'),
    "lateness": ({"between": WITHIN, "lateness": "-1 s"}, "negative", "shorter than nothing", 'lateness="0"'),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_a_join_that_cannot_be_right_is_refused(name: str) -> None:
    said, what, why, instead = REFUSED[name]
    with pytest.raises(PlanError) as refused:
        join_rule(**said)
    assert what in refused.value.what
    assert why in refused.value.why
    assert instead in refused.value.instead


TIMED = Side("clicks", schema("ad string, at timestamp"), ("ad",))
NUMBERED = Side("clicks", schema("ad long"), ("ad",))
MISSPELT = Side("clicks", schema("add string"), ("ad",))
WINDOWED = Side("windows", schema("ad string, window_end long"), ("ad",))
BY_WINDOW = {"between": None, "window": ps.tumbling("1 second")}
SIDES: dict[str, tuple[Side, Side, dict[str, Any], str, str, str]] = {
    "types": (SHOWN, NUMBERED, {}, "a string, with ad, a long", "different types", "cast(ad as string)"),
    "clash": (SHOWN, TIMED, {}, "two columns called 'at'", "both have one", 'prefix="clicks_"'),
    "unknown key": (SHOWN, MISSPELT, {}, "the column 'ad'", "its columns are", "did you mean 'add'"),
    "unknown limit": (SHOWN, CLICKS, {"between": ("0", "att")}, "column 'att'", "its columns are", "did you mean 'at'"),
    "limit of another type": (SHOWN, CLICKS, {"between": ("0", "ad")}, "'ad', a string", "an instant", "a timestamp"),
    "window column": (WINDOWED, CLICKS, BY_WINDOW, "'window_end'", "joined by window", "rename it"),
}


@pytest.mark.parametrize("name", SIDES)
def test_sides_that_do_not_fit_are_refused(name: str) -> None:
    left, right, said, what, why, instead = SIDES[name]
    with pytest.raises(PlanError) as refused:
        join_rule(**{"between": WITHIN, **said}).check((left, right))
    assert what in refused.value.what
    assert why in refused.value.why
    assert instead in refused.value.instead


@pytest.mark.parametrize("on", [None, 3, [1], {}, []])
def test_what_names_no_columns_is_refused(on: Any) -> None:
    with pytest.raises(PlanError):
        on_columns(on)


def test_the_rule_says_what_it_holds_and_what_binds() -> None:
    rule = join_rule(between=WITHIN, how="left", lateness="1 minute")
    assert rule.check((SHOWN, CLICKS)) == ()
    assert rule.holds((SHOWN, CLICKS)) == (
        "rows of impressions until W less 1 minute has passed its time + 5 minutes",
        "rows of clicks until W less 1 minute has passed its time",
        "a row of impressions that found no partner is given when it leaves, once",
    )
    assert rule.binding((SHOWN, CLICKS))["on"] == "ad = ad"
    forever = join_rule(keep="forever")
    assert ["for ever" in line for line in forever.check((SHOWN, CLICKS))] == [True, True]


@pytest.mark.parametrize(("said", "shown", "bound"), [
    ({}, "from 0 to 5 minutes after the left's", "from 0 to 5 minutes after the left's"),
    ({"between": ("0", "e")}, "from the left's to the instant in the left row's e", "from 0 to e after the left's"),
    ({"between": ("-1 minute", ps.col("e"))}, "from 1 minute before the left's to the instant in the left row's e",
     "from -1 minute to e after the left's"),
    ({"between": ("0", "e"), "inclusive": (False, False)},
     "from 1 microsecond after the left's to 1 microsecond before the instant in the left row's e",
     "from 1 microsecond to e -1 microsecond after the left's"),
    ({"between": ("s", None), "keep": "forever", "inclusive": (False, True)},
     "from 1 microsecond after the instant in the left row's s to no limit",
     "from s 1 microsecond to no limit after the left's"),
])  # fmt: skip
def test_a_limit_that_is_a_column_is_an_instant_and_binds_by_its_name(
    said: dict[str, Any], shown: str, bound: str
) -> None:
    rule = join_rule(**{"between": WITHIN, **said})
    assert str(rule) == f"inner join: right time {shown}"
    assert rule.binding((SHOWN, CLICKS))["reach"] == f"right time {bound}"


def test_an_exclusive_limit_that_is_a_column_is_held_a_microsecond_less() -> None:
    rule = join_rule(between=("0", "e"), inclusive=(True, False))
    assert "until W has passed the instant in its e - 1 microsecond: bounded" in rule.holds((SHOWN, CLICKS))[0]


@pytest.mark.parametrize("how", ["semi", "anti"])
def test_a_row_that_left_with_its_first_partner_does_not_come_back(how: str) -> None:
    join = Playing(between=WITHIN, how=how)
    join.batch([impression("10:00"), impression("10:00", "y", 1), impression("10:01", "z", 2)], [])
    assert len(join.batch([], [click("10:01")])) == (1 if how == "semi" else 0)
    assert join.batch([], [click("10:02", offset=1)]) == []
    assert [row["ad"] for row in join.batch([], [], w="+inf")] == ([] if how == "semi" else ["y", "z"])
