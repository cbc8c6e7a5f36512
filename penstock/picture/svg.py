"""A plane as SVG, drawn by hand: what is on it is escaped text, and a reader without eyes is told what it shows."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from xml.sax.saxutils import escape

from penstock.errors import PenstockError, did_you_mean
from penstock.observability.time_plane import COUNTED, Dot, Plane
from penstock.picture import event_marks, marks
from penstock.picture.axes import axes, delays, margin
from penstock.picture.labels import Box
from penstock.picture.layout import Scale, reaches, when
from penstock.picture.legend import legend
from penstock.picture.markup import fitting, shortened, tag, text, wrapped
from penstock.picture.panel import Panel, lanes, strip, windows_of
from penstock.picture.style import BOLD, SIZE, SMALL, Scheme, style
from penstock.picture.watermark_line import watermark

NARROWEST, WIDEST = 320, 4_000
MOST_KEYS, MOST_REASONS, NOTE_LINES = 8, 4, 3
EDGE = 14.0
NOTHING = "Nothing to draw: no event, no watermark and no pane was seen."


@dataclass(frozen=True, slots=True)
class Look:
    """How wide a picture is, in pixels, and whether it is light, dark or what its reader prefers."""

    width: int = 600
    scheme: Scheme = "auto"

    def __post_init__(self) -> None:
        if not NARROWEST <= self.width <= WIDEST:
            raise PenstockError(
                f"a picture of {self.width} pixels cannot be drawn",
                f"its words have room from {NARROWEST} on, and nobody sees more than {WIDEST:,}",
                f"give a width from {NARROWEST} to {WIDEST}",
            )


def svg(plane: Plane, look: Look | None = None, *, key: str | None = None) -> str:
    """The picture of a plane: of one key, or of the first keys one below the other."""
    look = look or Look()
    chosen = plane if key is None else _of_key(plane, key)
    keys = keys_of(chosen)
    shown = keys[:MOST_KEYS] or [""]
    y, drawn = EDGE, []
    for line in wrapped(plane.title, (SIZE + 2) * BOLD, look.width - 2 * EDGE, 2) if plane.title else ():
        drawn.append(text(line, EDGE, y + SIZE + 1, class_="name"))
        y += 20
    y += 8
    if not (plane.dots or plane.marks or plane.panes):
        drawn.append(text(fitting(NOTHING, SMALL, look.width - 2 * EDGE), EDGE, y + 30, class_="faint"))
        return _whole(drawn, look, y + 60, plane, NOTHING)
    scales = reaches(chosen)
    panels = []
    for one in shown:
        panel, below = _panel(chosen, one, look, scales, y, alone=len(shown) == 1)
        drawn.append(_drawn(panel, alone=keys == [""]))
        panels.append(panel)
        y = below
    room = Box(EDGE, y + 12, look.width - 2 * EDGE, 0)
    signs, y = legend(chosen, room, ideal=delays(*scales) is not None)
    drawn.append(signs)
    for note in _notes(chosen, panels, len(keys) - len(shown)):
        for line in wrapped(note, SMALL, look.width - 2 * EDGE, NOTE_LINES):
            drawn.append(text(line, EDGE, y + 2, class_="faint note"))
            y += 17
    return _whole(drawn, look, y, plane, _summary(chosen))


def keys_of(plane: Plane) -> list[str]:
    """The keys of a plane, in the order in which they were seen."""
    return list(dict.fromkeys([dot.key for dot in plane.dots] + [pane.key for pane in plane.panes]))


def _of_key(plane: Plane, key: str) -> Plane:
    known = keys_of(plane)
    if key not in known:
        raise PenstockError(
            f"no event and no pane has the key {shortened(key, 60)!r}",
            f"{len(known)} keys were seen" if len(known) != 1 else "one key was seen",
            did_you_mean(key, known[:50]) if any(known) else "leave the key out: this pipeline has none",
        )
    return _only(plane, key)


def _only(plane: Plane, key: str) -> Plane:
    dots = tuple(dot for dot in plane.dots if dot.key == key)
    return replace(plane, dots=dots, panes=tuple(pane for pane in plane.panes if pane.key == key))


def _panel(
    plane: Plane, key: str, look: Look, scales: tuple[Scale, Scale], y: float, *, alone: bool
) -> tuple[Panel, float]:
    """The panel of a key below what is there, and where it ends."""
    only = _only(plane, key)
    across, up = scales
    heading = 22.0 if key else 4.0
    height = _height(only, look, alone=alone)
    left = margin(up, height)
    frame = Box(left, y + heading, look.width - left - EDGE, height)
    panel = Panel(key, only.dots, only.marks, only.panes, frame, across, up)
    return panel, frame.bottom + strip(only.panes) + 44


def _height(plane: Plane, look: Look, *, alone: bool) -> float:
    """Low where many are below one another, and higher where a window has many panes to tell."""
    rows = max(lanes(windows_of(plane.panes)).values(), default=0) + 1
    most = max(Counter((pane.start, pane.end) for pane in plane.panes).values(), default=0)
    wanted = (look.width - 80) * (0.62 if alone else 0.4) + max(0, 480 - look.width)
    return float(round(min(max(wanted, 190, 26 * min(most * min(rows, 4), 24)), 700)))


def _drawn(panel: Panel, *, alone: bool) -> str:
    """A panel, from the back to the front; who finds its place first keeps it."""
    ground = axes(panel, strip(panel.panes))
    dots = event_marks.spots(panel)
    line = watermark(panel)
    shown = marks.kept(panel)
    tops = marks.bodies(panel, shown)
    names = event_marks.names(panel, dots)
    chips = marks.chips(panel, shown)
    heading = "" if alone else _heading(panel)
    signs = event_marks.marks(dots)
    layers = [signs, line, chips] if event_marks.crowded(dots) else [line, chips, signs, names]
    return tag("g", heading, ground, tops, *layers, class_="plane")


def _heading(panel: Panel) -> str:
    said = fitting(panel.key or "without a key", SIZE, panel.frame.width)
    return text(said, panel.frame.left, panel.frame.top - 7, class_="axis key")


def _notes(plane: Plane, panels: list[Panel], keys_left: int) -> list[str]:
    """What the picture does not show, and why events were not counted."""
    events_left = sum(panel.left_out_events for panel in panels)
    panes_left = sum(panel.left_out_panes for panel in panels)
    unsaid = sum(panel.unsaid for panel in panels)
    said = []
    if keys_left:
        said.append(f"{keys_left:,} more keys are not drawn; choose one with --key.")
    for left, what in ((events_left, "events"), (panes_left, "panes")):
        if left:
            said.append(f"Too many to draw them all: {left:,} {what} are left out.")
    if unsaid:
        said.append(
            f"No room for the value of {unsaid:,} {'pane' if unsaid == 1 else 'panes'}; a wider picture has more."
        )
    odd = [dot for dot in plane.dots if dot.fate != COUNTED]
    said += [_reason(dot) for dot in odd[:MOST_REASONS]]
    if len(odd) > MOST_REASONS:
        said.append(f"… and {len(odd) - MOST_REASONS:,} more that were late or quarantined.")
    return said


def _reason(dot: Dot) -> str:
    happened = "without event time" if dot.event_time is None else f"of {when(dot.event_time)}"
    said = f"{dot.fate}: {shortened(dot.text, 20) or 'an event'} {happened}, seen {when(dot.now)}"
    return f"{said}: {dot.why}" if dot.why else said


def _summary(plane: Plane) -> str:
    fates = Counter(dot.fate for dot in plane.dots)
    told = [f"{number:,} {fate}" for fate, number in fates.items()]
    shown = [f"{pane.text} {marks.WORDS[marks.kind(pane)][0]} at {when(pane.now)}" for pane in plane.panes[:20]]
    more = f", and {len(plane.panes) - 20:,} more" if len(plane.panes) > 20 else ""
    return (
        f"Event time across, processing time up. {len(plane.dots):,} events"
        + (f" ({', '.join(told)})" if told else "")
        + f". {len(plane.panes):,} panes"
        + (f": {', '.join(shortened(one, 60) for one in shown)}{more}." if shown else ".")
    )


def _whole(drawn: list[str], look: Look, height: float, plane: Plane, told: str) -> str:
    name = shortened(plane.title, 120) or "The plane of a run"
    parts = [
        tag("title", escape(name), id="title"),
        tag("desc", escape(shortened(told, 2_000)), id="desc"),
        tag("style", style(look.scheme)),
        tag("defs", marks.patterns()),
        tag("rect", class_="ground", width="100%", height="100%"),
        *drawn,
    ]
    size = {"viewBox": f"0 0 {look.width} {height:.0f}", "width": look.width, "height": round(height)}
    return (
        tag(
            "svg",
            *(f"\n{part}" for part in parts),
            "\n",
            xmlns="http://www.w3.org/2000/svg",
            role="img",
            aria_labelledby="title desc",
            **size,
        )
        + "\n"
    )
