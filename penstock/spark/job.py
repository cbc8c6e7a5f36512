"""What every task of a pipeline is told once: the plan, the shards, and where large outputs are put aside."""

from __future__ import annotations

import gc
import sys
from dataclasses import dataclass
from typing import Any

from penstock.engine.compiled import Compiled
from penstock.plan import Plan
from penstock.spark.packets import ShardIds

_PIPELINES = 8
_compiled: dict[str, Compiled] = {}
_settled = 0


@dataclass(frozen=True)
class Job:
    """A pipeline as its tasks see it; `token` tells one start of it from every other.

    `adopted` are the streams of which every sink takes the files its tasks have staged, so that no other is needed.
    `raw` gives panes and late rows with the engine's own columns, and exact counts of what is open: for the test kit.
    """

    token: str
    name: str
    lineage: str
    plan: Plan
    shards: ShardIds
    staging: str | None
    stagers: tuple[tuple[str, Any, Any], ...] = ()
    adopted: frozenset[str] = frozenset()
    raw: bool = False

    def compiled(self) -> Compiled:
        """The plan made ready, once in each worker."""
        _settle()
        if self.token not in _compiled:
            if len(_compiled) >= _PIPELINES:
                _compiled.clear()
            _compiled[self.token] = Compiled(self.plan)
        return _compiled[self.token]


def _settle() -> None:
    """Take what the modules of this worker have made out of the garbage collector's sight.

    Spark's worker collects after every task, before it takes the next; with the modules in sight that is 20 ms.
    """
    global _settled
    if len(sys.modules) != _settled:
        _settled = len(sys.modules)
        gc.freeze()
