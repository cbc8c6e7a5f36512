"""Kappa and Lambda: a bug is fixed, and the answers of the past must become right."""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import lru_cache

from penstock.model.panes import Pane
from penstock.playground.code_samples import Written, program
from penstock.playground.consumer import kept
from penstock.playground.controls import Choice, Slider, Values, seed
from penstock.playground.lesson import Lesson, Preset
from penstock.playground.scene import Figure, Lines, Picture, Scene, Step
from penstock.playground.simulation import MINUTE, NOON, SECOND, Batch, Event, Run, batches, play
from penstock.types.timestamps import show

MINUTES, EVERY = 16, 20 * SECOND
TEST = 50
FIXED = f"points < {TEST}"


def _events(values: Values) -> list[Event]:
    """Scores, with test rows among them that should not be counted."""
    made, events = random.Random(values["seed"]), []
    for n in range(MINUTES * 3):
        at = NOON + n * 20 * SECOND + int(made.random() * 15) * SECOND
        points = TEST if n % 7 == 3 else 1 + int(made.random() * 9)
        events.append(Event(at, at + int(made.random() * 15) * SECOND, points=points))
    return sorted(events, key=lambda event: event.seen)


def _written(fixed: bool) -> Written:
    return Written(
        watermark='ps.bounded("20 seconds")',
        window='ps.tumbling("2 minutes")',
        lateness="1 hour",
        trigger="ps.at_watermark(early=ps.count(1), late=ps.count(1))",
        mode="accumulating",
        where=FIXED if fixed else "",
    )


def _served(run: Run) -> list[int]:
    """The sum of all windows in an upsert sink after each batch."""
    totals: list[int] = []
    panes: list[Pane] = []
    for outcome in run.outcomes:
        panes += outcome.panes
        totals.append(sum(kept(panes).values()))
    return totals


def _replay(values: Values, cut: Sequence[Batch]) -> list[Batch]:
    """From the fix on, the log once more from its start, so many times faster than it was written; then as it comes."""
    fix, left = NOON + values["fix"] * MINUTE, [event for batch in cut for event in batch.events]
    again = []
    for batch in cut:
        if batch.now < fix:
            continue
        reached = min(NOON + (batch.now - fix) * values["speed"], batch.now)
        read = [event for event in left if event.seen <= reached]
        left = left[len(read) :]
        again.append(Batch(batch.now, tuple(read)))
    return again


def _lambda(values: Values, cut: Sequence[Batch]) -> list[int]:
    """The last batch run over all there was, and the speed path for what came since; each path has its own code."""
    fix, nightly = NOON + values["fix"] * MINUTE, values["nightly"] * MINUTE
    events = [event for batch in cut for event in batch.events]
    base, begins, served = 0, NOON, []
    since: list[Event] = []
    for batch in cut:
        if batch.now - begins >= nightly:
            begins = batch.now
            past = tuple(event for event in events if event.seen <= begins)
            fixed = begins >= fix and values["fixed"] in ("both", "batch")
            base = _total(past, fixed)
            since = []
        else:
            since = [*since, *batch.events]
        wrong = tuple(event for event in since if event.seen < fix or values["fixed"] == "batch")
        right = tuple(event for event in since if event not in wrong)
        served.append(base + _total(wrong, False) + _total(right, True))
    return served


@lru_cache(maxsize=4096)
def _total(events: tuple[Event, ...], fixed: bool) -> int:
    """What one path answers for some events: a run of the engine over them, to its end; kept for the next setting."""
    if not events:
        return 0
    run = play(_written(fixed), [Batch(max(event.seen for event in events), events)], end=True)
    return sum(kept(run.script.panes).values())


def scene(values: Values) -> Scene:
    """Both ways to repair the past, beside the truth."""
    cut = batches(_events(values), EVERY, NOON + MINUTES * MINUTE)
    first, again = play(_written(False), cut), play(_written(True), _replay(values, cut))
    wrong, truth = _served(first), _served(play(_written(True), cut))
    begins = len(cut) - len(again.batches)
    mended = [0] * begins + _served(again)
    caught = next((n for n in range(begins, len(cut)) if _level(again, n - begins, cut)), len(cut))
    kappa = [mended[n] if n >= caught else wrong[n] for n in range(len(cut))]
    both = _lambda(values, cut)
    steps = [
        Step(f"{show(batch.now)}: true {truth[n]}, Kappa serves {kappa[n]}, Lambda serves {both[n]}", batch.now)
        for n, batch in enumerate(cut)
    ]
    lines = (("true", truth), ("Kappa", kappa), ("Lambda", both), ("being replayed", mended))
    return Scene(
        steps,
        (
            Picture("The first run, with the bug", first.plane, first.windows(), variable="first"),
            Picture("Kappa: the log again, by the fixed code", again.plane, first.windows(), variable="again"),
            Lines("The sum that is served", "points", tuple((name, tuple(map(float, line))) for name, line in lines)),
        ),
        (
            Figure("Kappa is wrong for", _wrong(kappa, truth, values), "since the fix"),
            Figure("Lambda is wrong for", _wrong(both, truth, values), "since the fix"),
            Figure("read again by Kappa", str(sum(len(batch.events) for batch in again.batches)), "events"),
            Figure("programs to mend", "1 and 2", "Kappa and Lambda"),
        ),
    )


def _level(again: Run, step: int, cut: Sequence[Batch]) -> bool:
    """Whether a replay has read all that there was by then."""
    read = sum(len(batch.events) for batch in again.batches[: step + 1])
    now = again.batches[step].now
    return read == sum(len(batch.events) for batch in cut if batch.now <= now)


def _wrong(served: Sequence[int], truth: Sequence[int], values: Values) -> str:
    """How long an answer differed from the true one, from the fix on."""
    begins = values["fix"] * MINUTE // EVERY
    seconds = sum(served[n] != truth[n] for n in range(begins, len(truth))) * EVERY // SECOND
    return f"{seconds} s"


def code(values: Values) -> str:
    """The pipeline before and after the fix."""
    return program(
        "# as it was: test rows are counted\n" + _written(False).code("first"),
        "# as it is now: run it from the start of the log into a new table, then switch over\n"
        + _written(True).code("again"),
    )


LESSON = Lesson(
    id="replay",
    title="Kappa's replay, Lambda's two paths",
    look=(
        "The first run counts test rows, a bug; at some minute it is fixed, and all answers so far are still wrong.",
        "Kappa runs the same program once more over the log, quicker than it was written, and switches over when it "
        "has caught up: the dots of the second picture have the same event times and later processing times.",
        "Lambda waits for its next batch run, and its speed path is a second program that must be fixed as well.",
    ),
    controls=(
        Slider("fix", "the bug is fixed at minute", 2, 12, 6),
        Slider("speed", "the replay is quicker by", 2, 20, 6, 1, "times"),
        Slider("nightly", "Lambda's batch runs every", 2, 12, 5, 1, "minutes"),
        Choice(
            "fixed",
            "in Lambda the bug is fixed in",
            (("both", "both programs"), ("batch", "the batch program alone"), ("speed", "the speed path alone")),
            "both",
        ),
        seed(8),
    ),
    presets=(
        Preset("fixed everywhere", {}),
        Preset("the speed path was forgotten", {"fixed": "batch"}),
        Preset("the batch program was forgotten", {"fixed": "speed"}),
        Preset("a slow replay", {"speed": 2}),
    ),
    play=scene,
    code=code,
)
