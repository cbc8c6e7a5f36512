"""Who hears of a run's progress: a reader of lines, a machine that reads JSON; live.py has the terminal."""

from __future__ import annotations

import json
import time
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TextIO

from penstock.api.progress import Progress
from penstock.humanize import clock, many, span, stamp
from penstock.runtime.batch import Counts

if TYPE_CHECKING:
    from penstock.spark.handle import Ended

LINE_EVERY = 2.0
RATE_OVER = 10.0


class Reporter(Protocol):
    """Hears of a run from its start to its end."""

    def begin(self) -> None:
        """Spark is being started."""

    def progress(self, progress: Progress) -> None:
        """A batch is committed; or, told as the last one with `waiting`, the next one waits."""

    def stopping(self) -> None:
        """A stop was asked for, and the batch that runs comes to its end."""

    def end(self, ended: Ended | None) -> None:
        """It is over; None where it failed or was never begun."""


@dataclass
class Rate:
    """Events a second, over the last seconds: of one batch alone it would jump."""

    seen: deque[tuple[int, float]] = field(default_factory=deque)

    def with_batch(self, progress: Progress) -> float:
        """The rate, this batch included."""
        self.seen.append((progress.events, progress.elapsed))
        while len(self.seen) > 1 and sum(seconds for _, seconds in self.seen) - self.seen[0][1] >= RATE_OVER:
            self.seen.popleft()
        seconds = sum(seconds for _, seconds in self.seen)
        return sum(events for events, _ in self.seen) / seconds if seconds else 0.0


@dataclass
class Lines:
    """A line for a batch, and no more than one every two seconds."""

    name: str
    checkpoint: str
    out: TextIO
    rate: Rate = field(default_factory=Rate)
    told_at: float = 0.0
    untold: str = ""
    notes: tuple[str, ...] = ()

    def begin(self) -> None:
        """Say what is being started."""
        self._say(f"{self.name}: starting Spark; checkpoint {self.checkpoint}")

    def progress(self, progress: Progress) -> None:
        """Say how it stands, unless that was said just now."""
        if progress.waiting is not None:
            self._say(f"{self.name}: waiting for {span(progress.elapsed * 1e6)}: {progress.waiting}")
            return
        for note in progress.notes:
            if note.partition(":")[0] not in self.notes:
                self._say(f"{self.name}: {note}")
        self.notes = tuple(note.partition(":")[0] for note in progress.notes)
        self.untold = line(progress, self.rate.with_batch(progress))
        if time.monotonic() - self.told_at >= LINE_EVERY:
            self._tell()

    def stopping(self) -> None:
        """Say that the stop was heard."""
        self._say(f"{self.name}: stopping after the batch that runs")

    def end(self, ended: Ended | None) -> None:
        """Say what was not said yet, and how it ended."""
        if self.untold:
            self._tell()
        if ended is not None:
            self._say(farewell(self.name, ended))

    def _tell(self) -> None:
        self._say(self.untold)
        self.untold, self.told_at = "", time.monotonic()

    def _say(self, text: str) -> None:
        print(text, file=self.out, flush=True)


@dataclass
class JsonLines:
    """One JSON object for every batch, and one at the end."""

    name: str
    out: TextIO

    def begin(self) -> None:
        """Nothing has happened yet."""

    def progress(self, progress: Progress) -> None:
        """One batch, or that it waits."""
        more = {"watermark_at": stamp(progress.watermark), "now_at": stamp(progress.now)}
        kind = "batch" if progress.waiting is None else "waiting"
        self._say({"type": kind, "pipeline": self.name, **progress.plain(), **more})

    def stopping(self) -> None:
        """Nothing to tell a machine."""

    def end(self, ended: Ended | None) -> None:
        """How it ended."""
        if ended is not None:
            at = None if ended.progress is None else ended.progress.watermark
            last = ended.batches - 1 if ended.batches else None
            self._say(
                {
                    "type": "ended",
                    "pipeline": self.name,
                    "reason": ended.reason,
                    "batch": last,
                    "watermark": at,
                    "watermark_at": stamp(at),
                    "unread": list(ended.unread),
                }
            )

    def _say(self, value: dict[str, Any]) -> None:
        print(json.dumps(value), file=self.out, flush=True)


def line(progress: Progress, rate: float) -> str:
    """How a run stands, in one line."""
    behind = "" if progress.behind is None else f", {span(progress.behind)} behind"
    again = f", {progress.totals.deduplicated:,} duplicates" if progress.totals.deduplicated else ""
    lag = "" if progress.lag is None else f"lag {progress.lag:,}; "
    laggard = "" if progress.laggard is None or not behind else f", slowest {progress.laggard}"
    return (
        f"batch {progress.batch}: {many(progress.totals.read, 'event')} in, {rate:,.0f}/s; "
        f"W {clock(progress.watermark)}{behind}{laggard}; {held(progress)}; "
        f"{many(progress.total_panes, 'pane')}, {progress.totals.late:,} late, "
        f"{progress.totals.quarantined:,} quarantined{again}; "
        f"{lag}{span(progress.seconds * 1e6)} a batch: {shares(progress)}"
    )


def held(progress: Progress) -> str:
    """What is remembered, in words: open windows, or rows where there are other stages."""
    if all(name.endswith(": windows") for name in progress.held):
        return f"{progress.open_windows:,} windows open"
    return f"{many(progress.open_windows, 'row')} held"


def shares(progress: Progress) -> str:
    """Where the time since the batch before went, in words."""
    return ", ".join(f"{share:.0%} {what}" for what, share in progress.shares.items())


def farewell(name: str, ended: Ended) -> str:
    """How and where a run ended, what that means, and in lines of their own what came after the end of its sources."""
    if not ended.batches:
        return f"{name}: {ended.reason} before the first batch"
    where = f"{ended.reason} after batch {ended.batches - 1}"
    if ended.progress is not None:
        where += f", watermark {clock(ended.progress.watermark)}"
    after = {
        "stopped": "nothing is half written; the same command goes on from there",
        "caught up": f"everything {'up to the end' if ended.unread else 'that was there'} is read; "
        "the same command goes on from there",
        "ended": "the input is at its end and every window is closed",
    }
    meant = after.get(ended.reason, "the same command goes on from there")
    totals = None if ended.progress is None else ended.progress.totals
    bad = f"; {all_bad(totals)}" if totals is not None and all_bad(totals) else ""
    return "\n".join(f"{name}: {line}" for line in (f"{where}; {meant}{bad}", *ended.unread))


def all_bad(totals: Counts) -> str:
    """What is said where no row was of use."""
    return f"all {many(totals.read, 'row')} that were read are in quarantine" if totals.unusable else ""
