"""The queries about the highest bid of each auction: a join with the time in which it is open, and then the best."""

from __future__ import annotations

import penstock as ps
from examples.nexmark.running import UPDATED
from examples.nexmark.site import Site


def q4(site: Site) -> ps.Panes:
    """What do auctions of each category end with, on average?"""
    highest = _highest(site).select("category", "price")
    by_category = highest.key_by("category").window(ps.global_window()).trigger(UPDATED).accumulating()
    return by_category.aggregate(final=ps.mean("price"))


def q6(site: Site) -> ps.Panes:
    """What did the last auctions of each seller end with, on average?"""
    highest = _highest(site).select("seller", "price", "date_time")
    # The current one and the ten before it, in order of the bids: the rows of the SQL's window.
    last = highest.key_by("seller").top(11, by="date_time")
    by_seller = last.key_by("seller").window(ps.global_window()).trigger(UPDATED).accumulating()
    return by_seller.aggregate(avg_price=ps.mean("price"))


def q9(site: Site) -> ps.Stream:
    """Which bid wins each auction?"""
    bids = site.bids.select("auction", "bidder", "price", bid_date_time="date_time", bid_extra="extra")
    both = site.auctions.join(bids, on={"id": "auction"}, between=("0", "expires"))
    return both.key_by("id").top(1, by="price")


def _highest(site: Site) -> ps.Stream:
    """The highest bid of each auction, of equal ones the first, among those that came while it was open."""
    auctions = site.auctions.select("id", "seller", "category", "expires")
    bids = site.bids.select("auction", "price", "date_time")
    return auctions.join(bids, on={"id": "auction"}, between=("0", "expires")).key_by("id").top(1, by="price")
