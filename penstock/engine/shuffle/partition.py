"""Which shard holds a key: MurmurHash64A over a canonical encoding, the same on every machine and in every version.

A key of several columns is hashed column by column, each with the hash so far as its seed. Values longer than 512
bytes are hashed by their BLAKE2b digest.
"""

from __future__ import annotations

import hashlib
import math
import struct
from datetime import date
from decimal import Decimal
from typing import Any

SEED = 0x70656E73746F636B
NULL = 0x9E3779B97F4A7C15
M = 0xC6A4A7935BD1E995
R = 47
LONG_VALUE = 512
_MASK = 2**64 - 1
_EPOCH_DAY = date(1970, 1, 1).toordinal()


def murmur64a(data: bytes, seed: int) -> int:
    """Austin Appleby's MurmurHash64A.

    >>> hex(murmur64a(b"penstock", 0))
    '0x7ac9cfb809bb3669'
    """
    h = (seed ^ (len(data) * M)) & _MASK
    whole = len(data) // 8 * 8
    for (k,) in struct.iter_unpack("<Q", data[:whole]):
        k = k * M & _MASK
        k ^= k >> R
        h = ((h ^ (k * M & _MASK)) * M) & _MASK
    if whole < len(data):
        h = ((h ^ int.from_bytes(data[whole:], "little")) * M) & _MASK
    h ^= h >> R
    h = h * M & _MASK
    return h ^ (h >> R)


def key_hash(key: tuple[Any, ...]) -> int:
    """The hash of a key's values."""
    h = SEED
    for value in key:
        h = murmur64a(struct.pack("<Q", NULL), h ^ NULL) if value is None else murmur64a(encoded(value), h)
    return h


def shard_of(key: tuple[Any, ...], shards: int) -> int:
    """The shard of a key among so many."""
    return key_hash(key) % shards


def encoded(value: Any) -> bytes:
    """A value as bytes: integers, dates (days) and timestamps (microseconds) little-endian, text as UTF-8."""
    if isinstance(value, (bool, int)):
        data = struct.pack("<q", value)
    elif isinstance(value, float):
        data = struct.pack("<d", math.nan if math.isnan(value) else value + 0.0)
    elif isinstance(value, date):
        data = struct.pack("<q", value.toordinal() - _EPOCH_DAY)
    elif isinstance(value, Decimal):
        data = _decimal(value)
    else:
        data = value.encode() if isinstance(value, str) else bytes(value)
    return data if len(data) <= LONG_VALUE else hashlib.blake2b(data, digest_size=16).digest()


def _decimal(value: Decimal) -> bytes:
    """A decimal's digits without closing zeros, and its exponent; no arithmetic, which rounds as the context says."""
    sign, digits, exponent = value.as_tuple()
    kept = "".join(map(str, digits)).lstrip("0").rstrip("0")
    if not kept:
        return b"0"
    closing = len(digits) - len("".join(map(str, digits)).rstrip("0"))
    return f"{'-' * sign}{kept}e{int(exponent) + closing}".encode()
