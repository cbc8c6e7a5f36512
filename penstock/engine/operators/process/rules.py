"""The rules of a keyed function in columns: kept as one part, changed by what a batch brings, shown to its calls."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa

from penstock.engine.columns.constants import constant
from penstock.engine.columns.keys import Keys, canonical, equal, hashes, key_codes
from penstock.engine.ingest.pre_aggregate import Rows
from penstock.engine.operators.join_output import deletions
from penstock.engine.operators.process.state import user_keys, user_rows
from penstock.engine.state.operator_codec import Runs
from penstock.engine.state.parts import Part, Stored
from penstock.engine.state.runs import Run
from penstock.engine.windows.partials import Cells, concat_cells
from penstock.plan.stages import Side
from penstock.runtime.broadcast_rules import NONE, Rules
from penstock.types.timestamps import MAX_TIME


class KeptRules:
    """How rules lie in columns: those that hold are one run, which is written when they change."""

    def __init__(self, side: Side, deleted: str | None) -> None:
        self.side, self.deleted = side, deleted
        self.names = [name for name in side.schema.names if name != deleted]
        self._shown: tuple[Part[Cells] | None, str | None, Rules] = (None, None, NONE)

    def changed(self, runs: Runs, changes: Rows, batch: int) -> Runs:
        """The rules after the changes of a batch; one that is said again as it was keeps its place and its batch."""
        if not len(changes):
            return runs
        news = self._cells(changes, batch)
        held = runs[0].part.get().rows if runs else news.take(np.empty(0, dtype=np.int64))
        both = concat_cells([held, news])
        keys, m = self._keys(both), len(held)
        codes = key_codes(keys, hashes(keys, len(both)))
        last, place = np.full((2, int(codes.max()) + 1), -1)
        last[codes[m:]] = np.arange(m, len(both))
        place[codes[:m]] = np.arange(m)
        words = np.sort(last[last >= 0])
        gone = deletions(changes, self.deleted)
        ended = np.zeros(len(words), dtype=bool) if gone is None else gone[words - m]
        before = place[codes[words]]
        same = (before >= 0) & ~ended
        same[same] = _same(both, before[same], words[same])
        stays = np.ones(m, dtype=bool)
        stays[before[(before >= 0) & ~same]] = False
        left = both.take(np.concatenate([np.flatnonzero(stays), words[~ended & ~same]]))
        return _run(left) if len(left) else ()

    def shown(self, runs: Runs) -> Rules:
        """The rules as a function reads them, made once for as long as they do not change."""
        if not runs:
            return NONE
        part, (seen, name, rules) = runs[0].part, self._shown
        if part is not seen and (part.name is None or part.name != name):
            cells = part.get().rows
            rows = user_rows(pa.RecordBatch.from_arrays(list(cells.held[0]), names=self.names))
            rules = Rules(zip(user_keys(self._keys(cells)), rows, cells.start.tolist(), strict=True))
        self._shown = (part, part.name, rules)
        return rules

    def _cells(self, changes: Rows, batch: int) -> Cells:
        """Changes as they are kept: `start` is the batch that brought them."""
        n = len(changes)
        held = tuple(changes.batch.column(name) for name in self.names)
        none = np.zeros(n, dtype=np.int64)
        return Cells((), none.astype(np.uint64), np.full(n, batch), none, np.ones(n, np.int64), none, none, (held,))

    def _keys(self, cells: Cells) -> Keys:
        columns = dict(zip(self.names, cells.held[0], strict=True))
        return tuple(canonical(columns[name]) for name in self.side.keys)


def _same(cells: Cells, one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Whether rules say the same as others."""
    columns = tuple(map(canonical, cells.held[0]))
    return equal(
        tuple(column.take(pa.array(one)) for column in columns),
        tuple(column.take(pa.array(other)) for column in columns),
    )


def _run(cells: Cells) -> Runs:
    n = len(cells)
    kept = replace(cells.settled(), end=constant(0, n))
    return (Run(0, Part(Stored(kept)), n, n, n, 0, 0, MAX_TIME, MAX_TIME),)
