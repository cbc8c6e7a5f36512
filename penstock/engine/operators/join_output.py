"""What rows does a join give: pairs and padded rows of several tables put together, in the order of their times."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.engine.ingest.pre_aggregate import Rows
from penstock.engine.operators.netting import left_over
from penstock.engine.operators.protocol import Outgoing
from penstock.engine.operators.version_table import Table
from penstock.engine.state.row_runs import Run
from penstock.engine.state.rows import Stored, ranks
from penstock.engine.windows.assignment import bounds
from penstock.engine.windows.partials import take_column
from penstock.plan.operators.join import Together
from penstock.plan.operators.join_schema import right_columns
from penstock.plan.operators.table_join import TableJoin
from penstock.plan.operators.temporal_join import UNMATCHED, TemporalJoin
from penstock.plan.stages import MAIN, Side
from penstock.types.arrow import arrow_schema, gathered, one_batch
from penstock.types.schema import Schema


@dataclass(frozen=True)
class Given:
    """Rows of a left and of a right table side by side; where one of them is None, the other is padded.

    `right_run` is the run that the right table is of, if it was held; `ops` are None where no row can be withdrawn.
    """

    left: Stored | None
    left_rows: np.ndarray | None
    right: Stored | None
    right_rows: np.ndarray | None
    own_times: np.ndarray | None = None
    right_run: Run | None = None
    ops: np.ndarray | None = None

    @cached_property
    def times(self) -> np.ndarray:
        """The event times: said, or the later of the two."""
        if self.own_times is not None:
            return self.own_times
        assert self.left is not None
        assert self.right is not None
        return np.maximum(self.left.kept.times[self.left_rows], self.right.kept.times[self.right_rows])

    def __len__(self) -> int:
        return len(self.times)


class Joined:
    """How the rows of a join are put together: with which columns of the right side, under which names."""

    def __init__(
        self, sides: Sequence[Side], schema: Schema, named: Mapping[str, str], together: Together | None = None
    ) -> None:
        self.left, self.right = sides
        self.schema = arrow_schema(schema)
        self.named = named
        self.together = together

    def outgoing(self, given: Sequence[Given]) -> Outgoing:
        """All rows of a batch in order: by time, then by the place of the left row, then by that of the right."""
        some = [one for one in given if len(one)]
        if not some:
            return Outgoing(_none(self.schema), np.empty(0, dtype=np.int64))
        times = np.concatenate([one.times for one in some])
        order = _order(times, some)
        whole = self._batch(some, order)
        if all(one.ops is None for one in some):
            return Outgoing(whole, times[order])
        ops = np.concatenate([np.ones(len(one), np.int8) if one.ops is None else one.ops for one in some])
        return _net(Outgoing(whole, times[order], ops[order]))

    def _batch(self, given: Sequence[Given], order: np.ndarray) -> pa.RecordBatch:
        lone = np.concatenate([np.full(len(one), one.left is None) for one in given])[order]
        keys = dict(zip(self.left.keys, self.right.keys, strict=True)) if lone.any() else {}
        mine = _gathered([(one.left, one.left_rows, len(one)) for one in given], self.left.schema.names, order)
        needed = list(dict.fromkeys([*keys.values(), *self.named]))
        theirs = _gathered([(one.right, one.right_rows, len(one)) for one in given], needed, order)
        columns = {
            name: self._nulls(order, name) if mine is None else mine.column(name) for name in self.left.schema.names
        }
        if theirs is not None:
            for name, their in keys.items():
                columns[name] = pc.if_else(pa.array(lone), theirs.column(their), columns[name])
        for name, new in self.named.items():
            columns[new] = self._nulls(order, new) if theirs is None else theirs.column(name)
        windows = [] if self.together is None else self._windows(self.together, given, order)
        return pa.RecordBatch.from_arrays([*columns.values(), *windows], schema=self.schema)

    def _nulls(self, order: np.ndarray, name: str) -> pa.Array:
        return pa.nulls(len(order), self.schema.field(name).type)

    def _windows(self, reach: Together, given: Sequence[Given], order: np.ndarray) -> list[pa.Array]:
        times = []
        for one in given:
            table, rows = (one.right, one.right_rows) if one.left is None else (one.left, one.left_rows)
            assert table is not None
            times.append(table.kept.times[rows])
        kind = self.schema.field("window_start").type
        return [pa.array(bound).cast(kind) for bound in bounds(reach.window, np.concatenate(times)[order])]


def _gathered(
    asked: Sequence[tuple[Stored | None, np.ndarray | None, int]], names: Sequence[str], order: np.ndarray
) -> pa.RecordBatch | None:
    """Rows of several tables in one order, nulls where there is no table; None where there is nothing at all.

    Each row is copied once, from its table to its place. Of a table of which few rows are asked, beside others, these
    are taken first, for the tables are put one after the other.
    """
    wanted: dict[int, int] = {}
    for table, _, n in asked:
        if table is not None:
            wanted[id(table)] = wanted.get(id(table), 0) + n
    if not wanted or not names:
        return None
    pieces: list[pa.RecordBatch] = []
    begins: dict[int, int] = {}
    places, end = [], 0
    for table, rows, n in asked:
        if table is None:
            places.append(np.full(n, -1))
        elif id(table) in begins:
            places.append(begins[id(table)] + _rows(rows))
        else:
            piece = table.kept.batch.select(list(names))
            few = len(wanted) > 1 and len(table) > 2 * wanted[id(table)]
            pieces.append(take_column(piece, _rows(rows)) if few else piece)
            places.append(end + (np.arange(n) if few else _rows(rows)))
            if not few:
                begins[id(table)] = end
            end += pieces[-1].num_rows
    index = np.concatenate(places)[order]
    found = pieces[0] if len(pieces) == 1 else one_batch(pa.Table.from_batches(pieces))
    return gathered(found, pa.array(index, mask=index < 0))


def _net(rows: Outgoing) -> Outgoing:
    """Rows that come and are withdrawn in one batch are not given at all."""
    assert rows.ops is not None
    left = left_over([pa.array(rows.times), *rows.batch.columns], rows.ops)
    return Outgoing(take_column(rows.batch, left), rows.times[left], rows.ops[left])


def _order(times: np.ndarray, given: Sequence[Given]) -> np.ndarray:
    """By time; places settle ties, and are looked at only where there are any."""
    order = np.argsort(times, kind="stable")
    ordered = times[order]
    same = ordered[1:] == ordered[:-1]
    if not same.any():
        return order
    tied = np.append(same, False) | np.append(False, same)
    among = order[tied]
    codes = _places(given, among)
    order[tied] = among[np.lexsort((*reversed(codes), times[among]))]
    return order


def _places(given: Sequence[Given], among: np.ndarray) -> list[np.ndarray]:
    """The places of some rows as numbers: partition and offset of the left row, then of the right; -1 where none is."""
    tables = [table.kept for one in given for table in (one.left, one.right) if table is not None]
    names = sorted({name for table in tables for name in table.names})
    codes = []
    for left in (True, False):
        partitions, offsets = [], []
        for one in given:
            table, rows = (one.left, one.left_rows) if left else (one.right, one.right_rows)
            if table is None:
                partitions.append(np.full(len(one), -1))
                offsets.append(np.full(len(one), -1))
            else:
                partitions.append(ranks(table.kept.names, names)[table.kept.place[rows]])
                offsets.append(table.kept.offsets[rows])
        codes += [np.concatenate(partitions)[among], np.concatenate(offsets)[among]]
    return codes


def _rows(rows: np.ndarray | None) -> np.ndarray:
    assert rows is not None
    return rows


def _none(schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array([], field.type) for field in schema], schema=schema)


class Lookup:
    """What rows give that each find one row of a table, or none."""

    def __init__(self, rule: TemporalJoin | TableJoin, sides: Sequence[Side]) -> None:
        left, right = sides
        named = right_columns(right, rule.prefix, () if rule.deleted is None else (rule.deleted,))
        schemas = rule.outputs(sides)
        self.joined = Joined(sides, schemas[MAIN], named)
        self.unmatched = Joined(sides, left.schema, {}) if UNMATCHED in schemas else None

    def outgoing(self, asking: Stored | None, times: np.ndarray, table: Table) -> dict[str, Outgoing]:
        """The outputs, in the order of times and places."""
        given: list[Given] = []
        alone: list[Given] = []
        if asking is not None and len(asking):
            missing = np.ones(len(asking), dtype=bool)
            for mine, stored, theirs in table.find(asking, times):
                missing[mine] = False
                given.append(Given(asking, mine, stored, theirs, asking.kept.times[mine]))
            rows = np.flatnonzero(missing)
            (given if self.unmatched is None else alone).append(
                Given(asking, rows, None, None, asking.kept.times[rows])
            )
        outputs = {MAIN: self.joined.outgoing(given)}
        return outputs if self.unmatched is None else {**outputs, UNMATCHED: self.unmatched.outgoing(alone)}


def deletions(rows: Rows, deleted: str | None) -> np.ndarray | None:
    """Which rows say that a row of the table is gone; null does not."""
    if deleted is None or not len(rows):
        return None
    return rows.batch.column(deleted).fill_null(False).to_numpy(zero_copy_only=False)
