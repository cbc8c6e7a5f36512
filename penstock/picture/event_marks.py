"""Events as dots with their values: round where counted, a cross where late, a diamond where quarantined."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from penstock.observability.time_plane import COUNTED, LATE, QUARANTINED, Dot
from penstock.picture.labels import Box
from penstock.picture.layout import when
from penstock.picture.markup import shortened, tag, text, title, width_of
from penstock.picture.panel import Panel
from penstock.picture.style import BOLD, SMALL
from penstock.picture.thinning import thinned

MOST, MOST_NAMED, SIGNS = 600, 90, 10
RADIUS, SMALL_RADIUS = 5.0, 2.5


@dataclass(frozen=True, slots=True)
class Spot:
    """Events that lie on one another: the same time, seen at the same moment, with the same end."""

    x: float
    y: float
    dots: tuple[Dot, ...]
    edge: str = ""

    @property
    def fate(self) -> str:
        return self.dots[0].fate

    @property
    def name(self) -> str:
        """The value of one, of two or three; the number of more."""
        # What is long is a whole row, as runs are observed: the same first words beside each dot say nothing.
        values = [shortened(dot.text, SIGNS) if len(dot.text) <= 2 * SIGNS else "" for dot in self.dots]
        said = ", ".join(values) if len(values) <= 3 and all(values) else f"×{len(values)}" if len(values) > 1 else ""
        return f"{self.edge}{said}"


def spots(panel: Panel) -> list[Spot]:
    """Where the events of a panel are drawn; the panel is told how many are not, and what room they take."""
    found: dict[tuple[float, float, str, str], list[Dot]] = {}
    for dot in panel.dots:
        x, edge = _across(panel, dot)
        fate = dot.fate if dot.fate in (LATE, QUARANTINED) else COUNTED
        found.setdefault((x, panel.up.at(dot.now), fate, edge), []).append(dot)
    every = [Spot(x, y, tuple(dots), edge) for (x, y, _, edge), dots in found.items()]
    kept = thinned(every, MOST, lambda spot: (spot.x, spot.y, spot.fate))
    panel.left_out_events = len(panel.dots) - sum(len(spot.dots) for spot in kept)
    for spot in () if crowded(kept) else kept:
        panel.room.take(Box(spot.x - RADIUS - 1, spot.y - RADIUS - 1, 2 * RADIUS + 2, 2 * RADIUS + 2))
    return kept


def crowded(drawn: Sequence[Spot]) -> bool:
    """Whether there are so many that they are a cloud: small, without values, behind everything else."""
    return len(drawn) > MOST_NAMED


def _across(panel: Panel, dot: Dot) -> tuple[float, str]:
    """Where an event lies, and to which side beyond the edge it truly is."""
    if dot.event_time is None:
        return panel.across.start, ""
    edge = "" if panel.across.holds(dot.event_time) else "← " if dot.event_time < panel.across.low else "→ "
    return panel.across.at(dot.event_time), edge


def marks(drawn: Sequence[Spot]) -> str:
    """The dots themselves."""
    radius = SMALL_RADIUS if crowded(drawn) else RADIUS
    return "".join(
        tag("g", title(_told(spot)), shape(spot.fate, spot.x, spot.y, radius), class_=f"event {spot.fate}-event")
        for spot in drawn
    )


def names(panel: Panel, drawn: Sequence[Spot]) -> str:
    """Their values, each at a free place beside its dot; what was not counted finds its place first."""
    if crowded(drawn):
        return ""
    return "".join(_name(panel, spot) for spot in sorted(drawn, key=lambda spot: spot.fate == COUNTED) if spot.name)


def _name(panel: Panel, spot: Spot) -> str:
    width = width_of(spot.name, SMALL) * BOLD
    near, half = RADIUS + 3, SMALL / 2 + 1
    places = [
        (spot.x + near, spot.y - half),
        (spot.x - near - width, spot.y - half),
        (spot.x - width / 2, spot.y - near - 2 * half),
        (spot.x - width / 2, spot.y + near),
        (spot.x + near - 2, spot.y - near - half),
        (spot.x - near + 2 - width, spot.y - near - half),
        (spot.x + near - 2, spot.y + near - half),
        (spot.x - near + 2 - width, spot.y + near - half),
        (spot.x - width, spot.y - near - 2 * half),
        (spot.x, spot.y - near - 2 * half),
        (spot.x - width, spot.y + near),
        (spot.x, spot.y + near),
    ]
    for over_lines in (False, True):
        for left, top in places:
            box = Box(left, top, width, 2 * half)
            if panel.room.free(box, over_lines=over_lines):
                panel.room.take(box.roomier(4))
                return text(spot.name, box.middle, top + SMALL - 0.5, class_="middle value")
    return ""


def _told(spot: Spot) -> str:
    first = spot.dots[0]
    values = ", ".join(shortened(dot.text, 40) or "an event" for dot in spot.dots[:5])
    more = f" and {len(spot.dots) - 5} more" if len(spot.dots) > 5 else ""
    ended = "" if spot.fate == COUNTED else f"; {spot.fate}: {first.why}"
    return f"{values}{more}: happened {when(first.event_time)}, seen {when(first.now)}{ended}"


def shape(fate: str, x: float, y: float, radius: float = RADIUS) -> str:
    """The sign of an event, by what became of it."""
    size = "" if radius == RADIUS else " small"
    if fate == LATE:
        arm = radius * 0.8
        across = f"l{2 * arm:g} {2 * arm:g}m0-{2 * arm:g}l-{2 * arm:g} {2 * arm:g}"
        return tag("path", class_=f"cross{size}", d=f"M{x - arm:.1f} {y - arm:.1f}{across}")
    if fate == QUARANTINED:
        arm = radius * 1.2
        around = f"l{arm:g} {arm:g}l-{arm:g} {arm:g}l-{arm:g}-{arm:g}z"
        return tag("path", class_=f"diamond{size}", d=f"M{x:.1f} {y - arm:.1f}{around}")
    return tag("circle", class_=f"dot{size}", cx=x, cy=y, r=radius)
