"""How many tasks read a batch: one for each core, as it was when the batch was planned."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

import penstock as ps
from penstock.spark.source import FusedReader, Readers

ROWS = 1_000_000


class Still:
    """A clock that stands."""

    def now(self, batch: int, before: int) -> int:
        return 1


def fused(cores: int) -> FusedReader:
    """Spark's questions to a generator of scores, in a session of so many cores."""
    (one,) = ps.game_scores(rate=ROWS, events=ROWS, partitions=3, realtime=False).inputs
    job: Any = SimpleNamespace(flow=SimpleNamespace(inputs=[one]))
    return FusedReader(Readers(job, {"scores": one.source.reader}, Still(), cores=cores))


def logged(offset: dict[str, Any]) -> dict[str, Any]:
    """An offset as it comes back from Spark's log."""
    return dict(json.loads(json.dumps(offset)))


@pytest.mark.parametrize("cores", [1, 3, 4, 8])
def test_a_batch_is_cut_for_the_cores_that_planned_it(cores):
    """Played again on more cores or fewer, a batch must be cut as it was: sums of floats would differ otherwise."""
    first = fused(cores)
    start = first.initialOffset()
    end = logged(first.latestOffset(start, None))
    parts = [part.value for part in first.partitions(start, end)]
    assert len(parts) == cores
    assert [part.value for part in fused(2 * cores).partitions(start, end)] == parts


def test_a_batch_of_a_checkpoint_from_before_is_cut_for_two():
    one = fused(8)
    start = one.initialOffset()
    end = logged(one.latestOffset(start, None))
    del end["tasks"]
    assert len(one.partitions(start, end)) == 2
