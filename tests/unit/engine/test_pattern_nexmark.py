"""Nexmark's pattern queries, as docs/patterns.md writes them, beside what their SQL means worked out by hand."""

from __future__ import annotations

import random
from typing import Any

import pytest

from penstock.plan.operators.match import Match, match
from penstock.plan.operators.pattern import past_last, pattern, to_last, to_next
from penstock.plan.stages import Side
from penstock.reference.aggregates import Record
from penstock.types.durations import SECOND
from penstock.types.schema import schema
from penstock.types.timestamps import MAX_TIME
from tests.properties.matching import ByColumn, ByRow

BIDS = Side("bids", schema("auction long, bidder long, price long, at timestamp"), ("auction", "bidder"))
MACHINES = pytest.mark.parametrize("machine", [ByRow, ByColumn])
FALLING = (
    pattern("top")
    .next("down", "price < coalesce(down.price, top.price)").one_or_more().consecutive().greedy()
    .next("up", "price > down.price")
)  # fmt: skip
CHEAP = (
    pattern("a", "(coalesce(sum(a.price), 0) + price) / (count(a) + 1) < 10000")
    .one_or_more().consecutive().greedy()
    .next("b")
)  # fmt: skip
DROP = (
    pattern("a")
    .next("b", "price > a.price - 50").one_or_more().optional().consecutive().greedy()
    .next("c", "price < a.price - 50")
    .within("5 seconds")
)  # fmt: skip


def played(machine: Any, rule: Match, prices: list[int], times: list[int] | None = None) -> list[tuple[Any, ...]]:
    """The matches of one auction and bidder, without the key and the bounds."""
    rule.check([BIDS])
    made, rows = machine(rule, BIDS), []
    seconds = times or list(range(len(prices)))
    records = [Record(at * SECOND, "s/0", n, {"auction": 1, "bidder": 2, "price": price, "at": at * SECOND})
               for n, (price, at) in enumerate(zip(prices, seconds, strict=True))]  # fmt: skip
    watermark = -(2**63)
    for at in range(0, len(records), 4):
        rows.append(made.step(records[at : at + 4], watermark, restart=True))
        watermark = records[at : at + 4][-1].time
    rows.append(made.step([], MAX_TIME))
    return [tuple(eval(row)[0].values())[2:-2] for one in rows for found in one.rows.values() for row in found]


@MACHINES
def test_periods_of_a_falling_price(machine: Any) -> None:
    output = {"start": "top.at", "bottom": "down.at", "end": "up.at"}
    rule = match(FALLING, output=output, skip=to_last("up"), keep="forever")
    prices = [12, 17, 13, 11, 20, 24, 25, 19, 15, 14, 16]
    assert played(machine, rule, prices) == [
        (1 * SECOND, 3 * SECOND, 4 * SECOND),
        (6 * SECOND, 9 * SECOND, 10 * SECOND),
    ]


@MACHINES
def test_how_long_the_average_stays_low(machine: Any) -> None:
    output = {"start": "first(a.at)", "end": "a.at", "avg_price": "avg(a.price)"}
    prices = [5_000, 9_000, 30_000, 12_000, 8_000, 11_000, 40_000]
    past = match(CHEAP, output=output, skip=past_last(), keep="forever")
    assert played(machine, past, prices) == [(0, SECOND, 7_000.0), (4 * SECOND, 5 * SECOND, 9_500.0)]
    following = match(CHEAP, output=output, skip=to_next(), keep="forever")
    assert played(machine, following, prices) == [
        (0, SECOND, 7_000.0),
        (SECOND, SECOND, 9_000.0),
        (4 * SECOND, 5 * SECOND, 9_500.0),
    ]


@MACHINES
def test_a_price_drop_within_five_seconds(machine: Any) -> None:
    rule = match(DROP, output={"time": "c.at", "diff": "a.price - c.price"}, skip=past_last())
    assert played(machine, rule, [200, 190, 140, 100, 10]) == [(2 * SECOND, 60), (4 * SECOND, 90)]
    assert played(machine, rule, [200, 190, 140], [0, 1, 4]) == [(4 * SECOND, 60)]
    assert played(machine, rule, [200, 190, 140], [0, 1, 5]) == []


@MACHINES
def test_falling_periods_at_random_are_those_of_a_plain_loop(machine: Any) -> None:
    rule = match(FALLING, output={"start": "top.at", "end": "up.at"}, skip=to_last("up"), keep="forever")
    for seed in range(20):
        prices = random.Random(seed).choices(range(6), k=25)
        assert played(machine, rule, prices) == _falling(prices)


def _falling(prices: list[int]) -> list[tuple[int, int]]:
    """Every stretch that falls strictly and then rises, none of which begins before the one before has ended."""
    found, start = [], 0
    while start < len(prices):
        end = start + 1
        while end < len(prices) and prices[end] < prices[end - 1]:
            end += 1
        if end - start >= 2 and end < len(prices) and prices[end] > prices[end - 1]:
            found.append((start * SECOND, end * SECOND))
            start = end
        else:
            start += 1
    return found
