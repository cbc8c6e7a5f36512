"""How long to wait: the watermark's delay, and how latency, drops and completeness trade."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from penstock.playground.code_samples import Written, program
from penstock.playground.controls import Choice, Slider, Values, seed
from penstock.playground.lesson import Lesson, Preset
from penstock.playground.sample_streams import scores, thousand
from penstock.playground.scene import Figure, Picture, Scene, Table
from penstock.playground.simulation import MINUTE, NOON, SECOND, Event, Run, batches, play
from penstock.types.timestamps import MIN_TIME

HOLDS = "The last window stays open: nothing newer has come that would move the watermark past its end."
MINUTES = 12
DELAYS = (0, 10, 30, 60, 120, 240, 420)


def _written(delay: int) -> Written:
    return Written(
        watermark=f'ps.bounded("{delay} seconds")' if delay else 'ps.bounded("0")',
        window='ps.tumbling("2 minutes")',
        aggregate={"plays": "ps.rows()"},
    )


@dataclass(frozen=True, slots=True)
class Measured:
    """What a delay gives; `behind` counts the events behind newest less delay, `late` those that no window took."""

    wait: float
    behind: int
    late: int
    events: int
    held: int

    @property
    def complete(self) -> str:
        """The share of what was read that is in an answer; all of it only where nothing is late."""
        share = 100 * (1 - self.late / self.events)
        return f"{share:.0f} %" if self.late == 0 or share < 99 else f"{share:.1f} %"

    def cells(self) -> tuple[str, ...]:
        """The same as a row of the table."""
        behind = f"{self.behind} ({100 * self.behind / self.events:.1f} %)"
        return (f"{self.wait:.0f} s", behind, str(self.late), self.complete, str(self.held))


def _events(values: Values) -> list[Event]:
    if values["story"] == "thousand":
        return thousand(values["seed"])
    return scores(values["seed"], 60, MINUTES, usual=values["disorder"], stragglers=values["stragglers"])


def _run(values: Values, delay: int) -> Run:
    events = _events(values)
    return play(_written(delay), batches(events, 10 * SECOND, max(event.seen for event in events) + 20 * SECOND))


def measured(run: Run, delay: int) -> Measured:
    """Seconds from a window's end to its answer, on average, what came behind the line, and what was held for it."""
    waits = [(one.now - one.end) / SECOND for one in run.plane.panes if one.timing == "on_time"]
    behind, newest = 0, MIN_TIME
    for dot in run.plane.dots:
        at = dot.event_time if dot.event_time is not None else newest
        behind += at < newest - delay * SECOND
        newest = max(newest, at)
    late = sum(dot.fate == "late" for dot in run.plane.dots)
    wait = sum(waits) / len(waits) if waits else 0.0
    return Measured(wait, behind, late, len(run.plane.dots), max(run.held))


@lru_cache(maxsize=256)
def _other(world: tuple[tuple[str, Any], ...], delay: int) -> Measured:
    """What another delay gives; kept, because only one is new while the line is dragged."""
    return measured(_run(dict(world), delay), delay)


def scene(values: Values) -> Scene:
    """The run, and what other delays would have given on the same events."""
    run = _run(values, values["delay"])
    own = measured(run, values["delay"])
    world = tuple(sorted((name, value) for name, value in values.items() if name != "delay"))
    others = {one: own if one == values["delay"] else _other(world, one) for one in {*DELAYS, values["delay"]}}
    rows = tuple(
        (0, (f"{delay} s" + (" (now)" if delay == values["delay"] else ""), *others[delay].cells()))
        for delay in sorted(others)
    )
    columns = ("delay", "answer after the window's end", "behind the line", "late", "complete", "windows open at most")
    frame = (NOON, NOON + MINUTES * MINUTE) if values["story"] == "thousand" else None
    return Scene(
        run.steps(),
        (
            Picture("Two-minute windows", run.plane, run.windows(), note=HOLDS, frame=frame),
            Table(
                "The same events under other delays",
                columns,
                rows,
                "Each row is a whole run of the engine. Behind "
                "the line: older than the newest so far less the delay; late: no window took it any more.",
            ),
        ),
        (
            Figure("latency", f"{own.wait:.0f} s", "from a window's end to its answer"),
            Figure("behind the line", str(own.behind), "older than the newest less the delay"),
            Figure("late", str(own.late), f"of {own.events:,} events"),
            Figure("complete", own.complete, "of the events are in an answer"),
            Figure("open at most", str(own.held), "windows at a time"),
        ),
    )


def code(values: Values) -> str:
    """The pipeline."""
    return program(_written(values["delay"]).code())


LESSON = Lesson(
    id="delay",
    title="The watermark's delay",
    look=(
        "The line is the watermark: it says that nothing older is expected, and a window is shown once the line has "
        "passed its end.",
        "Drag the line to the left by its grip for a longer delay: answers come later, and fewer dots are found behind "
        "it.",
        "Crossed dots came when their window was gone; they are kept as late rows, not lost, but the answer is without "
        "them.",
    ),
    controls=(
        Slider("delay", "delay of the watermark", 0, 420, 30, 10, "seconds"),
        Choice(
            "story",
            "what happened",
            (
                ("made", "60 events, made up by the seed"),
                ("thousand", "1,000: 990 within 10 seconds, 9 within a minute, one an hour late"),
            ),
            "made",
        ),
        Slider("disorder", "usual way of an event", 5, 120, 25, 5, "seconds"),
        Slider("stragglers", "every n-th is a straggler (0: none)", 0, 20, 12),
        seed(7),
    ),
    presets=(
        Preset("half a minute", {}),
        Preset("no patience", {"delay": 0}),
        Preset("wait for everyone", {"delay": 420}),
        Preset("orderly world", {"delay": 30, "disorder": 5, "stragglers": 0}),
        Preset("1 % behind 10 seconds", {"story": "thousand", "delay": 10}),
        Preset("0.1 % behind a minute", {"story": "thousand", "delay": 60}),
    ),
    play=scene,
    code=code,
    dragged="delay",
)
