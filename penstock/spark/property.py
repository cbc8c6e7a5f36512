"""The clock on its way to the tasks: a local property of Spark, and the refusal of a task that has the wrong one."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

from pyspark import SparkContext, TaskContext

from penstock.errors import PenstockError

NAME = "penstock.clock"
_BATCH = "streaming.sql.batchId"


class WrongClock(PenstockError):
    """A task found no clock, or that of another batch: it must not run, for its answer would differ."""


@dataclass(frozen=True, slots=True)
class TaskClock:
    """What a task is told: the batch it may work for, W of each stage in it, and now of the batch before.

    Where a run is observed, `newest` has the newest event time of each source/partition before the batch.
    """

    lineage: str
    batch: int
    watermarks: tuple[int, ...]
    before: int
    newest: Mapping[str, int] = field(default_factory=dict)


def tell_tasks(context: SparkContext, clock: TaskClock) -> None:
    """Set the clock for the tasks this thread starts from now on."""
    context.setLocalProperty(NAME, json.dumps(asdict(clock)))


def task_clock(lineage: str) -> TaskClock:
    """The clock of the task that runs here."""
    context = TaskContext.get()
    told = context.getLocalProperty(NAME) if context is not None else None
    batch = context.getLocalProperty(_BATCH) if context is not None else None
    if told is None:
        raise WrongClock(
            "a task runs without a clock",
            "the watermark of its batch is not known, so its answer could not be trusted",
            "let Spark start the batch anew: stop the query and run the pipeline again",
        )
    said = json.loads(told)
    clock = TaskClock(**{**said, "watermarks": tuple(said["watermarks"])})
    if clock.lineage != lineage or (batch is not None and int(batch) != clock.batch):
        raise WrongClock(
            f"a task of batch {batch} found the clock of batch {clock.batch}",
            "a task that is run again after its batch was over would see a later watermark",
            "let Spark start the batch anew: stop the query and run the pipeline again",
        )
    return clock
