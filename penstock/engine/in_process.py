"""The columnar engine as the kit plays it: rows to Arrow batches by partition, panes and rows back to values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.engine.ingest.row_steps import Bad, Read, SourceBatch, stamped_rows
from penstock.engine.ingest.windows import Report, counted, report_of
from penstock.engine.operators.protocol import Outgoing
from penstock.engine.stage import StageStepped, WindowEngine, engine_of
from penstock.engine.watermarks import ClockState, decoded, encoded, end_batch, given, partition_clocks
from penstock.engine.windows.compiled import Compiled
from penstock.engine.windows.lifecycle import Clock
from penstock.model.panes import Given, Late, Pane, Quarantined
from penstock.model.windows import Window
from penstock.plan.graph import AnyStage, Feed, flow_of
from penstock.plan.stages import Plan
from penstock.runtime.bad_row_limit import refuse_bad
from penstock.runtime.batch import Arrival, Counts, Outcome, PartitionClock, StageOutcome, Tick
from penstock.types.arrow import from_arrow, to_arrow
from penstock.types.schema import Schema
from penstock.types.timestamps import from_datetime


class ColumnarRun:
    """A stage, and all it reads, in progress, each on one shard."""

    def __init__(self, plan: AnyStage) -> None:
        self.plan = plan
        self.flow = flow_of((plan,))
        self.engines = [engine_of(stage) for stage in self.flow.stages]
        self.memories = [engine.start() for engine in self.engines]
        self.given = [0] * len(self.engines)
        self.clock = ClockState()
        self.reports: list[Report] = []
        self.totals = Counts()
        self.bad: dict[str, list[int]] = {}

    @property
    def watermark(self) -> int:
        """W of the batch to come."""
        return self.clock.watermark

    @property
    def now(self) -> int | None:
        """The processing clock of the last batch."""
        return self.clock.now

    @property
    def compiled(self) -> Compiled:
        """The windows of the last stage, made ready."""
        last = self.engines[-1]
        assert isinstance(last, WindowEngine)
        return last.compiled

    @property
    def memory(self) -> Any:
        """What the last stage remembers."""
        return self.memories[-1]

    @memory.setter
    def memory(self, memory: Any) -> None:
        self.memories[-1] = memory

    def batch(self, arrivals: list[Arrival], tick: Tick) -> Outcome:
        """Play one batch, stage after stage."""
        if tick.watermark is not None:
            self.clock = given(self.flow, self.clock, tick.watermark)
        now = max((at for at in (self.clock.now, tick.now) if at is not None), default=0)
        playing = _Playing(self, now)
        playing.sources(arrivals)
        stepped = [playing.stage(number) for number in range(len(self.engines))]
        holds = [one.hold for one in stepped]
        self.reports = playing.reports
        self.clock = end_batch(self.flow, self.clock, playing.reports, now, tick, holds)
        self.totals += playing.counts
        refuse_bad(self.flow, self.bad, arrivals, playing.bad)
        shown = tuple(playing.shown(number, one) for number, one in enumerate(stepped))
        return Outcome(shown[-1].panes, shown[-1].late, tuple(playing.bad), playing.counts, shown)

    def sent(self, number: int, blobs: list[Any]) -> list[Any]:
        """What reaches the shard of a stage: all as it is, here where nothing is between the two."""
        return blobs

    def partitions(self) -> tuple[PartitionClock, ...]:
        """The clock of each partition."""
        return partition_clocks(self.flow, self.clock)

    def open_records(self) -> int:
        """How many records lie in windows that are still held."""
        return self._counted("open_records")

    def open_windows(self) -> int:
        """How many windows, rows, entries and timers are held."""
        return self._counted("open_windows")

    def _counted(self, name: str) -> int:
        pairs = zip(self.engines, self.memories, strict=True)
        return sum(engine.counted(memory)[name] for engine, memory in pairs)

    def snapshot(self) -> Any:
        """All that is remembered: the memories' heads and parts, and the clock's plain values."""
        kept = [engine.saved(memory) for engine, memory in zip(self.engines, self.memories, strict=True)]
        return kept, encoded(self.clock), self.totals, dict(self.bad), list(self.given)

    def restore(self, snapshot: Any) -> None:
        """Go on from what was remembered."""
        kept, clock, self.totals, bad, given_so_far = snapshot
        self.memories = [
            engine.restored(one.head, one.parts.__getitem__) for engine, one in zip(self.engines, kept, strict=True)
        ]
        self.clock, self.given = decoded(clock), list(given_so_far)
        self.bad = {source: list(counts) for source, counts in bad.items()}

    def _batches(self, arrivals: list[Arrival]) -> list[tuple[SourceBatch, list[Arrival]]]:
        """The arrivals of each partition as one Arrow batch, in order of their offsets."""
        places: dict[tuple[str, str], list[Arrival]] = {}
        for arrival in arrivals:
            places.setdefault((arrival.source, arrival.partition), []).append(arrival)
        batches = []
        for (source, partition), mine in places.items():
            schema = next(one.source.schema for one in self.flow.inputs if one.source.name == source)
            good = [arrival for arrival in mine if arrival.bad is None]
            rows = to_arrow([dict(arrival.row) for arrival in good], schema)
            offsets = np.array([arrival.offset for arrival in good], dtype=np.int64)
            batches.append((SourceBatch(source, partition, offsets, rows), good))
        return batches


class _Playing:
    """One batch of a run, on its way through the stages."""

    def __init__(self, run: ColumnarRun, now: int) -> None:
        self.run, self.now = run, now
        self.waiting: list[list[Any]] = [[] for _ in run.engines]
        self.late: list[list[tuple[int, pa.Table]]] = [[] for _ in run.engines]
        self.reports: list[Report] = []
        self.bad: list[Quarantined] = []
        self.counts = Counts()

    def sources(self, arrivals: list[Arrival]) -> None:
        """The rows of all sources, to the stages that read them."""
        flow = self.run.flow
        for batch, mine in self.run._batches(arrivals):
            one = next(one for one in flow.inputs if one.source.name == batch.source)
            rows = [arrival.row for arrival in mine]
            stamped = stamped_rows(one, batch, self.now)
            self.reports.append(report_of(batch, stamped))
            self.counts += Counts(read=len(mine)) + counted(stamped)
            self._reject(batch, rows, stamped.bad)
            feeds = flow.fed_by(batch.source)
            self.counts += Counts(given=(len(feeds) - 1) * len(stamped.times))
            for feed in feeds:
                self._feed(feed, batch, stamped, rows)
        undecoded = [arrival for arrival in arrivals if arrival.bad is not None]
        self.bad += [
            Quarantined(dict(a.row), a.source, a.partition, a.offset, "decode", a.bad or "") for a in undecoded
        ]
        self.counts += Counts(read=len(undecoded), quarantined=len(undecoded))

    def stage(self, number: int) -> StageStepped:
        """One stage; what it gives waits for those that read it."""
        run = self.run
        engine, plan = run.engines[number], run.flow.stages[number]
        blobs = run.sent(number, self.waiting[number])
        stepped = engine.step(run.memories[number], blobs, Clock(run.clock.of(number), self.now))
        run.memories[number] = stepped.memory
        self.counts += stepped.counts
        for one in stepped.bad:
            row = _rows(pa.Table.from_batches([one.row]), plan.entries[one.entry].schema)[0]
            self.bad.append(Quarantined(row, one.source, one.partition, one.offset, one.step, one.reason))
        for output, rows in stepped.outputs.items():
            offsets = run.given[number] + np.arange(len(rows.times))
            run.given[number] += len(rows.times)
            derived = SourceBatch(f"{plan.label}.{output}", "0", offsets, rows.batch)
            for feed in run.flow.fed_from(number, output):
                self.counts += Counts(given=len(rows.times))
                plain = _rows(pa.Table.from_batches([rows.batch]), plan.outputs[output])
                self._feed(feed, derived, Read(rows.batch, rows.times, ops=rows.ops), plain)
        return stepped

    def shown(self, number: int, stepped: StageStepped) -> StageOutcome:
        """What a stage gave, as values."""
        plan = self.run.flow.stages[number]
        late = [one for entry, table in self.late[number] for one in late_rows(plan.entries[entry].schema, table)]
        late += [one for entry, table in stepped.late.items() for one in late_rows(plan.entries[entry].schema, table)]
        if isinstance(plan, Plan):
            panes = [] if stepped.panes is None else pane_values(plan, stepped.panes)
            return StageOutcome(tuple(panes), (), tuple(late))
        return StageOutcome((), tuple(row_values(plan.outputs, stepped.outputs)), tuple(late))

    def _feed(self, feed: Feed, batch: SourceBatch, stamped: Read, rows: Sequence[Mapping[str, Any]]) -> None:
        """Rows that have their event time, to a stage that reads them."""
        engine, watermark = self.run.engines[feed.stage], self.run.clock.of(feed.stage)
        part = engine.arrived(feed.entry, feed.input, batch, stamped, watermark)
        self.waiting[feed.stage].append(part.blob)
        self.counts += part.counts
        self._reject(batch, rows, part.bad)
        if part.late is not None:
            self.late[feed.stage].append((feed.entry, engine.late(feed.entry, [part.late], watermark)))

    def _reject(self, batch: SourceBatch, rows: Sequence[Mapping[str, Any]], bad: Sequence[Bad]) -> None:
        self.bad += [
            Quarantined(
                dict(rows[one.row]), batch.source, batch.partition, int(batch.offsets[one.row]), one.step, one.reason
            )
            for one in bad
        ]


def pane_values(plan: Plan, table: pa.Table) -> list[Pane]:
    """The panes of windows."""
    values = _rows(table.select(plan.result_schema.names), plan.result_schema)
    keys = _rows(table.select(plan.keys), plan.key_schema) if plan.keys else [{}] * table.num_rows
    plain = table.select(["@start", "@end", "pane_index", "pane_timing", "pane_final", "op", "@event_time"])
    return [
        Pane(
            tuple(key[name] for name in plan.keys),
            Window(row["@start"], row["@end"]),
            value,
            row["pane_index"],
            row["pane_timing"],
            row["pane_final"],
            row["op"],
            row["@event_time"],
        )
        for key, value, row in zip(keys, values, plain.to_pylist(), strict=True)
    ]


def row_values(schemas: Mapping[str, Schema], outputs: Mapping[str, Outgoing]) -> list[Given]:
    """The rows that a stage gave."""
    made = []
    for name, one in outputs.items():
        ops = [1] * len(one.times) if one.ops is None else one.ops.tolist()
        rows = _rows(pa.Table.from_batches([one.batch]), schemas[name])
        made += [Given(name, row, time, op) for row, time, op in zip(rows, one.times.tolist(), ops, strict=True)]
    return made


def given_rows(name: str, schema: Schema, table: pa.Table) -> list[Given]:
    """The rows that a stage gave, from a table that has their times and signs beside them."""
    whole = table.combine_chunks()
    times, ops = (whole.column(one).to_numpy() for one in ("@event_time", "@op"))
    return row_values({name: schema}, {name: Outgoing(whole.select(schema.names).to_batches()[0], times, ops)})


def late_rows(schema: Schema, table: pa.Table) -> list[Late]:
    """Late rows, each with its cause."""
    rows = _rows(table.select(schema.names), schema)
    names = ["@event_time", "@watermark", "@late_by", "@partition", "@windows", "@op"]
    causes = table.select([name for name in names if name in table.column_names]).to_pylist()
    made = []
    for row, why in zip(rows, causes, strict=True):
        source, partition = why["@partition"].split("/", 1)
        windows = tuple(Window(window["start"], window["end"]) for window in why.get("@windows", ()))
        facts = (why["@event_time"], why["@watermark"], why["@late_by"], source, partition, windows, why.get("@op", 1))
        made.append(Late(row, *facts))
    return made


def _rows(table: pa.Table, schema: Schema) -> list[dict[str, Any]]:
    rows = from_arrow(table, schema)
    lists = [column.name for column in schema.columns if column.type == "array<timestamp>"]
    for row in rows:
        for name in lists:
            row[name] = None if row[name] is None else [from_datetime(value) for value in row[name]]
    return rows
