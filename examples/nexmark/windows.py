"""The queries that ask of a stretch of time: sliding, tumbling and session windows, and joins of what they give."""

from __future__ import annotations

import penstock as ps
from examples.nexmark.site import Site


def q5(site: Site) -> ps.Stream:
    """Which auctions had the most bids of the last ten seconds? Asked every two seconds."""
    hops = site.bids.key_by("auction").window(ps.sliding("10 seconds", every="2 seconds")).aggregate(num=ps.rows())
    counts = hops.stream.select("auction", "num", hop_end="window_end")
    # The panes of one hop have one event time, its last instant, and lie alone in the two seconds that end with it.
    most = counts.key_by("hop_end").window(ps.tumbling("2 seconds")).aggregate(maxn=ps.max("num"))
    hottest = counts.join(most.stream.select("hop_end", "maxn"), on={"hop_end": "hop_end", "num": "maxn"},
                          between=("0", "0"))  # fmt: skip
    return hottest.select("auction", "num", "hop_end")


def q7(site: Site) -> ps.Stream:
    """Which bids were the highest of each ten seconds?"""
    highest = site.bids.window(ps.tumbling("10 seconds")).aggregate(maxprice=ps.max("price"))
    # The highest price has the event time of its window's last instant; the SQL takes bids up to the window's end.
    found = highest.stream.select("maxprice").join(site.bids, on={"maxprice": "price"},
                                                   between=("-9999999 us", "1 us"))  # fmt: skip
    return found.select("auction", "bidder", price="maxprice", date_time="date_time", extra="extra")


def q8(site: Site) -> ps.Stream:
    """Who opened an auction within the ten seconds in which they registered?"""
    sellers = site.auctions.select("seller")
    both = site.people.select("id", "name").join(sellers, on={"id": "seller"}, window=ps.tumbling("10 seconds"))
    once = both.dedup("id", "window_start", within="10 seconds")
    return once.select("id", "name", stime="window_start")


def q11(site: Site) -> ps.Panes:
    """How many bids does a bidder make in each session, which ten seconds of silence end?"""
    return site.bids.key_by("bidder").window(ps.session("10 seconds")).aggregate(bid_count=ps.rows())


def q12(site: Site) -> ps.Panes:
    """How many bids does a bidder make in each ten seconds of the processing clock?"""
    return site.arriving_bids.key_by("bidder").window(ps.tumbling("10 seconds")).aggregate(bid_count=ps.rows())
