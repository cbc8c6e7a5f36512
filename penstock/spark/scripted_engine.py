"""The test kit's third engine: each batch of a script is one micro-batch of a real query, in real shards."""

from __future__ import annotations

import json
import os
import queue
import shutil
import tempfile
import uuid
import weakref
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.api.pipeline import Kind, Output, Pipeline
from penstock.checkpoint.clock import Clocks
from penstock.connectors.memory import memory
from penstock.connectors.source import Chunk, Offsets, Split, Undecoded
from penstock.coordinator.batch_result import Heard
from penstock.coordinator.commit import Commit
from penstock.coordinator.messages import BAD, PANES, at, late_of, rows_of
from penstock.coordinator.sink_retry import Waiting
from penstock.engine.in_process import given_rows, late_rows, pane_values
from penstock.engine.shuffle.codec import packed, unpacked
from penstock.engine.watermarks import given, partition_clocks
from penstock.model.panes import Given, Late, Quarantined
from penstock.plan.graph import AnyStage, flow_of
from penstock.plan.stages import Input, Plan
from penstock.runtime.batch import Arrival, Counts, Outcome, PartitionClock, StageOutcome, Tick
from penstock.spark.errors import told
from penstock.spark.handle import Handle
from penstock.spark.run import Kit, start
from penstock.types.arrow import to_arrow

SHARDS = 2
LIVE = 2
_live: OrderedDict[str, SparkRun] = OrderedDict()


@dataclass(frozen=True, slots=True)
class ScriptPace:
    """A batch begins when the script has played it, at the time the script says."""

    folder: str

    def now(self, batch: int, before: int) -> int | None:
        """The processing clock of the batch, or None while the script has not come to it."""
        said = _tick(self.folder, batch)
        return None if said is None else max(before, said["now"])


@dataclass(frozen=True, slots=True)
class ScriptReader:
    """The rows of a source that a script has played, a file for each batch and partition."""

    folder: str
    source: str
    kind: str = "script"

    def start(self) -> Offsets:
        """Before the first batch."""
        return {"batch": 0}

    def latest(self, since: Offsets, now: int, limit: int | None) -> Offsets:
        """A batch takes what the script played in it."""
        return {"batch": since["batch"] + 1}

    def splits(self, since: Offsets, upto: Offsets) -> list[Split]:
        """One task for each partition that has rows."""
        found = []
        for batch in range(since["batch"], upto["batch"]):
            folder = Path(self.folder) / str(batch) / self.source
            found += [{"file": str(path)} for path in sorted(folder.glob("*"), key=lambda path: int(path.name))]
        return found

    def read(self, split: Split) -> Iterator[Chunk]:
        """The rows of a partition in a batch."""
        head, tables = unpacked(Path(split["file"]).read_bytes())
        batches = tables["rows"].combine_chunks().to_batches()
        rows = batches[0] if batches else pa.RecordBatch.from_pylist([], schema=tables["rows"].schema)
        undecoded = tuple(Undecoded(*one) for one in head["undecoded"])
        yield Chunk(head["partition"], np.array(head["offsets"], dtype=np.int64), rows, undecoded)

    def partitions(self, at: Offsets) -> list[str]:
        """The partitions that the script names."""
        said = _tick(self.folder, at["batch"] - 1) or {"partitions": []}
        return [partition for source, partition in said["partitions"] if source == self.source]

    def behind(self, at: Offsets, now: int) -> list[str]:
        """The partitions that the script says have more to read."""
        said = _tick(self.folder, at["batch"] - 1) or {"behind": []}
        return [partition for source, partition in said["behind"] if source == self.source]

    def finished(self, at: Offsets, now: int) -> bool:
        """A script ends by a watermark."""
        return False


@dataclass
class ScriptCommit(Commit):
    """Hands what the shards said to the script, and waits for its next batch before the clock is set."""

    heard: queue.Queue[Heard] = field(default_factory=queue.Queue)
    orders: queue.Queue[Tick | None] = field(default_factory=queue.Queue)
    latest: Heard = field(default_factory=Heard)

    def deliver(self, heard: Heard, batch: int, waiting: Waiting) -> dict[str, int]:
        """No sink: the script is given all of it."""
        self.latest = heard
        return {}

    def before_next(self, after: Clocks) -> None:
        """Wait for the script's next batch, however long it takes, and take the watermark it gives."""
        self.heard.put(self.latest)
        order = self.orders.get()
        if order is not None:
            self.take(order)

    def take(self, tick: Tick) -> None:
        """The clock of the batch to come, as far as the script decides it."""
        self.resumed = tick.resumed
        if tick.watermark is not None:
            self.clocks = replace(self.clocks, state=given(self.flow, self.clocks.state, tick.watermark))


class _Folder:
    """A folder for the rows and the checkpoint of a script, removed when nobody holds it any more."""

    def __init__(self) -> None:
        self.name = tempfile.mkdtemp(prefix="penstock-kit-")
        weakref.finalize(self, shutil.rmtree, self.name, ignore_errors=True)


class SparkRun:
    """A plan in progress on Spark."""

    def __init__(self, plan: AnyStage) -> None:
        self.flow = flow_of((plan,))
        self.id = uuid.uuid4().hex
        self.folder = _Folder()
        self.handle: Handle | None = None
        self.played = 0
        self.rows: dict[tuple[str, str, int], Arrival] = {}
        self.clocks = Clocks()
        self.state: dict[str, int] = {}

    @property
    def watermark(self) -> int:
        """W of the batch to come."""
        return self.clocks.watermark

    @property
    def now(self) -> int | None:
        """The processing clock of the last batch."""
        return self.clocks.state.now

    @property
    def totals(self) -> Counts:
        """Where every row went so far."""
        return self.clocks.totals

    def batch(self, arrivals: list[Arrival], tick: Tick) -> Outcome:
        """Play one batch."""
        self._write(arrivals, tick)
        commit = self._ordered(tick)
        heard = self._heard(commit)
        before, self.clocks, self.state = self.clocks, commit.clocks, heard.state
        stages = tuple(self._shown(number, heard) for number in range(len(self.flow.stages)))
        bad = self._quarantined(_together(heard, BAD))
        return Outcome(stages[-1].panes, stages[-1].late, bad, _less(self.totals, before.totals), stages)

    def _shown(self, number: int, heard: Heard) -> StageOutcome:
        """What a stage gave, as values."""
        plan = self.flow.stages[number]
        late: list[Late] = []
        for place, entry in enumerate(plan.entries):
            table = _together(heard, at(number, late_of(place)))
            late += [] if table is None else late_rows(entry.schema, table)
        if isinstance(plan, Plan):
            panes = _together(heard, at(number, PANES))
            return StageOutcome(() if panes is None else tuple(pane_values(plan, panes)), (), tuple(late))
        rows: list[Given] = []
        for name, schema in plan.outputs.items():
            table = _together(heard, at(number, rows_of(name)))
            rows += [] if table is None else given_rows(name, schema, table)
        return StageOutcome((), tuple(rows), tuple(late))

    def partitions(self) -> tuple[PartitionClock, ...]:
        """The clock of each partition."""
        return partition_clocks(self.flow, self.clocks.state)

    def open_records(self) -> int:
        """How many records lie in windows that are still held."""
        return self.state.get("open_records", 0)

    def open_windows(self) -> int:
        """How many windows are held."""
        return self.state.get("open_windows", 0)

    def snapshot(self) -> Any:
        """The checkpoint itself: the query is stopped, and another one goes on."""
        self.close()
        return self

    def restore(self, snapshot: Any) -> None:
        """Go on from the checkpoint."""
        self.__dict__.update(snapshot.__dict__)

    def close(self) -> None:
        """Stop the query; the next batch starts another from the checkpoint."""
        _live.pop(self.id, None)
        if self.handle is not None:
            handle, self.handle = self.handle, None
            commit = handle.commit
            assert isinstance(commit, ScriptCommit)
            commit.orders.put(None)
            handle.stop()

    def _write(self, arrivals: list[Arrival], tick: Tick) -> None:
        """Put a batch where the readers find it; the tick comes last, for it makes the batch."""
        folder = Path(self.folder.name) / str(self.played)
        places: dict[tuple[str, str], list[Arrival]] = {}
        for arrival in arrivals:
            places.setdefault((arrival.source, arrival.partition), []).append(arrival)
            self.rows[arrival.source, arrival.partition, arrival.offset] = arrival
        for i, ((source, partition), mine) in enumerate(places.items()):
            schema = next(one.source.schema for one in self.flow.inputs if one.source.name == source)
            good = [arrival for arrival in mine if arrival.bad is None]
            head = {
                "partition": partition,
                "offsets": [arrival.offset for arrival in good],
                "undecoded": [[one.offset, "", one.bad] for one in mine if one.bad is not None],
            }
            (folder / source).mkdir(parents=True, exist_ok=True)
            rows = to_arrow([dict(arrival.row) for arrival in good], schema)
            (folder / source / str(i)).write_bytes(packed(head, {"rows": rows}))
        said = {**asdict(tick), "now": tick.now or 0}
        aside = Path(self.folder.name) / f".{self.played}.json"
        aside.write_text(json.dumps(said))
        os.rename(aside, Path(self.folder.name) / f"{self.played}.json")
        self.played += 1

    def _ordered(self, tick: Tick) -> ScriptCommit:
        """Let the query go on with this batch; start it where it does not run."""
        if self.handle is not None:
            commit = self.handle.commit
            assert isinstance(commit, ScriptCommit)
            commit.orders.put(tick)
            return commit
        while len(_live) >= LIVE:
            next(iter(_live.values())).close()
        _live[self.id] = self
        pipeline = Pipeline("script", (self._output(),), shards=SHARDS)
        kit = Kit(ScriptPace(self.folder.name), ScriptCommit, lambda commit: commit.take(tick))
        self.handle = start(
            pipeline,
            checkpoint=str(Path(self.folder.name) / "checkpoint"),
            batch_every="0",
            until=None,
            spark=None,
            on_progress=None,
            kit=kit,
        )
        commit = self.handle.commit
        assert isinstance(commit, ScriptCommit)
        return commit

    def _output(self) -> Output:
        """The last stage, with readers that read what the script plays."""

        def reading(one: Input) -> Input:
            reader = ScriptReader(self.folder.name, one.source.name)
            return replace(one, source=replace(one.source, reader=reader))

        last = self.flow.rebuilt(reading).stages[-1]
        kind: Kind = "panes" if isinstance(last, Plan) else "rows"
        return Output(last, kind, memory(self.id), next(iter(last.outputs)))

    def _heard(self, commit: ScriptCommit) -> Heard:
        """What the shards said; raises what made the query fail."""
        assert self.handle is not None
        while True:
            try:
                return commit.heard.get(timeout=0.05)
            except queue.Empty:
                if self.handle.query.isActive:
                    continue
                handle, self.handle = self.handle, None
                _live.pop(self.id, None)
                failure = commit.failure or handle.query.exception()
                handle.release()
                raise told(failure) from None

    def _quarantined(self, table: pa.Table | None) -> tuple[Quarantined, ...]:
        """The rows that could not be used, each as the script gave it."""
        if table is None:
            return ()
        made = []
        for one in table.to_pylist():
            given = self.rows.get((one["source"], one["partition"], one["offset"]))
            row = json.loads(one["raw"]) if given is None else dict(given.row)
            made.append(Quarantined(row, one["source"], one["partition"], one["offset"], one["step"], one["reason"]))
        return tuple(made)


def _tick(folder: str, batch: int) -> dict[str, Any] | None:
    try:
        said: dict[str, Any] = json.loads((Path(folder) / f"{batch}.json").read_text())
    except FileNotFoundError:
        return None
    return said


def _together(heard: Heard, kind: str) -> pa.Table | None:
    tables = [table for part in heard.streams.get(kind, ()) for table in part.tables(None)]
    return pa.concat_tables(tables) if tables else None


def _less(after: Counts, before: Counts) -> Counts:
    return Counts(**{name: number - getattr(before, name) for name, number in asdict(after).items()})
