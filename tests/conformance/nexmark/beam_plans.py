"""Nexmark's queries as Beam defines them, where that is other than their SQL, for its published numbers of results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import penstock as ps
from examples.nexmark.site import Site

# Beam's sessions and windows do not hold their last instant; ours of a session do.
GAP = "9999999 us"


class Winning(ps.KeyedFunction):
    """The winning bid of an auction: the highest, of equal ones the first; told when the auction expires."""

    output = "id long, seller long, category long, price long, date_time timestamp"
    seller = ps.value("long")
    category = ps.value("long")
    price = ps.value("long")
    bid_at = ps.value("timestamp")

    def on_event(self, event: Any, key: Any, context: Any) -> None:
        if self.price is None:
            self.seller, self.category = event["seller"], event["category"]
            context.timer(event["expires"])
        better = self.price is None or event["price"] > self.price
        if better or (event["price"] == self.price and event["date_time"] < self.bid_at):
            self.price, self.bid_at = event["price"], event["date_time"]

    def on_timer(self, timer: Any, key: Any, context: Any) -> None:
        context.emit(id=key, seller=self.seller, category=self.category, price=self.price, date_time=self.bid_at)
        del self.seller, self.category, self.price, self.bid_at


class MovingMean(ps.KeyedFunction):
    """The mean of a seller's last ten winning bids, after each."""

    output = "seller long, price double"
    prices = ps.mapping("timestamp", "long")

    def on_event(self, event: Any, key: Any, context: Any) -> None:
        self.prices[event["date_time"]] = event["price"]
        for time in sorted(self.prices)[:-10]:
            del self.prices[time]
        context.emit(seller=key, price=sum(self.prices.values()) / len(self.prices))


def winning_bids(site: Site) -> ps.Rows:
    """Bids that reach the reserve before the auction expires; one that comes before its auction counts, too."""
    auctions = site.auctions.select("id", "seller", "category", "expires", "reserve")
    bids = site.bids.select("auction", "price", "date_time")
    met = auctions.join(bids, on={"id": "auction"}, between=(None, "expires"), inclusive=(True, False), keep="forever")
    return met.where("price >= reserve").key_by("id").process(Winning())


def q0(site: Site) -> ps.Stream:
    """All events."""
    return site.timed


def q1(site: Site) -> ps.Stream:
    """Whole cents."""
    return site.bids.select("auction", "bidder", price="floor(price * 89 / 100)")


def q2(site: Site) -> ps.Stream:
    """As in SQL."""
    return site.bids.where("auction % 123 = 0").select("auction", "price")


def q3(site: Site) -> ps.Stream:
    """What waits is let go after ten minutes."""
    auctions = site.auctions.where("category = 10").select("id", "seller")
    people = site.people.where("state in ('OR', 'ID', 'CA')").select("name", "city", "state", person="id")
    return auctions.join(people, on={"seller": "person"}, between=("-600 s", "600 s"))


def q4(site: Site) -> ps.Panes:
    """Winning bids have the last millisecond of their auction; so windows begin one later."""
    windows = ps.sliding("10 seconds", every="5 seconds", offset="1 ms")
    return winning_bids(site).key_by("category").window(windows).aggregate(price=ps.mean("price"))


def q5(site: Site) -> ps.Stream:
    """Asked every five seconds."""
    hops = site.bids.key_by("auction").window(ps.sliding("10 seconds", every="5 seconds")).aggregate(num=ps.rows())
    counts = hops.stream.select("auction", "num", hop_end="window_end")
    most = counts.key_by("hop_end").window(ps.tumbling("5 seconds")).aggregate(maxn=ps.max("num"))
    return counts.join(most.stream.select("hop_end", "maxn"), on={"hop_end": "hop_end", "num": "maxn"},
                       between=("0", "0"))  # fmt: skip


def q6(site: Site) -> ps.Stream:
    """A result for each winning bid."""
    return winning_bids(site).key_by("seller").process(MovingMean())


def q6_ends(site: Site) -> ps.Panes:
    """Beam shows each seller once more when the global window ends."""
    return winning_bids(site).key_by("seller").window(ps.global_window()).trigger(ps.never()).aggregate(n=ps.rows())


def q7(site: Site) -> ps.Stream:
    """Bids of the window alone, without its end."""
    highest = site.bids.window(ps.tumbling("10 seconds")).aggregate(maxprice=ps.max("price"))
    return highest.stream.select("maxprice").join(site.bids, on={"maxprice": "price"}, between=("-9999999 us", "0"))


def q8(site: Site) -> ps.Stream:
    """One for each auction."""
    auctions = site.auctions.select("seller", "reserve")
    return site.people.select("id", "name").join(auctions, on={"id": "seller"}, window=ps.tumbling("10 seconds"))


def q11(site: Site) -> ps.Panes:
    """Sessions shown in pieces of 100,000."""
    sessions = site.bids.key_by("bidder").window(ps.session(GAP), lateness="1 second")
    return sessions.trigger(ps.repeat(ps.count(100_000))).discarding().aggregate(bids=ps.rows())


def q12(site: Site) -> ps.Panes:
    """Ten seconds after the first bid that was not shown."""
    forever = site.arriving_bids.key_by("bidder").window(ps.global_window())
    return forever.trigger(ps.repeat(ps.after("10 seconds"))).discarding().aggregate(bids=ps.rows())


PLANS: dict[str, Callable[[Site], ps.Stream | ps.Panes]] = {
    "q0": q0, "q1": q1, "q2": q2, "q3": q3, "q4": q4, "q5": q5, "q6": q6, "q6_ends": q6_ends, "q7": q7, "q8": q8,
    "q9": winning_bids, "q11": q11, "q12": q12,
}  # fmt: skip
