"""The pattern queries: what a bidder's prices for an auction do, one after the other."""

from __future__ import annotations

import penstock as ps
from examples.nexmark.site import Site

# SQL's PATTERN (A B+ C) is strict and takes as many as it can.
FALLING = (
    ps.pattern("top")
    .next("down", "price < coalesce(down.price, top.price)").one_or_more().consecutive().greedy()
    .next("up", "price > down.price")
)  # fmt: skip
CHEAP = (
    ps.pattern("a", "(coalesce(sum(a.price), 0) + price) / (count(a) + 1) < 10000")
    .one_or_more().consecutive().greedy()
    .next("b")
)  # fmt: skip
DROP = (
    ps.pattern("a")
    .next("b", "price > a.price - 50").one_or_more().optional().consecutive().greedy()
    .next("c", "price < a.price - 50")
    .within("5 seconds")
)  # fmt: skip
CHEAP_OUTPUT = {"start_tstamp": "first(a.date_time)", "end_tstamp": "a.date_time", "avg_price": "avg(a.price)"}


def cep0(site: Site) -> ps.Stream:
    """When did a price fall and rise again?"""
    output = {"start_tstamp": "top.date_time", "bottom_tstamp": "down.date_time", "end_tstamp": "up.date_time"}
    return _by_both(site).match(FALLING, output=output, skip=ps.to_last("up"), keep="forever")


def cep1(site: Site) -> ps.Stream:
    """How long does the average price stay below a hundred dollars?"""
    return _by_both(site).match(CHEAP, output=CHEAP_OUTPUT, skip=ps.past_last(), keep="forever")


def cep2(site: Site) -> ps.Stream:
    """The same, beginning anew with every bid."""
    return _by_both(site).match(CHEAP, output=CHEAP_OUTPUT, skip=ps.to_next(), keep="forever")


def cep3(site: Site) -> ps.Stream:
    """When did a price drop by more than fifty cents within five seconds?"""
    output = {"drop_time": "c.date_time", "drop_diff": "a.price - c.price"}
    return _by_both(site).match(DROP, output=output, skip=ps.past_last())


def _by_both(site: Site) -> ps.Stream:
    return site.bids.select("auction", "bidder", "price", "date_time").key_by("auction", "bidder")
