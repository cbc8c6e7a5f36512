"""A silent partition freezes every window, until it is called idle."""

from __future__ import annotations

import random

from penstock.playground.code_samples import Written, program
from penstock.playground.controls import Choice, Slider, Values, seed
from penstock.playground.lesson import Lesson, Preset
from penstock.playground.scene import Figure, Lines, Picture, Rows, Scene, Table
from penstock.playground.simulation import MINUTE, NOON, SECOND, Event, Run, batches, play
from penstock.types.timestamps import show

MINUTES = 12
COLUMNS = ("partition", "newest event", "silent for", "so it is")
IDLE = {"None": "None", "30 seconds": '"30 seconds"', "1 minute": '"1 minute"', "3 minutes": '"3 minutes"'}


def _events(values: Values) -> list[Event]:
    made, events = random.Random(values["seed"]), []
    stops, back = NOON + values["silent"] * MINUTE, NOON + values["back"] * MINUTE
    for partition in ("0", "1"):
        for n in range(MINUTES * 3):
            time = NOON + n * 20 * SECOND + int(made.random() * 15) * SECOND
            seen = time + (2 + int(made.random() * 6)) * SECOND
            if partition == "1" and time >= stops and (values["back"] == 0 or time < back):
                if values["brings"] == "fresh" or values["back"] == 0 or values["back"] <= values["silent"]:
                    continue
                seen = back + SECOND
            events.append(Event(time, seen, partition=partition))
    return events


def _written(values: Values) -> Written:
    return Written(
        watermark=f'ps.bounded("10 seconds", idle={IDLE[values["idle"]]})',
        window='ps.tumbling("1 minute")',
        aggregate={"plays": "ps.rows()"},
    )


def _clocks(run: Run) -> Rows:
    """What each partition stands at after each batch."""
    rows: Rows = []
    for step, clocks in enumerate(run.clocks):
        laggard = min((name for name in clocks if not clocks[name].idle), key=lambda n: clocks[n].watermark, default="")
        for name, one in clocks.items():
            newest = "nothing yet" if one.newest is None else show(one.newest)
            so = "idle: not waited for" if one.idle else "holds the watermark" if name == laggard else "ahead"
            rows.append((step, (name, newest, f"{one.silent_for // SECOND} s", so)))
    return rows


def scene(values: Values) -> Scene:
    """The run, the partitions' clocks, and how far behind the watermark is."""
    run = play(_written(values), batches(_events(values), 10 * SECOND, NOON + MINUTES * MINUTE), partitions=("0", "1"))
    shown = sum(pane.op > 0 for pane in run.script.panes)
    return Scene(
        run.steps(),
        (
            Picture("Two partitions: dots and diamonds", run.plane, run.windows()),
            Lines("How far the watermark is behind the clock", "s", (("behind", run.behind()),)),
            Table("What each partition stands at", COLUMNS, tuple(_clocks(run)), latest=True),
        ),
        (
            Figure("windows shown", str(shown), f"in {MINUTES} minutes"),
            Figure("behind at most", f"{max(run.behind()):.0f} s"),
            Figure("late", str(len(run.script.late))),
            Figure("open at the end", str(run.held[-1]), "windows that wait"),
        ),
    )


def code(values: Values) -> str:
    """The pipeline."""
    return program(_written(values).code())


LESSON = Lesson(
    id="silent",
    title="A silent partition, and idle",
    look=(
        "The watermark is the least of all partitions, so that none makes another's events late.",
        "When one falls silent nobody knows whether it has nothing to say or is only slow: the line stands still, and "
        "no window is shown however many dots the other brings.",
        "With idle the silent one steps aside after that time and the line jumps; if it comes back with what it held "
        "back, that is late.",
    ),
    controls=(
        Choice(
            "idle",
            "idle after",
            (
                ("None", "never: wait for ever"),
                ("30 seconds", "30 seconds"),
                ("1 minute", "1 minute"),
                ("3 minutes", "3 minutes"),
            ),
            "None",
        ),
        Slider("silent", "the second partition falls silent at minute", 1, 10, 4),
        Slider("back", "and is back at minute (0: never)", 0, 11, 0),
        Choice("brings", "it then brings", (("fresh", "only what is new"), ("backlog", "all it held back")), "fresh"),
        seed(5),
    ),
    presets=(
        Preset("frozen", {}),
        Preset("idle after a minute", {"idle": "1 minute"}),
        Preset("back, with all it held back", {"idle": "1 minute", "back": 8, "brings": "backlog"}),
        Preset("back, and nobody had given up", {"idle": "None", "back": 8, "brings": "backlog"}),
    ),
    play=scene,
    code=code,
)
