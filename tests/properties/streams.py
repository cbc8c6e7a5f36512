"""Random streams for the laws: batches in which event time moves on, more or less, and so do clock and watermark."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from penstock.plan.stages import Plan
from penstock.runtime.batch import Outcome
from penstock.testing import Script
from tests.properties.plans import END_OF_TIME

KEYS = ["a", "b", "a", None]
PARTITIONS = ["0", "1", "2"]
BEHIND = [0, 0, 0, 1, 2, 3, 5, 8, 10, 11, 20, 30, 70]

Row = dict[str, Any]
numbers = st.one_of(st.integers(-3, 9), st.none(), st.sampled_from([2**40, -(2**40)]))
floats = st.one_of(st.none(), st.floats(-8, 8, width=16), st.sampled_from([0.0, -0.0, 1.5, float("nan")]))
odd_times = st.sampled_from([None, 10**12])


@dataclass(frozen=True)
class Step:
    """One batch of a script; `resumed` makes it the first after an outage, which brings no rows."""

    rows: tuple[Row, ...]
    now: int
    watermark: int | None
    restart: bool = False
    resumed: bool = False


@st.composite
def rows_near(draw: st.DrawFn, base: int, *, odd: bool = True) -> Row:
    """A row around an instant, mostly a little behind it."""
    at = max(base - draw(st.sampled_from(BEHIND)), 0)
    return {
        "k": draw(st.sampled_from(KEYS)), "v": draw(numbers), "x": draw(floats),
        "at": draw(odd_times) if odd and draw(st.integers(0, 24)) == 24 else at,
        "@partition": draw(st.sampled_from(PARTITIONS)),
    }  # fmt: skip


@st.composite
def scripts(draw: st.DrawFn, *, max_batches: int = 7, odd: bool = True, ended: bool | None = None) -> list[Step]:
    """Batches with disorder, silences, restarts, and marks by hand; `ended` says whether the input ends."""
    steps, now, base, given = [], 1000, 0, 0
    for _ in range(draw(st.integers(2, max_batches))):
        base += draw(st.sampled_from([8, 3, 12, 0, 18, 25]))
        rows = draw(st.lists(rows_near(base, odd=odd), min_size=draw(st.sampled_from([2, 4, 1, 0])), max_size=8))
        now += draw(st.integers(0, 12))
        given = max(given, base - draw(st.integers(-10, 25)))
        mark = draw(st.sampled_from([given, None]))
        steps.append(Step(tuple(rows), now, mark, draw(st.integers(0, 3)) == 3))
    if ended or (ended is None and draw(st.integers(0, 3))):
        steps.append(Step((), now + 1, END_OF_TIME))
    return steps


def play(script: Script, step: Step) -> Outcome:
    """One batch of a script, as its step says."""
    if step.restart:
        script.restart()
    if step.resumed:
        return script.resume(step.now)
    return script.batch(list(step.rows), now=step.now, watermark=step.watermark)


def played(plan: Plan, steps: list[Step], engine: str) -> Script:
    """A whole script, played."""
    script = Script(plan, engine)
    for step in steps:
        play(script, step)
    return script
