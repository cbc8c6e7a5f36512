"""The auction site: one stream of events, seen as people, auctions and bids."""

from __future__ import annotations

from dataclasses import dataclass

import penstock as ps

PERSON = ("id", "name", "email_address", "credit_card", "city", "state", "date_time", "extra")
AUCTION = ("id", "item_name", "description", "initial_bid", "reserve", "date_time", "expires", "seller", "category",
           "extra")  # fmt: skip
BID = ("auction", "bidder", "price", "channel", "url", "date_time", "extra")


@dataclass(frozen=True, slots=True)
class Site:
    """The events as they are read; event time is `date_time`, and the watermark waits four seconds."""

    events: ps.Stream

    @property
    def timed(self) -> ps.Stream:
        """All events, at the time at which they happened."""
        return self.events.event_time("date_time", watermark=ps.bounded("4 seconds"))

    @property
    def people(self) -> ps.Stream:
        """Those who sell and bid."""
        return _those(self.timed, 0, PERSON)

    @property
    def auctions(self) -> ps.Stream:
        """What is for sale, and until when."""
        return _those(self.timed, 1, AUCTION)

    @property
    def bids(self) -> ps.Stream:
        """Who offers how much for which auction."""
        return _those(self.timed, 2, BID)

    @property
    def arriving_bids(self) -> ps.Stream:
        """The same at the time at which they come."""
        return _those(self.events.processing_time(), 2, BID)


def _those(events: ps.Stream, kind: int, columns: tuple[str, ...]) -> ps.Stream:
    """Events of one kind with their own columns, as far as the stream has them."""
    return events.where(f"event_type = {kind}").select(*(name for name in columns if name in events.schema.names))
