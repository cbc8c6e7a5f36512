"""The triangle of latency, completeness and cost, with every knob on it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import log
from typing import Any

from penstock.playground.code_samples import Written, program
from penstock.playground.consumer import kept
from penstock.playground.controls import Choice, Slider, Values, seed
from penstock.playground.lesson import Lesson, Preset
from penstock.playground.sample_streams import scores
from penstock.playground.scene import Figure, Picture, Scene, Table, Triangle
from penstock.playground.simulation import MINUTE, NOON, SECOND, Run, batches, play

EARLY = {"none": "", "10 seconds": 'ps.every("10 seconds")', "1 minute": 'ps.every("1 minute")', "event": "ps.count(1)"}
CORNERS = {
    "fast": {"delay": 0, "lateness": 0, "early": "event", "cadence": 5},
    "complete": {"delay": 300, "lateness": 0, "early": "none", "cadence": 30},
    "cheap": {"delay": 20, "lateness": 0, "early": "none", "cadence": 60},
    "all corrected": {"delay": 20, "lateness": 10, "early": "10 seconds", "cadence": 5},
}


@dataclass(frozen=True, slots=True)
class Measured:
    """What a run gave and took."""

    first: float
    complete: float
    on_time: float
    final: float
    panes: int
    held: int
    batches: int

    @property
    def work(self) -> int:
        """What it costs in all: panes, windows held and batches."""
        return self.panes + self.held + self.batches

    def cells(self) -> tuple[str, ...]:
        """The numbers as texts."""
        return (
            f"{self.first:.0f} s",
            f"{self.complete:.0f} s",
            f"{self.on_time:.0f} %",
            f"{self.final:.0f} %",
            str(self.panes),
            str(self.held),
            str(self.batches),
        )


def _written(values: Values) -> Written:
    parts = {"early": EARLY[values["early"]], "late": "ps.count(1)" if values["lateness"] else ""}
    trigger = ", ".join(f"{name}={text}" for name, text in parts.items() if text)
    delay = f"{values['delay']} seconds" if values["delay"] else "0"
    return Written(
        # When all is said the watermark goes on with the clock, so that the last window is answered, too.
        watermark=f'ps.bounded("{delay}", when_idle="advance")',
        window=f'ps.tumbling("{values["size"]} minutes")',
        lateness=f"{values['lateness']} minutes" if values["lateness"] else "0",
        trigger=f"ps.at_watermark({trigger})",
        mode=values["mode"] if trigger else "",
        aggregate={"plays": "ps.rows()"},
    )


def _run(values: Values) -> Run:
    events = scores(values["seed"], 70, 12, stragglers=values["stragglers"], straggle=(100, 400))
    return play(_written(values), batches(events, values["cadence"] * SECOND, NOON + 20 * MINUTE))


def measured(run: Run) -> Measured:
    """The three corners: how soon, how complete, how dear."""
    plus = [one for one in run.plane.panes if one.op > 0]
    firsts: dict[int, float] = {}
    ends: dict[int, float] = {}
    for one in plus:
        firsts.setdefault(one.start, (one.now - one.start) / SECOND)
        if one.timing == "on_time":
            ends[one.start] = (one.now - one.end) / SECOND
    events = len(run.plane.dots)
    told = [pane for pane in run.script.panes if pane.timing != "late"]
    discarding = run.script.plan.mode == "discarding"
    on_time = sum(pane.values["plays"] for pane in told) if discarding else sum(kept(told, "plays").values())  # type: ignore[misc]
    final = events - run.script.counts.late
    return Measured(
        sum(firsts.values()) / max(len(firsts), 1),
        sum(ends.values()) / max(len(ends), 1),
        100 * on_time / events,
        100 * final / events,
        len(run.plane.panes),
        sum(run.held),
        len(run.batches),
    )


@lru_cache(maxsize=256)
def _corner(name: str, world: tuple[tuple[str, Any], ...]) -> Measured:
    """What the knobs in a corner give; kept, because they stay where they are while others are turned."""
    return measured(_run({**dict(world), **CORNERS[name]}))


def _shapes(all_of: dict[str, Measured]) -> tuple[tuple[str, tuple[float, ...]], ...]:
    """How good each is at the three: 1 is the best of all, 0 the worst; times and costs by their logarithm."""
    goals = {name: (-log(max(one.first, 1.0)), one.on_time, -log(one.work)) for name, one in all_of.items()}
    worst, best = ([of(goal) for goal in zip(*goals.values(), strict=True)] for of in (min, max))
    return tuple(
        (
            name,
            tuple(round((x - low) / ((high - low) or 1.0), 3) for x, low, high in zip(goal, worst, best, strict=True)),
        )
        for name, goal in goals.items()
    )


def scene(values: Values) -> Scene:
    """The run, its numbers, and the corners on the same events."""
    run = _run(values)
    now = measured(run)
    world = tuple(sorted((name, value) for name, value in values.items() if name not in CORNERS["fast"]))
    others = {name: _corner(name, world) for name in CORNERS}
    columns = ("knobs", "first answer", "complete answer", "on time", "in the end", "panes", "windows held", "batches")
    rows = tuple((0, (name, *one.cells())) for name, one in {"as set": now, **others}.items())
    return Scene(
        run.steps(),
        (
            Picture("The run", run.plane, run.windows()),
            Triangle(
                "Where the knobs stand",
                ("soon", "complete", "cheap"),
                _shapes({"as set": now, **others}),
                "A corner is the best and the middle the worst of these five: the first answer, the share that is "
                "answered on time, and panes, windows held and batches together.",
            ),
            Table(
                "The same events with the knobs in each corner",
                columns,
                rows,
                "First answer: after the window's start. Complete answer: after its end. Windows held: summed over "
                "the batches.",
            ),
        ),
        (
            Figure("latency", f"{now.first:.0f} s", "to the first answer of a window"),
            Figure("completeness", f"{now.on_time:.0f} %", f"on time; {now.final:.0f} % in the end"),
            Figure("cost", f"{now.panes} panes", f"{now.held} windows held, {now.batches} batches"),
        ),
    )


def code(values: Values) -> str:
    """The pipeline, and how often it looks."""
    return program(
        _written(values).code(),
        f'scores = ps.pipeline("scores", totals.write(ps.memory("totals")))\n'
        f'# scores.run(checkpoint="checkpoints/scores", batch_every="{values["cadence"]} seconds")',
    )


LESSON = Lesson(
    id="triangle",
    title="Latency, completeness, cost",
    look=(
        "Every knob pulls at one corner of a triangle: answers that come soon, answers that are complete, and answers "
        "that cost little.",
        "A long delay is complete and late; no delay is quick and leaves stragglers out; early and late panes give "
        "both, and are paid for with panes, state and batches.",
        "Find knobs that are good enough in all three for you: there is no setting that is best in each.",
    ),
    controls=(
        Slider("delay", "delay of the watermark", 0, 300, 20, 10, "seconds"),
        Slider("lateness", "lateness", 0, 10, 5, 1, "minutes"),
        Choice(
            "early",
            "early panes",
            (
                ("1 minute", "every minute"),
                ("10 seconds", "every 10 seconds"),
                ("event", "with every event"),
                ("none", "none"),
            ),
            "1 minute",
        ),
        Choice(
            "mode",
            "mode",
            (("accumulating", "accumulating"), ("discarding", "discarding"), ("retracting", "retracting")),
            "accumulating",
        ),
        Slider("cadence", "a batch every", 5, 60, 10, 5, "seconds"),
        Slider("size", "windows of", 1, 6, 2, 1, "minutes"),
        Slider("stragglers", "every n-th is a straggler (0: none)", 0, 20, 9),
        seed(9),
    ),
    presets=(
        Preset("a little of each", {}),
        *(Preset(name, dict(knobs)) for name, knobs in CORNERS.items()),
    ),
    play=scene,
    code=code,
    dragged="delay",
)
