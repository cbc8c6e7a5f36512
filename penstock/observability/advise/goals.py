"""What is asked of a delay: how complete on-time panes are, how few rows are late, how soon answers come."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.errors import PlanError
from penstock.types.durations import not_negative

if TYPE_CHECKING:
    from penstock.observability.advise.trade_offs import Row

COMPLETE = 0.99  # of a window's rows in its on-time pane, where nobody says otherwise
TENFOLD = 10  # so many rows would be missing at the goal, of as many as are looked at; a tenth of them may come later
WINDOWS = 10  # that are looked at, at least
FEWEST = 1_000  # rows that are looked at, at least


@dataclass(frozen=True, slots=True)
class Goals:
    """The share of its rows that a window's on-time pane holds, at least; of the rows that are late, at most; how long
    after the end of a window its answer comes, at most, in microseconds. None is not asked for."""

    complete: float = COMPLETE
    late: float | None = None
    latency: int | None = None

    @property
    def beyond(self) -> float:
        """The share of rows that must have come before a window is counted: a tenth of what may be missing may not."""
        return 1 - (1 - self.complete) / TENFOLD

    @property
    def shares(self) -> tuple[float, ...]:
        """The shares of events to wait for by which it is sure to be reached."""
        return (self.complete, *(() if self.late is None else (1 - self.late,)))

    @property
    def rows(self) -> int:
        """How many rows must be in the windows that are counted before a share says something."""
        return max(FEWEST, math.ceil(round(TENFOLD / (1 - self.complete), 6))) if self.complete < 1 else FEWEST

    def unmet(self, row: Row) -> tuple[str, ...]:
        """Which of the goals a delay does not reach."""
        short = row.complete is None or row.complete < self.complete
        slow = self.latency is not None and (row.after_end is None or row.after_end > self.latency)
        misses = {
            "complete": short and self.complete > 0,
            "late": self.late is not None and row.share > self.late,
            "latency": slow,
        }
        return tuple(name for name, missed in misses.items() if missed)


def goals_of(complete: str | None = None, late: str | None = None, latency: str | None = None) -> Goals:
    """Goals as they are written on a command line.

    >>> goals_of("0.995", latency="5 seconds")
    Goals(complete=0.995, late=None, latency=5000000)
    """
    return Goals(
        COMPLETE if complete is None else _share(complete, "--complete", "its rows that an on-time pane holds", "0.99"),
        None if late is None else _share(late, "--late", "the events that may be late", "0.001"),
        None if latency is None else not_negative(latency, "--latency"),
    )


def _share(text: str, option: str, what: str, sample: str) -> float:
    try:
        share = float(text)
    except ValueError:
        share = math.nan
    if not 0 <= share <= 1:
        written = _as_share(text) or sample
        raise PlanError(
            f"{option} is {text!r}, which is not a share",
            f"it is the share of {what}, from 0 to 1",
            f"write {option} {written}",
        )
    return share


def _as_share(text: str) -> str | None:
    """What a number of percent is as a share."""
    try:
        percent = float(text.strip().removesuffix("%"))
    except ValueError:
        return None
    return f"{percent / 100:.12g}" if 0 <= percent <= 100 else None
