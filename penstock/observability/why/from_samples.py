"""What the record alone says: the panes and the events that were kept of it, which are a sample."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from penstock.errors import did_you_mean
from penstock.model.windows import Window
from penstock.observability.observation import Observation
from penstock.observability.why.errors import Unexplained
from penstock.observability.why.panes import Event, asked_window, chosen_window
from penstock.types.timestamps import MAX_TIME, MIN_TIME


@dataclass(frozen=True, slots=True)
class SampledPane:
    """A pane that was kept: its batch and clock, W in it and after it."""

    batch: int
    now: int
    watermark: int
    next_watermark: int | None
    index: int
    timing: str
    final: bool
    op: int
    text: str


@dataclass(frozen=True, slots=True)
class SampledWindow:
    """What is known of a window without reading its events again; `kept` of `shown` panes were kept in its batches."""

    key: str
    window: Window
    panes: tuple[SampledPane, ...]
    events: tuple[Event, ...]
    late: tuple[Event, ...]
    kept: int
    shown: int
    batches: str

    def plain(self) -> dict[str, Any]:
        """The same as values that JSON has."""
        return {"exact": False, **asdict(self)}


@dataclass(frozen=True, slots=True)
class SampledEvent:
    """What is known of an event without reading it again."""

    event: Event
    key: str
    fate: str
    batch: int
    now: int
    watermark: int
    late_by: int
    reason: str
    windows: tuple[Window, ...]
    partitions: tuple[dict[str, Any], ...]

    def plain(self) -> dict[str, Any]:
        """The same as values that JSON has."""
        return {"exact": False, **asdict(self)}


def sampled_window(seen: Sequence[Observation], key: str, asked: str | None, stage: int = 0) -> SampledWindow:
    """The panes of a window that were kept, and the kept events of its time."""
    _refuse_nothing(seen)
    mine = [(one, pane) for one in seen for pane in one.panes if pane["stage"] == stage and pane["key"] == key]
    if not mine:
        known = {pane["key"] for one in seen for pane in one.panes if pane["stage"] == stage}
        raise Unexplained(
            f"no pane that was kept has the key {key!r}",
            f"of each batch some panes are kept, and those of {len(known)} keys are there",
            did_you_mean(key, known, "name the pipeline's file too: its events are then read again, all of them"),
        )
    windows = sorted({Window(pane["start"], pane["end"]) for _, pane in mine})
    window = windows[-1] if asked is None else chosen_window(asked_window(asked), windows, (key,))
    after = {one.batch: one.watermarks for one in seen}
    panes, batches = [], set()
    for one, pane in mine:
        if Window(pane["start"], pane["end"]) == window:
            batches.add(one.batch)
            following = after.get(one.batch + 1)
            panes.append(
                SampledPane(
                    one.batch,
                    one.now,
                    _watermark(one, stage),
                    None if following is None else following[stage],
                    pane["index"],
                    pane["timing"],
                    pane["final"],
                    pane["op"],
                    pane["text"],
                )
            )
    stream = "panes" if stage == 0 else f"{stage}/panes"
    return SampledWindow(
        key,
        window,
        tuple(panes),
        tuple(_events(seen, key, window, "dots")),
        tuple(_events(seen, key, window, "late")),
        sum(len([pane for pane in one.panes if pane["stage"] == stage]) for one in seen if one.batch in batches),
        sum(one.rows.get(stream, 0) for one in seen if one.batch in batches),
        f"{seen[0].batch} to {seen[-1].batch}",
    )


def sampled_event(seen: Sequence[Observation], asked: str, stage: int = 0) -> SampledEvent:
    """An event that was kept: what became of it."""
    _refuse_nothing(seen)
    name, _, number = asked.rpartition("/")
    for kind, fate in (("late", "late"), ("bad", "quarantined"), ("dots", "taken")):
        for one in seen:
            for held in getattr(one, kind):
                if str(held["offset"]) == number and name in (held["partition"], held["partition"].partition("/")[2]):
                    return _event(one, held, fate, stage, seen)
    raise Unexplained(
        f"no event at {asked} was kept",
        "of each batch some events are kept, and some of the late ones",
        "name the pipeline's file too: its events are then read again, all of them",
    )


def _event(one: Observation, held: dict[str, Any], fate: str, stage: int, seen: Sequence[Observation]) -> SampledEvent:
    before = next((other for other in seen if other.batch == one.batch - 1), None)
    time = held.get("event_time")
    watermark = held.get("watermark")
    watermark = _watermark(one, stage) if watermark is None else watermark
    event = Event(held["partition"], held["offset"], MIN_TIME if time is None else time, held.get("text", ""))
    return SampledEvent(
        event,
        held.get("key", ""),
        fate,
        one.batch,
        one.now,
        watermark,
        0 if time is None else min(watermark - time, MAX_TIME),
        held.get("why", ""),
        tuple(Window(*window) for window in held.get("windows", ())),
        tuple(before.partitions if before else ()),
    )


def _events(seen: Sequence[Observation], key: str, window: Window, kind: str) -> list[Event]:
    return [
        Event(held["partition"], held["offset"], held["event_time"], held["text"])
        for one in seen
        for held in getattr(one, kind)
        if held.get("key") == key
        and held.get("event_time") is not None
        and window.start <= held["event_time"] < max(window.end, window.start + 1)
    ]


def _watermark(one: Observation, stage: int) -> int:
    return one.watermarks[stage] if stage < len(one.watermarks) else one.watermark


def _refuse_nothing(seen: Sequence[Observation]) -> None:
    if not seen:
        raise Unexplained(
            "nothing was observed of this run",
            "what is observed is kept beside the checkpoint, in penstock/monitor, unless observe=False says not to",
            "name the pipeline's file too: what its sources still have is then read again",
        )
