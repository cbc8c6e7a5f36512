"""Where on the picture is a time: two scales, how far they reach, and their ticks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date

from penstock.observability.time_plane import COUNTED, Plane
from penstock.types.timestamps import MAX_TIME, MIN_TIME, show, to_datetime

SECOND, MINUTE, HOUR, DAY = 1_000_000, 60_000_000, 3_600_000_000, 86_400_000_000
PADDING = 0.04
_STEPS = (
    *(n * 10**power for power in range(6) for n in (1, 2, 5)),
    *(n * SECOND for n in (1, 2, 5, 10, 15, 30)),
    *(n * MINUTE for n in (1, 2, 5, 10, 15, 30)),
    *(n * HOUR for n in (1, 2, 3, 6, 12)),
    *(n * DAY * ten for ten in (1, 10, 100, 1_000, 10_000, 100_000, 1_000_000) for n in (1, 2, 5)),
)


@dataclass(frozen=True, slots=True)
class Scale:
    """Times between `low` and `high` lie between the pixels `start` and `end`; what is beyond lies at the edge."""

    low: int
    high: int
    start: float
    end: float

    def at(self, time: int) -> float:
        """The pixel of a time."""
        share = (min(max(time, self.low), self.high) - self.low) / (self.high - self.low)
        return self.start + share * (self.end - self.start)

    def holds(self, time: int) -> bool:
        """Whether a time is between the edges."""
        return self.low <= time <= self.high

    def moved(self, start: float, end: float) -> Scale:
        """The same times between other pixels."""
        return Scale(self.low, self.high, start, end)

    def ticks(self, apart: float) -> list[int]:
        """Round times, at least so many pixels from one another."""
        least = (self.high - self.low) * apart / max(abs(self.end - self.start), 1)
        step = next((step for step in _STEPS if step >= least), _STEPS[-1])
        first = -(-self.low // step) * step
        return list(range(first, self.high + 1, step))[:50]


def reaches(plane: Plane) -> tuple[Scale, Scale]:
    """The scales of a plane, between the pixels 0 and 1: event time, then processing time."""
    windows = [time for pane in plane.panes for time in (pane.start, pane.end)]
    counted = [dot.event_time for dot in plane.dots if dot.fate == COUNTED]
    others = [dot.event_time for dot in plane.dots if dot.fate != COUNTED]
    across = _reach([*windows, *counted], [*others, *(mark.watermark for mark in plane.marks)])
    # A batch before the first event would only push what there is to see aside.
    seen = _reach([dot.now for dot in plane.dots] + [pane.now for pane in plane.panes], ())
    marks = [mark.now for mark in plane.marks]
    up = _reach([], marks) if seen is None else _reach(seen, [now for now in marks if now > seen[0]])
    # Below the first moment there is room for what a pane of that moment says.
    return _scale(across, up, PADDING), _scale(up, across, 2.5 * PADDING)


def _reach(core: Sequence[int | None], more: Iterable[int | None]) -> tuple[int, int] | None:
    """The least and the greatest; what is further off than the core is long would only make it small."""
    inside = _finite(core) or _finite(more)
    if not inside:
        return None
    low, high = min(inside), max(inside)
    length = high - low
    near = [time for time in _finite(more) if low - length <= time <= high + length]
    return min([low, *near]), max([high, *near])


def _finite(times: Iterable[int | None]) -> list[int]:
    return [time for time in times if time is not None and MIN_TIME < time < MAX_TIME]


def _scale(reach: tuple[int, int] | None, other: tuple[int, int] | None, below: float) -> Scale:
    low, high = reach or other or (0, MINUTE)
    if low == high:  # one moment alone: as long as the other scale is, or a minute
        length = (other[1] - other[0] if other is not None else 0) or MINUTE
        low, high = low - length // 2 - 1, high + length // 2 + 1
    length = high - low
    return Scale(low - max(int(length * below), 1), high + max(int(length * PADDING), 1), 0.0, 1.0)


def label(time: int, step: int) -> str:
    """A tick in words, as exact as the step needs."""
    moment = to_datetime(time)
    if moment is None:
        return str(time)
    if step >= DAY:
        return moment.date().isoformat()
    if step >= MINUTE:
        return moment.strftime("%H:%M")
    if step >= SECOND:
        return moment.strftime("%H:%M:%S")
    if 0 <= time < SECOND:
        return f"{time} µs"
    return moment.strftime("%S.%f").rstrip("0")


def day(scale: Scale) -> str:
    """The day of a scale's middle; nothing where times are of the day alone."""
    moment = to_datetime((scale.low + scale.high) // 2)
    return "" if moment is None or moment.date() == date(1970, 1, 1) else f"{moment.date().isoformat()}, UTC"


def when(time: int | None) -> str:
    """A time in full."""
    return "no event time" if time is None else show(time)
