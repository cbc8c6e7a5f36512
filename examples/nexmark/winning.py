"""The queries about the highest bid of each auction: a join with the time in which it is open, and then who wins."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import penstock as ps
from examples.nexmark.running import UPDATED
from examples.nexmark.site import AUCTION, Site

INSTANT = timedelta(microseconds=1)  # after the last moment at which a row may come


class Closing(ps.KeyedFunction):
    """The highest bid of an auction, of equal ones the first, told when the auction is over."""

    output = "id long, seller long, category long, price long"
    seller = ps.value("long")
    category = ps.value("long")
    price = ps.value("long")

    def on_event(self, event: Any, key: Any, context: Any) -> None:
        if self.price is None:
            self.seller, self.category, self.price = event["seller"], event["category"], event["price"]
            context.timer(event["expires"] + INSTANT)
        self.price = max(self.price, event["price"])

    def on_timer(self, timer: Any, key: Any, context: Any) -> None:
        context.emit(id=key, seller=self.seller, category=self.category, price=self.price)
        del self.seller, self.category, self.price


class LastOnes(ps.KeyedFunction):
    """The mean price of a seller's last sales, this one and the ten before it, in the order in which they end."""

    output = "seller long, avg_price double"
    sold = ps.items("long")
    waiting = ps.mapping("long", "long")

    def on_event(self, event: Any, key: Any, context: Any) -> None:
        self.waiting[event["id"]] = event["price"]
        context.timer(context.time + INSTANT)  # several may end at one moment: then they are told by their numbers

    def on_timer(self, timer: Any, key: Any, context: Any) -> None:
        for ident in sorted(self.waiting):
            last = [*self.sold, self.waiting[ident]]
            context.emit(seller=key, avg_price=sum(last) / len(last))
            self.sold = last[-10:]
        self.waiting.clear()


def q4(site: Site) -> ps.Panes:
    """What do auctions of each category end with, on average?"""
    closed = _in_time(site).key_by("id").process(Closing())
    by_category = closed.key_by("category").window(ps.global_window()).trigger(UPDATED).accumulating()
    return by_category.aggregate(final=ps.mean("price"))


def q6(site: Site) -> ps.Stream:
    """What did the last auctions of each seller end with, on average?"""
    closed = _in_time(site).key_by("id").process(Closing())
    return closed.key_by("seller").process(LastOnes(), ordered=True)


def q9(site: Site) -> ps.Panes:
    """Which bid wins each auction?"""
    bids = site.bids.select("auction", "bidder", "price", bid_date_time="date_time", bid_extra="extra")
    both = site.auctions.join(bids, on={"id": "auction"}, between=("0", "expires"))
    winners = both.key_by("id").window(ps.global_window()).trigger(UPDATED).accumulating()
    auction = {name: ps.first(name) for name in AUCTION[1:]}
    bid = {name: ps.arg_max(name, by="price") for name in ("bidder", "price", "bid_date_time", "bid_extra")}
    return winners.aggregate(**auction, **bid)


def _in_time(site: Site) -> ps.Rows:
    """Each bid with its auction, if it comes while that is open; both ends belong to it."""
    auctions = site.auctions.select("id", "seller", "category", "expires")
    bids = site.bids.select("auction", "price")
    return auctions.join(bids, on={"id": "auction"}, between=("0", "expires"))
