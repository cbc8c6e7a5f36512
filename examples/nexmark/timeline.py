"""Which event is the k-th of a generator, and when does it happen?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

PEOPLE, AUCTIONS, BIDS = 1, 3, 46  # of fifty events in a row
CYCLE = PEOPLE + AUCTIONS + BIDS
FIRST_ID = 1_000  # what is published of the first person and of the first auction
IN_FLIGHT = 100  # auctions that are bid for at any time
ENDLESS = 10**12  # ids that each generator has where no number of events is given
MILLISECOND = 1_000
STRIDE = 953  # a prime: what it does to a group of any other size is a permutation


@dataclass(frozen=True, slots=True)
class Timeline:
    """What is asked of all generators together; each has ids of its own and begins at the same time.

    All arithmetic is of whole numbers, so that each method takes a number or a numpy column of them.
    """

    events: int | None
    generators: int
    rate: int
    group: int
    begin: int

    @property
    def delay(self) -> int:
        """Microseconds from an event of a generator to its next."""
        return (1_000_000 + self.rate // 2) // self.rate * self.generators

    def first(self, generator: int) -> int:
        """The first id of a generator."""
        return generator * (ENDLESS if self.events is None else self.events // self.generators)

    def share(self, generator: int) -> int:
        """How many events a generator makes; the last one makes what is left over."""
        if self.events is None:
            return ENDLESS
        each = self.events // self.generators
        return each if generator < self.generators - 1 else self.events - each * (self.generators - 1)

    def place(self, number: Any) -> Any:
        """Which event of its generator comes as the number-th: groups come in order, events in a group do not."""
        return number // self.group * self.group + number * STRIDE % self.group

    def time(self, place: Any) -> Any:
        """When an event happens, in microseconds since 1970, in whole milliseconds."""
        return self.begin + place * self.delay // MILLISECOND * MILLISECOND

    def longest(self, place: Any) -> Any:
        """Milliseconds of which an auction that begins then lasts at most twice as many."""
        return (self.time(place + IN_FLIGHT * CYCLE // AUCTIONS) - self.time(place)) // MILLISECOND


def last_person(event: Any) -> Any:
    """The newest person when an event happens, counted from 0."""
    return event // CYCLE


def last_auction(event: Any) -> Any:
    """The newest auction when an event happens, counted from 0; before the first one, -1."""
    begun = event % CYCLE - PEOPLE + 1  # auctions of this cycle, if there were no end to them
    lesser = (begun + AUCTIONS - abs(begun - AUCTIONS)) // 2  # of the two, for a number and for a column alike
    return event // CYCLE * AUCTIONS - 1 + lesser
