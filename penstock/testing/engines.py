"""Which engine plays a script: each by its name, imported only when asked for."""

from __future__ import annotations

import importlib

from penstock.errors import CaseError, did_you_mean
from penstock.plan.graph import AnyStage
from penstock.runtime.batch import Run

ENGINES = {
    "reference": ("penstock.reference.engine", "ReferenceRun"),
    "columnar": ("penstock.engine.in_process", "ColumnarRun"),
    "spark": ("penstock.spark.scripted_engine", "SparkRun"),
}


def start(plan: AnyStage, engine: str) -> Run:
    """A run of the plan on an engine."""
    if not isinstance(engine, str):
        raise CaseError(
            f"the engine is {engine!r}",
            "an engine is named by a text",
            'write Script(panes, "reference"), or Script(panes, "columnar")',
        )
    if engine not in ENGINES:
        raise CaseError(
            f"there is no engine {engine!r}",
            "a script is played by one of the engines",
            did_you_mean(engine, ENGINES),
        )
    module, name = ENGINES[engine]
    run: Run = getattr(importlib.import_module(module), name)(plan)
    return run
