"""Which of thousands are drawn: one for each small square, so that what stands apart is still there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

One = TypeVar("One")
SMALLEST = 3.0


def thinned(many: Sequence[One], most: int, place: Callable[[One], tuple[float, float, object]]) -> list[One]:
    """At most so many of them, in their order; of those that are alike and share a square, the last is kept."""
    side = SMALLEST
    kept = list(many)
    while len(kept) > most:
        squares = {}
        for one in kept:
            x, y, kind = place(one)
            squares[x // side, y // side, kind] = one
        kept = list(squares.values())
        side *= 1.5
        if side > 1_000:  # kinds alone are more than there may be
            return kept[-most:]
    return kept
