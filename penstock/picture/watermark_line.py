"""The watermark as a line: it stands still while nothing moves it, and goes to the right at the moment it moves."""

from __future__ import annotations

from itertools import pairwise

from penstock.picture.labels import Box
from penstock.picture.markup import tag, title
from penstock.picture.panel import Panel
from penstock.types.timestamps import show

THICK, UNSEEN = 4.0, 0.5


def watermark(panel: Panel) -> str:
    """The line, infinite where it is at an edge; its place is kept free of labels where that can be."""
    if not panel.marks:
        return ""
    corners = _corners(panel)
    for (x1, y1), (x2, y2) in pairwise(corners):
        left, top = min(x1, x2) - THICK / 2, min(y1, y2) - THICK / 2
        panel.room.line(Box(left, top, abs(x2 - x1) + THICK, abs(y2 - y1) + THICK))
    first, last = panel.marks[0], panel.marks[-1]
    said = title(f"the watermark, from {show(first.watermark)} to {show(last.watermark)}")
    drawn = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in corners)
    return tag("path", said, class_="watermark", d=drawn)


def _corners(panel: Panel) -> list[tuple[float, float]]:
    """Where the line bends; a step that no eye can see is taken with the next one."""
    corners: list[tuple[float, float]] = []
    last = panel.marks[-1]
    for mark in panel.marks:
        x, y = panel.across.at(mark.watermark), panel.up.at(mark.now)
        if corners and mark is not last and abs(x - corners[-1][0]) < UNSEEN and abs(y - corners[-1][1]) < UNSEEN:
            continue
        for corner in [(corners[-1][0], y), (x, y)] if corners else [(x, y)]:
            if len(corners) > 1 and _straight(corners[-2], corners[-1], corner):
                corners[-1] = corner
            elif not corners or corners[-1] != corner:
                corners.append(corner)
    return corners


def _straight(one: tuple[float, float], two: tuple[float, float], three: tuple[float, float]) -> bool:
    return one[0] == two[0] == three[0] or one[1] == two[1] == three[1]
