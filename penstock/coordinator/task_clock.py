"""The clock that the tasks of a batch are given, as it travels to them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from penstock.errors import PenstockError


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
