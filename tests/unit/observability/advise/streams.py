"""Recorded streams of several shapes, as files of a directory, and how complete their on-time panes are, counted by
hand from the events: no window, watermark or trigger of Penstock is asked."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import penstock as ps

SECOND = 1_000_000
BEGIN = datetime(2026, 5, 1, 12, tzinfo=UTC)
NEVER = -(2**63)
Event = tuple[str, str, float]  # the folder it comes from, its team, and when it happened, in seconds; as they came


def in_order(number: int = 3_000) -> list[Event]:
    return [("a", "red" if n % 3 else "blue", n * 0.07) for n in range(number)]


def exponential(mean: float = 2.0, number: int = 3_000, seed: int = 1) -> list[Event]:
    chance = Random(seed)
    return [(one, team, at - chance.expovariate(1 / mean)) for one, team, at in in_order(number)]


def stragglers(share: float = 0.02, delay: float = 30.0) -> list[Event]:
    chance = Random(2)
    return [(one, team, at - (delay if chance.random() < share else 0.0)) for one, team, at in exponential(0.5)]


def bursts(every: float = 7.0) -> list[Event]:
    """A device of three keeps its events to itself, and sends those of seven seconds at once, the newest first."""
    found: list[Event] = []
    kept: list[Event] = []
    for number, event in enumerate(in_order()):
        (kept if number % 3 == 0 else found).append(event)
        if kept and event[2] - kept[0][2] >= every:
            found += reversed(kept)
            kept = []
    return found


def slow_partition(behind: float = 20.0) -> list[Event]:
    """One of two partitions brings everything so much later."""
    return [("b", team, at - behind) if n % 2 else ("a", team, at) for n, (_, team, at) in enumerate(in_order())]


def visits() -> list[Event]:
    """Ten seconds of events, then nothing for nine, again and again; some come when the next are already there."""
    chance = Random(3)
    return [("a", "red", n * 0.1 + n // 100 * 9.0 - chance.expovariate(1 / 2)) for n in range(3_000)]


def pipeline(folder: Path, events: Iterable[Event], window: Any, lateness: str = "0", rule: Any = None,
             trigger: Any = None) -> ps.Pipeline:  # fmt: skip
    """A pipeline that reads these events from files, in the order in which they came."""
    files: dict[str, list[str]] = defaultdict(list)
    for one, team, second in events:
        at = (BEGIN + timedelta(seconds=second)).isoformat()
        files[one].append(json.dumps({"team": team, "at": at}))
    for one, rows in files.items():
        (folder / one).mkdir(parents=True)
        (folder / one / "events.json").write_text("\n".join(rows) + "\n")
    read = ps.directory(folder, schema="team string, at timestamp", partition="directory", name="events")
    timed = read.event_time("at", watermark=rule or ps.bounded("1 second", idle=None))
    windowed = timed.key_by("team").window(window, lateness=lateness)
    windowed = windowed if trigger is None else windowed.trigger(trigger)
    return ps.pipeline("counted", windowed.accumulating().aggregate(n=ps.rows()).write(ps.memory("counted")))


@dataclass
class ByHand:
    """The windows of so many seconds, every so many, followed by hand through batches of events."""

    size: int
    every: int
    delay: int
    lateness: int
    ever: dict[Any, int] = field(default_factory=lambda: defaultdict(int))
    there: dict[Any, int] = field(default_factory=lambda: defaultdict(int))
    born: dict[Any, int] = field(default_factory=dict)  # W when the first event of it came that was not too late
    shown: dict[Any, int] = field(default_factory=dict)
    watermark: int = NEVER
    reached: int = NEVER
    first: int | None = None

    def play(self, batches: Any, watermarks: list[int] | None = None) -> ByHand:
        newest: dict[Any, int] = {}
        for number, (rows, tick) in enumerate(batches):
            self.reached = self.watermark = self.watermark if watermarks is None else watermarks[number]
            for row in rows:
                for start in self._starts(row.row["at"]):
                    self._take((row.row["team"], start))
                name = (row.source, row.partition)
                newest[name] = max(newest.get(name, NEVER), row.row["at"])
            for window, there in self.there.items():
                if window not in self.shown and self.born[window] < self._end(window) <= self.watermark:
                    self.shown[window] = there
            if newest and all(name in newest for name in tick.partitions):
                self.watermark = max(self.watermark, min(newest.values()) - self.delay)
                self.first = self.watermark if self.first is None else self.first
        return self

    def judged(self, begun: int, settled: int) -> tuple[float | None, int]:
        """The share that on-time panes held, of how many windows; those that were open at the end are left out."""
        windows = [one for one in self.ever if one[1] >= begun and self._end(one) <= min(settled, self.reached)]
        ever = sum(self.ever[one] for one in windows)
        return (sum(self.shown.get(one, 0) for one in windows) / ever if ever else None), len(windows)

    def _take(self, window: Any) -> None:
        self.ever[window] += 1
        if self.watermark < self._end(window) + self.lateness:
            # What comes in the batch that shows the window is in its pane; in later ones it is a correction.
            self.born.setdefault(window, self.watermark)
            self.there[window] += 1

    def _starts(self, at: int) -> Iterator[int]:
        start = at - at % self.every
        while start > at - self.size:
            yield start
            start -= self.every

    def _end(self, window: Any) -> int:
        end: int = window[1] + self.size
        return end
