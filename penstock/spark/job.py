"""What every task of a pipeline is told once: the stages, the shards, and where large outputs are put aside."""

from __future__ import annotations

import gc
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from penstock.flow import Flow
from penstock.spark.packets import ShardIds

if TYPE_CHECKING:
    from penstock.engine.stages import StageEngine

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

    def engine(self, stage: int) -> StageEngine:
        """A stage made ready, once in each worker."""
        from penstock.engine.stages import engine_of

        _settle()
        if self.token not in _engines:
            if len(_engines) >= _PIPELINES:
                _engines.clear()
            _engines[self.token] = tuple(engine_of(one) for one in self.flow.stages)
        return _engines[self.token][stage]


def _settle() -> None:
    """Take what the modules of this worker have made out of the garbage collector's sight.

    Spark's worker collects after every task, before it takes the next; with the modules in sight that is 20 ms.
    """
    global _settled
    if len(sys.modules) != _settled:
        _settled = len(sys.modules)
        gc.freeze()
