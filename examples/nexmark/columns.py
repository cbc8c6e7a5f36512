"""What are the events of a stretch of numbers: the generator a column at a time, equal to the plain one."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from examples.nexmark import plain, words
from examples.nexmark.java_random import JavaRandoms
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

STAMP = pa.timestamp("us", tz="UTC")
Columns = dict[str, Any]


class Chosen(NamedTuple):
    """Texts that are not copied yet: a table, and which of its rows they are."""

    table: pa.Array
    places: np.ndarray


def event_columns(timeline: Timeline, generator: int, numbers: range, wanted: frozenset[str]) -> dict[str, pa.Array]:
    """These events of a generator, those columns that are wanted; null where a kind of event has no such column."""
    places = timeline.place(np.arange(numbers.start, numbers.stop, dtype=np.int64))
    idents = timeline.first(generator) + places
    kinds = idents % CYCLE
    times = timeline.time(places)
    types = np.where(kinds < PEOPLE, plain.PERSON, np.where(kinds < PEOPLE + AUCTIONS, plain.AUCTION, plain.BID))
    made: dict[str, pa.Array] = {"event_type": pa.array(types), "date_time": pa.array(times).cast(STAMP)}
    rows = [np.flatnonzero(types == kind) for kind in (plain.PERSON, plain.AUCTION, plain.BID)]
    kinds_made = [
        _people(idents[rows[0]], wanted),
        _auctions(timeline, idents[rows[1]], times[rows[1]], places[rows[1]], wanted),
        _bids(idents[rows[2]], wanted),
    ]
    for name in wanted - made.keys():
        parts = [(at, one[name]) for at, one in zip(rows, kinds_made, strict=True) if name in one]
        made[name] = _spread(len(idents), parts)
    return made


def _spread(length: int, parts: list[tuple[np.ndarray, Any]]) -> pa.Array:
    """Values of some rows as a column of all rows, null for the others."""
    empty = np.ones(length, dtype=bool)
    values = np.zeros(length, dtype=np.int64)
    texts, before = [], 0
    for at, given in parts:
        empty[at] = False
        if isinstance(given, np.ndarray):
            values[at] = given
            continue
        chosen = given if isinstance(given, Chosen) else Chosen(given, np.arange(len(given)))
        values[at] = before + chosen.places
        texts.append(chosen.table)
        before += len(chosen.table)
    found = pa.array(values, mask=empty if empty.any() else None)
    return pa.concat_arrays(texts).take(found) if texts else found


def _people(idents: np.ndarray, wanted: frozenset[str]) -> Columns:
    made: Columns = {"id": last_person(idents) + FIRST_ID}
    if not wanted & {"name", "email_address", "credit_card", "city", "state", "extra"}:
        return made
    randoms = JavaRandoms(idents)
    first, last = randoms.below(len(words.FIRST_NAMES)), randoms.below(len(words.LAST_NAMES))
    made["name"] = _joined(_taken(words.FIRST_NAMES, first), _taken(words.LAST_NAMES, last), " ")
    user, host = _texts(randoms, 7), _texts(randoms, 5)
    made["email_address"] = _joined(user, pc.binary_join_element_wise(host, ".com", ""), "@")
    digits = [_taken(_four_digits(), randoms.below(10_000)) for _ in range(4)]
    made["credit_card"] = pc.binary_join_element_wise(*digits, " ")
    made["city"] = _taken(words.CITIES, randoms.below(len(words.CITIES)))
    made["state"] = _taken(words.STATES, randoms.below(len(words.STATES)))
    texts = ("name", "email_address", "credit_card", "city", "state")
    sizes = words.PERSON_FIXED + sum(_lengths(made[name]) for name in texts)
    made["extra"] = _extras(randoms, words.PERSON_SIZE - sizes)
    return made


def _auctions(
    timeline: Timeline, idents: np.ndarray, times: np.ndarray, places: np.ndarray, wanted: frozenset[str]
) -> Columns:
    randoms = JavaRandoms(idents)
    people = last_person(idents)
    seller = _hot_or(randoms, 4, people // plain.HOT * plain.HOT, lambda some, at: _any_person(some, people[at]))
    category = plain.FIRST_CATEGORY + randoms.below(plain.CATEGORIES)
    first = _prices(randoms)
    lasting = 1 + randoms.below(np.maximum(2 * timeline.longest(places), 1))
    made: Columns = {"id": last_auction(idents) + FIRST_ID, "initial_bid": first, "seller": seller + FIRST_ID,
                     "category": category, "expires": pa.array(times + lasting * MILLISECOND).cast(STAMP)}  # fmt: skip
    if not wanted & {"item_name", "description", "reserve", "extra"}:
        return made
    item, description = _texts(randoms, 20), _texts(randoms, 100)
    sizes = words.AUCTION_FIXED + _lengths(item) + _lengths(description)
    made |= {"item_name": item, "description": description, "reserve": first + _prices(randoms)}
    if "extra" in wanted:
        made["extra"] = _extras(randoms, words.AUCTION_SIZE - sizes)
    return made


def _bids(idents: np.ndarray, wanted: frozenset[str]) -> Columns:
    randoms = JavaRandoms(idents)
    auctions, people = last_auction(idents), last_person(idents)
    hot = auctions // plain.HOT * plain.HOT
    auction = _hot_or(randoms, 2, hot, lambda some, at: _any_auction(some, auctions[at]))
    hot = people // plain.HOT * plain.HOT + 1
    bidder = _hot_or(randoms, 4, hot, lambda some, at: _any_person(some, people[at]))
    made: Columns = {"auction": auction + FIRST_ID, "bidder": bidder + FIRST_ID}
    if not wanted & {"price", "channel", "url", "extra"}:
        return made
    made["price"] = _prices(randoms)
    if not wanted & {"channel", "url", "extra"}:
        return made
    known = len(words.HOT_CHANNELS)
    cold = np.flatnonzero(randoms.below(2) == 0)
    before = randoms.of(cold)
    channel = randoms.below(known)
    channel[cold] = known + before.below(words.CHANNELS)
    randoms.put(cold, before)
    made["channel"], made["url"] = (Chosen(table, channel) for table in _channels())
    lengths = randoms.below(2 * words.spread(words.BID_SIZE - words.BID_FIXED))
    made["extra"] = Chosen(_bid_fillers(), lengths * words.FILLERS + randoms.below(words.FILLERS))
    return made


def _hot_or(randoms: JavaRandoms, share: int, hot: np.ndarray, other: Any) -> np.ndarray:
    """The hot one, or in one of `share` cases another, for which more is drawn."""
    cold = np.flatnonzero(randoms.below(share) == 0)
    some = randoms.of(cold)
    chosen = hot.copy()
    chosen[cold] = other(some, cold)
    randoms.put(cold, some)
    return chosen


def _any_person(randoms: JavaRandoms, newest: np.ndarray) -> np.ndarray:
    active = np.minimum(newest + 1, plain.ACTIVE)
    return newest + 1 - active + randoms.below(active + plain.AHEAD)


def _any_auction(randoms: JavaRandoms, newest: np.ndarray) -> np.ndarray:
    oldest = np.maximum(newest - IN_FLIGHT, 0)
    return oldest + randoms.below(newest - oldest + 1 + plain.AHEAD)


def _prices(randoms: JavaRandoms) -> np.ndarray:
    shares = randoms.share()
    exact = np.power(10.0, shares * 6.0) * 100.0 + 0.5
    made = np.floor(exact)
    # A vectorised power is not the same on every processor; where that could change a cent, the plain one decides.
    for at in np.flatnonzero(np.abs(exact - np.rint(exact)) < 1e-5).tolist():
        made[at] = plain.cents(float(shares[at]))
    return made.astype(np.int64)


def _texts(randoms: JavaRandoms, most: int) -> pa.Array:
    """Letters and spaces; rows are put in order of their lengths, so that those that still go on are the first."""
    lengths = 3 + randoms.below(most - 3)
    order = np.argsort(-lengths, kind="stable")
    some = randoms.of(order)
    letters = np.zeros((len(lengths), most), dtype=np.uint8)
    ends = np.searchsorted(-lengths[order], -np.arange(most), side="left")  # how many are longer than each place
    for place in range(most):
        going = JavaRandoms.__new__(JavaRandoms)
        going.states = some.states[: ends[place]]
        drawn = going.below(13)
        lettered = np.flatnonzero(drawn != 0)
        those = going.of(lettered)
        letters[: ends[place], place] = 32
        letters[lettered, place] = 97 + those.below(26)
        going.put(lettered, those)
    randoms.put(order, some)
    back = np.empty_like(order)
    back[order] = np.arange(len(order))
    whole = np.ascontiguousarray(letters[back]).view(f"S{most}").ravel()
    return pc.ascii_trim(pa.array(whole.astype(object), pa.binary()).cast(pa.string()), " ")


def _extras(randoms: JavaRandoms, sizes: np.ndarray) -> pa.Array:
    around = (sizes * 2 + 5) // 10
    lengths = (sizes - around + randoms.below(2 * around)).tolist()
    text = words.filler()
    begins = randoms.below(words.FILLERS).tolist()
    return pa.array([text[at : at + length] for at, length in zip(begins, lengths, strict=True)], pa.string())


def _lengths(texts: pa.Array) -> np.ndarray:
    lengths: np.ndarray = pc.binary_length(texts).to_numpy().astype(np.int64)
    return lengths


def _joined(left: pa.Array, right: pa.Array, sign: str) -> pa.Array:
    return pc.binary_join_element_wise(left, right, sign)


def _taken(choices: Any, drawn: np.ndarray) -> pa.Array:
    return (choices if isinstance(choices, pa.Array) else pa.array(choices)).take(pa.array(drawn))


@cache
def _four_digits() -> pa.Array:
    return pa.array([f"{number:04d}" for number in range(10_000)])


@cache
def _channels() -> tuple[pa.Array, pa.Array]:
    names, addresses = zip(*words.channels(), strict=True)
    return pa.array(names), pa.array(addresses)


@cache
def _bid_fillers() -> pa.Array:
    """Every filler that a bid may have, by its length and then by where it begins."""
    size = words.BID_SIZE - words.BID_FIXED
    around, text = words.spread(size), words.filler()
    pieces = [text[at : at + size - around + more] for more in range(2 * around) for at in range(words.FILLERS)]
    return pa.array(pieces, pa.string())
