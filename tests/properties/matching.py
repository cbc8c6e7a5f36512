"""How a pattern is played on either implementation, and what a batch gave in a form that can be compared."""

from __future__ import annotations

import copy
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from penstock.engine.ingest.pre_aggregate import Rows
from penstock.engine.operators.pattern.step import Matching as Columnar
from penstock.engine.operators.protocol import Outgoing
from penstock.engine.state.cache import CACHE
from penstock.engine.windows.lifecycle import Clock
from penstock.plan.operators.match import Match
from penstock.plan.stages import MAIN, Side
from penstock.reference.aggregates import Record
from penstock.reference.operators.pattern import Matching as Reference
from penstock.types.arrow import arrow_type, from_arrow, to_arrow
from penstock.types.schema import Schema, schema
from penstock.types.timestamps import MAX_TIME

COLUMNS = schema("team string, price long, kind string, x double, at timestamp")
KEYS = ("team",)


@dataclass
class Given:
    """What a batch gave, in a form that can be compared: rows per output and key, in order."""

    rows: dict[tuple[str, str], list[str]] = field(default_factory=dict)
    late: list[str] = field(default_factory=list)
    bad: list[str] = field(default_factory=list)
    hold: int = MAX_TIME
    held: int = 0

    def add(self, output: str, keys: tuple[str, ...], row: dict[str, Any], time: int) -> None:
        key = repr([row[name] for name in keys])
        self.rows.setdefault((output, key), []).append(repr((row, time)))


class ByRow:
    """The reference, with a snapshot between any two batches."""

    def __init__(self, rule: Match, side: Side) -> None:
        self.side, self.machine = side, Reference(rule, side)

    def step(self, records: list[Record], watermark: int, restart: bool = False) -> Given:
        if restart:
            self.machine.memory = copy.deepcopy(self.machine.memory)
        out = self.machine.step([records], watermark, 0)
        given = Given(hold=out.hold, held=self.machine.held())
        for one in out.rows:
            given.add(one.output, self.side.keys, one.row, one.time)
        given.late = [repr(record) for _, record in out.late]
        given.bad = sorted(repr((bad.record, bad.step, bad.reason)) for bad in out.bad)
        return given


class ByColumn:
    """The engine, asked twice for each batch, with its memory as bytes between any two."""

    def __init__(self, rule: Match, side: Side) -> None:
        self.rule, self.side, self.engine = rule, side, Columnar(rule, side)
        self.memory = self.engine.start()
        self.parts: dict[str, bytes] = {}

    def step(self, records: list[Record], watermark: int, restart: bool = False) -> Given:
        rows, clock = as_rows(records, self.side.schema), Clock(watermark, 0)
        out, again = (self.engine.step(self.memory, (rows,), clock) for _ in range(2))
        assert self.engine.saved(out.memory) == self.engine.saved(again.memory)
        assert all(_bytes(one) == _bytes(again.outputs[name]) for name, one in out.outputs.items())
        self.memory = out.memory
        if restart:
            self._restart()
        given = Given(hold=out.hold, held=self.engine.held(self.memory))
        for name, outgoing in out.outputs.items():
            made = from_arrow(outgoing.batch, self.rule.outputs([self.side])[name])
            for row, time in zip(made, outgoing.times.tolist(), strict=True):
                given.add(name, self.side.keys, row, time)
        given.late = [] if out.late[0] is None else [repr(record) for record in as_records(out.late[0], self.side)]
        unusable = records if out.waited[0] is None else [*records, *as_records(out.waited[0], self.side)]
        bad = [(unusable[one.row], one.step, one.reason) for one in out.bad]
        given.bad = sorted(map(repr, bad))
        return given

    def _restart(self) -> None:
        saved = self.engine.saved(self.memory, self.parts)
        self.parts = {**self.parts, **saved.parts}
        assert set(self.engine.parts(saved.head)) <= self.parts.keys()
        CACHE.clear()
        self.memory = self.engine.restored(saved.head, self.parts.__getitem__)


def _bytes(outgoing: Outgoing) -> bytes:
    return outgoing.batch.serialize().to_pybytes() + outgoing.times.tobytes()


def as_rows(records: list[Record], columns: Schema) -> Rows:
    """Records as the engine gets them."""
    import pyarrow as pa

    batch = to_arrow([record.row for record in records], columns)
    times = np.array([record.time for record in records], dtype=np.int64)
    offsets = np.array([record.offset for record in records], dtype=np.int64)
    return Rows(batch, times, pa.array([record.partition for record in records], arrow_type("string")), offsets)


def as_records(rows: Rows, side: Side) -> list[Record]:
    """And back."""
    made = zip(rows.times.tolist(), rows.partitions.to_pylist(), rows.offsets.tolist(),
               from_arrow(rows.batch, side.schema), strict=True)  # fmt: skip
    return [Record(*one) for one in made]


@dataclass(frozen=True)
class Batch:
    """A batch of a stream: what arrives, and the W by which it is judged."""

    records: tuple[Record, ...]
    watermark: int
    restart: bool


def side(keys: tuple[str, ...] = KEYS) -> Side:
    return Side("events", COLUMNS, keys)


def outputs(given: list[Given], output: str = MAIN) -> Counter[str]:
    """All rows of an output, in no order."""
    return Counter(row for one in given for (name, _), rows in one.rows.items() if name == output for row in rows)
