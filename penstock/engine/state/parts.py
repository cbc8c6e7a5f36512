"""Where do rows lie that wait for their batch: in hand, or at rest under a name and fetched when they are needed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Generic, Protocol, Self, TypeVar

import numpy as np

from penstock.engine.state.cache import CACHE
from penstock.engine.state.codec import checked, decoded, encoded, name_of
from penstock.engine.windows.index import Identified, mixed
from penstock.engine.windows.table import Windows


class Table(Identified, Protocol):
    """Rows of one key and window each, in columns that never change."""

    @property
    def records(self) -> np.ndarray: ...
    def take(self, rows: np.ndarray) -> Self: ...
    def settled(self) -> Self: ...


T = TypeVar("T", bound=Table)
Sorted = tuple[np.ndarray, np.ndarray]
Fetch = Callable[[str], bytes]


class Stored(Generic[T]):
    """Rows that never change, and which rows of older runs they took the place of; ways to find them are made once."""

    def __init__(self, rows: T, takes: Mapping[int, np.ndarray] | None = None) -> None:
        self.rows = rows
        self.takes = takes or {}
        self._sorted: dict[str, Sorted] = {}
        self._seen: tuple[np.ndarray, np.uint64] | None = None

    def by_key(self) -> Sorted:
        """The hashes of the keys in order, and the row of each."""
        return self._in_order("key", lambda rows: rows.hash)

    def by_window(self) -> Sorted:
        """One number for each key and window in order, and the row of each."""
        return self._in_order("window", lambda rows: mixed(rows.hash, rows.start, rows.end))

    def perhaps(self, numbers: np.ndarray, wanted: np.ndarray) -> np.ndarray:
        """The wanted numbers without most of those that are not among these, both in order, by their first bits."""
        if self._seen is None:
            shift = np.uint64(64 - (4 * len(numbers)).bit_length())
            seen = np.zeros(1 << int(64 - shift), dtype=bool)
            seen[numbers >> shift] = True
            self._seen = (seen, shift)
        seen, shift = self._seen
        return wanted[seen[wanted >> shift]]

    def by_end(self) -> Sorted:
        """The ends in order, and the row of each."""
        return self._in_order("end", lambda rows: rows.end)

    def by_wait(self) -> Sorted:
        """Since when rows wait to be shown, in order, and the row of each; those with nothing to show are left out."""
        if "wait" not in self._sorted:
            assert isinstance(self.rows, Windows)
            waiting = np.flatnonzero(self.rows.unshown > 0)
            order = np.argsort(self.rows.first_unshown[waiting])
            self._sorted["wait"] = (self.rows.first_unshown[waiting][order], waiting[order])
        return self._sorted["wait"]

    def _in_order(self, name: str, column: Callable[[T], np.ndarray]) -> Sorted:
        if name not in self._sorted:
            values = column(self.rows)
            order = np.argsort(values)
            self._sorted[name] = (values[order], order)
        return self._sorted[name]


class Part(Generic[T]):
    """What is stored as one piece; it knows its name once it was written or where it is fetched by it."""

    __slots__ = ("_fetch", "_held", "name")

    def __init__(self, held: Stored[T] | None = None, name: str | None = None, fetch: Fetch | None = None) -> None:
        self.name = name
        self._held = held
        self._fetch = fetch

    def get(self) -> Stored[T]:
        """What is stored; fetched through the cache, and not held on to, where it is at rest."""
        if self._held is not None:
            return self._held
        assert self.name is not None
        return CACHE.get(self.name, self._decoded)

    def written(self) -> tuple[str, bytes]:
        """The name and the bytes; from then on others of this process find it in the cache."""
        if self._fetch is not None and self.name is not None:
            return self.name, checked(self.name, self._fetch(self.name))
        stored = self.get()
        data = encoded(stored.rows, stored.takes)
        if self.name is None:
            self.name = name_of(data)
            CACHE.put(self.name, stored, _weight(data, len(stored.rows)))
        return self.name, data

    def _decoded(self) -> tuple[Stored[T], int]:
        assert self.name is not None
        assert self._fetch is not None
        data = checked(self.name, self._fetch(self.name))
        rows, takes = decoded(data)
        return Stored(rows, takes), _weight(data, len(rows))


def _weight(data: bytes, rows: int) -> int:
    """About how much memory it takes, with the ways to find its rows."""
    return 2 * len(data) + 64 * rows
