"""Temporal joins, in columns: versions are put in their place, then rows that W has passed find theirs."""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass

import numpy as np

from penstock.engine.ingest.pre_aggregate import Rows
from penstock.engine.operators.join_output import Lookup, deletions
from penstock.engine.operators.protocol import Emitted
from penstock.engine.operators.version_table import put
from penstock.engine.state.codec import framed, unframed
from penstock.engine.state.row_runs import Run, Shelf, run_names, run_parts, run_read, run_said, written
from penstock.engine.state.rows import Stored, concat_stored, kept_rows
from penstock.engine.state.snapshot import Saved
from penstock.engine.windows.lifecycle import Clock
from penstock.plan.operators.temporal_join import TemporalJoin
from penstock.plan.stages import Side
from penstock.types.timestamps import MAX_TIME, MIN_TIME, plus

Runs = tuple[Run, ...]
WAITING = Shelf(marked_leave=False, holds=True)


@dataclass(frozen=True, slots=True)
class Memory:
    """The rows that wait, the versions, the bound behind which rows are late, and the W that was last looked at."""

    waiting: Runs
    versions: Runs
    bound: int
    watermark: int


class TemporalOperator:
    """A temporal join made ready for columns."""

    def __init__(self, rule: TemporalJoin, sides: Sequence[Side]) -> None:
        self.rule, self.left, self.right = rule, *sides
        self.lookup = Lookup(rule, sides)

    def start(self) -> Memory:
        """No rows and no versions."""
        return Memory((), (), MIN_TIME, MIN_TIME)

    def step(self, memory: Memory, arrivals: Sequence[Rows], clock: Clock) -> Emitted:
        """Judge, put versions in place, join what W has passed, and let go of versions that no row can need."""
        bound = max(memory.bound, plus(clock.watermark, -self.rule.lateness))
        late, fresh = [], []
        for rows in arrivals:
            behind = rows.times < bound
            late.append(rows.take(behind) if behind.any() else None)
            fresh.append(rows.take(~behind) if behind.any() else rows)
        waiting, passed = self._passed(memory, fresh[0], clock.watermark)
        table = put(memory.versions, *self._versions(fresh[1]), memory.bound, bound)
        times = passed.kept.times if passed is not None else np.empty(0, dtype=np.int64)
        outputs = self.lookup.outgoing(passed, times, table)
        versions = table.left(memory.bound, bound)
        hold = min((run.hold for run in waiting), default=MAX_TIME)
        made = Memory(waiting, versions, bound, clock.watermark)
        return Emitted(made, outputs, tuple(late), (), hold)

    def saved(self, memory: Memory, known: Container[str] = ()) -> Saved:
        """The memory as bytes."""
        parts = written(run_parts([*memory.waiting, *memory.versions]), known)
        said = {
            "bound": memory.bound,
            "watermark": memory.watermark,
            "waiting": [run_said(run) for run in memory.waiting],
            "versions": [run_said(run) for run in memory.versions],
        }
        return Saved(framed(said), parts)

    def parts(self, head: bytes) -> tuple[str, ...]:
        """The names of all parts that a head speaks of."""
        said, _ = unframed(head)
        return (*run_names(said["waiting"]), *run_names(said["versions"]))

    def restored(self, head: bytes, fetch: Callable[[str], bytes]) -> Memory:
        """The memory that was saved."""
        said, _ = unframed(head)
        waiting, versions = (tuple(run_read(run, fetch) for run in said[name]) for name in ("waiting", "versions"))
        return Memory(waiting, versions, said["bound"], said["watermark"])

    def held(self, memory: Memory) -> int:
        """How many rows wait and how many versions are kept."""
        return sum(run.live for run in (*memory.waiting, *memory.versions))

    def _passed(self, memory: Memory, rows: Rows, watermark: int) -> tuple[Runs, Stored | None]:
        """The rows that still wait, and those that W has passed."""
        fresh, passed, kept = Stored(kept_rows(rows, rows.times), self.left.keys), [], []
        for run in memory.waiting:
            still, leaving = WAITING.leave(run, memory.watermark, watermark)
            if len(leaving):
                passed.append(run.part.get().take(leaving))
            if still is not None:
                kept.append(still)
        waits = fresh.kept.times >= watermark
        if waits.any():
            kept.append(WAITING.run(fresh if waits.all() else fresh.take(np.flatnonzero(waits))))
        if not waits.all():
            passed.append(fresh.take(np.flatnonzero(~waits)) if waits.any() else fresh)
        return WAITING.tidy(kept, watermark), concat_stored(passed) if passed else None

    def _versions(self, rows: Rows) -> tuple[Stored, np.ndarray | None]:
        """New versions, and which of them are deletions."""
        stored = Stored(kept_rows(rows, rows.times), self.right.keys)
        return stored, deletions(rows, self.rule.deleted)
