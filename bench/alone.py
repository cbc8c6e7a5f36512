"""How fast are stages without Spark: every question of `bench.state` and `bench.nexmark` through the engine, on a core.

Use:

    python -m bench.alone [--quick] [--only TEXT] [--json FILE]

What a task does: rows get their event time, are dealt to two shards and written as bytes; a stage reads them, steps,
saves its memory and restores it. Time is that of the core, so that others may use the machine. Batches
as they are beside Spark, five at most; the first two are left out.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

import penstock as ps
from bench import beside, nexmark, state
from bench.beside import OURS, SHARDS, Question
from bench.data import BEGIN
from bench.figures import keep
from bench.spark import COLD, Nowhere
from penstock.engine.ingest.row_steps import Read, SourceBatch, stamped_rows
from penstock.engine.ingest.windows import report_of
from penstock.engine.stage import StageStepped, engine_of
from penstock.engine.watermarks import ClockState, end_batch
from penstock.engine.windows.lifecycle import Clock
from penstock.runtime.batch import Tick

BATCHES = 5


class Alone:
    """A pipeline's stages in progress, one after the other, in this process."""

    def __init__(self, pipeline: ps.Pipeline) -> None:
        self.flow = pipeline.flow
        self.engines = [engine_of(stage) for stage in self.flow.stages]
        self.memories = [engine.start() for engine in self.engines]
        self.parts: list[dict[str, bytes]] = [{} for _ in self.engines]
        self.given = [0] * len(self.engines)
        self.clock = ClockState()

    def batch(self, arrivals: Sequence[SourceBatch], now: int) -> None:
        """One batch through all stages."""
        waiting: list[list[Any]] = [[] for _ in self.engines]
        reports, holds = [], []
        for rows in arrivals:
            one = next(one for one in self.flow.inputs if one.source.name == rows.source)
            stamped = stamped_rows(one, rows, now)
            reports.append(report_of(rows, stamped))
            self._feed(waiting, self.flow.fed_by(rows.source), rows, stamped)
        for number in range(len(self.engines)):
            stepped = self._step(number, waiting[number], now)
            holds.append(stepped.hold)
            for output, given in stepped.outputs.items():
                offsets = self.given[number] + np.arange(len(given.times))
                self.given[number] += len(given.times)
                rows = SourceBatch(f"{self.flow.stages[number].label}.{output}", "0", offsets, given.batch)
                stamped = Read(given.batch, given.times, ops=given.ops)
                self._feed(waiting, self.flow.fed_from(number, output), rows, stamped)
        self.clock = end_batch(self.flow, self.clock, reports, now, Tick(), holds)

    def _feed(self, waiting: list[list[Any]], feeds: Any, rows: SourceBatch, stamped: Read) -> None:
        for feed in feeds:
            watermark = self.clock.of(feed.stage)
            part = self.engines[feed.stage].arrived(feed.entry, feed.input, rows, stamped, watermark)
            waiting[feed.stage].append(part.blob)

    def _step(self, number: int, blobs: list[Any], now: int) -> StageStepped:
        engine, parts = self.engines[number], self.parts[number]
        sent = [engine.written(part) for blob in engine.together(blobs) for _, part in engine.dealt(blob, SHARDS)]
        clock = Clock(self.clock.of(number), now)
        stepped = engine.step(self.memories[number], [engine.read(data) for data in sent], clock)
        saved = engine.saved(stepped.memory, parts)
        held = {**parts, **saved.parts}
        self.parts[number] = {name: held[name] for name in engine.parts(saved.head)}
        self.memories[number] = engine.restored(saved.head, self.parts[number].__getitem__)
        return stepped


def arrivals(question: Question, batch: int) -> list[SourceBatch]:
    """The events of a batch, in memory."""
    made = []
    for name, data in question.data.items():
        columns = [part.strip().split()[0] for part in str(data.schema).split(",")]
        for number in range(batch * question.files, (batch + 1) * question.files):
            rows = data.table(number).select(columns).combine_chunks().to_batches()[0]
            first = number * data.rows
            made.append(SourceBatch(name, "0", np.arange(first, first + rows.num_rows), rows))
    return made


def measured(question: Question, batches: int) -> float:
    """Events a second of one core, once warm."""
    streams = [ps.events(data.schema, name=name) for name, data in question.data.items()]
    alone = Alone(ps.pipeline("alone", question.ours[OURS](*streams).write(Nowhere())))
    events, spent = 0, 0.0
    for batch in range(batches):
        rows = arrivals(question, batch)
        now = BEGIN + batch * 5_000_000
        begun = time.process_time()
        alone.batch(rows, now)
        if batch >= COLD:
            spent += time.process_time() - begun
            events += sum(len(one.offsets) for one in rows)
    return events / spent


def main() -> int:
    """The command."""
    options = beside.asking(__doc__).parse_args()
    pa.set_cpu_count(1)
    figures = []
    for question in (*state.questions(options.quick), *nexmark.questions(options.quick)):
        if options.only not in question.name:
            continue
        most = min(data.events // (question.files * data.rows) for data in question.data.values())
        rate = measured(question, min(BATCHES, most))
        print(f"{question.name:44} {rate:12,.0f} events/s", flush=True)
        figures.append({"job": question.name, "events_per_second": round(rate)})
    keep(figures, options.json)
    return 0


if __name__ == "__main__":
    sys.exit(main())
