"""Killing the worker: what at-most-, at-least- and exactly-once leave in the sink."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from penstock.humanize import many
from penstock.playground.code_samples import Written, program
from penstock.playground.controls import Choice, Slider, Values, seed
from penstock.playground.lesson import Lesson, Preset
from penstock.playground.scene import Bars, Figure, Rows, Scene, Step, Table

MODES = {"at_most_once": "at most once", "at_least_once": "at least once", "exactly_once": "exactly once"}
BATCHES = 6
READ, FIRST, NEXT = "read", "first", "second"


@dataclass
class Sink:
    """What outlives a kill: the rows in the sink, the ledger beside them, and the marks of batches that are done."""

    counter: int = 0
    ledger: set[int] = field(default_factory=set)
    marked: set[int] = field(default_factory=set)


@dataclass
class Worker:
    """One worker under one kind of delivery: writes batches, and marks them as done before or after."""

    mode: str
    sink: Sink = field(default_factory=Sink)

    def does(self, phase: str, batch: int, rows: int, dying: bool) -> str:
        """One phase of a batch; `dying` if the worker dies in the middle of its write."""
        if phase == READ:
            return f"reads {many(rows, 'row')}"
        if (phase == FIRST) != (self.mode == "at_most_once"):
            return self._write(batch, rows, dying)
        if dying and self.mode != "at_most_once":
            return "is dead by now"
        self.sink.marked.add(batch)
        return "marks the batch as done"

    def _write(self, batch: int, rows: int, torn: bool) -> str:
        sink = self.sink
        if self.mode == "exactly_once":
            if torn:
                return "writes in a transaction, which is rolled back"
            if batch in sink.ledger:
                return "finds the batch in the ledger: writes nothing"
            sink.ledger.add(batch)
            sink.counter += rows
            return f"writes {many(rows, 'row')} and the ledger in one transaction"
        if self.mode == "at_most_once" and batch in sink.ledger:
            return "the batch was marked before: writes nothing"
        done = rows // 2 if torn else rows
        sink.counter += done
        if self.mode == "at_most_once" and not torn:
            sink.ledger.add(batch)
        return f"writes {done} of {many(rows, 'row')}" if torn else f"writes {many(rows, 'row')}"

    def restart(self) -> str:
        """All that the worker knew is gone; a batch that was marked before it was written is not written again."""
        if self.mode == "at_most_once":
            self.sink.ledger |= self.sink.marked
        return "starts again with what the sink and the marks say"


def _phases(values: Values) -> list[tuple[int, str, bool]]:
    """The phases of all batches, as (batch, phase, dying); a kill, and the batch again, where they are asked for."""
    reached = {"before": 1, "between": 2, "write": 3, "after": 3}
    whole, phases = (READ, FIRST, NEXT), []
    for batch in range(1, BATCHES + 1):
        killed = batch == values["batch"] and values["kill"] != "never"
        if killed:
            phases += [(batch, phase, values["kill"] == "write") for phase in whole[: reached[values["kill"]]]]
            phases += [(batch, "kill", False), (batch, "restart", False)]
        if not killed or values["kill"] != "after":
            phases += [(batch, phase, False) for phase in whole]
    return phases


def scene(values: Values) -> Scene:
    """The three workers side by side, step by step."""
    made = random.Random(values["seed"])
    sizes = [0, *(1 + int(made.random() * 9) for _ in range(BATCHES))]
    workers = {mode: Worker(mode) for mode in MODES}
    rows: Rows = []
    counters: dict[str, list[float]] = {mode: [] for mode in MODES}
    steps = []
    for number, (batch, phase, dying) in enumerate(_phases(values)):
        said = {mode: _turn(worker, batch, phase, sizes[batch], dying) for mode, worker in workers.items()}
        rows.append((number, (f"batch {batch}", *said.values())))
        for mode, worker in workers.items():
            counters[mode].append(float(worker.sink.counter))
        steps.append(
            Step(
                f"batch {batch}, {'kill -9' if phase == 'kill' else phase}: "
                + "; ".join(f"{MODES[mode]} {text}" for mode, text in said.items())
            )
        )
    truth = sum(sizes)
    bars = tuple((name, tuple(counters[mode])) for mode, name in MODES.items())
    return Scene(
        steps,
        (
            Bars("Rows in the sink", "rows", (("sent by the source", (float(truth),) * len(steps)), *bars)),
            Table("What each worker does", ("batch", *MODES.values()), tuple(rows)),
        ),
        (
            Figure("sent", str(truth), "rows"),
            *(
                Figure(name, str(workers[mode].sink.counter), _verdict(workers[mode].sink.counter - truth))
                for mode, name in MODES.items()
            ),
        ),
    )


def _turn(worker: Worker, batch: int, phase: str, rows: int, dying: bool) -> str:
    if phase == "kill":
        return "is killed"
    return worker.restart() if phase == "restart" else worker.does(phase, batch, rows, dying)


def _verdict(difference: int) -> str:
    if difference == 0:
        return "right"
    return f"{difference} too many" if difference > 0 else f"{-difference} missing"


def code(values: Values) -> str:
    """The pipeline under each kind."""
    outputs = [
        f'{mode} = ps.pipeline(\n    "scores-{mode.replace("_", "-")}",\n'
        f'    totals.write(ps.sqlite("{mode}.db", table="totals")),\n    delivery="{mode}",\n)'
        for mode in MODES
    ]
    return program(Written(watermark='ps.bounded("5 seconds")').code(), *outputs)


LESSON = Lesson(
    id="delivery",
    title="Killing the worker",
    look=(
        "A worker reads a batch, writes it to a sink, and marks it as done; what it does in which order decides what a "
        "kill leaves behind.",
        "Marked first and written next, a batch may be missing; written first and marked next, it may be there twice; "
        "written together with a ledger in one transaction, it is there once.",
        "Move the kill from one point to the next and read the counters: exactly once is the only one that never "
        "differs.",
    ),
    controls=(
        Choice(
            "kill",
            "kill -9",
            (
                ("between", "between the first and the second action"),
                ("write", "in the middle of the write"),
                ("before", "before the first action"),
                ("after", "after the second action"),
                ("never", "never"),
            ),
            "between",
        ),
        Slider("batch", "in batch", 1, BATCHES, 3),
        seed(6),
    ),
    presets=(
        Preset("between the two", {}),
        Preset("in the middle of the write", {"kill": "write"}),
        Preset("before anything", {"kill": "before"}),
        Preset("undisturbed", {"kill": "never"}),
    ),
    play=scene,
    code=code,
    model="A model: the order of writing and marking is played here by a few lines of Python. What the real sinks do "
    "under real kills is tested by make faults and penstock prove.",
)
