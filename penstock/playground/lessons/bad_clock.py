"""One bad clock drags the watermark into the future, unless max_skew stops it."""

from __future__ import annotations

from penstock.playground.code_samples import Written, program
from penstock.playground.controls import Choice, Slider, Values, seed
from penstock.playground.lesson import Lesson, Preset
from penstock.playground.sample_streams import scores
from penstock.playground.scene import Figure, Picture, Scene, Table
from penstock.playground.simulation import MINUTE, NOON, SECOND, Event, batches, play

SKEW = {"None": "None", "1 minute": '"1 minute"', "5 minutes": '"5 minutes"', "1 hour": '"1 hour"'}
MINUTES = 10


def _events(values: Values) -> list[Event]:
    moment = NOON + values["when"] * MINUTE + 7 * SECOND
    wrong = Event(moment + values["ahead"] * MINUTE, moment, points=9)
    return [*scores(values["seed"], 50, MINUTES), wrong]


def _written(values: Values) -> Written:
    return Written(
        watermark=f'ps.bounded("30 seconds", max_skew={SKEW[values["max_skew"]]})',
        window='ps.tumbling("1 minute")',
        aggregate={"plays": "ps.rows()"},
    )


def scene(values: Values) -> Scene:
    """The run, and the rows that were put aside."""
    run = play(_written(values), batches(_events(values), 10 * SECOND, NOON + (MINUTES + 1) * MINUTE))
    aside = [
        (step, (dot.fate, dot.why))
        for step, batch in enumerate(run.batches)
        for dot in run.plane.dots
        if dot.now == batch.now and dot.fate != "counted"
    ]
    counts = run.script.counts
    jump = max((b - a for a, b in zip(run.behind(), run.behind()[1:], strict=False)), key=abs, default=0.0)
    windows = tuple(one for one in run.windows() if one[1] <= NOON + (MINUTES + 1) * MINUTE)
    return Scene(
        run.steps(),
        (
            Picture("Minute windows", run.plane, windows, frame=(NOON, NOON + MINUTES * MINUTE)),
            Table("Rows that were put aside, and why", ("fate", "why"), tuple(aside)),
        ),
        (
            Figure("late", str(counts.late), "because the line had gone ahead"),
            Figure("quarantined", str(counts.quarantined)),
            Figure("largest jump of the watermark", f"{abs(jump):,.0f} s", "against the clock, in one batch"),
        ),
    )


def code(values: Values) -> str:
    """The pipeline."""
    return program(_written(values).code())


LESSON = Lesson(
    id="bad-clock",
    title="A bad clock, and max_skew",
    look=(
        "One event comes from a device whose clock is ahead: it says that it happened in the future.",
        "The watermark believes it, jumps to the right, closes every window, and all honest events after it are late.",
        "With max_skew an event that is further ahead of the processing clock is quarantined, and moves nothing; one "
        "within it moves the line by at most that much.",
    ),
    controls=(
        Choice(
            "max_skew",
            "max_skew",
            (
                ("None", "none: any event is believed"),
                ("1 minute", "1 minute"),
                ("5 minutes", "5 minutes"),
                ("1 hour", "1 hour (the default)"),
            ),
            "None",
        ),
        Slider("ahead", "the bad clock is ahead by", 0, 600, 240, 2, "minutes"),
        Slider("when", "it speaks at minute", 1, 9, 4),
        seed(11),
    ),
    presets=(
        Preset("believed", {}),
        Preset("quarantined", {"max_skew": "1 hour"}),
        Preset("within the skew", {"max_skew": "5 minutes", "ahead": 4}),
    ),
    play=scene,
    code=code,
)
