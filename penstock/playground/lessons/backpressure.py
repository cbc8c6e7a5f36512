"""Backpressure: a sink that grows slow, and where the rows wait meanwhile."""

from __future__ import annotations

from dataclasses import dataclass, field

from penstock.coordinator.rate_limit import next_rows
from penstock.playground.code_samples import Written, program
from penstock.playground.controls import Choice, Slider, Values
from penstock.playground.lesson import Lesson, Preset
from penstock.playground.scene import Figure, Lines, Scene, Step

TICKS, TICK, FIXED = 80, 3, 0.4
SLOW = (60, 120)
MEMORY = 400_000


@dataclass
class Course:
    """How a run went, second by second."""

    log: list[float] = field(default_factory=list)
    memory: list[float] = field(default_factory=list)
    batches: list[float] = field(default_factory=list)
    longest: float = 0.0
    writing: float = 0.0
    lost: float = 0.0


def _speed(values: Values, second: float) -> float:
    slow = SLOW[0] <= second < SLOW[1]
    return float(values["sink"] * 1000 * (values["slow"] / 100 if slow else 1.0))


def pulled(values: Values) -> Course:
    """The next batch is read when the last is written, and Penstock's own rule says how much it takes."""
    course, rate, target = Course(), values["rate"] * 1000, float(values["target"])
    read, rows, begins, ends, taken = 0.0, 200_000, 0.0, 0.0, 0.0
    for second in range(TICKS * TICK):
        while ends <= second:
            if taken:
                rows = next_rows(rows, int(taken), ends - begins, target)
            read += taken
            begins = max(ends, float(second))
            taken = min(rate * begins - read, rows)
            seconds = taken / _speed(values, begins)
            ends = begins + max(FIXED + seconds, 1.0)
            course.writing += seconds
            course.longest = max(course.longest, ends - begins)
        if second % TICK == 0:
            course.log.append(max(rate * second - read - taken, 0.0))
            course.memory.append(taken)
            course.batches.append(taken)
    return course


def pushed(values: Values) -> Course:
    """Rows are taken as they come and wait in memory; what does not fit any more is lost with the process."""
    course, rate, waiting = Course(), values["rate"] * 1000, 0.0
    for second in range(TICKS * TICK):
        drained = min(_speed(values, second), waiting + rate)
        course.writing += drained / _speed(values, second)
        waiting += rate - drained
        if waiting > MEMORY:
            course.lost += waiting
            waiting = 0.0
        if second % TICK == 0:
            course.log.append(0.0)
            course.memory.append(waiting)
            course.batches.append(drained)
    return course


def scene(values: Values) -> Scene:
    """Where the rows wait, and how large the batches are."""
    course = pulled(values) if values["way"] == "pull" else pushed(values)
    log, memory, batches = ([rows / 1000 for rows in line] for line in (course.log, course.memory, course.batches))
    much = values["rate"] * (values["target"] if values["way"] == "pull" else 1)
    waits = log if values["way"] == "pull" else memory
    behind = next((n * TICK for n in range(TICKS - 1, -1, -1) if waits[n] > much), 0)
    steps = [
        Step(
            f"second {n * TICK}: {_state(n * TICK)}; {log[n]:,.0f} thousand rows in the log, {memory[n]:,.0f} "
            f"thousand in memory"
        )
        for n in range(TICKS)
    ]
    return Scene(
        steps,
        (
            Lines("Where rows wait", "thousand rows", (("in the log", tuple(log)), ("in memory", tuple(memory)))),
            Lines("How much is taken at a time", "thousand rows", (("a batch takes", tuple(batches)),)),
        ),
        (
            Figure("in memory at most", f"{max(memory):,.0f} thousand", "rows"),
            Figure("in the log at most", f"{max(log):,.0f} thousand", "rows"),
            Figure(
                "caught up after",
                f"{max(behind - SLOW[1], 0)} s" if behind < (TICKS - 1) * TICK else "not yet",
                "since the sink is well again",
            ),
            Figure("time in the sink", f"{min(100 * course.writing / (TICKS * TICK), 100):.0f} %"),
            Figure("lost", f"{course.lost / 1000:,.0f} thousand", "rows that did not fit into memory"),
        ),
    )


def _state(second: int) -> str:
    return "the sink is slow" if SLOW[0] <= second < SLOW[1] else "the sink is well"


def code(values: Values) -> str:
    """The pipeline that is throttled so."""
    return program(
        Written(watermark='ps.bounded("5 seconds")').code(),
        f'scores = ps.pipeline(\n    "scores",\n    totals.write(ps.sqlite("scores.db", table="totals")),\n'
        f'    batch_target="{values["target"]} seconds",\n)',
    )


LESSON = Lesson(
    id="backpressure",
    title="Backpressure from a slow sink",
    look=(
        "From second 60 to 120 the sink is slow: more comes in than goes out, and something has to wait.",
        "A job that pulls leaves it in the log, reads less at a time so that a batch lasts as long as it should, and "
        "catches up when the sink is well again.",
        "A job into which rows are pushed keeps them in memory, until they do not fit and the process dies with them.",
    ),
    controls=(
        Choice("way", "rows are", (("pull", "pulled, batch by batch"), ("push", "pushed, as they come")), "pull"),
        Slider("rate", "rows come in", 5, 40, 20, 1, "thousand a second"),
        Slider("sink", "the sink takes", 10, 80, 40, 2, "thousand a second"),
        Slider("slow", "slow means", 5, 100, 20, 5, "% of that"),
        Slider("target", "a batch should last (batch_target)", 2, 20, 4, 1, "seconds"),
    ),
    presets=(
        Preset("pulled", {}),
        Preset("pushed", {"way": "push"}),
        Preset("never well enough", {"rate": 40, "sink": 40}),
        Preset("long batches", {"target": 20}),
    ),
    play=scene,
    code=code,
    model="A model: time, rows and the sink are numbers here. How much a batch takes is decided by the very function "
    "that decides it in a run on Spark.",
)
