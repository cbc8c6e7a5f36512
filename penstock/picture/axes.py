"""What lies behind everything: the frame, ticks, the columns of windows, and the line on which nothing is delayed."""

from __future__ import annotations

from penstock.picture.layout import Scale, day, label
from penstock.picture.markup import tag, text, width_of
from penstock.picture.panel import LANE, MOST_LANES, Panel, lanes, strip
from penstock.picture.style import SMALL

ACROSS_APART, UP_APART = 62.0, 44.0


def axes(panel: Panel, strip_height: float) -> str:
    """The ground of a panel, up to its frame."""
    frame = panel.frame
    return "".join(
        [
            tag("rect", class_="ground", x=frame.left, y=frame.top, width=frame.width, height=frame.height),
            *_columns(panel),
            *_across(panel, frame.bottom + strip_height),
            *_up(panel),
            tag("rect", class_="frame", x=frame.left, y=frame.top, width=frame.width, height=frame.height),
            *_brackets(panel),
            _ideal(panel.across, panel.up),
        ]
    )


def margin(up: Scale, height: float) -> float:
    """How much room the ticks of processing time need on the left."""
    return 30 + max((width_of(word, SMALL) for _, word in _ticks(up.moved(0, height), UP_APART)), default=0)


def _ticks(scale: Scale, apart: float) -> list[tuple[int, str]]:
    times = scale.ticks(apart)
    step = times[1] - times[0] if len(times) > 1 else scale.high - scale.low
    return [(time, label(time, step)) for time in times]


def _across(panel: Panel, below: float) -> list[str]:
    frame, drawn = panel.frame, []
    widest = max((width_of(word, SMALL) for _, word in _ticks(panel.across, ACROSS_APART)), default=0)
    for time, word in _ticks(panel.across, max(ACROSS_APART, widest + 14)):
        x = panel.across.at(time)
        drawn.append(tag("line", class_="grid", x1=x, y1=frame.top, x2=x, y2=frame.bottom))
        drawn.append(text(word, x, below + 17, class_="faint middle"))
    named = ", ".join(word for word in ("event time", day(panel.across)) if word)
    drawn.append(text(f"{named} →", frame.right, below + 35, class_="axis faint end"))
    return drawn


def _up(panel: Panel) -> list[str]:
    frame, drawn = panel.frame, []
    for time, word in _ticks(panel.up, UP_APART):
        y = panel.up.at(time)
        drawn.append(tag("line", class_="grid", x1=frame.left, y1=y, x2=frame.right, y2=y))
        drawn.append(text(word, frame.left - 8, y + 4, class_="faint end"))
    x = 15.0
    turned = f"rotate(-90 {x:g} {frame.top:g})"
    drawn.append(text("processing time →", x, frame.top, class_="axis faint end", transform=turned))
    return drawn


def _columns(panel: Panel) -> list[str]:
    """Every second window is tinted; where windows overlap, brackets below say how they lie."""
    if strip(panel.panes):
        return []
    drawn = []
    for number, window in enumerate(panel.windows):
        left, right = panel.span(window)
        if number % 2 == 0:
            frame = panel.frame
            drawn.append(tag("rect", class_="column", x=left, y=frame.top, width=right - left, height=frame.height))
    return drawn


def _brackets(panel: Panel) -> list[str]:
    if not strip(panel.panes):
        return []
    drawn = []
    for window, row in lanes(panel.windows).items():
        if row < MOST_LANES:
            left, right = panel.span(window)
            y = panel.frame.bottom + 8 + row * LANE
            drawn.append(tag("path", class_="bracket", d=f"M{left + 1.5:.1f} {y - 3:g}v6m0-3H{right - 1.5:.1f}m0-3v6"))
    return drawn


def delays(across: Scale, up: Scale) -> tuple[int, int] | None:
    """From when to when the line lies on the picture on which events are seen the moment they happen."""
    first, last = max(across.low, up.low), min(across.high, up.high)
    return (first, last) if first < last else None


def _ideal(across: Scale, up: Scale) -> str:
    times = delays(across, up)
    if times is None:
        return ""
    ends = [(across.at(time), up.at(time)) for time in times]
    return tag("path", class_="ideal", d="M{:.1f} {:.1f}L{:.1f} {:.1f}".format(*ends[0], *ends[1]))
