"""Which words are events made of: names, places, channels, and a filler that brings a record to its size?"""

from __future__ import annotations

from functools import cache

from examples.nexmark.java_random import JavaRandom

FIRST_NAMES = ("Peter", "Paul", "Luke", "John", "Saul", "Vicky", "Kate", "Julie", "Sarah", "Deiter", "Walter")
LAST_NAMES = ("Shultz", "Abrams", "Spencer", "White", "Bartels", "Walton", "Smith", "Jones", "Noris")
CITIES = ("Phoenix", "Los Angeles", "San Francisco", "Boise", "Portland", "Bend", "Redmond", "Seattle", "Kent",
          "Cheyenne")  # fmt: skip
STATES = ("AZ", "CA", "ID", "OR", "WA", "WY")
HOT_CHANNELS = ("Google", "Facebook", "Baidu", "Apple")
CHANNELS = 10_000  # beside the hot ones

# What a record measures on average, with its filler, and what of it has the same size in each.
PERSON_SIZE, AUCTION_SIZE, BID_SIZE = 200, 500, 100
PERSON_FIXED, AUCTION_FIXED, BID_FIXED = 8, 56, 32
FILLERS = 512  # places in the filler at which one begins


def spread(size: int) -> int:
    """By how much a filler of some size may be shorter or longer: a fifth."""
    return (size * 2 + 5) // 10


def letters(random: JavaRandom, length: int) -> str:
    """So many small letters, now and then a space instead, without spaces around them."""
    drawn = (" " if random.below(13) == 0 else chr(97 + random.below(26)) for _ in range(length))
    return "".join(drawn).strip()


@cache
def filler() -> str:
    """Small letters, of which every filler is a piece."""
    random = JavaRandom(0)
    return "".join(chr(97 + random.below(26)) for _ in range(FILLERS + 2 * AUCTION_SIZE))


@cache
def channels() -> tuple[tuple[str, str], ...]:
    """Each channel and the address of its bids: the hot ones first, then those that have a number."""
    hot = [(name, _address(JavaRandom(CHANNELS + place))) for place, name in enumerate(HOT_CHANNELS)]
    return (*hot, *(_numbered(number) for number in range(CHANNELS)))


def _numbered(number: int) -> tuple[str, str]:
    """Nine of ten addresses name the channel, by its number with all of its 32 bits turned around."""
    random = JavaRandom(number)
    address = _address(random)
    turned = int(f"{number:032b}"[::-1], 2)
    known = f"&channel_id={min(turned, 2**32 - turned)}" if random.below(10) > 0 else ""
    return f"channel-{number}", address + known


def _address(random: JavaRandom) -> str:
    parts = ["".join(chr(97 + random.below(26)) for _ in range(3)) for _ in range(3)]
    return f"https://www.nexmark.com/{'/'.join(parts)}/item.htm?query=1"
