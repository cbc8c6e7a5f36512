"""What the signs mean: those that are on the picture, in as many lines as they need."""

from __future__ import annotations

from collections.abc import Iterable

from penstock.observability.time_plane import COUNTED, LATE, QUARANTINED, Plane
from penstock.picture.event_marks import shape
from penstock.picture.labels import Box
from penstock.picture.marks import CHIP, WORDS, kind, outline
from penstock.picture.markup import tag, text, width_of
from penstock.picture.style import SMALL

LINE, GAP, SIGN = 24.0, 16.0, 26.0
_EVENTS = {COUNTED: "event and its value", LATE: "late event", QUARANTINED: "quarantined event"}
_PANES = {
    "early": "pane: early (E)",
    "on_time": "pane: on time (O)",
    "late": "pane: late (L)",
    "gone": "pane: withdrawn (W)",
}


def legend(plane: Plane, room: Box, *, ideal: bool) -> tuple[str, float]:
    """The legend, and where it ends; `ideal` says whether the line without delay is on the picture."""
    x, y, drawn = room.left, room.top, []
    for name, word in _items(plane, ideal):
        width = SIGN + width_of(word, SMALL) + GAP
        if x + width - GAP > room.right and x > room.left:
            x, y = room.left, y + LINE
        drawn += [_sign(name, x, y), text(word, x + SIGN, y + 4, class_="faint")]
        x += width
    return tag("g", *drawn, class_="legend"), y + LINE


def _items(plane: Plane, ideal: bool) -> Iterable[tuple[str, str]]:
    fates = {dot.fate for dot in plane.dots}
    yield from ((f"event {fate}", word) for fate, word in _EVENTS.items() if fate in fates)
    if plane.marks:
        yield "watermark", "watermark"
    if ideal:
        yield "ideal", "no delay"
    kinds = {kind(pane) for pane in plane.panes}
    yield from ((one, _PANES[one]) for one in WORDS if one in kinds)


def _sign(name: str, x: float, y: float) -> str:
    if name.startswith("event "):
        return shape(name.removeprefix("event "), x + 10, y)
    if name in ("watermark", "ideal"):
        return tag("path", class_=name, d=f"M{x + 1:g} {y:g}h18")
    return tag("g", outline(name, Box(x + 1, y - CHIP / 2 + 2, 18, CHIP - 4)), class_=name)
