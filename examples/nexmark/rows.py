"""The queries that look at one bid at a time: nothing is kept."""

from __future__ import annotations

from typing import Any

import penstock as ps
from examples.nexmark.site import Site

EUROS = "round(price * 0.908, 3)"


def q0(site: Site) -> ps.Stream:
    """What does it cost to pass bids through?"""
    return site.bids.select("auction", "bidder", "price", "date_time", "extra")


def q1(site: Site) -> ps.Stream:
    """What are bids worth in euros?"""
    return site.bids.select("auction", "bidder", price=EUROS, date_time="date_time", extra="extra")


def q2(site: Site) -> ps.Stream:
    """What is bid for the auctions with certain numbers?"""
    return site.bids.where("auction % 123 = 0").select("auction", "price")


def q14(site: Site) -> ps.Stream:
    """Which bids are large, at what time of day do they come, and how often is there a c in what they say besides?"""
    large = site.bids.where("price * 0.908 > 1000000 and price * 0.908 < 50000000")
    named = large.select("auction", "bidder", price=EUROS, date_time="date_time", extra="extra")
    columns = "auction long, bidder long, price double, bid_time_type string, date_time timestamp, extra string, "
    return named.map_batches(_time_of_day, schema=columns + "c_counts long")


def q21(site: Site) -> ps.Stream:
    """Which channel does a bid come from: one of the large ones, or the one that its address names?"""
    columns = "auction long, bidder long, price long, channel string, channel_id string"
    bids = site.bids.select("auction", "bidder", "price", "channel", "url")
    return bids.map_batches(_channel_ids, schema=columns).where("channel_id is not null")


def q22(site: Site) -> ps.Stream:
    """Which directories does the address of a bid go through?"""
    columns = "auction long, bidder long, price long, channel string, dir1 string, dir2 string, dir3 string"
    return site.bids.select("auction", "bidder", "price", "channel", "url").map_batches(_directories, schema=columns)


def _time_of_day(bids: Any) -> Any:
    """Day, night, or neither; hours are those of UTC."""
    import pyarrow.compute as pc

    hours = pc.hour(bids["date_time"])
    day = pc.and_(pc.greater_equal(hours, 8), pc.less_equal(hours, 18))
    night = pc.or_(pc.less_equal(hours, 6), pc.greater_equal(hours, 20))
    kinds = pc.if_else(day, "dayTime", pc.if_else(night, "nightTime", "otherTime"))
    with_kinds = bids.append_column("bid_time_type", kinds)
    return with_kinds.append_column("c_counts", pc.count_substring(bids["extra"], "c"))


def _channel_ids(bids: Any) -> Any:
    """A large channel's own number, else what stands behind channel_id= in the address."""
    import pyarrow as pa
    import pyarrow.compute as pc

    known = pc.index_in(pc.utf8_lower(bids["channel"]), pa.array(["apple", "google", "facebook", "baidu"]))
    named = pc.struct_field(pc.extract_regex(bids["url"], "(?:&|^)channel_id=(?P<id>[^&]*)"), "id")
    return bids.append_column("channel_id", pc.coalesce(known.cast(pa.string()), named)).drop_columns(["url"])


def _directories(bids: Any) -> Any:
    """The parts of an address between its slashes, from the fourth on; null where there is none."""
    import pyarrow.compute as pc

    pattern = r"^[^/]*/[^/]*/[^/]*(?:/(?P<dir1>[^/]*)(?:/(?P<dir2>[^/]*)(?:/(?P<dir3>[^/]*))?)?)?"
    found = pc.extract_regex(bids["url"], pattern)
    for name in ("dir1", "dir2", "dir3"):
        bids = bids.append_column(name, pc.struct_field(found, name))
    return bids.drop_columns(["url"])
