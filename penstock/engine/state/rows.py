"""Rows that wait, in columns: with their times, their places and until when each is needed; and as bytes at rest."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np
import pyarrow as pa

from penstock.engine.columns.constants import constant, join, pick
from penstock.engine.columns.keys import Keys, canonical, equal, hashes
from penstock.engine.ingest.pre_aggregate import Rows
from penstock.engine.state.cache import CACHE
from penstock.engine.state.codec import checked, framed, name_of, unframed
from penstock.engine.state.time_index import Index
from penstock.engine.windows.partials import take_arrays, take_column
from penstock.types.arrow import one_batch

V = TypeVar("V")
_OPTIONS = pa.ipc.IpcWriteOptions(compression="lz4")
_NUMBERS = ("time", "place", "offset")


@dataclass(frozen=True, slots=True)
class Kept:
    """Rows with their event times, until when each is needed, and where they came from.

    `place` is the number of a row's partition among `names`, which are in order.
    """

    batch: pa.RecordBatch
    times: np.ndarray
    until: np.ndarray
    names: tuple[str, ...]
    place: np.ndarray
    offsets: np.ndarray

    def __len__(self) -> int:
        return len(self.times)

    def take(self, rows: np.ndarray) -> Kept:
        """These rows, by place."""
        numbers = (pick(column, rows) for column in (self.times, self.until, self.place, self.offsets))
        times, until, place, offsets = numbers
        return Kept(take_column(self.batch, rows), times, until, self.names, place, offsets)


def kept_rows(rows: Rows, until: np.ndarray) -> Kept:
    """Arrivals as rows that wait."""
    if isinstance(rows.place, str):
        return Kept(rows.batch, rows.times, until, (rows.place,), constant(0, len(rows)), rows.offsets)
    found = rows.place.dictionary_encode()
    names: list[str] = found.dictionary.to_pylist()
    ordered = tuple(sorted(names))
    rank = np.array([ordered.index(name) for name in names], dtype=np.int64)
    place = rank[found.indices.to_numpy(zero_copy_only=False)] if len(rows) else np.empty(0, dtype=np.int64)
    return Kept(rows.batch, rows.times, until, ordered, place, rows.offsets)


def ranks(names: Sequence[str], among: Sequence[str]) -> np.ndarray:
    """The place of each name among others, which are in order."""
    return np.searchsorted(np.array(among, dtype=object), np.array(names, dtype=object)).astype(np.int64)


def concat_kept(parts: Sequence[Kept]) -> Kept:
    """Rows one after the other."""
    if len(parts) == 1:
        return parts[0]
    names = tuple(sorted({name for part in parts for name in part.names}))
    return Kept(
        one_batch(pa.Table.from_batches([part.batch for part in parts])),
        join([part.times for part in parts]),
        join([part.until for part in parts]),
        names,
        np.concatenate([ranks(part.names, names)[part.place] for part in parts]),
        np.concatenate([part.offsets for part in parts]),
    )


class Stored:
    """Rows that never change, keyed by some of their columns; the way to find them is made once."""

    def __init__(self, kept: Kept, keyed_by: tuple[str, ...]) -> None:
        self.kept = kept
        self.keyed_by = keyed_by
        self.keys: Keys = tuple(canonical(kept.batch.column(name)) for name in keyed_by)
        self._hash: np.ndarray | None = None
        self._index: Index | None = None
        self._shared: bool | None = None

    def __len__(self) -> int:
        return len(self.kept)

    @property
    def hash(self) -> np.ndarray:
        """The hash of each row's key."""
        if self._hash is None:
            self._hash = hashes(self.keys, len(self.kept))
        return self._hash

    @property
    def keyed(self) -> np.ndarray:
        """Which rows have a key that can meet another: no part of it is null."""
        whole = np.ones(len(self.kept), dtype=bool)
        for column in self.keys:
            if column.null_count:
                whole &= column.is_valid().to_numpy(zero_copy_only=False)
        return whole

    @property
    def index(self) -> Index:
        """Its rows that have a key, by key and time."""
        if self._index is None:
            rows = np.flatnonzero(self.keyed)
            self._index = Index(self.hash[rows], self.kept.times[rows], rows)
        return self._index

    @property
    def shared(self) -> bool:
        """Whether two different keys have one hash."""
        if self._shared is None:
            rows = self.index.rows
            same = np.flatnonzero(self.hash[rows[1:]] == self.hash[rows[:-1]])
            self._shared = not equal(self.keys_of(rows[1:][same]), self.keys_of(rows[:-1][same])).all()
        return self._shared

    def take(self, rows: np.ndarray) -> Stored:
        """These rows, by place."""
        made = Stored(self.kept.take(rows), self.keyed_by)
        if self._hash is not None:
            made._hash = self._hash[rows]
        return made

    def keys_of(self, rows: np.ndarray) -> Keys:
        """The keys of some rows."""
        return take_arrays(self.keys, rows)


def concat_stored(parts: Sequence[Stored]) -> Stored:
    """Rows one after the other, of one side."""
    if len(parts) == 1:
        return parts[0]
    made = Stored(concat_kept([part.kept for part in parts]), parts[0].keyed_by)
    if all(part._hash is not None for part in parts):
        made._hash = np.concatenate([part.hash for part in parts])
    return made


class Part(Generic[V]):
    """What is stored as one piece: in hand, or at rest under the name of its bytes and fetched when it is needed."""

    __slots__ = ("_fetch", "_held", "_kind", "name")

    def __init__(
        self, kind: Kind[V], held: V | None = None, name: str | None = None, fetch: Callable[[str], bytes] | None = None
    ) -> None:
        self.name = name
        self._kind, self._held, self._fetch = kind, held, fetch

    def get(self) -> V:
        """What is stored; through the cache, and not held on to, where it is at rest."""
        if self._held is not None:
            return self._held
        assert self.name is not None
        found: V = CACHE.get(self.name, self._decoded)
        return found

    def written(self) -> tuple[str, bytes]:
        """The name and the bytes; from then on others of this process find it in the cache."""
        if self._fetch is not None and self.name is not None:
            return self.name, checked(self.name, self._fetch(self.name))
        value = self.get()
        data = self._kind.encoded(value)
        if self.name is None:
            self.name = name_of(data)
            CACHE.put(self.name, value, self._kind.weight(value, data))
        return self.name, data

    def _decoded(self) -> tuple[V, int]:
        assert self.name is not None
        assert self._fetch is not None
        data = checked(self.name, self._fetch(self.name))
        value = self._kind.decoded(data)
        return value, self._kind.weight(value, data)


@dataclass(frozen=True, slots=True)
class Kind(Generic[V]):
    """How values of a kind become bytes and back, and about how much memory one takes."""

    encoded: Callable[[V], bytes]
    decoded: Callable[[bytes], V]
    weight: Callable[[V, bytes], int]


def _encoded_rows(stored: Stored) -> bytes:
    kept = stored.kept
    # How long a row waits is often the same for all; the difference may wrap, and is put back by wrapping again.
    waits = kept.until - kept.times
    same = len(waits) > 0 and bool((waits == waits[0]).all())
    arrays = [*kept.batch.columns, *(pa.array(np.ascontiguousarray(c)) for c in (kept.times, kept.place, kept.offsets))]
    if not same:
        arrays.append(pa.array(waits))
    names = [f"c{i}" for i in range(kept.batch.num_columns)] + [*_NUMBERS, "wait"][
        : len(arrays) - kept.batch.num_columns
    ]
    batch = pa.RecordBatch.from_arrays(arrays, names=names)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema, options=_OPTIONS) as writer:
        writer.write_batch(batch)
    said = {
        "columns": kept.batch.schema.names,
        "keys": stored.keyed_by,
        "names": kept.names,
        "wait": int(waits[0]) if same else None,
    }
    return framed(said, [sink.getvalue().to_pybytes()])


def _decoded_rows(data: bytes) -> Stored:
    head, at = unframed(data)
    batch = one_batch(pa.ipc.open_stream(pa.py_buffer(data).slice(at)).read_all())
    n = len(head["columns"])
    times, place, offsets, *waits = (column.to_numpy(zero_copy_only=False) for column in batch.columns[n:])
    until = times + (waits[0] if waits else np.int64(head["wait"]))
    kept = Kept(
        pa.RecordBatch.from_arrays(batch.columns[:n], names=head["columns"]),
        times,
        until,
        tuple(head["names"]),
        place,
        offsets,
    )
    return Stored(kept, tuple(head["keys"]))


def _encoded_marks(marks: np.ndarray) -> bytes:
    packed = pa.compress(np.packbits(marks).tobytes(), codec="lz4", asbytes=True)
    return framed({"marks": len(marks)}, [packed])


def _decoded_marks(data: bytes) -> np.ndarray:
    head, at = unframed(data)
    packed = pa.decompress(data[at:], (head["marks"] + 7) // 8, codec="lz4", asbytes=True)
    return np.unpackbits(np.frombuffer(packed, dtype=np.uint8), count=head["marks"]).astype(bool)


ROWS = Kind(_encoded_rows, _decoded_rows, lambda stored, data: 3 * len(data) + 64 * len(stored))
MARKS = Kind(_encoded_marks, _decoded_marks, lambda marks, data: len(marks))
