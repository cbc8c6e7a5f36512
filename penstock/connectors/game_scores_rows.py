"""Rows of the game: each mixed from the seed, its partition and its number, a column at a time."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.connectors.game_scores import COLUMNS, GameScores
from penstock.connectors.source import Chunk, Undecoded
from penstock.types.arrow import arrow_schema
from penstock.types.durations import SECOND
from penstock.types.schema import schema

# Steele, Lea and Flood, "Fast splittable pseudorandom number generators" (2014): the finalizer of SplitMix64.
GOLDEN, FIRST, SECOND_MIX = (np.uint64(n) for n in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB))
FACE = 2.0**-32
COLOURS = ("amber", "azure", "coral", "ebony", "hazel", "ivory", "jade", "mauve", "ochre", "olive", "pearl", "ruby")
SCHEMA = arrow_schema(schema(COLUMNS))


def score_rows(game: GameScores, partition: int, rows: range, begin: int) -> Chunk:
    """These rows of a partition, whatever batch they are asked for in."""
    offsets = np.arange(rows.start, rows.stop, dtype=np.int64)
    who, when, bad = (_mixed(game.seed, partition, salt, offsets) for salt in range(3))
    user = _below(who >> np.uint64(32), game.keys)
    user[_chosen(who, game.hot_share)] = 0
    at = begin + _arrived(game, partition, offsets) - _delays(game, when, bad)
    columns = [
        _names(game.keys).take(pa.array(user)),
        _teams(game.teams).take(pa.array(user % game.teams)),
        pa.array(1 + _below(bad >> np.uint64(32), 20)),
    ]
    timeless, torn = _bad(game, who, bad)
    stamps = pa.array(at, mask=timeless if timeless.any() else None).cast(SCHEMA.field("at").type)
    batch = pa.RecordBatch.from_arrays([*columns, stamps], schema=SCHEMA)
    if not torn.any():
        return Chunk(str(partition), offsets, batch)
    good = np.flatnonzero(~torn)
    undecoded = tuple(
        Undecoded(offset, f'{{"user": "user-{number}", "points": "lo', "not JSON: the line ends within a string")
        for offset, number in zip(offsets[torn].tolist(), user[torn].tolist(), strict=True)
    )
    return Chunk(str(partition), offsets[good], batch.take(pa.array(good)), undecoded)


def _mixed(seed: int, partition: int, salt: int, rows: np.ndarray) -> np.ndarray:
    """64 bits for each row."""
    with np.errstate(over="ignore"):
        stream = _finish(np.array([seed, partition * 16 + salt + 1], dtype=np.uint64) * GOLDEN)
        return _finish((rows.astype(np.uint64) + (stream[0] ^ (stream[1] << np.uint64(1)))) * GOLDEN)


def _finish(bits: np.ndarray) -> np.ndarray:
    bits ^= bits >> np.uint64(30)
    bits *= FIRST
    bits ^= bits >> np.uint64(27)
    bits *= SECOND_MIX
    bits ^= bits >> np.uint64(31)
    return bits


def _below(bits: np.ndarray, count: int) -> np.ndarray:
    """Whole numbers below a count from 32 bits each."""
    return ((bits.astype(np.float64) * FACE) * count).astype(np.int64)


def _chosen(bits: np.ndarray, share: float) -> np.ndarray:
    """A share of the rows, by their lower 32 bits."""
    if share == 0:
        return np.zeros(len(bits), dtype=bool)
    chosen: np.ndarray = (bits & np.uint64(0xFFFFFFFF)).astype(np.float64) * FACE < share
    return chosen


def _arrived(game: GameScores, partition: int, rows: np.ndarray) -> np.ndarray:
    """How long after the beginning each row arrives: in order of the offsets, with the silence where it is."""
    whole = rows * game.partitions_made + partition
    arrived: np.ndarray = whole // game.rate * SECOND + whole % game.rate * SECOND // game.rate
    first, length = game.paused(partition)
    return np.where(rows >= first, arrived + length, arrived) if length else arrived


def _delays(game: GameScores, bits: np.ndarray, other: np.ndarray) -> np.ndarray:
    """How long before its arrival each row happened: mostly little, seldom much."""
    delays: np.ndarray = _waits(game.disorder)[bits >> np.uint64(48)]
    straggles = _chosen(bits, game.straggler_share)
    if straggles.any():
        spread = 0.5 + (other[straggles] >> np.uint64(32)).astype(np.float64) * FACE
        delays[straggles] += (spread * game.straggler_delay).astype(np.int64)
    return delays


def _bad(game: GameScores, who: np.ndarray, bits: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Which rows have no time, and which are torn text."""
    bad = _chosen(bits, game.bad_share)
    odd = (who >> np.uint64(33)) % np.uint64(2) == 1 if game.bad_share else bad
    return bad & odd, bad & ~odd


@lru_cache(maxsize=4)
def _waits(typical: int) -> np.ndarray:
    """Delays, exponentially distributed: a table, for a vectorised logarithm is not the same on every processor."""
    return np.array([round(-math.log((n + 0.5) / 65_536) * typical) for n in range(65_536)], dtype=np.int64)


@lru_cache(maxsize=4)
def _names(count: int) -> pa.Array:
    width = max(4, len(str(count - 1)))
    digits = pc.utf8_lpad(pa.array(np.arange(count)).cast(pa.string()), width, padding="0")
    return pc.binary_join_element_wise("user-", digits, "")


@lru_cache(maxsize=4)
def _teams(count: int) -> pa.Array:
    laps = range(count)
    return pa.array([COLOURS[n % len(COLOURS)] + (f"-{n // len(COLOURS) + 1}" if n >= 12 else "") for n in laps])
