"""The queries whose answer stands at any time and changes with every bid: each change takes back what it replaces."""

from __future__ import annotations

import penstock as ps
from examples.nexmark.site import Site

UPDATED = ps.repeat(ps.count(1))  # every batch shows what it has changed
RANKS = {"total": None, "rank1": "price < 10000", "rank2": "price >= 10000 and price < 1000000",
         "rank3": "price >= 1000000"}  # fmt: skip


def q15(site: Site) -> ps.Panes:
    """How many bids, bidders and auctions are there on each day, in all and by how high the bids are?"""
    return _daily(site.bids).aggregate(**_ranked())


def q16(site: Site) -> ps.Panes:
    """The same for each channel."""
    return _daily(site.bids.key_by("channel")).aggregate(newest=ps.max("date_time"), **_ranked())


def q17(site: Site) -> ps.Panes:
    """What is bid for each auction on each day: how many bids, by how high they are, and the usual figures?"""
    figures = {"min_price": ps.min("price"), "max_price": ps.max("price"), "avg_price": ps.mean("price"),
               "sum_price": ps.sum("price")}  # fmt: skip
    bids = {f"{rank}_bids": ps.rows(where=where) for rank, where in RANKS.items()}
    return _daily(site.bids.key_by("auction")).aggregate(**bids, **figures)


def q18(site: Site) -> ps.Stream:
    """What was the last bid of each bidder for each auction?"""
    return site.bids.key_by("bidder", "auction").top(1, by="date_time")


def q19(site: Site) -> ps.Stream:
    """Which ten bids for each auction are the highest?"""
    return site.bids.key_by("auction").top(10, by="price")


def _daily(bids: ps.Stream) -> ps.Windowed:
    """Days of UTC, whose answers stand from the first bid on and are final when the day is over."""
    return bids.window(ps.calendar("day")).trigger(ps.at_watermark(early=ps.count(1))).accumulating()


def _ranked() -> dict[str, ps.Aggregate]:
    """Bids, different bidders and different auctions, of all prices and of each range of them."""
    made = {f"{rank}_bids": ps.rows(where=where) for rank, where in RANKS.items()}
    made |= {f"{rank}_bidders": ps.distinct("bidder", where=where) for rank, where in RANKS.items()}
    return made | {f"{rank}_auctions": ps.distinct("auction", where=where) for rank, where in RANKS.items()}
