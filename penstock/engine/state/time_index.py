"""Where are the rows of a key with times in a range: rows in order of key and time, as one number each."""

from __future__ import annotations

import numpy as np

from penstock.engine.columns.constants import different

Ranges = tuple[np.ndarray, np.ndarray]


class Index:
    """Some rows in order of their keys' hashes and their times."""

    def __init__(self, hashed: np.ndarray, times: np.ndarray, rows: np.ndarray) -> None:
        by_hash = np.argsort(hashed, kind="stable")
        ordered, when = hashed[by_hash], times[by_hash]
        first = np.diff(ordered, prepend=~ordered[:1]) != 0
        self.hashes = ordered[first]
        self._low = int(when.min()) if len(when) else 0
        self._high = int(when.max()) if len(when) else 0
        self._width = self._high - self._low + 2
        # Where hash and time do not fit into 64 bits side by side, times are numbered by the different ones there are.
        self._times: np.ndarray | None = None
        if len(self.hashes) * self._width >= 2**62:
            self._times = different(when)
            self._width = len(self._times) + 1
        numbers = (np.cumsum(first) - 1) * self._width + self._code(when, after=False)
        order = np.argsort(numbers, kind="stable")
        self.numbers = numbers[order]
        self.rows = rows[by_hash[order]]

    def __len__(self) -> int:
        return len(self.rows)

    def ranges(self, hashed: np.ndarray, low: np.ndarray, high: np.ndarray) -> Ranges:
        """For each hash, which places of `rows` have it and a time from low to high: the first, and one past the last.

        Keys that share a hash are not told apart.
        """
        if not len(self.rows):
            nowhere = np.zeros(len(hashed), dtype=np.int64)
            return nowhere, nowhere
        group = np.minimum(np.searchsorted(self.hashes, hashed), len(self.hashes) - 1)
        at = np.flatnonzero((self.hashes[group] == hashed) & (low <= high))
        base = group[at] * self._width
        first, last = np.zeros(len(hashed), dtype=np.int64), np.zeros(len(hashed), dtype=np.int64)
        first[at] = np.searchsorted(self.numbers, base + self._code(low[at], after=False))
        last[at] = np.searchsorted(self.numbers, base + self._code(high[at], after=True))
        return first, last

    def _code(self, times: np.ndarray, after: bool) -> np.ndarray:
        """The number of the first time that is not before each of these, or is after it."""
        if self._times is not None:
            return np.searchsorted(self._times, times, side="right" if after else "left")
        codes = np.clip(times, self._low - after, self._high + 1 - after) - self._low
        return codes + 1 if after else codes


def expanded(ranges: Ranges) -> tuple[np.ndarray, np.ndarray]:
    """Every place in each range, with the number of the range."""
    first, last = ranges
    sizes = last - first
    of = np.repeat(np.arange(len(sizes)), sizes)
    return of, np.arange(len(of)) + np.repeat(first - (np.cumsum(sizes) - sizes), sizes)


def united(ranges: Ranges) -> np.ndarray:
    """Every place that is in a range, once, in order."""
    some = ranges[1] > ranges[0]
    first, last = ranges[0][some], ranges[1][some]
    if not len(first):
        return first
    order = np.argsort(first)
    first, reached = first[order], np.maximum.accumulate(last[order])
    begins = np.flatnonzero(np.append(True, first[1:] > reached[:-1]))
    ends = reached[np.append(begins[1:] - 1, len(first) - 1)]
    return expanded((first[begins], ends))[1]
