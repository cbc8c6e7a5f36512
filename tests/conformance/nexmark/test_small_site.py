"""Do the queries give RisingWave's rows for its 110 events, on every engine?"""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from typing import Any

import pytest

import penstock as ps
from examples.nexmark.queries import QUERIES
from examples.nexmark.running import UPDATED
from examples.nexmark.site import Site
from tests.conformance.nexmark.playing import cut, only, played, site, small_site, standing

EVENTS, EXPECTED = small_site()
INSTANT = timedelta(microseconds=1)


class Lowest(ps.KeyedFunction):
    """Of the bids for an auction the lowest, told when the auction is over; RisingWave's q6 takes it for the winner."""

    output = "seller long, price long, date_time timestamp"
    seller = ps.value("long")
    price = ps.value("long")
    bid_at = ps.value("timestamp")

    def on_event(self, event: Any, key: Any, context: Any) -> None:
        if self.price is None or event["price"] < self.price:
            self.seller, self.price, self.bid_at = event["seller"], event["price"], event["date_time"]
        context.timer(event["expires"] + INSTANT)

    def on_timer(self, timer: Any, key: Any, context: Any) -> None:
        context.emit(seller=self.seller, price=self.price, date_time=self.bid_at)


class AtTheEnd(ps.KeyedFunction):
    """Of each sale of a seller the mean of it and the ten before, by the time of the bid, when all are known."""

    output = "seller long, avg_price double"
    prices = ps.mapping("timestamp", "long")

    def on_event(self, event: Any, key: Any, context: Any) -> None:
        self.prices[event["date_time"]] = event["price"]
        context.timer("1 day")

    def on_timer(self, timer: Any, key: Any, context: Any) -> None:
        prices = [price for _, price in sorted(self.prices.items())]
        for place in range(len(prices)):
            last = prices[max(0, place - 10) : place + 1]
            context.emit(seller=key, avg_price=sum(last) / len(last))
        self.prices.clear()


def q2(site: Site) -> ps.Stream:
    """By a list of auctions."""
    return site.bids.where("auction in (1007, 1020, 2001, 2019, 2087)").select("auction", "price")


def q6(site: Site) -> ps.Stream:
    """The lowest bids, by the time of the bid."""
    auctions = site.auctions.select("id", "seller", "expires")
    bids = site.bids.select("auction", "price", "date_time")
    in_time = auctions.join(bids, on={"id": "auction"}, between=("0", "expires"))
    return in_time.key_by("id").process(Lowest()).key_by("seller").process(AtTheEnd())


def counted(site: Site) -> ps.Stream:
    """How many bids each auction that is there has, as it stands."""
    auctions = site.auctions.select("id", "item_name")
    met = auctions.join(site.bids.select("auction"), on={"id": "auction"}, keep="forever")
    counts = met.key_by("id", "item_name").window(ps.global_window()).trigger(UPDATED).retracting()
    return counts.aggregate(bid_count=ps.rows()).stream.select("id", "item_name", "bid_count", every="1")


def with_bids(site: Site) -> ps.Windowed:
    """Auctions with their bids, and those that have none once no bid can come."""
    bids = site.bids.select("auction", "price")
    met = site.auctions.select("id").join(bids, on={"id": "auction"}, keep="forever", how="left")
    return met.key_by("id").window(ps.global_window()).trigger(UPDATED)


def q101(site: Site) -> ps.Panes:
    """The highest bid of each auction, if there is one."""
    return with_bids(site).accumulating().aggregate(max_price=ps.max("price"))


def q102(site: Site) -> ps.Stream:
    """The auctions with at least as many bids as there are for one, on average."""
    bids = site.bids.window(ps.global_window()).trigger(UPDATED).retracting()
    bids_of_one = bids.aggregate(n=ps.rows(), auctions=ps.distinct("auction")).stream
    usual = bids_of_one.select(usual="cast(floor(n / auctions) as long)", each="1")
    compared = counted(site).join(usual, on={"every": "each"}, keep="forever")
    return compared.where("bid_count >= usual")


def q103(site: Site) -> ps.Stream:
    """The auctions with at least twenty bids."""
    bids = site.bids.key_by("auction").window(ps.global_window()).trigger(UPDATED).retracting()
    many = bids.aggregate(n=ps.rows()).stream.where("n >= 20").select("auction")
    return site.auctions.select("id", "item_name").join(many, on={"id": "auction"}, keep="forever")


def q104(site: Site) -> ps.Stream:
    """The auctions that are not among those with fewer than twenty bids."""
    counts = with_bids(site).retracting().aggregate(n=ps.count("price")).stream
    return counts.where("n = 0 or n >= 20").select("id")


def q105(site: Site) -> ps.Stream:
    """The auctions with the most bids."""
    return counted(site).key_by("every").top(1_000, by="bid_count")


def q106(site: Site) -> ps.Panes:
    """The least of the highest bids."""
    auctions = site.auctions.select("id", "expires")
    met = auctions.join(site.bids.select("auction", "price"), on={"id": "auction"}, between=("0", "expires"))
    highest = met.key_by("id").window(ps.global_window()).trigger(UPDATED).retracting().aggregate(final=ps.max("price"))
    least = highest.stream.window(ps.global_window()).trigger(UPDATED).accumulating()
    return least.aggregate(min_final=ps.min("final"))


VIEWS = {
    **QUERIES, "q2": q2, "q6": q6, "q101": q101, "q102": q102, "q103": q103, "q104": q104, "q105": q105, "q106": q106,
}  # fmt: skip


@pytest.mark.parametrize("query", list(EXPECTED))
def test_rows_are_those_that_are_published(query: str, engine: str) -> None:
    wanted = EXPECTED[query]
    for seed in range(3):
        script = played(VIEWS[query](site()), cut(EVENTS, seed), engine, restart=seed > 0)
        columns = list(wanted[0])
        assert only(standing(script), columns) == only(Counter(tuple(row.items()) for row in wanted), columns)
