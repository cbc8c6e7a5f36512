"""How a run becomes a picture: batches played by the reference engine, each row followed to what became of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from penstock.model.panes import Pane
from penstock.observability.time_plane import COUNTED, LATE, QUARANTINED, Dot, Mark, Plane, Shown
from penstock.playground.code_samples import Written
from penstock.playground.scene import Step
from penstock.runtime.batch import Outcome, PartitionClock
from penstock.testing.script import Script
from penstock.types.timestamps import MAX_TIME, MIN_TIME, show

SECOND = 1_000_000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
NOON = 12 * HOUR


@dataclass(frozen=True, slots=True)
class Event:
    """A score: when it was made, when it was seen, and by whom."""

    at: int
    seen: int
    team: str = "red"
    points: int = 1
    partition: str = "0"


@dataclass(frozen=True, slots=True)
class Batch:
    """What one batch reads, and a watermark where it is given by hand."""

    now: int
    events: tuple[Event, ...] = ()
    watermark: int | None = None


@dataclass(frozen=True, slots=True)
class Run:
    """A pipeline that was played: the picture, what each batch gave, and the script it was played by."""

    plane: Plane
    outcomes: tuple[Outcome, ...]
    watermarks: tuple[int, ...]
    batches: tuple[Batch, ...]
    held: tuple[int, ...]
    clocks: tuple[dict[str, PartitionClock], ...]
    script: Script

    def steps(self) -> tuple[Step, ...]:
        """What happened in each batch, in words."""
        rows = zip(self.batches, self.outcomes, self.watermarks, strict=True)
        return tuple(Step(_told(batch, outcome, mark), batch.now) for batch, outcome, mark in rows)

    def behind(self) -> tuple[float, ...]:
        """How far the watermark is behind the processing clock in each batch, in seconds; 0 while there is none."""
        rows = zip(self.batches, self.watermarks, strict=True)
        return tuple(0.0 if mark in (MIN_TIME, MAX_TIME) else (batch.now - mark) / SECOND for batch, mark in rows)

    def windows(self) -> tuple[tuple[int, int], ...]:
        """The windows of all events and panes that have both ends, as columns to draw."""
        rule = self.script.plan.window
        found = {(pane.window.start, pane.window.end) for pane in self.script.panes}
        if not rule.merging:
            found |= {
                (w.start, w.end)
                for dot in self.plane.dots
                if dot.event_time is not None and dot.fate == COUNTED
                for w in rule.assign(dot.event_time)
            }
        return tuple(sorted(one for one in found if MIN_TIME < one[0] and one[1] < MAX_TIME))


def batches(events: Iterable[Event], every: int, until: int, start: int = NOON) -> list[Batch]:
    """Events cut into batches of a steady cadence: each reads what was seen since the one before."""
    waiting, cut, now = sorted(events, key=lambda event: event.seen), [], start
    while now <= until:
        read = [event for event in waiting if event.seen <= now]
        waiting = waiting[len(read) :]
        cut.append(Batch(now, tuple(read)))
        now += every
    return cut


def play(written: Written, cut: Sequence[Batch], *, partitions: Sequence[str] = (), end: bool = False) -> Run:
    """Play batches on the reference engine; `end` adds the end of the input."""
    script = Script(written.panes(), "reference", partitions=partitions)
    outcomes, marks, dots, panes, held, clocks, number = [], [], [], [], [], [], 0
    played = [*cut, Batch(cut[-1].now + SECOND, (), MAX_TIME)] if end else list(cut)
    for batch in played:
        rows = [_row(number + n, event) for n, event in enumerate(batch.events)]
        mark = script.W if batch.watermark is None else max(script.W, batch.watermark)
        outcome = script.batch(rows, now=batch.now, watermark=batch.watermark)
        dots += [_dot(number + n, event, batch, outcome) for n, event in enumerate(batch.events)]
        number += len(rows)
        outcomes.append(outcome)
        marks.append(mark)
        held.append(script.run.open_windows())
        clocks.append(script.partitions())
        panes += [shown(pane, batch.now) for pane in outcome.panes]
    lines = tuple(Mark(batch.now, mark) for batch, mark in zip(played, marks, strict=True))
    plane = Plane("", tuple(dots), lines, tuple(panes))
    return Run(plane, tuple(outcomes), tuple(marks), tuple(played), tuple(held), tuple(clocks), script)


def shown(pane: Pane, now: int) -> Shown:
    """A pane as it is drawn."""
    start, end = pane.window.start, pane.window.end
    return Shown(named(pane), start, end, now, pane.index, pane.timing, answer(pane), pane.final, pane.op)


def named(pane: Pane) -> str:
    """The key of a pane."""
    return ", ".join(map(str, pane.key))


def answer(pane: Pane) -> str:
    """The values of a pane as one text."""
    return ", ".join("none" if value is None else str(value) for value in pane.values.values())


def _row(number: int, event: Event) -> dict[str, object]:
    return {"id": number, "team": event.team, "points": event.points, "at": event.at, "@partition": event.partition}


def _dot(number: int, event: Event, batch: Batch, outcome: Outcome) -> Dot:
    late = next((one for one in outcome.late if one.row["id"] == number), None)
    bad = next((one for one in outcome.quarantined if one.row["id"] == number), None)
    fate, why = COUNTED, ""
    if late is not None:
        fate, why = LATE, f"{show(event.at)} is behind W {show(late.watermark)}, and its windows take no more"
    if bad is not None:
        fate, why = QUARANTINED, bad.reason
    return Dot(event.at, batch.now, event.team, str(event.points), event.partition, fate, why)


def _told(batch: Batch, outcome: Outcome, mark: int) -> str:
    if mark == MAX_TIME:
        said = ["the input has ended"]
    else:
        said = [f"{len(batch.events)} read" if batch.events else "nothing read", f"W {show(mark)}"]
    said += [f"{len(outcome.late)} late"] if outcome.late else []
    said += [f"{len(outcome.quarantined)} quarantined"] if outcome.quarantined else []
    said += [_pane(pane) for pane in outcome.panes[:3]]
    said += [f"and {len(outcome.panes) - 3} more panes"] if len(outcome.panes) > 3 else []
    return f"{show(batch.now)}: " + "; ".join(said)


def _pane(pane: Pane) -> str:
    sign = "withdraws " if pane.op < 0 else ""
    return f"{sign}{named(pane)} {answer(pane)} {pane.timing.replace('_', ' ')}"
