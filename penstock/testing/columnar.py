"""The columnar engine as the kit plays it: rows to Arrow batches by partition, panes back to values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from penstock.arrow import from_arrow, to_arrow
from penstock.batch import Arrival, Counts, Outcome, PartitionClock, Tick
from penstock.engine.compiled import Compiled
from penstock.engine.ingest import Blob, Ingested, ingest
from penstock.engine.late import late_table
from penstock.engine.memory import restored, saved
from penstock.engine.rows import SourceBatch
from penstock.engine.step import open_records, open_windows, start, step
from penstock.engine.watermark import ClockState, decoded, encoded, end_batch, partition_clocks
from penstock.engine.windows import Clock
from penstock.instant import from_datetime
from penstock.limits import refuse_bad
from penstock.pane import Late, Pane, Quarantined
from penstock.plan import Plan
from penstock.schema import Schema
from penstock.window import Window


class ColumnarRun:
    """A plan in progress, on one shard."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.compiled = Compiled(plan)
        self.clock = ClockState()
        self.memory = start(self.compiled)
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

    def batch(self, arrivals: list[Arrival], tick: Tick) -> Outcome:
        """Play one batch."""
        watermark = max(self.clock.watermark, tick.watermark if tick.watermark is not None else self.clock.watermark)
        now = max((at for at in (self.clock.now, tick.now) if at is not None), default=0)
        given = self._batches(arrivals)
        parts = [ingest(self.compiled, batch, watermark, now) for batch, _ in given]
        blobs = [blob for part in parts for blob in self.sent(part.blob)]
        stepped = step(self.compiled, self.memory, blobs, Clock(watermark, now))
        late = late_table(self.compiled, [part.late for part in parts if part.late is not None], watermark)
        bad = [row for (batch, arrived), part in zip(given, parts, strict=True)
               for row in _quarantined(batch, arrived, part)]  # fmt: skip
        undecoded = [arrival for arrival in arrivals if arrival.bad is not None]
        bad += [Quarantined(dict(a.row), a.source, a.partition, a.offset, "decode", a.bad or "") for a in undecoded]
        counts = stepped.counts + Counts(read=len(undecoded), quarantined=len(undecoded))
        for part in parts:
            counts += part.counts
        state = ClockState(watermark, self.clock.now, self.clock.batch, self.clock.spoken)
        self.clock = end_batch(self.plan, state, [part.report for part in parts], now, tick)
        self.memory = stepped.memory
        self.totals += counts
        refuse_bad(self.plan, self.bad, arrivals, bad)
        lates = (*late_rows(self.plan, late), *late_rows(self.plan, stepped.late))
        return Outcome(tuple(pane_values(self.plan, stepped.panes)), lates, tuple(bad), counts)

    def sent(self, blob: Blob) -> list[Blob]:
        """What of a blob reaches the shard: all of it as it is, here where nothing is between the two."""
        return [blob]

    def partitions(self) -> tuple[PartitionClock, ...]:
        """The clock of each partition."""
        return partition_clocks(self.plan, self.clock)

    def open_records(self) -> int:
        """How many records lie in windows that are still held."""
        return open_records(self.compiled, self.memory)

    def open_windows(self) -> int:
        """How many windows are held."""
        return open_windows(self.compiled, self.memory)

    def snapshot(self) -> Any:
        """All that is remembered: the memory's head and parts, and the clock's plain values."""
        return saved(self.compiled, self.memory), encoded(self.clock), self.totals, dict(self.bad)

    def restore(self, snapshot: Any) -> None:
        """Go on from what was remembered."""
        memory, clock, self.totals, bad = snapshot
        self.memory, self.clock = restored(self.compiled, memory.head, memory.parts.__getitem__), decoded(clock)
        self.bad = {source: list(counts) for source, counts in bad.items()}

    def _batches(self, arrivals: list[Arrival]) -> list[tuple[SourceBatch, list[Arrival]]]:
        """The arrivals of each partition as one Arrow batch, in order of their offsets."""
        places: dict[tuple[str, str], list[Arrival]] = {}
        for arrival in arrivals:
            places.setdefault((arrival.source, arrival.partition), []).append(arrival)
        batches = []
        for (source, partition), mine in places.items():
            schema = next(one.source.schema for one in self.plan.inputs if one.source.name == source)
            good = [arrival for arrival in mine if arrival.bad is None]
            rows = to_arrow([dict(arrival.row) for arrival in good], schema)
            offsets = np.array([arrival.offset for arrival in good], dtype=np.int64)
            batches.append((SourceBatch(source, partition, offsets, rows), good))
        return batches


def _quarantined(batch: SourceBatch, arrivals: list[Arrival], part: Ingested) -> list[Quarantined]:
    return [
        Quarantined(dict(arrivals[bad.row].row), batch.source, batch.partition, arrivals[bad.row].offset,
                    bad.step, bad.reason)
        for bad in part.bad
    ]  # fmt: skip


def pane_values(plan: Plan, table: pa.Table) -> list[Pane]:
    values = _rows(table.select(plan.result_schema.names), plan.result_schema)
    keys = _rows(table.select(plan.keys), plan.key_schema) if plan.keys else [{}] * table.num_rows
    plain = table.select(["@start", "@end", "pane_index", "pane_timing", "pane_final", "op", "@event_time"])
    return [
        Pane(tuple(key[name] for name in plan.keys), Window(row["@start"], row["@end"]), value, row["pane_index"],
             row["pane_timing"], row["pane_final"], row["op"], row["@event_time"])
        for key, value, row in zip(keys, values, plain.to_pylist(), strict=True)
    ]  # fmt: skip


def late_rows(plan: Plan, table: pa.Table) -> list[Late]:
    rows = _rows(table.select(plan.schema.names), plan.schema)
    causes = table.select(["@event_time", "@watermark", "@late_by", "@partition", "@windows"]).to_pylist()
    made = []
    for row, why in zip(rows, causes, strict=True):
        source, partition = why["@partition"].split("/", 1)
        windows = tuple(Window(window["start"], window["end"]) for window in why["@windows"])
        made.append(Late(row, why["@event_time"], why["@watermark"], why["@late_by"], source, partition, windows))
    return made


def _rows(table: pa.Table, schema: Schema) -> list[dict[str, Any]]:
    rows = from_arrow(table, schema)
    lists = [column.name for column in schema.columns if column.type == "array<timestamp>"]
    for row in rows:
        for name in lists:
            row[name] = None if row[name] is None else [from_datetime(value) for value in row[name]]
    return rows
