"""The clock on its way to the tasks: a local property of Spark, and the refusal of a task that has the wrong one."""

from __future__ import annotations

import json
from dataclasses import asdict

from pyspark import SparkContext, TaskContext

from penstock.coordinator.task_clock import TaskClock, WrongClock

NAME = "penstock.clock"
_BATCH = "streaming.sql.batchId"


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
