"""The queries that put events of several kinds together, whenever they come: what is kept is kept for ever."""

from __future__ import annotations

import penstock as ps
from examples.nexmark.site import Site


def q3(site: Site) -> ps.Stream:
    """Who sells things of category 10 in Oregon, Idaho and California?"""
    wanted = site.auctions.where("category = 10").select("id", "seller")
    near = site.people.where("state in ('OR', 'ID', 'CA')").select("name", "city", "state", person="id")
    sold = wanted.join(near, on={"seller": "person"}, keep="forever")
    return sold.select("name", "city", "state", "id")


def q20(site: Site) -> ps.Stream:
    """Which bids are for things of category 10, and what are these?"""
    bids = site.bids.select("auction", "bidder", "price", "channel", "url", bid_date_time="date_time",
                            bid_extra="extra")  # fmt: skip
    wanted = site.auctions.where("category = 10").select(
        "id", "item_name", "description", "initial_bid", "reserve", auction_date_time="date_time", expires="expires",
        seller="seller", category="category", auction_extra="extra",
    )  # fmt: skip
    return bids.join(wanted, on={"auction": "id"}, keep="forever")


def q23(site: Site) -> ps.Stream:
    """Which bids come from someone who is registered and sells something, too?"""
    bids = site.bids.select("bidder", "price", "channel", "url", bid_extra="extra")
    people = site.people.select("name", "email_address", "credit_card", "city", "state", person_id="id",
                                person_extra="extra")  # fmt: skip
    auctions = site.auctions.select(
        "item_name", "description", "initial_bid", "reserve", auction_date_time="date_time", expires="expires",
        seller="seller", category="category", auction_extra="extra",
    )  # fmt: skip
    # Sellers and what they sell are few, bids are many: joined last, a bid travels and is kept once.
    sellers = people.join(auctions, on={"person_id": "seller"}, keep="forever")
    selling = bids.join(sellers, on={"bidder": "person_id"}, keep="forever")
    return selling.with_columns(person_id="bidder", seller="bidder")
