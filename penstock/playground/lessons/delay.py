"""How long to wait: the watermark's delay, and how latency, drops and completeness trade."""

from __future__ import annotations

from functools import lru_cache

from penstock.playground.control import Slider, Values, seed
from penstock.playground.lesson import Lesson, Preset
from penstock.playground.playing import SECOND, Run, batches, play
from penstock.playground.scene import Figure, Picture, Scene, Table
from penstock.playground.streams import scores
from penstock.playground.written import Written, program

HOLDS = "The last window stays open: nothing newer has come that would move the watermark past its end."
DELAYS = (0, 30, 60, 120, 240, 420)


def _written(delay: int) -> Written:
    return Written(
        watermark=f'ps.bounded("{delay} seconds")' if delay else 'ps.bounded("0")',
        window='ps.tumbling("2 minutes")',
        aggregate={"plays": "ps.rows()"},
    )


def _run(values: Values, delay: int) -> Run:
    events = scores(values["seed"], 60, 12, usual=values["disorder"], stragglers=values["stragglers"])
    return play(_written(delay), batches(events, 10 * SECOND, max(event.seen for event in events) + 20 * SECOND))


def measured(run: Run) -> tuple[float, int, float, int]:
    """Seconds from a window's end to its answer, on average; late events; share of what was read that is not; open."""
    waits = [(one.now - one.end) / SECOND for one in run.plane.panes if one.timing == "on_time"]
    late = sum(dot.fate == "late" for dot in run.plane.dots)
    share = 100 * (1 - late / len(run.plane.dots))
    return (sum(waits) / len(waits) if waits else 0.0, late, share, max(run.held))


@lru_cache(maxsize=256)
def _other(disorder: int, stragglers: int, seed: int, delay: int) -> tuple[float, int, float, int]:
    """What another delay gives; kept, because only one is new while the line is dragged."""
    return measured(_run({"disorder": disorder, "stragglers": stragglers, "seed": seed}, delay))


def scene(values: Values) -> Scene:
    """The run, and what other delays would have given on the same events."""
    run = _run(values, values["delay"])
    wait, late, share, held = own = measured(run)
    world = (values["disorder"], values["stragglers"], values["seed"])
    others = [
        (delay, *(own if delay == values["delay"] else _other(*world, delay)))
        for delay in sorted({*DELAYS, values["delay"]})
    ]
    rows = tuple(
        (0, (f"{delay} s" + (" (now)" if delay == values["delay"] else ""), f"{w:.0f} s", str(n), f"{s:.0f} %", str(h)))
        for delay, w, n, s, h in others
    )
    columns = ("delay", "answer after the window's end", "late", "complete", "windows open at most")
    return Scene(
        run.steps(),
        (
            Picture("Two-minute windows", run.plane, run.windows(), note=HOLDS),
            Table("The same events under other delays", columns, rows, "Each row is a whole run of the engine."),
        ),
        (
            Figure("latency", f"{wait:.0f} s", "from a window's end to its answer"),
            Figure("late", str(late), f"of {len(run.plane.dots)} events"),
            Figure("complete", f"{share:.0f} %", "of the events are in an answer"),
            Figure("open at most", str(held), "windows at a time"),
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
        Slider("disorder", "usual way of an event", 5, 120, 25, 5, "seconds"),
        Slider("stragglers", "every n-th is a straggler (0: none)", 0, 20, 12),
        seed(7),
    ),
    presets=(
        Preset("half a minute", {}),
        Preset("no patience", {"delay": 0}),
        Preset("wait for everyone", {"delay": 420}),
        Preset("orderly world", {"delay": 30, "disorder": 5, "stragglers": 0}),
    ),
    play=scene,
    code=code,
    dragged="delay",
)
