"""Where is there room for a label: boxes that are taken, in cells, so that thousands are asked quickly."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

CELL = 40.0


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle in pixels."""

    left: float
    top: float
    width: float
    height: float

    @property
    def right(self) -> float:
        return self.left + self.width

    @property
    def bottom(self) -> float:
        return self.top + self.height

    @property
    def middle(self) -> float:
        """Halfway across."""
        return self.left + self.width / 2

    def roomier(self, across: float, up: float = 0.0) -> Box:
        """The same with some room around it."""
        return Box(self.left - across, self.top - up, self.width + 2 * across, self.height + 2 * up)

    def meets(self, other: Box) -> bool:
        """Whether the two share room."""
        across = self.left < other.right and other.left < self.right
        return across and self.top < other.bottom and other.top < self.bottom

    def within(self, other: Box) -> bool:
        """Whether it is wholly inside another."""
        across = other.left <= self.left and self.right <= other.right
        return across and other.top <= self.top and self.bottom <= other.bottom


@dataclass
class Room:
    """What is taken of a frame: by marks that may not be covered, and by lines that had better not be."""

    frame: Box
    taken: dict[tuple[int, int], list[Box]] = field(default_factory=dict)
    lines: dict[tuple[int, int], list[Box]] = field(default_factory=dict)

    def take(self, box: Box) -> None:
        """Nothing may be put here any more."""
        _put(self.taken, box)

    def line(self, box: Box) -> None:
        """Things are put here only where there is no other place."""
        _put(self.lines, box)

    def free(self, box: Box, *, over_lines: bool) -> bool:
        """Whether a box is inside the frame and its place is free."""
        if not box.within(self.frame) or _met(self.taken, box):
            return False
        return over_lines or not _met(self.lines, box)


def _put(held: dict[tuple[int, int], list[Box]], box: Box) -> None:
    for cell in _cells(box):
        held.setdefault(cell, []).append(box)


def _met(held: dict[tuple[int, int], list[Box]], box: Box) -> bool:
    return any(box.meets(other) for cell in _cells(box) for other in held.get(cell, ()))


def _cells(box: Box) -> Iterator[tuple[int, int]]:
    for across in range(int(box.left // CELL), int(box.right // CELL) + 1):
        for down in range(int(box.top // CELL), int(box.bottom // CELL) + 1):
            yield across, down
