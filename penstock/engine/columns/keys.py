"""Keys in columns: one canonical form, the shard hash of every row at once, and rows of equal keys side by side."""

from __future__ import annotations

import hashlib
import sys

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.engine.shuffle.partition import LONG_VALUE, NULL, SEED, M, R, encoded

_M, _R, _EIGHT = np.uint64(M), np.uint64(R), np.uint64(8)
Keys = tuple[pa.Array, ...]


def canonical(column: pa.Array) -> pa.Array:
    """One zero and one NaN among floats, so that equal keys have equal bytes."""
    if not pa.types.is_floating(column.type):
        return column
    with np.errstate(invalid="ignore"):  # a signalling NaN, which bytes may hold, is a NaN like any other
        values = column.to_numpy(zero_copy_only=False) + 0.0
    values = np.where(np.isnan(values), np.nan, values)
    return pa.array(values, pa.float64(), mask=_mask(column))


def hashes(keys: Keys, rows: int) -> np.ndarray:
    """The hash of each row's key: `penstock.engine.shuffle.partition.key_hash`, vectorised."""
    h = np.full(rows, SEED, dtype=np.uint64)
    for column in keys:
        valued = _mix_word(_as_integers(column), h, 8) if _fixed(column) else _texts(column, h)
        if column.null_count:
            nothing = _mix_word(np.full(rows, NULL, dtype=np.uint64), h ^ np.uint64(NULL), 8)
            valued = np.where(_mask(column), nothing, valued)
        h = valued
    return h


def side_by_side(columns: list[pa.Array]) -> tuple[np.ndarray, np.ndarray]:
    """An order in which rows with equal columns lie together, stable, and the first row of each group."""
    rows = len(columns[0])
    if rows == 0:
        return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
    names = [str(i) for i in range(len(columns))]
    table = pa.table([*columns, pa.array(np.arange(rows))], names=[*names, "row"])
    lists = table.group_by(names, use_threads=False).aggregate([("row", "list")])["row_list"]
    lists = whole(lists)
    return lists.values.to_numpy(), lists.offsets.to_numpy()[:-1].astype(np.int64)


def numbered(order: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """The number of each row's group, from what `side_by_side` gives."""
    groups = np.empty(len(order), dtype=np.int64)
    groups[order] = np.repeat(np.arange(len(starts)), np.diff(np.append(starts, len(order))))
    return groups


def whole(column: pa.ChunkedArray) -> pa.Array:
    """A column of a table in one piece."""
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def key_codes(keys: Keys, hashed: np.ndarray) -> np.ndarray:
    """A number for each different key: of one column by itself, of several by the hash, checked by the keys."""
    if not keys or not len(hashed):
        return np.zeros(len(hashed), dtype=np.int64)
    if len(keys) == 1:
        return keys[0].dictionary_encode(null_encoding="encode").indices.to_numpy().astype(np.int64)
    found = pa.array(hashed).dictionary_encode()
    codes = found.indices.to_numpy().astype(np.int64)
    first = np.empty(len(found.dictionary), dtype=np.int64)
    first[codes[::-1]] = np.arange(len(codes))[::-1]
    model = pa.array(first[codes])
    if equal(keys, tuple(column.take(model) for column in keys)).all():
        return codes
    return numbered(*side_by_side([*keys]))


def equal(left: Keys, right: Keys) -> np.ndarray:
    """Where two columns of keys are the same, null being null."""
    same = np.ones(len(left[0]) if left else 0, dtype=bool)
    for a, b in zip(left, right, strict=True):
        both = pc.fill_null(pc.equal(a, b), False).to_numpy(zero_copy_only=False)
        if pa.types.is_floating(a.type):
            both |= pc.fill_null(pc.and_(pc.is_nan(a), pc.is_nan(b)), False).to_numpy(zero_copy_only=False)
        if a.null_count or b.null_count:
            both = both | (_mask(a) & _mask(b))
        same &= both
    return same


def _mask(column: pa.Array) -> np.ndarray:
    return column.is_null().to_numpy(zero_copy_only=False)


def _fixed(column: pa.Array) -> bool:
    kind = column.type
    return bool(
        pa.types.is_integer(kind)
        or pa.types.is_floating(kind)
        or pa.types.is_boolean(kind)
        or pa.types.is_timestamp(kind)
        or pa.types.is_date(kind)
    )


def _as_integers(column: pa.Array) -> np.ndarray:
    if pa.types.is_floating(column.type):
        return canonical(column).fill_null(0.0).to_numpy().view(np.uint64)
    if pa.types.is_date(column.type):
        column = column.cast(pa.int32())
    plain = column.cast(pa.int64()) if not pa.types.is_int64(column.type) else column
    if plain.null_count:
        plain = plain.fill_null(0)
    return plain.to_numpy(zero_copy_only=False).view(np.uint64)


def _mix_word(words: np.ndarray, seeds: np.ndarray, length: int) -> np.ndarray:
    h = seeds ^ np.uint64(length * M & (2**64 - 1))
    return _finish(_block(h, words))


def _block(h: np.ndarray, words: np.ndarray) -> np.ndarray:
    k = words * _M
    k ^= k >> _R
    k *= _M
    h = h ^ k
    h *= _M
    return h


def _finish(h: np.ndarray) -> np.ndarray:
    h = h ^ (h >> _R)
    h *= _M
    return h ^ (h >> _R)


def _texts(column: pa.Array, seeds: np.ndarray) -> np.ndarray:
    """MurmurHash64A of texts or bytes of different lengths, eight bytes of all rows at a time."""
    if pa.types.is_decimal(column.type):
        column = pa.array([None if v is None else encoded(v) for v in column.to_pylist()], pa.binary())
    data, starts, lengths = _bytes_of(column)
    h = seeds ^ (lengths.astype(np.uint64) * _M)
    blocks = lengths // 8
    deepest = int(blocks.max(initial=0))
    # The longest first: then those that have one more block are always the first so many.
    order = np.argsort((deepest - blocks).astype(np.int16), kind="stable")
    mixing, begins = h[order], starts[order]
    longer = len(h) - np.cumsum(np.bincount(blocks, minlength=deepest))
    for block, rows in enumerate(longer[:deepest].tolist()):
        mixing[:rows] = _block(mixing[:rows], _gather(data, begins[:rows] + 8 * block))
    h[order] = mixing
    # A row without a tail gathers a word and masks all of it away; its hash stays as it is.
    rest = (lengths % 8).astype(np.uint64)
    words = _gather(data, starts + 8 * blocks)
    words &= (np.uint64(1) << (rest * _EIGHT)) - np.uint64(1)
    mixed = (h ^ words) * _M
    return _finish(mixed if rest.all() else np.where(rest > 0, mixed, h))


def _bytes_of(column: pa.Array) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The bytes of a column of texts, padded by two words, with the start and length of each; long ones as digests."""
    column = column.cast(pa.large_binary())
    lengths = pc.fill_null(pc.binary_length(column), 0).to_numpy(zero_copy_only=False).astype(np.int64)
    offsets = np.frombuffer(column.buffers()[1], dtype=np.int64)[column.offset : column.offset + len(column) + 1]
    starts, raw = offsets[:-1].copy(), column.buffers()[2]
    data = np.frombuffer(raw, dtype=np.uint8) if raw is not None and raw.size else np.empty(0, np.uint8)
    long = np.flatnonzero(lengths > LONG_VALUE)
    digests = b"".join(
        hashlib.blake2b(value, digest_size=16).digest() for value in column.take(pa.array(long)).to_pylist()
    )
    starts[long], lengths[long] = len(data) + 16 * np.arange(len(long)), 16
    return np.concatenate([data, np.frombuffer(digests, np.uint8), np.zeros(24, np.uint8)]), starts, lengths


def _gather(data: np.ndarray, at: np.ndarray) -> np.ndarray:
    """The little-endian word that begins at each position, aligned or not."""
    assert sys.byteorder == "little"
    words: np.ndarray = np.ndarray((len(data) - 7,), np.uint64, data, strides=(1,))
    return words[at]
