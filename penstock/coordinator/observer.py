"""What the driver observes of a batch: it has heard all of it, and keeps a little."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from typing import Any

import pyarrow as pa

from penstock.api.progress import Progress
from penstock.checkpoint.clock import Clocks
from penstock.checkpoint.spark_logs import located
from penstock.coordinator.batch_result import Heard, Part
from penstock.coordinator.messages import BAD, LATE, PANES, ROWS, kind_of, stage_of
from penstock.engine.watermarks import ClockState
from penstock.observability.checkpoint_size import Measured
from penstock.observability.hot_keys import HotKeys
from penstock.observability.journal import Recorder
from penstock.observability.last_error import say_failed
from penstock.observability.lateness_histogram import together, told_of
from penstock.observability.observation import Observation
from penstock.observability.run_metadata import sources_of
from penstock.observability.sampling import even, key_text, row_text, shortened
from penstock.plan.graph import Flow
from penstock.plan.stages import Plan
from penstock.runtime.batch import PartitionClock
from penstock.storage.local import Store
from penstock.types.timestamps import MAX_TIME, MIN_TIME, from_datetime

PANES_SHOWN = 48  # of a stage and batch
ROWS_SHOWN = 16
PARTITIONS_TOLD = 1_000  # of which tasks hear how far they had come
POSITION = 16_384  # bytes of where a batch ended; what is longer is not kept
OF_A_PANE = ("window_start", "window_end", "pane_index", "pane_timing", "pane_final", "op")
OF_LATE = ("late_event_time", "late_watermark", "late_by", "late_partition", "late_offset", "late_windows", "op")


@dataclass(frozen=True, slots=True)
class Wrote:
    """How a batch was given to the sinks: what each says it has, how long one was waited for, if it came again."""

    ledgers: dict[str, dict[str, Any]]
    waited: float
    replayed: bool


@dataclass
class Observer:
    """Makes an observation of each batch, and has it kept: aside, while Spark commits and plans the next one."""

    flow: Flow
    recorder: Recorder
    settings: dict[str, Any] = field(default_factory=dict)
    hot: HotKeys = field(default_factory=HotKeys)
    measured: Measured = field(init=False)
    aside: threading.Thread | None = None

    def __post_init__(self) -> None:
        self.measured = Measured(self.recorder.store)

    def batch(self, heard: Heard, before: Clocks, after: Clocks, told: Progress, wrote: Wrote) -> None:
        """Observe a batch whose clock is written, one at a time: what is heard of two is never held."""
        self.settle()
        self.aside = threading.Thread(
            target=self._keep, args=(heard, before, after, told, wrote), daemon=True, name="penstock-observing"
        )
        self.aside.start()

    def settle(self) -> None:
        """Wait until the last batch has been observed."""
        if self.aside is not None:
            self.aside.join()
            self.aside = None

    def failed(self, epoch: int, error: BaseException) -> None:
        """The run ends with an error: whoever looks at it later is told."""
        with suppress(Exception):
            self.settle()
            say_failed(self.recorder.store, epoch, error)

    def ended(self) -> None:
        """Write what is held back, at the end of a run."""
        self.settle()
        self.recorder.flush()

    def _keep(self, heard: Heard, before: Clocks, after: Clocks, told: Progress, wrote: Wrote) -> None:
        """Whatever goes wrong here is no reason to stop a run."""
        try:
            self.recorder.write(self._observed(heard, before, after, told, wrote))
        except Exception as error:
            self.recorder.miss(told.batch, error)

    def _observed(self, heard: Heard, before: Clocks, after: Clocks, told: Progress, wrote: Wrote) -> Observation:
        for seen in heard.seen:
            self.hot.batch([(key, number) for key, number in seen["keys"]], seen["looked"])
        stages = range(len(self.flow.stages))
        return Observation(
            batch=told.batch,
            now=told.now,
            wall=time.time(),
            seconds=told.seconds,
            elapsed=told.elapsed,
            watermark=after.watermark,
            watermarks=[before.state.of(number) for number in stages],
            shares=told.shares,
            counts=asdict(heard.counts),
            totals=asdict(after.totals),
            rows=heard.sizes,
            partitions=partitions(after, heard.seen),
            state=dict(heard.state),
            held=told.held,
            hot=[list(one) for one in self.hot.shares()],
            dots=[
                {**dot, "partition": f"{seen['source']}/{dot['partition']}"}
                for seen in heard.seen
                for dot in seen["dots"]
            ],
            panes=list(self._panes(heard)),
            given=list(self._given(heard)),
            late=list(self._late(heard)),
            bad=list(_bad(heard)),
            sinks=after.given,
            notes=list(told.notes),
            positions=position(self.recorder.store, told.batch),
            behind=delays(heard.seen),
            replayed=wrote.replayed,
            settings=self.settings,
            sources=sources_of(self.flow, after.bad),
            ledgers=wrote.ledgers,
            waited=wrote.waited,
            missed=self.recorder.missed,
            total_panes=after.panes,
            checkpoint=dict(self.measured.now()),
        )

    def _panes(self, heard: Heard) -> Iterator[dict[str, Any]]:
        for stream in (name for name in heard.streams if kind_of(name) == PANES):
            plan = self.flow.stages[stage_of(stream)]
            assert isinstance(plan, Plan)
            for row in some(heard.streams[stream], PANES_SHOWN):
                answer = {name: value for name, value in row.items() if name not in (*plan.keys, *OF_A_PANE)}
                yield {
                    "stage": stage_of(stream),
                    "key": key_text(row[name] for name in plan.keys),
                    "start": _instant(row["window_start"], MIN_TIME),
                    "end": _instant(row["window_end"], MAX_TIME),
                    "index": row["pane_index"],
                    "timing": row["pane_timing"],
                    "final": row["pane_final"],
                    "op": row.get("op", 1),
                    "text": row_text(answer),
                }

    def _given(self, heard: Heard) -> Iterator[dict[str, Any]]:
        for stream in (name for name in heard.streams if kind_of(name) == ROWS):
            for row in some(heard.streams[stream], ROWS_SHOWN):
                yield {"stage": stage_of(stream), "output": stream.rpartition(":")[2], "text": row_text(row)}

    def _late(self, heard: Heard) -> Iterator[dict[str, Any]]:
        for stream in (name for name in heard.streams if kind_of(name) == LATE):
            stage = self.flow.stages[stage_of(stream)]
            _, _, number = stream.rpartition("/")[2].partition(":")
            keys = stage.entries[int(number or 0)].keys
            for row in some(heard.streams[stream], ROWS_SHOWN):
                yield {
                    "stage": stage_of(stream),
                    "partition": row["late_partition"],
                    "offset": row["late_offset"],
                    "event_time": _instant(row["late_event_time"]),
                    "watermark": _instant(row["late_watermark"]),
                    "key": key_text(row[name] for name in keys if name in row),
                    "late_by": row["late_by"],
                    "windows": [
                        [_instant(one["start"], MIN_TIME), _instant(one["end"], MAX_TIME)]
                        for one in row.get("late_windows") or ()
                    ],
                    "text": row_text({name: value for name, value in row.items() if name not in (*keys, *OF_LATE)}),
                    "why": "every window it belongs to had expired"
                    if isinstance(stage, Plan)
                    else "nothing that it could meet was held any more",
                }


def some(parts: Sequence[Part], most: int) -> Iterator[dict[str, Any]]:
    """Some rows of a stream, at even distances; those that were put aside as files are not looked at."""
    tables = [table for part in parts if "staged" not in part.head for table in part.tables(None)]
    if tables:
        whole = pa.concat_tables(tables)
        yield from whole.take(pa.array(even(whole.num_rows, most))).to_pylist()


def position(store: Store, batch: int) -> dict[str, Any]:
    """Where a batch ended in each source, so that it can be read again long after Spark has forgotten that."""
    held = located(store, batch)
    return held if len(json.dumps(held)) <= POSITION else {}


def newest_of(state: ClockState) -> dict[str, int]:
    """The newest event time of each partition, for tasks that count how far behind it events come."""
    spoken = [(f"{source}/{partition}", one.newest) for (source, partition), one in state.spoken.items()]
    return {name: newest for name, newest in spoken[:PARTITIONS_TOLD] if newest > MIN_TIME}


def delays(seen: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """How far the events of a batch came behind the newest of their partition, as the tasks have counted it."""
    told = [[{"partition": f"{one['source']}/{name}", **held} for name, held in one["behind"].items()] for one in seen]
    return told_of(together(told))


def partitions(after: Clocks, seen: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The clock of each partition, what its log has beyond this batch, and how long an event took to and from it."""
    lag = {(source, partition): end - at for source, partition, at, end in after.lag}
    skew = {(one["source"], name): both for one in seen for name, both in one["skew"].items()}
    made = []
    for held in after.partitions:
        one = PartitionClock(*held)
        before, since = skew.get((one.source, one.partition), (None, None))
        made.append({**asdict(one), "lag": lag.get((one.source, one.partition)), "to_log": before, "from_log": since})
    return made


def _bad(heard: Heard) -> Iterator[dict[str, Any]]:
    for row in some(heard.streams.get(BAD, ()), ROWS_SHOWN):
        yield {
            "partition": f"{row['source']}/{row['partition']}",
            "offset": row["offset"],
            "step": row["step"],
            "why": row["reason"],
            "text": shortened(row["raw"]),
        }


def _instant(moment: Any, infinite: int | None = None) -> int | None:
    return infinite if moment is None else from_datetime(moment)
