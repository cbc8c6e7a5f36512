"""What is an event: the generator as it is specified, one event at a time, in plain Python."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from examples.nexmark import words
from examples.nexmark.java_random import JavaRandom
from examples.nexmark.timeline import (
    AUCTIONS,
    CYCLE,
    FIRST_ID,
    IN_FLIGHT,
    MILLISECOND,
    PEOPLE,
    Timeline,
    last_auction,
    last_person,
)

PERSON, AUCTION, BID = 0, 1, 2
ACTIVE = 1_000  # the newest people, who sell and bid
AHEAD = 10  # ids that are named before they are made
HOT = 100  # one id of so many is hot, for a while
CATEGORIES = 5
FIRST_CATEGORY = 10

Row = dict[str, Any]


def events(timeline: Timeline) -> Iterator[tuple[int, Row]]:
    """Every event with its generator, in the order in which each generator gives them; only what it has is in a row."""
    for generator in range(timeline.generators):
        for number in range(timeline.share(generator)):
            yield generator, event(timeline, generator, number)


def event(timeline: Timeline, generator: int, number: int) -> Row:
    """The number-th event of a generator; times are microseconds."""
    place = timeline.place(number)
    ident = timeline.first(generator) + place
    time = timeline.time(place)
    random = JavaRandom(ident)
    kind = ident % CYCLE
    if kind < PEOPLE:
        return {"event_type": PERSON, "date_time": time, **_person(ident, random)}
    if kind < PEOPLE + AUCTIONS:
        return {"event_type": AUCTION, "date_time": time, **_auction(ident, random, time, timeline.longest(place))}
    return {"event_type": BID, "date_time": time, **_bid(ident, random)}


def _person(ident: int, random: JavaRandom) -> Row:
    name = f"{_one(random, words.FIRST_NAMES)} {_one(random, words.LAST_NAMES)}"
    email = f"{_text(random, 7)}@{_text(random, 5)}.com"
    card = " ".join(f"{random.below(10_000):04d}" for _ in range(4))
    city, state = _one(random, words.CITIES), _one(random, words.STATES)
    size = words.PERSON_FIXED + sum(map(len, (name, email, card, city, state)))
    return {"id": last_person(ident) + FIRST_ID, "name": name, "email_address": email, "credit_card": card,
            "city": city, "state": state, "extra": _extra(random, words.PERSON_SIZE - size)}  # fmt: skip


def _auction(ident: int, random: JavaRandom, time: int, longest: int) -> Row:
    seller = last_person(ident) // HOT * HOT if random.below(4) > 0 else _any_person(ident, random)
    category = FIRST_CATEGORY + random.below(CATEGORIES)
    first = _price(random)
    expires = time + (1 + random.below(max(2 * longest, 1))) * MILLISECOND
    item, description = _text(random, 20), _text(random, 100)
    reserve = first + _price(random)
    size = words.AUCTION_FIXED + len(item) + len(description)
    return {"id": last_auction(ident) + FIRST_ID, "item_name": item, "description": description, "initial_bid": first,
            "reserve": reserve, "expires": expires, "seller": seller + FIRST_ID, "category": category,
            "extra": _extra(random, words.AUCTION_SIZE - size)}  # fmt: skip


def _bid(ident: int, random: JavaRandom) -> Row:
    auction = last_auction(ident) // HOT * HOT if random.below(2) > 0 else _any_auction(ident, random)
    bidder = last_person(ident) // HOT * HOT + 1 if random.below(4) > 0 else _any_person(ident, random)
    price = _price(random)
    known = len(words.HOT_CHANNELS)
    place = random.below(known) if random.below(2) > 0 else known + random.below(words.CHANNELS)
    channel, url = words.channels()[place]
    return {"auction": auction + FIRST_ID, "bidder": bidder + FIRST_ID, "price": price, "channel": channel, "url": url,
            "extra": _extra(random, words.BID_SIZE - words.BID_FIXED)}  # fmt: skip


def _any_person(ident: int, random: JavaRandom) -> int:
    """One of the active people, or one who is still to come."""
    people = last_person(ident) + 1
    active = min(people, ACTIVE)
    return people - active + random.below(active + AHEAD)


def _any_auction(ident: int, random: JavaRandom) -> int:
    """One of the auctions in flight, or one that is still to come."""
    newest = last_auction(ident)
    oldest = max(newest - IN_FLIGHT, 0)
    return oldest + random.below(newest - oldest + 1 + AHEAD)


def _price(random: JavaRandom) -> int:
    """Cents: from one dollar to a million, each power of ten as often as any other."""
    return cents(random.share())


def cents(share: float) -> int:
    """The price for a number from 0 to 1."""
    return math.floor(10.0 ** (share * 6.0) * 100.0 + 0.5)


def _one(random: JavaRandom, choices: tuple[str, ...]) -> str:
    return choices[random.below(len(choices))]


def _text(random: JavaRandom, most: int) -> str:
    return words.letters(random, 3 + random.below(most - 3))


def _extra(random: JavaRandom, size: int) -> str:
    """A filler of about this size."""
    around = words.spread(size)
    length = size - around + random.below(2 * around)
    begin = random.below(words.FILLERS)
    return words.filler()[begin : begin + length]
