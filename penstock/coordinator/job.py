"""What every task of a pipeline is told once: the stages, the shards, and where large outputs are put aside."""

from __future__ import annotations

import gc
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from penstock.coordinator.messages import ShardIds
from penstock.plan.graph import AnyStage, Flow
from penstock.plan.operators.passthrough import Pass
from penstock.plan.stages import RowStage

if TYPE_CHECKING:
    from penstock.engine.stage import StageEngine

_PIPELINES = 8
_engines: dict[str, tuple[StageEngine, ...]] = {}
_settled = 0


@dataclass(frozen=True)
class Job:
    """A pipeline as its tasks see it; `token` tells one start of it from every other.

    `adopted` are the streams of which every sink takes the files its tasks have staged, so that no other is needed.
    `answers` is where tasks write down what they were answered from outside, or None where they ask nothing.
    `written` are the streams that a sink is given: what no sink is given stays where it is made.
    `observed` has the tasks of the sources take samples of what they read.
    `raw` gives panes and late rows with the engine's own columns, and exact counts of what is open: for the test kit.
    """

    token: str
    name: str
    lineage: str
    flow: Flow
    shards: ShardIds
    staging: str | None
    stagers: tuple[tuple[str, Any, Any], ...] = ()
    adopted: frozenset[str] = frozenset()
    raw: bool = False
    written: frozenset[str] = frozenset()
    answers: str | None = None
    observed: bool = False

    @property
    def placed(self) -> tuple[int, ...]:
        """The stages that have a place of their own in Spark's query; the others are played where their rows are made.

        These only give on what one other stage gives: for that no row need travel, and there is nothing to keep.
        """
        return tuple(number for number, stage in enumerate(self.flow.stages) if not _goes_along(stage))

    def after(self, stage: int) -> int | None:
        """The stage that has the next place in the query."""
        return next((number for number in self.placed if number > stage), None)

    def engine(self, stage: int) -> StageEngine:
        """A stage made ready, once in each worker."""
        from penstock.engine.stage import engine_of

        _settle()
        if self.token not in _engines:
            if len(_engines) >= _PIPELINES:
                _engines.clear()
            _engines[self.token] = tuple(engine_of(one) for one in self.flow.stages)
        return _engines[self.token][stage]


def _goes_along(stage: AnyStage) -> bool:
    passes = isinstance(stage, RowStage) and isinstance(stage.operator, Pass)
    return passes and len(stage.inputs) == 1 and stage.inputs[0].source.derived is not None


def _settle() -> None:
    """Take what the modules of this worker have made out of the garbage collector's sight.

    Spark's worker collects after every task, before it takes the next; with the modules in sight that is 20 ms.
    """
    global _settled
    if len(sys.modules) != _settled:
        _settled = len(sys.modules)
        gc.freeze()
