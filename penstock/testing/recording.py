"""A pipeline played without Spark that leaves a checkpoint to look at: clocks, offsets and what was observed.

For tests and pages about runs: nothing is written to the pipeline's sinks, and no run goes on from such a checkpoint.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, astuple, dataclass, field, replace
from typing import Any

import numpy as np

from penstock.api.pipeline import Output, Pipeline
from penstock.checkpoint.clock import FOLDER, Clocks, write_clock
from penstock.checkpoint.identity import identity_of
from penstock.checkpoint.spark_logs import checked
from penstock.connectors.memory import memory
from penstock.connectors.source import Chunk, Offsets, Split, Undecoded
from penstock.engine.in_process import ColumnarRun
from penstock.engine.watermarks import given, partition_clocks
from penstock.observability.journal import Recorder
from penstock.observability.lateness_histogram import Behind, told_of
from penstock.observability.observation import Observation
from penstock.observability.sampling import key_text, row_text
from penstock.plan.stages import Input, Plan
from penstock.runtime.batch import Arrival, Counts, Outcome, Tick
from penstock.storage.local import LocalStore
from penstock.testing.script import Script
from penstock.types.arrow import from_arrow, to_arrow


@dataclass
class Recording:
    """A run of a pipeline with one result, batch by batch."""

    pipeline: Pipeline
    checkpoint: str
    observe: bool = True
    run: ColumnarRun = field(init=False)
    batches: int = 0

    def __post_init__(self) -> None:
        self.store = LocalStore(self.checkpoint)
        self.flow = self.pipeline.flow
        self.identity = identity_of(self.store, self.pipeline.name, self.flow, self.pipeline.shards, 4)
        self.recorder = Recorder(self.store)
        self.run = ColumnarRun(self.flow.stages[-1])
        self.behind = Behind()

    def batch(self, arrivals: Sequence[Arrival], tick: Tick, sources: Mapping[str, Any]) -> Outcome:
        """Play a batch that ends at a position in each source, and write down what a run would."""
        run, number = self.run, self.batches
        if tick.watermark is not None:
            run.clock = given(run.flow, run.clock, tick.watermark)
            self.store.delete(f"{FOLDER}/{number:012d}")
            self._clock(number)
        stages = range(len(self.flow.stages))
        watermarks = [run.clock.of(one) for one in stages]
        outcome = run.batch(list(arrivals), replace(tick, watermark=None))
        self.batches += 1
        position = {"batch": number + 1, "now": run.now, "sources": dict(sources)}
        self.store.create(f"offsets/{number}", f"v1\n{{}}\n{json.dumps(checked(position))}".encode())
        self._clock(number + 1)
        if self.observe:
            self.recorder.write(self._observed(arrivals, outcome, watermarks, {"sources": dict(sources)}))
        return outcome

    def _clock(self, number: int) -> None:
        clocks = [list(astuple(one)) for one in partition_clocks(self.run.flow, self.run.clock)]
        write_clock(
            self.store,
            self.identity.lineage,
            Clocks(
                number,
                self.run.clock,
                self.run.totals,
                partitions=clocks,
                open_windows=self.run.open_windows(),
            ),
        )

    def _observed(
        self, arrivals: Sequence[Arrival], outcome: Outcome, watermarks: list[int], position: dict[str, Any]
    ) -> Observation:
        run, now = self.run, self.run.now or 0
        clocks = partition_clocks(run.flow, run.clock)
        return Observation(
            batch=self.batches - 1,
            now=now,
            wall=time.time(),
            seconds=0.1,
            elapsed=1.0,
            watermark=run.watermark,
            watermarks=watermarks,
            counts=asdict(outcome.counts),
            totals=asdict(run.totals),
            rows={"panes": len(outcome.panes), "late": len(outcome.late)},
            partitions=[{**asdict(one), "lag": None, "to_log": None, "from_log": None} for one in clocks],
            state={"open": run.open_windows()},
            dots=list(self._dots(arrivals)),
            panes=list(self._panes(outcome)),
            late=list(self._late(outcome)),
            positions=position,
            behind=told_of(self.behind.batch(self._times(arrivals))),
        )

    def _times(self, arrivals: Sequence[Arrival]) -> dict[str, np.ndarray]:
        """The event times of each partition, in order of its offsets."""
        held: dict[str, list[tuple[int, int]]] = {}
        for one in sorted(arrivals, key=lambda arrival: arrival.offset):
            time = self._time(one)
            if time is not None:
                held.setdefault(f"{one.source}/{one.partition}", []).append((one.offset, time))
        return {name: np.array([time for _, time in some], dtype=np.int64) for name, some in held.items()}

    def _time(self, one: Arrival) -> int | None:
        base = next(held.time for held in self.flow.inputs if held.source.name == one.source)
        value = None if base is None or base.column is None else one.row.get(base.column)
        return value if isinstance(value, int) else None

    def _dots(self, arrivals: Sequence[Arrival]) -> Iterator[dict[str, Any]]:
        for one in arrivals:
            feed = self.flow.fed_by(one.source)[0]
            keys = self.flow.stages[feed.stage].entries[feed.entry].keys
            column = None if feed.input.time is None else feed.input.time.column
            if one.bad is None:
                yield {
                    "partition": f"{one.source}/{one.partition}",
                    "offset": one.offset,
                    "event_time": self._time(one),
                    "key": key_text(one.row.get(name) for name in keys),
                    "text": row_text({k: v for k, v in one.row.items() if k not in (*keys, column)}),
                }

    def _panes(self, outcome: Outcome) -> Iterator[dict[str, Any]]:
        for pane in outcome.panes:
            yield {
                "stage": len(self.flow.stages) - 1,
                "key": key_text(pane.key),
                "start": pane.window.start,
                "end": pane.window.end,
                "index": pane.index,
                "timing": pane.timing,
                "final": pane.final,
                "op": pane.op,
                "text": row_text(pane.values),
            }

    def _late(self, outcome: Outcome) -> Iterator[dict[str, Any]]:
        plan = self.flow.stages[-1]
        assert isinstance(plan, Plan)
        for one in outcome.late:
            yield {
                "stage": len(self.flow.stages) - 1,
                "partition": f"{one.source}/{one.partition}",
                "offset": -1,
                "event_time": one.event_time,
                "watermark": one.watermark,
                "late_by": one.late_by,
                "key": key_text(one.row[name] for name in plan.keys),
                "windows": [list(window) for window in one.windows],
                "text": row_text(one.row),
                "why": "every window it belongs to had expired",
            }


def play(pipeline: Pipeline, checkpoint: str, clocks: Iterable[int], batch_rows: int | None = None) -> Recording:
    """Play batches of what a pipeline's sources have, one at each of these times."""
    made = Recording(pipeline, checkpoint)
    inputs = pipeline.flow.inputs
    at: dict[str, Offsets] = {one.source.name: one.source.reader.start() for one in inputs}
    for now in clocks:
        since, at = (
            at,
            {one.source.name: one.source.reader.latest(at[one.source.name], now, batch_rows) for one in inputs},
        )
        found = [arrival for one in inputs for arrival in _between(one, since, at)]
        partitions, behind = _known(inputs, at, now)
        made.batch(found, Tick(now, None, partitions, behind=behind), at)
    return made


def recorded_script(panes: Any, checkpoint: str, *, observe: bool = True) -> tuple[Script, Pipeline]:
    """A script that leaves a checkpoint, and the pipeline whose checkpoint it is: its sources have what was played."""
    script = Script(panes, "columnar")
    played: list[list[Arrival]] = []

    def reading(one: Input) -> Input:
        return replace(one, source=replace(one.source, reader=Listed(one, played)))

    last = script.flow.rebuilt(reading).stages[-1]
    pipeline = Pipeline("script", (Output(last, "panes", memory("script")),), shards=4)
    run: Any = _Recorded(Recording(pipeline, checkpoint, observe), played)
    script.run = run
    return script, pipeline


@dataclass(frozen=True, slots=True)
class Listed:
    """A reader of batches that a script has played."""

    input: Input
    played: list[list[Arrival]] = field(compare=False)

    def start(self) -> Offsets:
        """Before the first batch."""
        return {"batch": 0}

    def splits(self, since: Offsets, upto: Offsets) -> list[Split]:
        """One piece for each partition and batch."""
        name = self.input.source.name
        pieces = []
        for batch in range(since["batch"], upto["batch"]):
            mine = sorted({one.partition for one in self.played[batch] if one.source == name})
            pieces += [{"batch": batch, "partition": partition} for partition in mine]
        return pieces

    def read(self, split: Split) -> Iterator[Chunk]:
        """The rows of a partition in a batch."""
        name, schema = self.input.source.name, self.input.source.schema
        mine = [one for one in self.played[split["batch"]] if (one.source, one.partition) == (name, split["partition"])]
        good = [one for one in mine if one.bad is None]
        bad = tuple(Undecoded(one.offset, row_text(one.row), one.bad) for one in mine if one.bad is not None)
        rows = to_arrow([dict(one.row) for one in good], schema)
        yield Chunk(split["partition"], np.array([one.offset for one in good], dtype=np.int64), rows, bad)


class _Recorded:
    """The run of a script, of which each batch is recorded."""

    def __init__(self, recording: Recording, played: list[list[Arrival]]) -> None:
        self.recording, self.played = recording, played

    def batch(self, arrivals: list[Arrival], tick: Tick) -> Outcome:
        """Play one batch."""
        self.played.append(arrivals)
        names = [one.source.name for one in self.recording.flow.inputs]
        return self.recording.batch(arrivals, tick, {name: {"batch": len(self.played)} for name in names})

    @property
    def totals(self) -> Counts:
        """Where every row went so far."""
        return self.recording.run.totals

    def __getattr__(self, name: str) -> Any:
        return getattr(self.recording.run, name)


def _between(one: Input, since: Mapping[str, Offsets], upto: Mapping[str, Offsets]) -> Iterator[Arrival]:
    name, reader = one.source.name, one.source.reader
    if since[name] == upto[name]:
        return
    for split in reader.splits(since[name], upto[name]):
        for chunk in reader.read(split):
            rows = from_arrow(chunk.rows, one.source.schema)
            for offset, row in zip(chunk.offsets.tolist(), rows, strict=True):
                yield Arrival(name, chunk.partition, offset, row)
            for bad in chunk.undecoded:
                yield Arrival(name, chunk.partition, bad.offset, {}, bad.reason)


def _known(inputs: Sequence[Input], at: Mapping[str, Offsets], now: int) -> tuple[Any, Any]:
    known, behind = [], []
    for one in inputs:
        name, reader = one.source.name, one.source.reader
        known += [(name, partition) for partition in reader.partitions(at[name])]
        behind += [(name, partition) for partition in reader.behind(at[name], now)]
    return tuple(known), tuple(behind)
