"""Random batches for operators of one side, played on both implementations, with restarts between any two."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from penstock.engine.ingest.pre_aggregate import Rows
from penstock.engine.state.cache import CACHE
from penstock.engine.windows.lifecycle import Clock
from penstock.plan.stages import Side
from penstock.reference.aggregates import Record
from penstock.types.arrow import from_arrow, to_arrow
from penstock.types.schema import Schema
from penstock.types.timestamps import MAX_TIME, MIN_TIME
from tests.properties.comparing import exact

SECOND = 1_000_000


@dataclass(frozen=True)
class Batch:
    """What arrives, each row with its time and partition, and the clocks; `restart` comes before it."""

    rows: tuple[tuple[int, str, dict[str, Any]], ...]
    watermark: int
    now: int
    restart: bool = False


@st.composite
def batches(draw: st.DrawFn, rows: st.SearchStrategy[dict[str, Any]], *, longest: int = 8) -> list[Batch]:
    """Batches in which time goes on, more or less, with silences and restarts, and an end for most."""
    made, base, watermark, now = [], 20, MIN_TIME, 1_000 * SECOND
    for _ in range(draw(st.integers(1, longest))):
        base += draw(st.sampled_from([0, 1, 3, 8, 20]))
        now += draw(st.integers(0, 6)) * SECOND
        if draw(st.integers(0, 3)):
            watermark = max(watermark, (base - draw(st.integers(-6, 15))) * SECOND)
        arrived = draw(st.lists(st.tuples(st.integers(-12, 6), st.sampled_from("ab"), rows), max_size=8))
        timed = tuple(((base + behind) * SECOND, partition, row) for behind, partition, row in arrived)
        made.append(Batch(timed, watermark, now, draw(st.booleans())))
    if draw(st.integers(0, 3)):
        made += [Batch((), MAX_TIME, now + SECOND), Batch((), MAX_TIME, now + SECOND, restart=True)]
    return made


class Both:
    """A rule on both implementations, which must agree on every batch."""

    def __init__(self, machine: Any, operator: Any, side: Side, keys: Callable[[str, dict[str, Any]], Any]) -> None:
        self.machine, self.operator, self.side, self.keys = machine, operator, side, keys
        self.memory = operator.start()
        self.parts: dict[str, bytes] = {}
        self.offsets: dict[str, int] = defaultdict(int)
        self.outputs: list[tuple[str, dict[str, Any], int]] = []
        self.ops: list[int] = []
        self.late = self.bad = self.read = 0

    def play(self, batch: Batch) -> None:
        """One batch on both."""
        if batch.restart:
            self.restart()
        records = self.records(batch)
        rows = arrived(records, self.side.schema)
        clock = Clock(batch.watermark, batch.now)
        made = self.operator.step(self.memory, (rows,), clock)
        self.same_bytes(made, self.operator.step(self.memory, (rows,), clock))
        said = self.machine.step((records,), batch.watermark, batch.now)
        self.memory = made.memory
        self.same_outputs(said, made)
        assert [exact_row(record.row) for _, record in said.late] == late_rows(made.late[0], self.side.schema)
        self.same_bad(said, made, rows)
        assert said.hold == made.hold
        assert self.machine.held() == self.operator.held(self.memory)
        self.read += len(records)
        self.late += len(said.late)
        self.bad += len(said.bad)

    def restart(self) -> None:
        """Both go on from what they saved, in a process that knows nothing."""
        self.machine.memory = deepcopy(self.machine.memory)
        saved = self.operator.saved(self.memory, self.parts)
        assert self.parts.keys().isdisjoint(saved.parts)
        self.parts |= saved.parts
        names = self.operator.parts(saved.head)
        assert set(names) <= self.parts.keys()
        self.parts = {name: self.parts[name] for name in names}
        CACHE.clear()
        self.memory = self.operator.restored(saved.head, self.parts.__getitem__)

    def records(self, batch: Batch) -> list[Record]:
        made = []
        for time, partition, row in batch.rows:
            made.append(Record(time, f"s/{partition}", self.offsets[partition], row))
            self.offsets[partition] += 1
        return sorted(made, key=lambda record: (record.partition, record.offset))

    def same_bytes(self, one: Any, two: Any) -> None:
        assert one.outputs.keys() == two.outputs.keys()
        for name, out in one.outputs.items():
            assert out.batch.serialize().equals(two.outputs[name].batch.serialize())
            assert out.times.tolist() == two.outputs[name].times.tolist()
        assert self.operator.saved(one.memory) == self.operator.saved(two.memory)

    def same_outputs(self, said: Any, made: Any) -> None:
        """Each key's rows in the same order, of each output."""
        left, right = defaultdict(list), defaultdict(list)
        for out in said.rows:
            left[out.output, repr(self.keys(out.output, out.row))].append((exact_row(out.row), out.time, out.op))
        for name, out in made.outputs.items():
            rows = from_arrow(out.batch, self.schema_of(name))
            ops = [1] * len(rows) if out.ops is None else out.ops.tolist()
            for row, time, op in zip(rows, out.times.tolist(), ops, strict=True):
                right[name, repr(self.keys(name, row))].append((exact_row(row), time, op))
                self.outputs.append((name, row, time))
                self.ops.append(op)
        assert left == right

    def schema_of(self, output: str) -> Schema:
        return self.operator.rule.outputs((self.side,))[output]

    def same_bad(self, said: Any, made: Any, rows: Rows) -> None:
        """The same rows are bad, for the same reasons; one that had waited is found after the arrivals."""
        columns = from_arrow(rows.batch, self.side.schema)
        waited = getattr(made, "waited", (None,))[0]
        columns += [] if waited is None else from_arrow(waited.batch, self.side.schema)
        right = [(exact_row(columns[bad.row]), bad.step, bad.reason) for bad in made.bad]
        left = [(exact_row(bad.record.row), bad.step, bad.reason) for bad in said.bad]
        assert sorted(map(repr, left)) == sorted(map(repr, right))


def arrived(records: Sequence[Record], schema: Schema) -> Rows:
    """Records in columns."""
    batch = to_arrow([record.row for record in records], schema)
    times = np.array([record.time for record in records], dtype=np.int64)
    offsets = np.array([record.offset for record in records], dtype=np.int64)
    return Rows(batch, times, pa.array([record.partition for record in records], pa.string()), offsets)


def late_rows(rows: Rows | None, schema: Schema) -> list[Any]:
    return [] if rows is None else [exact_row(row) for row in from_arrow(rows.batch, schema)]


def exact_row(row: dict[str, Any]) -> Any:
    """A row that equals itself."""
    return sorted((name, exact(value)) for name, value in row.items())
