"""How joins are played for the laws: the reference beside the columns, batch by batch, with everything compared."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from penstock.engine.ingest.pre_aggregate import Rows
from penstock.engine.operators import protocol as columns
from penstock.engine.state.cache import CACHE
from penstock.engine.state.snapshot import Saved
from penstock.engine.windows.lifecycle import Clock
from penstock.plan.stages import Operator, Side
from penstock.reference.aggregates import Record
from penstock.reference.operators import protocol as rows
from penstock.types.arrow import from_arrow, to_arrow
from penstock.types.schema import Schema, schema
from penstock.types.timestamps import MAX_TIME, MIN_TIME
from tests.properties.comparing import exact

Row = dict[str, Any]
Arrivals = tuple[list[Record], ...]
PARTITIONS = ["s/0", "s/1", "t/10", "t/9"]


@dataclass(frozen=True)
class Step:
    """One batch: for each side its rows, the two clocks, and whether both engines stop and go on from what is saved."""

    arrivals: Arrivals
    watermark: int
    now: int = 0
    restart: bool = False


def arrow_rows(records: Sequence[Record], held: Schema) -> Rows:
    """Rows for the columns."""
    return Rows(
        to_arrow([record.row for record in records], held),
        np.array([record.time for record in records], dtype=np.int64),
        pa.array([record.partition for record in records], pa.string()),
        np.array([record.offset for record in records], dtype=np.int64),
    )


def ipc(batch: pa.RecordBatch) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return sink.getvalue().to_pybytes()


def shown(row: Row) -> list[tuple[str, object]]:
    """A row that equals itself."""
    return [(name, exact(value)) for name, value in row.items()]


class Store:
    """Parts by name, as a state store keeps them."""

    def __init__(self) -> None:
        self.parts: dict[str, bytes] = {}
        self.written = 0

    def keep(self, operator: columns.Operator, saved: Saved) -> None:
        named = operator.parts(saved.head)
        assert self.parts.keys().isdisjoint(saved.parts)
        self.written += sum(map(len, saved.parts.values()))
        self.parts = {name: data for name, data in {**self.parts, **saved.parts}.items() if name in named}
        assert set(named) == self.parts.keys()


class Both:
    """A stage played by the reference and by the columns; each batch must be the same in both."""

    def __init__(self, rule: Operator, sides: Sequence[Side], machine: Any, operator: Any) -> None:
        rule.check(sides)
        self.sides, self.outputs = sides, rule.outputs(sides)
        self.machine: rows.Machine = machine(rule, sides)
        self.operator: columns.Operator = operator(rule, sides)
        self.memory, self.store = self.operator.start(), Store()
        self.late: list[tuple[int, Record]] = []

    def play(self, step: Step) -> list[rows.Out]:
        """One batch; gives what the reference gave."""
        arrivals = tuple(arrow_rows(mine, side.schema) for mine, side in zip(step.arrivals, self.sides, strict=True))
        clock = Clock(step.watermark, step.now)
        given = self.machine.step(step.arrivals, step.watermark, step.now)
        made = self.operator.step(self.memory, arrivals, clock)
        again = self.operator.step(self.memory, arrivals, clock)
        for name, one in made.outputs.items():
            assert ipc(one.batch) == ipc(again.outputs[name].batch)
            assert one.times.tolist() == again.outputs[name].times.tolist()
            mine = [(shown(out.row), out.time) for out in given.rows if out.output == name]
            theirs = map(shown, from_arrow(one.batch, self.outputs[name]))
            assert list(zip(theirs, one.times.tolist(), strict=True)) == mine, name
        assert {out.output for out in given.rows} <= made.outputs.keys()
        for number, late in enumerate(made.late):
            mine = [record for side, record in given.late if side == number]
            theirs = [] if late is None else from_arrow(late.batch, self.sides[number].schema)
            assert [shown(record.row) for record in mine] == [shown(row) for row in theirs]
            assert late is None or [record.offset for record in mine] == late.offsets.tolist()
        assert (given.hold, self.machine.held()) == (made.hold, self.operator.held(made.memory))
        assert self.operator.saved(made.memory) == self.operator.saved(again.memory)
        self.memory = made.memory
        self.late += given.late
        if step.restart:
            self.restart()
        return given.rows

    def restart(self) -> None:
        """Both forget everything but what they saved."""
        self.machine.memory = copy.deepcopy(self.machine.memory)
        saved = self.operator.saved(self.memory, self.store.parts)
        self.store.keep(self.operator, saved)
        CACHE.clear()
        self.memory = self.operator.restored(saved.head, self.store.parts.__getitem__)
        assert self.operator.saved(self.memory, self.store.parts).head == saved.head


LEFT = Side("left", schema("k string, x double, at timestamp, ends timestamp, a long"), ("k", "x"))
RIGHT = Side("right", schema("key string, seen timestamp, y double, b long, gone boolean"), ("key", "y"))
BEHIND = [0, 0, 0, 1, 2, 3, 5, 8, 10, 11, 20, 30]
words = st.sampled_from(["a", "a", "b", "a", "a", None, ""])
floats = st.sampled_from([0.0, -0.0, 1.5, float("nan"), float("nan"), None])


@st.composite
def a_row(draw: st.DrawFn, number: int, base: int) -> tuple[int, Row]:
    """A row of a side, mostly a little behind an instant."""
    time = base - draw(st.sampled_from(BEHIND)) + draw(st.sampled_from([0, 0, 4]))
    key, other = draw(words), draw(floats) if draw(st.integers(0, 3)) == 3 else 1.5
    value = draw(st.integers(0, 3))
    if number == 0:
        ends = draw(st.sampled_from([time, time + 5, time + 12, time - 3, None]))
        return time, {"k": key, "x": other, "at": time, "ends": ends, "a": value}
    return time, {"key": key, "seen": time, "y": other, "b": value, "gone": draw(st.sampled_from([False, None, True]))}


def placed(drawn: list[tuple[int, Row]], places: list[str], offsets: dict[str, int]) -> list[Record]:
    """Rows with the places they came from, in order."""
    records = []
    for (time, row), place in zip(drawn, places, strict=True):
        offsets[place] = offsets.get(place, -1) + 1
        records.append(Record(time, place, offsets[place], row))
    return sorted(records, key=lambda record: (record.partition, record.offset))


@st.composite
def steps(draw: st.DrawFn, *, max_batches: int = 7, patient: bool = False, ended: bool | None = None) -> list[Step]:
    """Batches with disorder and silences, in which W goes on; `patient` lets no row be late."""
    made: list[Step] = []
    base, watermark, now, offsets = 0, MIN_TIME, 0, ({}, {})
    for _ in range(draw(st.integers(1, max_batches))):
        base += draw(st.sampled_from([8, 3, 12, 0, 18]))
        sides = []
        for number in (0, 1):
            drawn = draw(st.lists(a_row(number, base), max_size=draw(st.sampled_from([6, 3, 0]))))
            if patient:
                drawn = [one for one in drawn if one[0] >= watermark]
            places = [draw(st.sampled_from(PARTITIONS)) for _ in drawn]
            sides.append(placed(drawn, places, offsets[number]))
        now += draw(st.integers(0, 9))
        made.append(Step(tuple(sides), watermark, now, draw(st.integers(0, 2)) == 2))
        if draw(st.booleans()):
            watermark = max(watermark, base - draw(st.integers(-10, 25)))
    if ended or (ended is None and draw(st.booleans())):
        made.append(Step(([], []), MAX_TIME, now))
    return made


@st.composite
def split(draw: st.DrawFn, whole: list[Step]) -> list[Step]:
    """The same rows under the same W, in other batches; each side is cut by itself, in the order of its places."""
    made = []
    for step in whole:
        cuts = [sorted(draw(st.sets(st.integers(0, len(side)), max_size=3))) for side in step.arrivals]
        parts = max(map(len, cuts)) + 1
        pieces = []
        for side, cut in zip(step.arrivals, cuts, strict=True):
            edges = [0, *cut, *[len(side)] * (parts - len(cut))]
            pieces.append([side[a:b] for a, b in pairwise(edges)])
        made += [Step(tuple(part), step.watermark, step.now, draw(st.integers(0, 4)) == 4)
                 for part in zip(*pieces, strict=True)]  # fmt: skip
    return made


def counted(outs: list[rows.Out], *, times: bool = True) -> list[str]:
    """A multiset of what was given."""
    return sorted(repr((out.output, shown(out.row), out.time if times else 0)) for out in outs)
