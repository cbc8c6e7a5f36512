"""Which engine plays a script: each by its name, imported only when asked for."""

from __future__ import annotations

import importlib

from penstock.batch import Run
from penstock.errors import CaseError, did_you_mean
from penstock.flow import AnyStage

ENGINES = {
    "reference": ("penstock.reference.run", "ReferenceRun"),
    "columnar": ("penstock.testing.columnar", "ColumnarRun"),
    "spark": ("penstock.spark.kit", "SparkRun"),
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
