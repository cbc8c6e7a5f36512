"""The windows that are held: a row for each (key, window), with its accumulators, its trigger and what it has shown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.engine.columns.constants import compressed, constant, join, pick, places
from penstock.engine.columns.keys import Keys
from penstock.engine.triggers import slots
from penstock.engine.windows.compiled import Compiled
from penstock.engine.windows.partials import (
    Cells,
    Held,
    concat_arrays,
    concat_held,
    empty_cells,
    take_arrays,
    take_held,
    zero_held,
)

EARLY, ON_TIME, LATE = 0, 1, 2
NUMBERS = (
    "hash",
    "start",
    "end",
    "records",
    "held_records",
    "unshown",
    "first_unshown",
    "newest",
    "index",
    "born_late",
    "on_time_shown",
    "last_timing",
    "last_event_time",
)


@dataclass(frozen=True, slots=True)
class Withdrawn:
    """Panes of windows that were merged away, to be withdrawn with the first pane of their owner."""

    owner: np.ndarray
    start: np.ndarray
    end: np.ndarray
    index: np.ndarray
    timing: np.ndarray
    event_time: np.ndarray
    values: tuple[pa.Array, ...]

    def __len__(self) -> int:
        return len(self.owner)

    def take(self, rows: np.ndarray) -> Withdrawn:
        """These rows."""
        numbers = {f.name: getattr(self, f.name)[rows] for f in fields(self) if f.name != "values"}
        return Withdrawn(**numbers, values=take_arrays(self.values, rows))


@dataclass(frozen=True, slots=True)
class Windows:
    """Every open window of a shard.

    `held_records` are those in the accumulators; it is 1 throughout where that is all of them. Where records may be
    withdrawn, `signs` has two columns: how many of the unshown are withdrawals, and whether a pane stands.
    """

    keys: Keys
    hash: np.ndarray
    start: np.ndarray
    end: np.ndarray
    records: np.ndarray
    held_records: np.ndarray
    unshown: np.ndarray
    first_unshown: np.ndarray
    newest: np.ndarray
    index: np.ndarray
    born_late: np.ndarray
    on_time_shown: np.ndarray
    last_timing: np.ndarray
    last_event_time: np.ndarray
    trigger: tuple[np.ndarray, ...]
    held: Held
    shown: Held
    last: tuple[Any, ...]
    withdrawn: Withdrawn
    signs: tuple[np.ndarray, ...] = ()

    def __len__(self) -> int:
        return len(self.start)

    @property
    def came(self) -> np.ndarray:
        """How many of the unshown records are no withdrawals."""
        return self.unshown - self.signs[0] if self.signs else self.unshown

    def take(self, rows: np.ndarray) -> Windows:
        """These rows, by place (each at most once) or by mask."""
        rows = places(rows)
        gone = self.withdrawn
        if len(gone):
            moved = np.full(len(self), -1)
            moved[rows] = np.arange(len(rows))
            owners = moved[gone.owner]
            gone = replace(gone.take(owners >= 0), owner=owners[owners >= 0])
        return Windows(
            keys=take_arrays(self.keys, rows),
            **{name: pick(getattr(self, name), rows) for name in NUMBERS},
            trigger=take_arrays(self.trigger, rows),
            held=take_held(self.held, rows),
            shown=take_held(self.shown, rows),
            last=take_arrays(self.last, rows),
            withdrawn=gone,
            signs=take_arrays(self.signs, rows),
        )

    def settled(self) -> Windows:
        """The same rows as they are kept: a column of numbers that is one value is kept as one."""
        numbers: dict[str, Any] = {name: compressed(getattr(self, name)) for name in NUMBERS}
        return replace(self, trigger=tuple(compressed(column) for column in self.trigger), **numbers)


def concat_windows(*given: Windows) -> Windows:
    """The windows of all."""
    parts = [one for one in given if len(one)]
    if len(parts) < 2:
        return parts[0] if parts else given[0]
    before = np.cumsum([0, *(len(one) for one in parts)])
    gone = [replace(one.withdrawn, owner=one.withdrawn.owner + at) for one, at in zip(parts, before[:-1], strict=True)]
    return Windows(
        keys=concat_arrays([one.keys for one in parts]),
        **{name: join([getattr(one, name) for one in parts]) for name in NUMBERS},
        trigger=concat_arrays([one.trigger for one in parts]),
        held=concat_held([one.held for one in parts]),
        shown=concat_held([one.shown for one in parts]),
        last=concat_arrays([one.last for one in parts]),
        withdrawn=concat_withdrawn(gone),
        signs=concat_arrays([one.signs for one in parts]),
    )


def concat_withdrawn(parts: Sequence[Withdrawn]) -> Withdrawn:
    """Withdrawals of several, their owners numbered alike."""
    numbers = {
        f.name: np.concatenate([getattr(part, f.name) for part in parts])
        for f in fields(Withdrawn)
        if f.name != "values"
    }
    return Withdrawn(**numbers, values=concat_arrays([part.values for part in parts]))


def no_withdrawals(compiled: Compiled) -> Withdrawn:
    """Nothing to withdraw."""
    none = np.empty(0, dtype=np.int64)
    return Withdrawn(
        none, none, none, none, none.astype(np.int8), none, tuple(pa.array([], kind) for kind in compiled.result_types)
    )


def new_windows(compiled: Compiled, cells: Cells, watermark: int, now: int) -> Windows:
    """Windows that begin with these cells."""
    n = len(cells)
    zeros = np.zeros(n, dtype=np.int64)
    off = np.zeros(n, dtype=bool)
    return Windows(
        cells.keys,
        cells.hash,
        cells.start,
        cells.end,
        cells.records,
        cells.records if compiled.plan.shown_mode == "discarding" else constant(1, n),
        cells.records,
        constant(now, n),
        cells.newest,
        zeros,
        compiled.complete_at(cells.end) <= watermark,
        off,
        constant(0, n),
        constant(0, n),
        tuple(off.astype(np.int8) for _ in slots(compiled.plan.trigger)),
        cells.held,
        zero_held(n, compiled.accumulators) if keeps_shown(compiled) else (),
        tuple(pa.nulls(n, kind) for kind in compiled.result_types) if keeps_last(compiled) else (),
        no_withdrawals(compiled),
        (withdrawals(cells), off) if compiled.signed else (),
    )


def withdrawals(cells: Cells) -> np.ndarray:
    """How many of the records of each cell are withdrawals: what is left is those that came without them."""
    return (cells.records - cells.held[-1][0]) // 2


def no_windows(compiled: Compiled) -> Windows:
    """A shard's memory at the start."""
    return new_windows(compiled, empty_cells(compiled.key_types, compiled.accumulators), 0, 0)


def keeps_shown(compiled: Compiled) -> bool:
    """Whether the sum of what was shown is kept: where it may have to be withdrawn as one."""
    return compiled.merging and compiled.plan.shown_mode == "discarding"


def keeps_last(compiled: Compiled) -> bool:
    """Whether the last pane's values are kept: where it may have to be withdrawn."""
    mode = compiled.plan.shown_mode
    return mode == "retracting" or (compiled.merging and mode == "accumulating")
