"""Why are the panes of a window as they are: the events, the batches, the watermark and the trigger of each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from penstock.model.panes import Pane
from penstock.model.windows import Window
from penstock.observability.sampling import row_text
from penstock.observability.why.batches import Batch, numbers
from penstock.observability.why.errors import Unexplained
from penstock.observability.why.replay import Key, Replay, key_texts, no_such_key, refuse_key
from penstock.observability.why.traced_windows import Fired, Held, Watched
from penstock.observability.why.trigger_reasons import Because
from penstock.plan.stages import Plan
from penstock.reference.aggregates import Record
from penstock.types.timestamps import MAX_TIME, MIN_TIME, parse, plus, show


@dataclass(frozen=True, slots=True)
class Event:
    """An event: where it was read, when it happened, and its other columns; `op` is -1 where it was withdrawn."""

    partition: str
    offset: int
    event_time: int
    text: str = ""
    op: int = 1


@dataclass(frozen=True, slots=True)
class Withdrawn:
    """A pane that was taken back."""

    window: Window
    index: int
    text: str


@dataclass(frozen=True, slots=True)
class PaneWhy:
    """One pane: the batch and its clock, W in it and after it, what was new, how much it holds, and why it was shown.

    `index` is None where nothing but withdrawals was shown.
    """

    batch: int
    now: int
    watermark: int
    next_watermark: int | None
    window: Window
    index: int | None
    timing: str
    final: bool
    text: str
    new: tuple[Event, ...]
    records: int
    withdrawn: tuple[Withdrawn, ...]
    because: tuple[Because, ...]

    def plain(self) -> dict[str, Any]:
        """The same as values that JSON has."""
        return {**asdict(self), "because": [one.plain() for one in self.because]}


@dataclass(frozen=True, slots=True)
class WindowWhy:
    """All panes of a window of a key, in order; `open_records` is None where it is not held any more.

    `late` are events that came when it took no more; `read` says how many events were read again to say all this.
    """

    key: Key
    window: Window
    complete_at: int
    expires_at: int
    panes: tuple[PaneWhy, ...]
    late: tuple[Event, ...]
    open_records: int | None
    unshown: tuple[Event, ...]
    batches: str
    read: int

    def plain(self) -> dict[str, Any]:
        """The same as values that JSON has."""
        return {"exact": True, **asdict(self), "panes": [pane.plain() for pane in self.panes]}


@dataclass(frozen=True, slots=True)
class KeyWhy:
    """The windows of a key, each with how many panes it has shown."""

    key: Key
    windows: Mapping[Window, int]
    batches: str

    def plain(self) -> dict[str, Any]:
        """The same as values that JSON has."""
        return {"key": self.key, "windows": [[*window, panes] for window, panes in self.windows.items()]}


def why_window(replay: Replay, key: Key, asked: str | None) -> WindowWhy | KeyWhy:
    """Why the panes of a window are as they are; without one, which windows the key has."""
    refuse_key(replay.plan, key)
    wanted = None if asked is None else asked_window(asked)
    if wanted is not None:
        replay.refuse_older(wanted[0], f"the window {asked}")
    machine = replay.watched(key)
    windows = _windows(machine, replay.plan, key)
    if not windows and not any(_mine(replay.plan, key, one.record) for one in machine.rejected):
        raise no_such_key(replay, key)
    if wanted is None:
        return KeyWhy(key, windows, numbers(replay.batches))
    window = chosen_window(wanted, list(windows), key)
    return _window(replay, machine, key, window)


def asked_window(text: str) -> tuple[int, int | None]:
    """A window by its start, or by its start and end as `12:00 to 12:05`; `global` is the one that holds everything."""
    start, _, end = text.partition(" to ")
    if text.strip() == "global":
        return MIN_TIME, MAX_TIME
    try:
        return parse(start), parse(end) if end else None
    except ValueError:
        raise Unexplained(
            f"{text!r} is not a window",
            "a window is named by its start, or by its start and its end",
            "write --window '2026-05-01 12:00:00', or --window '2026-05-01 12:00:00 to 2026-05-01 12:05:00'",
        ) from None


def chosen_window(wanted: tuple[int, int | None], known: list[Window], key: Key) -> Window:
    """The window that is meant among those that a key has had: of several with one start, the last to end."""
    start, end = wanted
    found = [one for one in known if one.start == start and end in (None, one.end)]
    if found:
        return max(found)
    around = sorted(known, key=lambda one: abs(one.start - start))[:3]
    inside = [one for one in known if one.start <= start < one.end]
    there = ", ".join(f"'{one}'" for one in (inside or around))
    raise Unexplained(
        f"there was no window from {show(start)}{f' to {show(end)}' if end is not None else ''} "
        f"of the key {' · '.join(key)!r}",
        "no event was in one",
        f"it has had: --window {there}" if there else "every event of the key was late: ask --event about one of them",
    )


def _windows(machine: Watched, plan: Plan, key: Key) -> dict[Window, int]:
    found: dict[Window, int] = {}
    for one in machine.fired:
        if key_texts(plan, one.key) == key:
            found[one.window] = found.get(one.window, 0) + (one.pane is not None)
    for held, windows in machine.windows.items():
        if key_texts(plan, held) == key:
            for window in windows:
                found.setdefault(window, 0)
    return dict(sorted(found.items()))


def _window(replay: Replay, machine: Watched, key: Key, window: Window) -> WindowWhy:
    plan, by_number = replay.plan, {one.number: one for one in replay.batches}
    # A window that grew into this one has shown panes before: they are told too, for they were withdrawn or went on.
    mine = [one for one in machine.fired if key_texts(plan, one.key) == key and _within(plan, one.window, window)]
    held = next(
        (
            windows[window]
            for one, windows in machine.windows.items()
            if key_texts(plan, one) == key and window in windows
        ),
        None,
    )
    assert held is None or isinstance(held, Held)
    complete = plan.window.complete_at(window.end)
    return WindowWhy(
        key,
        window,
        complete,
        plus(complete, plan.lateness),
        tuple(_pane(plan, by_number[one.batch], replay.stage, one) for one in mine),
        tuple(
            event_of(plan, one.record)
            for one in machine.rejected
            if window in one.windows and _mine(plan, key, one.record)
        ),
        None if held is None else held.records,
        () if held is None else tuple(event_of(plan, one) for one in held.fresh),
        numbers(replay.batches),
        replay.rows,
    )


def _within(plan: Plan, one: Window, window: Window) -> bool:
    return one == window or (plan.window.merging and window.start <= one.start and one.end <= window.end)


def _pane(plan: Plan, batch: Batch, stage: int, one: Fired) -> PaneWhy:
    pane = one.pane
    withdrawn = tuple(Withdrawn(gone.window, gone.index, _answer(gone)) for gone in one.withdrawn)
    return PaneWhy(
        one.batch,
        one.now,
        one.watermark,
        batch.next_watermark(stage),
        one.window,
        None if pane is None else pane.index,
        "" if pane is None else pane.timing,
        pane is not None and pane.final,
        "" if pane is None else _answer(pane),
        tuple(event_of(plan, record) for record in one.new),
        len(one.members),
        withdrawn,
        one.because,
    )


def event_of(plan: Plan, record: Record) -> Event:
    """A record as an event, without its key."""
    times = {one.time.column for one in plan.inputs if one.time is not None}
    others = {name: value for name, value in record.row.items() if name not in plan.keys and name not in times}
    return Event(record.partition, record.offset, record.time, row_text(others) if others else "", record.op)


def _answer(pane: Pane) -> str:
    return ", ".join(f"{name} {'null' if value is None else value}" for name, value in pane.values.items())


def _mine(plan: Plan, key: Key, record: Record) -> bool:
    return key_texts(plan, tuple(record.row[name] for name in plan.keys)) == key
