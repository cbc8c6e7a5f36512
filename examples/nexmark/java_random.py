"""How are numbers drawn: java.util.Random, once for one event and once for many events side by side."""

from __future__ import annotations

from typing import Any

import numpy as np

# The generator that Java's documentation of java.util.Random gives: 48 bits, multiplied and added to.
MULTIPLIER, ADDEND, MASK = 0x5DEECE66D, 0xB, (1 << 48) - 1
LIMIT = 1 << 31
PLACE = 1.0 / (1 << 53)
_MULTIPLIER, _ADDEND, _MASK = np.uint64(MULTIPLIER), np.uint64(ADDEND), np.uint64(MASK)


class JavaRandom:
    """The draws of one seed, as `new java.util.Random(seed)` gives them.

    >>> JavaRandom(42).below(10)
    0
    """

    def __init__(self, seed: int) -> None:
        self.state = (seed ^ MULTIPLIER) & MASK

    def below(self, bound: int) -> int:
        """`nextInt(bound)`."""
        if bound & (bound - 1) == 0:
            return bound * self._bits(31) >> 31
        while True:
            drawn = self._bits(31)
            if drawn < LIMIT - LIMIT % bound:
                return drawn % bound

    def share(self) -> float:
        """`nextDouble()`."""
        high = self._bits(26) << 27
        return (high + self._bits(27)) * PLACE

    def _bits(self, count: int) -> int:
        self.state = (self.state * MULTIPLIER + ADDEND) & MASK
        return self.state >> (48 - count)


class JavaRandoms:
    """The draws of many seeds, one of each at a time: the same numbers, a column instead of a loop."""

    def __init__(self, seeds: np.ndarray) -> None:
        self.states = (seeds.astype(np.uint64) ^ _MULTIPLIER) & _MASK

    def below(self, bound: Any) -> np.ndarray:
        """`nextInt(bound)` of each; the bound is one for all, or one for each."""
        drawn = self._bits(31)
        if isinstance(bound, int) and bound & (bound - 1) == 0:
            return drawn >> (32 - bound.bit_length())
        limits = LIMIT - LIMIT % bound
        again = np.flatnonzero(drawn >= limits)
        if not isinstance(bound, int):
            powers = bound & (bound - 1) == 0
            again = again[~powers[again]]
        if len(again):
            self._redraw(drawn, again, bound, limits)
        if isinstance(bound, int):
            return drawn - drawn // bound * bound  # quicker than numpy's remainder
        return np.where(powers, bound * drawn >> 31, drawn % bound)

    def share(self) -> np.ndarray:
        """`nextDouble()` of each."""
        high = self._bits(26) << 27
        return (high + self._bits(27)) * PLACE

    def of(self, places: np.ndarray) -> JavaRandoms:
        """Some of them, to draw for these alone; `put` takes them back."""
        made = JavaRandoms.__new__(JavaRandoms)
        made.states = self.states[places]
        return made

    def put(self, places: np.ndarray, some: JavaRandoms) -> None:
        """Those that `of` gave, after their draws."""
        self.states[places] = some.states

    def _bits(self, count: int) -> np.ndarray:
        self.states *= _MULTIPLIER  # what leaves 64 bits is beyond the 48 that count
        self.states += _ADDEND
        self.states &= _MASK
        return (self.states >> np.uint64(48 - count)).view(np.int64)

    def _redraw(self, drawn: np.ndarray, again: np.ndarray, bound: Any, limits: Any) -> None:
        """Draw once more where a number lies in the incomplete last stretch of bounds, as Java does."""
        while len(again):
            some = self.of(again)
            drawn[again] = some._bits(31)
            self.put(again, some)
            most = limits if isinstance(bound, int) else limits[again]
            again = again[drawn[again] >= most]
