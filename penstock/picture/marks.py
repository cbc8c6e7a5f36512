"""Panes as rectangles: as wide as the window, up to the moment of emission, with value and timing on a chip."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from xml.sax.saxutils import escape

from penstock.observability.time_plane import COUNTED, Shown
from penstock.picture.labels import Box
from penstock.picture.layout import when
from penstock.picture.markup import shortened, tag, title, width_of
from penstock.picture.panel import Panel, nested, strip
from penstock.picture.style import BOLD, SMALL
from penstock.picture.thinning import thinned

MOST, SIGNS = 300, 16
# Where there are more, a chip must fit into its window: beside it, chips would cover all else.
MOST_BESIDE = 24
CHIP = 17.0
GONE = "gone"
# The words of each kind, and the letter where there is no room for them.
WORDS = {"early": ("early", "E"), "on_time": ("on time", "O"), "late": ("late", "L"), GONE: ("withdrawn", "W")}
HATCHED = {"early": "M0 8L8 0", "late": "M0 0L8 8M0 8L8 0"}


def kind(pane: Shown) -> str:
    """How a pane is drawn: by its timing, or as one that is withdrawn."""
    return GONE if pane.op < 0 else pane.timing if pane.timing in WORDS else "on_time"


def kept(panel: Panel) -> list[Shown]:
    """Those that are drawn; the panel is told how many are not."""
    chosen = thinned(
        panel.panes, MOST, lambda pane: (sum(panel.span((pane.start, pane.end))), panel.up.at(pane.now), kind(pane))
    )
    panel.left_out_panes = len(panel.panes) - len(chosen)
    return chosen


def bodies(panel: Panel, chosen: list[Shown]) -> str:
    """The rectangles; where windows cut across one another, their tops alone."""
    filled, drawn, light = nested(panel.windows), [], " light" if strip(panel.panes) else ""
    floors = _floors(panel, chosen) if filled else {}
    for number, pane in enumerate(chosen):
        left, right = panel.span((pane.start, pane.end))
        top = panel.up.at(pane.now)
        panel.room.line(Box(left, top - 1, right - left, 2))
        floor = panel.up.at(floors.get(number, pane.now))
        parts = [title(_told(pane))]
        if floor > top:
            place = {"x": left, "y": top, "width": right - left, "height": floor - top}
            parts.append(tag("rect", class_=f"body{light}", **place))
            panel.room.line(Box(left, floor - 1, right - left, 2))
            if not light and kind(pane) in HATCHED:
                parts.append(tag("rect", fill=f"url(#hatch-{kind(pane)})", **place))
        edge = f"M{left:.1f} {top + 6:.1f}V{top:.1f}H{right:.1f}v6"
        drawn.append(tag("g", *parts, tag("path", class_="top", d=edge), class_=f"pane {kind(pane)}"))
    return "".join(drawn)


def patterns() -> str:
    """The hatching of what is early, and of what is late."""
    return "".join(
        tag(
            "pattern",
            tag("path", class_="hatch", d=path),
            class_=of,
            id=f"hatch-{of}",
            width=8,
            height=8,
            patternUnits="userSpaceOnUse",
        )
        for of, path in HATCHED.items()
    )


def _floors(panel: Panel, chosen: list[Shown]) -> dict[int, int]:
    """Where the rectangle of each pane begins: at the pane before, or when its first event was seen."""
    timed = sorted(
        (dot.event_time, dot.now) for dot in panel.dots if dot.event_time is not None and dot.fate == COUNTED
    )
    times = [time for time, _ in timed]
    before: dict[tuple[int, int], int] = {}
    floors = {}
    for number, pane in enumerate(chosen):
        window = (pane.start, pane.end)
        if window not in before:
            inside = timed[bisect_left(times, pane.start) : bisect_left(times, pane.end)]
            before[window] = min((now for _, now in inside), default=pane.now)
        if pane.op > 0:
            floors[number] = min(before[window], pane.now)
            before[window] = pane.now
    return floors


def chips(panel: Panel, chosen: list[Shown]) -> str:
    """Value and timing of each pane below its top; the newest first, so that what came before makes way."""
    leaders, drawn = [], []
    for pane in reversed(chosen):
        top = panel.up.at(pane.now)
        word, box = next(_places(panel, pane, top), ("", None))
        if box is None:
            panel.unsaid += 1
            continue
        panel.room.take(box.roomier(3, 1.5))
        if box.top - top > 8:
            leaders.append(tag("path", class_="leader", d=f"M{box.middle:.1f} {top:.1f}V{box.top:.1f}"))
        drawn.append(_chip(pane, word, box))
    return "".join(leaders + drawn)


def _chip(pane: Shown, word: str, box: Box) -> str:
    of = kind(pane)
    said = tag("tspan", escape(shortened(pane.text, SIGNS)), class_="value") + escape(f" {word}")
    written = tag("text", said, x=box.middle, y=box.top + SMALL + 0.5, class_="middle")
    return tag("g", title(_told(pane)), outline(of, box), written, class_=f"label {of}")


def _places(panel: Panel, pane: Shown, top: float) -> Iterator[tuple[str, Box]]:
    """Free places for a chip, the nearest first; the letter where the word finds none."""
    left, right = panel.span((pane.start, pane.end))
    value = width_of(shortened(pane.text, SIGNS), SMALL) * BOLD
    widths = {word: value + width_of(f" {word}", SMALL) + 14 for word in WORDS[kind(pane)]}
    fits = {word: width for word, width in widths.items() if width + 6 <= right - left}
    if not fits and len(panel.panes) > MOST_BESIDE:
        return
    for over_lines, furthest in ((False, 26), (True, 26), (True, 60), (True, 120)):
        for word, width in (fits or dict(list(widths.items())[-1:])).items():
            middle = min(max((left + right) / 2, panel.frame.left + width / 2), panel.frame.right - width / 2)
            for down in range(4, furthest, 4):
                for x in (middle - width / 2, left + 5, right - width - 5):
                    box = Box(x, top + down, width, CHIP)
                    if panel.room.free(box, over_lines=over_lines):
                        yield word, box


def outline(of: str, box: Box) -> str:
    """The shape of a chip: round where early, pointed where late, a plain box where on time or withdrawn."""
    if of != "late":
        round_ = box.height / 2 if of == "early" else 1.0
        return tag("rect", class_="chip", x=box.left, y=box.top, width=box.width, height=box.height, rx=round_)
    half, tip = box.height / 2, 6.0
    path = f"M{box.left - 1:.1f} {box.top + half:.1f}l{tip:g}-{half:g}H{box.right - tip + 1:.1f}l{tip:g} {half:g}"
    return tag("path", class_="chip", d=f"{path}l-{tip:g} {half:g}H{box.left + tip - 1:.1f}z")


def _told(pane: Shown) -> str:
    key = f"{shortened(pane.key, 60)}, " if pane.key else ""
    final = ", final" if pane.final else ""
    return (
        f"{shortened(pane.text, 160)} ({WORDS[kind(pane)][0]}, pane {pane.index}{final}): "
        f"{key}{when(pane.start)} to {when(pane.end)}, emitted {when(pane.now)}"
    )
