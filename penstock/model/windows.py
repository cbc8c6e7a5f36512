"""Where in event time: tumbling, sliding, calendar, session, global, event-pair and custom windows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from operator import index
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, SupportsIndex
from zoneinfo import ZoneInfo, available_timezones

from penstock.diagnostics.unknown_names import unknown_name
from penstock.diagnostics.user_functions import failure, shown as shown_value
from penstock.errors import DataError, PlanError, did_you_mean
from penstock.types.durations import Duration, microseconds, positive, words
from penstock.types.timestamps import EARLIEST, EPOCH, LATEST, MAX_TIME, MIN_TIME, from_datetime, plus, show

Unit = Literal["day", "week", "month"]


class Window(NamedTuple):
    """A stretch of event time from `start` to `end`, in microseconds."""

    start: int
    end: int

    def __str__(self) -> str:
        return f"{show(self.start)} to {show(self.end)}"


Assign = Callable[[int], Iterable[tuple[int, int]]]
Merge = Callable[[list[Window]], Mapping[Window, tuple[int, int]]]


@dataclass(frozen=True, slots=True)
class WindowRule:
    """Which windows an event at `t` belongs to."""

    if not TYPE_CHECKING:
        __getattr__ = unknown_name

    @property
    def closed(self) -> bool:
        """Whether a window holds its end, so that it is complete only once W has passed it."""
        return False

    @property
    def merging(self) -> bool:
        """Whether windows of a key may become one another."""
        return False

    def assign(self, t: int) -> tuple[Window, ...]:
        """The windows that an event at `t` is put into before any merging."""
        raise TypeError(f"{type(self).__name__} does not assign")

    def complete_at(self, end: int) -> int:
        """The least W under which a window with this end is complete."""
        return plus(end, 1) if self.closed else end

    def last_instant(self, window: Window) -> int:
        """The event time of the window's panes."""
        return window.end if self.closed else plus(window.end, -1)


@dataclass(frozen=True, slots=True)
class Sliding(WindowRule):
    """Windows of one size, a new one every slide; tumbling where the two are equal."""

    size: int
    slide: int
    offset: int

    def assign(self, t: int) -> tuple[Window, ...]:
        newest = (t - self.offset) // self.slide * self.slide + self.offset
        starts = range(newest, t - self.size, -self.slide)
        return tuple(Window(start, start + self.size) for start in reversed(starts))

    def __str__(self) -> str:
        shift = f", shifted by {words(self.offset)}" if self.offset else ""
        if self.size == self.slide:
            return f"tumbling windows of {words(self.size)}{shift}"
        return f"sliding windows of {words(self.size)} every {words(self.slide)}{shift}"


@dataclass(frozen=True, slots=True)
class Calendar(WindowRule):
    """Days, weeks or months as the clocks of a time zone count them."""

    unit: Unit
    zone: str

    def assign(self, t: int) -> tuple[Window, ...]:
        zone = ZoneInfo(self.zone)
        local = EPOCH + timedelta(microseconds=t)
        with suppress(OverflowError):  # on the first or last day there is, UTC's date is near enough to look around
            local = local.astimezone(zone)
        # A clock set back over midnight lets an instant's local date precede a day that has begun: look around it.
        starts = sorted({self._start(local, step, zone) for step in (-1, 0, 1, 2)})
        index = max(i for i, start in enumerate(starts) if start <= t)
        return (Window(starts[index], starts[index + 1]),)

    def _start(self, local: datetime, step: int, zone: ZoneInfo) -> int:
        day = local.replace(hour=0, minute=0, second=0, microsecond=0, tzinfo=None, fold=0)
        try:
            if self.unit == "day":
                first = day + timedelta(days=step)
            elif self.unit == "week":
                first = day + timedelta(days=7 * step - day.weekday())
            else:
                months = day.year * 12 + day.month - 1 + step
                first = datetime(months // 12, months % 12 + 1, 1)
            return from_datetime(first.replace(tzinfo=zone).astimezone(UTC))
        except (ValueError, OverflowError):
            return EARLIEST if step < 0 else LATEST + 1

    def __str__(self) -> str:
        return f"each {self.unit} in {self.zone}"


@dataclass(frozen=True, slots=True)
class Session(WindowRule):
    """Bursts of events, each at most `gap` after the one before."""

    gap: int

    @property
    def closed(self) -> bool:
        return True

    @property
    def merging(self) -> bool:
        return True

    def assign(self, t: int) -> tuple[Window, ...]:
        return (Window(t, plus(t, self.gap)),)

    def __str__(self) -> str:
        return f"sessions with gaps of at most {words(self.gap)}"


@dataclass(frozen=True, slots=True)
class Global(WindowRule):
    """All of time in one window."""

    def assign(self, t: int) -> tuple[Window, ...]:
        return (Window(MIN_TIME, MAX_TIME),)

    def __str__(self) -> str:
        return "one global window"


@dataclass(frozen=True, slots=True)
class EventPair(WindowRule):
    """Windows made by the events: all that lie within `distance` of one another, as in Kafka Streams."""

    distance: int

    @property
    def closed(self) -> bool:
        return True

    def left(self, t: int) -> Window:
        """The window that an event at `t` closes."""
        return Window(plus(t, -self.distance), t)

    def right(self, t: int) -> Window:
        """The window that begins right after an event at `t`."""
        return Window(plus(t, 1), plus(t, 1 + self.distance))

    def __str__(self) -> str:
        return f"windows of events at most {words(self.distance)} apart"


@dataclass(frozen=True, slots=True)
class Custom(WindowRule):
    """Windows given by the user's own functions."""

    assigned: Assign
    merged: Merge | None

    @property
    def merging(self) -> bool:
        return self.merged is not None

    def assign(self, t: int) -> tuple[Window, ...]:
        given = self.assigned(t)
        if not isinstance(given, Iterable):
            raise ValueError(f"assign gave {shown_value(given)}, which is not a list of windows (start, end)")
        windows = tuple(sorted({_well_formed(window) for window in given}))
        if not windows:
            raise ValueError("assign gave the event no window")
        return windows

    def merge(self, windows: list[Window]) -> dict[Window, Window]:
        """Where each window of a key goes; a window that the user's function leaves out stays."""
        if self.merged is None:
            return {}
        before = [(one.start, one.end) for one in sorted(windows)]
        try:
            given = self.merged(sorted(windows))
            if not isinstance(given, Mapping):
                raise ValueError(f"it gave {shown_value(given)}, which does not map windows to windows")
            changed = {_well_formed(old): _well_formed(new) for old, new in given.items()}
        except Exception as error:
            raise DataError(
                f"merge failed on the windows of a key: {failure(error, self.merged, before)}",
                "without knowing which windows are one, no record can be placed",
                "let merge return {old: new} for any list of windows",
            ) from error
        return {window: changed.get(window, window) for window in windows}

    def __str__(self) -> str:
        return f"windows by {getattr(self.assigned, '__name__', 'assign')}" + (", merged" if self.merging else "")


def tumbling(size: Duration, *, offset: Duration = "0") -> Sliding:
    """Windows of one size, one after the other.

    >>> [str(window) for window in tumbling("5 minutes").assign(7 * 60_000_000)]
    ['00:05:00 to 00:10:00']
    """
    length = positive(size, "size")
    return Sliding(length, length, microseconds(offset, "offset") % length)


def sliding(size: Duration, every: Duration, *, offset: Duration = "0") -> Sliding:
    """Windows of one size, a new one every so often."""
    length, slide = positive(size, "size"), positive(every, "every")
    if slide > length:
        raise PlanError(
            f"sliding windows of {words(length)} every {words(slide)} leave gaps",
            "an event between two windows would be in none",
            f'write ps.sliding("{words(slide)}", every="{words(length)}") or ps.tumbling("{words(length)}")',
        )
    return Sliding(length, slide, microseconds(offset, "offset") % slide)


def calendar(unit: Unit, *, zone: str = "UTC") -> Calendar:
    """Days, weeks (from Monday) or months in a named time zone, right over changes of the clock."""
    if unit not in ("day", "week", "month"):
        raise PlanError(
            f"there is no calendar window of a {unit!r}",
            "calendar windows are days, weeks and months",
            did_you_mean(str(unit), ("day", "week", "month")),
        )
    if not isinstance(zone, str) or zone not in available_timezones():
        raise PlanError(
            f"there is no time zone {zone!r}",
            "zones are named as in the IANA time zone database",
            did_you_mean(str(zone), available_timezones(), 'write zone="Europe/Berlin"'),
        )
    return Calendar(unit, zone)


def session(gap: Duration) -> Session:
    """Sessions: events at most `gap` apart belong together."""
    return Session(positive(gap, "gap"))


def global_window() -> Global:
    """One window that holds everything."""
    return Global()


def event_pairs(distance: Duration) -> EventPair:
    """Kafka Streams' sliding windows: every set of events that lie within `distance`."""
    return EventPair(positive(distance, "distance"))


def custom(assign: Assign, merge: Merge | None = None) -> Custom:
    """Windows of your own: `assign(t)` gives them, `merge(windows of a key)` maps old to new."""
    if not callable(assign) or not (merge is None or callable(merge)):
        raise PlanError(
            "ps.custom was not given functions",
            "assign(t) gives the windows of an instant, merge(windows) maps old windows to new ones",
            "write ps.custom(lambda t: [(t, t + 1_000_000)])",
        )
    return Custom(assign, merge)


def _well_formed(given: Any) -> Window:
    """The window that a user's function gave; ValueError says why it is none."""
    try:
        start, end = given
    except (TypeError, ValueError):
        raise ValueError(f"{shown_value(given)} is not a window, a pair of start and end") from None
    for bound in (start, end):
        # Any whole number will do, numpy's too; a float or a datetime will not.
        if not isinstance(bound, SupportsIndex) or isinstance(bound, bool):
            raise ValueError(f"a window begins or ends at {shown_value(bound)}, which is not whole microseconds")
        if not MIN_TIME <= index(bound) <= MAX_TIME:
            raise ValueError(f"a window begins or ends at {shown_value(bound)}, which does not fit into 64 bits")
    if not index(start) < index(end):
        raise ValueError(f"the window from {start} to {end} does not end after it starts")
    return Window(index(start), index(end))
