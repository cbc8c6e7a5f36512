"""Patterns: what is refused and why, what is said of them, and what becomes of bad input."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.errors import DataError, PlanError
from penstock.expressions.builder import call, col
from penstock.plan.operators.match import Match, match
from penstock.plan.operators.pattern import Pattern, no_skip, pattern, to_first, to_last
from penstock.plan.stages import Side
from penstock.reference.aggregates import Record
from penstock.types.schema import schema
from penstock.types.timestamps import MAX_TIME
from tests.properties.matching import ByColumn, ByRow

BIDS = Side("bids", schema("auction long, price long, kind string, at timestamp"), ("auction",))
TWO = pattern("high", "price > 5").then("low", "price < high.price").within("10 us")
MACHINES = pytest.mark.parametrize("machine", [ByRow, ByColumn])


def rule(asked: Pattern, **given: Any) -> Match:
    made = match(asked, **{"output": {"top": "max(high.price)"}, **given})
    made.check([BIDS])
    return made


def bid(time: int, price: int | None, offset: int | None = None, auction: int = 1, kind: str = "a") -> Record:
    row = {"auction": auction, "price": price, "kind": kind, "at": time}
    return Record(time, "s/0", time if offset is None else offset, row)


def shown(given: Any) -> list[tuple[Any, ...]]:
    """The values of all rows of a batch, without the key."""
    return [tuple(eval(row)[0].values())[1:] for rows in given.rows.values() for row in rows]


@pytest.mark.parametrize(
    ("make", "what", "instead"),
    [
        (lambda: pattern("a b"), "cannot be called", "plain word"),
        (lambda: TWO.next("high"), "two steps are called 'high'", "name of its own"),
        (lambda: TWO.times(0), "0 to 0 times", ".times(2)"),
        (lambda: TWO.times(3, 2), "3 to 2 times", ".times(2)"),
        (lambda: TWO.times(True), "True to True times", ".times(2)"),
        (lambda: TWO.without("n", "price = 1").one_or_more(), "negated step 'n'", "right after the step"),
        (lambda: TWO.without("n"), "'n' has no condition", "say what may not come"),
        (lambda: TWO.not_next("n"), "'n' has no condition", "say what may not come"),
        (lambda: TWO.within("0"), "not longer than nothing", "positive"),
        (lambda: match("a b", output={}), "is not a pattern", "ps.pattern"),
        (lambda: match(TWO, output={}, skip="past_last"), "skip is 'past_last'", "ps.past_last()"),
        (lambda: match(TWO), "output=None", 'output={"low": "low.price"'),
        (lambda: match(TWO, output="high.price"), "output='high.price'", 'output={"low": "low.price"'),
        (lambda: match(TWO, output=["high.price"]), "output=['high.price']", 'output={"low": "low.price"'),
        (lambda: match(TWO, output={5: "high.price"}), "output={5: 'high.price'}", 'output={"low": "low.price"'),
        (lambda: match(TWO, output={}, skip=to_first(5)), "ps.to_first was given 5", 'ps.to_first("high")'),
        (lambda: match(TWO, output={}, skip=to_last(None)), "ps.to_last was given None", 'ps.to_last("high")'),
        (lambda: match(TWO, output={}, timeouts="yes"), "timeouts is 'yes'", "timeouts=True"),
        (lambda: match(TWO, output={}, timeouts=0), "timeouts is 0", "leave it out"),
        (lambda: match(TWO, output={}, limit=0), "limit is 0", "limit=1_000"),
        (lambda: match(TWO, output={}, keep="always"), "keep is 'always'", 'keep="forever"'),
        (lambda: rule(pattern("high").next("low")), "can match for ever: high next low", '.within("5 minutes")'),
        (lambda: rule(pattern("high").one_or_more()), "can match for ever: high+", '.within("5 minutes")'),
        (lambda: rule(TWO, keep="forever"), 'asked to keep="forever"', "leave one"),
        (lambda: rule(pattern("high").next("x"), keep="forever", timeouts=True), "without within", ".within("),
        (lambda: rule(TWO.not_next("n", "price = 1")), "ends with .not_next('n')", ".without('n'"),
        (
            lambda: rule(pattern("high").without("n", "price = 1"), keep="forever"),
            "ends with .without('n')",
            '.within("5 minutes")',
        ),
        (lambda: rule(pattern("high").optional().within("1 s")), "every step may be lacking", ".optional()"),
        (lambda: rule(TWO.one_or_more().greedy()), "'low' is greedy", "must come"),
        (
            lambda: rule(pattern("high").one_or_more().greedy().allow_combinations().next("low").within("1 s")),
            "'high' is greedy and allows combinations",
            "leave out .greedy()",
        ),
        (lambda: rule(TWO, skip=to_last("hihg")), "takes no event", "did you mean 'high'?"),
        (lambda: rule(TWO.next("x", "price > higg.price")), "no step 'higg'", "did you mean 'high'?"),
        (lambda: rule(TWO.next("x", "price > high.prize")), "names the column 'prize'", "did you mean 'price'?"),
        (lambda: rule(TWO.next("x", "price")), "gives a long", "price > 0"),
        (lambda: rule(pattern("high", "price > low.price").next("low").within("1 s")), "no events then", "high"),
        (lambda: rule(TWO.next("x", "sum(price) > 3")), "has sum(price)", "sum(high.price)"),
        (lambda: rule(TWO.next("x", "count(3) > 3")), "has count(3)", "count(high)"),
        (lambda: rule(TWO.next("x", "sum(high.kind) > 3")), "a string in sum(high.kind)", "cast(kind as double)"),
        (lambda: rule(TWO.next("x", lambda a, b, c: True)), "takes 3 arguments", "lambda event"),
        (lambda: rule(TWO, output={"top": "price"}), "the column 'price' of no step", "low.price"),
        (lambda: rule(TWO, output={"top": "prize"}), "names the column 'prize'", "did you mean 'price'?"),
        (lambda: rule(TWO, output={"auction": "1"}), "'auction' is there twice", "name of its own"),
        (lambda: rule(TWO, lateness="-1 s"), "negative", "lateness"),
    ],
)
def test_what_cannot_be_right_is_refused(make: Any, what: str, instead: str) -> None:
    with pytest.raises(PlanError) as refused:
        make()
    assert what in refused.value.what
    assert refused.value.why
    assert instead in refused.value.instead


def test_sixty_steps_are_enough() -> None:
    asked = pattern("s0")
    for n in range(1, 60):
        asked = asked.next(f"s{n}")
    with pytest.raises(PlanError, match="more than 60 steps"):
        asked.next("s60")


def test_a_single_event_needs_no_within() -> None:
    assert rule(pattern("high", "price > 5")).check([BIDS]) == ()
    assert "grows with the keys" in rule(pattern("high").next("x"), keep="forever").check([BIDS])[0]


def test_what_is_kept_is_said() -> None:
    assert rule(TWO, lateness="2 s").holds([BIDS]) == (
        "events, until W - 2 seconds has passed them, to be put in order",
        "partial matches, until W - 2 seconds is 10 microseconds past their first event",
        "matches, until each partial match that began earlier is given or over",
        "at most 1,000 partial matches of a key, with matches that wait, or the run stops",
    )
    assert rule(TWO, skip=no_skip()).holds([BIDS])[-2:] == (
        "partial matches, until W is 10 microseconds past their first event",
        "at most 1,000 partial matches of a key, or the run stops",
    )
    assert len(rule(pattern("high", "price > 5")).holds([BIDS])) == 2
    assert rule(TWO).binding([BIDS]) == {
        "pattern": "high (price > 5) then low (price < high.price) within 10 microseconds",
        "output": "top = max(high.price)",
        "skip": "past_last",
        "events": "auction long, price long, kind string, at timestamp",
        "lateness": "0",
    }


def test_the_outputs_are_typed() -> None:
    asked = rule(TWO, timeouts=True, output={"n": "count(high)", "mean": "avg(low.price)", "when": "first(high.at)"})
    made = asked.outputs([BIDS])
    assert list(made) == ["rows", "timeouts"]
    assert str(made["rows"]) == (
        "auction long, n long, mean double, when timestamp, match_start timestamp, match_end timestamp"
    )
    assert made["timeouts"] == made["rows"]


@MACHINES
@pytest.mark.parametrize(
    "condition",
    [
        "price < last(high.price)",
        col("price") < call("last", col("high.price")),
        col("price") < col("high.price"),
        lambda event, match: event["price"] < match["high"][-1]["price"],
    ],
)
def test_a_condition_may_look_back_in_every_writing(machine: Any, condition: Any) -> None:
    played = machine(
        rule(pattern("high", lambda event: event["price"] > 5).then("low", condition).within("9 us")), BIDS
    )
    played.step([bid(1, 7), bid(2, 8), bid(3, 6)], 0)
    assert shown(played.step([], MAX_TIME)) == [(7, 1, 3)]


@MACHINES
def test_out_of_order_events_are_put_in_order(machine: Any) -> None:
    played = machine(rule(TWO), BIDS)
    assert played.step([bid(5, 3, offset=0), bid(2, 9, offset=1)], 0).rows == {}
    assert shown(played.step([bid(3, 4, offset=2)], 1)) == []
    given = played.step([bid(2, 1, offset=3)], 4)
    assert shown(given) == [(9, 2, 3)]
    assert len(given.late) == 1


@MACHINES
def test_lateness_makes_events_wait_longer(machine: Any) -> None:
    played = machine(rule(TWO, lateness="2 us"), BIDS)
    assert played.step([bid(5, 3, offset=0), bid(2, 9, offset=1)], 4).hold == 2
    given = played.step([bid(3, 4, offset=2), bid(2, 7, offset=3)], 5)
    assert (shown(given), len(given.late)) == ([], 1)
    assert shown(played.step([], 6)) == [(9, 2, 3)]


@MACHINES
def test_a_time_out_has_nulls_where_a_step_is_missing(machine: Any) -> None:
    asked = rule(TWO, timeouts=True, output={"top": "high.price", "low": "low.price", "n": "count(low)"})
    played = machine(asked, BIDS)
    played.step([bid(1, 7)], 0)
    assert shown(played.step([], 10)) == []
    given = played.step([], 11)
    assert shown(given) == [(7, None, 0, 1, 1)]
    assert "11)" in given.rows["timeouts", "[1]"][0]


@MACHINES
def test_a_condition_that_throws_quarantines_the_event_alone(machine: Any) -> None:
    asked = pattern("high", "12 / price > 1").then("low", "6 / (high.price - price) > 1").within("9 us")
    played = machine(rule(asked), BIDS)
    given = played.step([bid(1, 0), bid(2, 8)], 0)
    assert len(given.bad) == 1
    assert "division by zero" in given.bad[0]
    played.step([bid(3, 8), bid(4, 7)], 1)
    given = played.step([], 9)
    assert shown(given) == [(8, 2, 4)]
    assert len(given.bad) == 1
    assert "'match'" in given.bad[0]


@MACHINES
def test_an_output_that_throws_stops_the_run(machine: Any) -> None:
    played = machine(rule(TWO, output={"share": "1 / (low.price - 3)"}), BIDS)
    played.step([bid(1, 7), bid(2, 3)], 0)
    with pytest.raises(DataError, match="the output of a match cannot be computed: division by zero"):
        played.step([], 9)


@MACHINES
def test_a_sum_beyond_64_bits_is_no_number(machine: Any) -> None:
    played = machine(rule(pattern("high").times(2).within("9 us"), output={"sum": "sum(high.price)"}), BIDS)
    played.step([bid(1, 2**62), bid(2, 2**62)], 0)
    with pytest.raises(DataError, match=r"overflow in sum\(high.price\)"):
        played.step([], 9)


@MACHINES
def test_too_many_partial_matches_stop_the_run(machine: Any) -> None:
    asked = pattern("high", "price > 5").then_any("low", "price < 5").then("end", "price = 5").within("1 hour")
    played = machine(rule(asked, limit=10, skip=no_skip()), BIDS)
    played.step([bid(n, 9 if n < 3 else 1) for n in range(8)], 0)
    with pytest.raises(DataError) as stopped:
        played.step([], 9)
    assert "the key (1,) has more than 10 partial matches of: high (price > 5)" in stopped.value.what
    assert "raise limit=" in stopped.value.instead


@MACHINES
def test_what_is_held_does_not_grow(machine: Any) -> None:
    asked = (
        pattern("high", "price > 5").one_or_more().without("n", "price = 1").then("low", "price < 3").within("20 us")
    )
    played = machine(rule(asked, timeouts=True, skip=no_skip()), BIDS)
    held = []
    for n in range(60):
        batch = [bid(10 * n + k, (7 * n + 3 * k) % 11, offset=10 * n + k, auction=n + k % 2) for k in range(10)]
        held.append(played.step(batch, 10 * n - 5, restart=n % 7 == 0).held)
    assert max(held[30:]) <= max(held[5:30]) + 5
    assert played.step([], MAX_TIME).held == 0


def test_of_a_long_match_no_events_are_kept() -> None:
    long = pattern("high", "price = 7 or (price > 0 and count(high) > 0)").one_or_more().consecutive().greedy()
    asked = rule(long.next("low", "price = 0").within("1 hour"), output={"n": "count(high)", "sum": "sum(high.price)"})
    sizes, played = [], ByColumn(asked, BIDS)
    for n in range(0, 2_000, 500):
        played.step([bid(at, 1 if at else 7) for at in range(n, n + 500)], n)
        assert played.step([], n + 500).held == 1
        sizes.append(sum(map(len, played.engine.saved(played.memory).parts.values())))
    assert max(sizes) - min(sizes) < 64
    played.step([bid(2_000, 0)], 2_000)
    assert shown(played.step([], 2_001)) == [(2_000, 2_006, 0, 2_000)]


def test_a_batch_writes_what_it_touched() -> None:
    played = ByColumn(rule(TWO), BIDS)
    records = [bid(5, 9, offset=n, auction=n) for n in range(20_000)]
    played.step(records, 0)
    played.step([], 6)
    first = played.engine.saved(played.memory)
    played.step([bid(7, 2, offset=20_000, auction=77)], 6)
    played.step([], 8)
    second = played.engine.saved(played.memory, first.parts)
    assert len(second.parts) == 1
    assert sum(map(len, second.parts.values())) < sum(map(len, first.parts.values())) / 3
