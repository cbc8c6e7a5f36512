"""One key's plane on the picture: its frame, its scales, its windows, and the room that is left for labels."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from penstock.observability.time_plane import Dot, Mark, Shown
from penstock.picture.labels import Box, Room
from penstock.picture.layout import Scale

Span = tuple[int, int]
LANE, MOST_LANES = 9.0, 6


@dataclass
class Panel:
    """Where one key's events, watermark and panes are drawn; `unsaid` counts panes whose value found no room."""

    key: str
    dots: Sequence[Dot]
    marks: Sequence[Mark]
    panes: Sequence[Shown]
    frame: Box
    across: Scale
    up: Scale
    room: Room = field(init=False)
    left_out_events: int = 0
    left_out_panes: int = 0
    unsaid: int = 0

    def __post_init__(self) -> None:
        self.room = Room(self.frame)
        self.across = self.across.moved(self.frame.left, self.frame.right)
        self.up = self.up.moved(self.frame.bottom, self.frame.top)

    @property
    def windows(self) -> list[Span]:
        """The windows that showed something, from the first to the last."""
        return windows_of(self.panes)

    def span(self, window: Span) -> tuple[float, float]:
        """From which pixel to which a window reaches."""
        return self.across.at(window[0]), self.across.at(window[1])


def windows_of(panes: Iterable[Shown]) -> list[Span]:
    """The windows of panes; of those that begin together the longest comes first."""
    return sorted({(pane.start, pane.end) for pane in panes}, key=lambda window: (window[0], -window[1]))


def lanes(windows: Iterable[Span]) -> dict[Span, int]:
    """In which row each window lies, so that those of a row do not overlap.

    >>> lanes([(0, 10), (5, 15), (10, 20)])
    {(0, 10): 0, (5, 15): 1, (10, 20): 0}
    """
    ends: list[int] = []
    rows: dict[Span, int] = {}
    for start, end in windows:
        row = next((row for row, taken in enumerate(ends) if taken <= start), len(ends))
        ends[row : row + 1] = [end]
        rows[start, end] = row
    return rows


def nested(windows: Iterable[Span]) -> bool:
    """Whether windows that overlap hold one another, as sessions do that have merged."""
    open_: list[int] = []
    for start, end in windows:
        while open_ and open_[-1] <= start:
            open_.pop()
        if open_ and end > open_[-1]:
            return False
        open_.append(end)
    return True


def strip(panes: Iterable[Shown]) -> float:
    """How much room the rows of overlapping windows need below the frame; none where there is one row."""
    rows = max(lanes(windows_of(panes)).values(), default=0) + 1
    return 0.0 if rows == 1 else min(rows, MOST_LANES) * LANE + 6
