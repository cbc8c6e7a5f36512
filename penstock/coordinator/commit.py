"""COMMIT, on the driver, once a batch: collect what the shards said, write the sinks, decide the next watermark."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import astuple, dataclass, field, replace
from typing import Any

from penstock.api.pipeline import Pipeline
from penstock.api.progress import Progress
from penstock.checkpoint.clock import Clocks, read_clock, write_clock
from penstock.checkpoint.enrichment_log import forget_answers
from penstock.checkpoint.lease import Lease
from penstock.checkpoint.spark_logs import foreign, offsets_digest
from penstock.checkpoint.status import note_waiting, waiting_is_over
from penstock.connectors.sink_errors import SinkDown
from penstock.connectors.spark_dataframe import Frame
from penstock.coordinator.batch_result import Heard, gathered
from penstock.coordinator.observer import Observer, Wrote, newest_of
from penstock.coordinator.rate_limit import Throttle
from penstock.coordinator.sink_retry import Times, Waiting
from penstock.coordinator.sink_router import Outlets
from penstock.coordinator.task_clock import TaskClock
from penstock.coordinator.unusable_input import Unusable
from penstock.engine.watermarks import end_batch, partition_clocks
from penstock.plan.graph import Flow
from penstock.runtime.bad_row_limit import refuse_counts
from penstock.runtime.batch import PartitionClock, Tick
from penstock.runtime.failpoints import reached
from penstock.storage.local import Store
from penstock.types.timestamps import MAX_TIME, MIN_TIME

Until = str | None


@dataclass
class Commit:
    """Called by Spark with each batch, in the thread that runs the query."""

    pipeline: Pipeline
    lineage: str
    store: Store
    lease: Lease
    outlets: Outlets
    until: Until
    publish: Callable[[TaskClock], None]
    explain: Callable[[BaseException], BaseException]
    on_progress: Callable[[Progress], None]
    clocks: Clocks = field(default_factory=Clocks)
    resumed: bool = True
    replaying: int | None = None
    begun: float = field(default_factory=time.monotonic)
    failure: BaseException | None = None
    done: bool = False
    throttle: Throttle | None = None
    asked: threading.Event = field(default_factory=threading.Event)
    told: Progress | None = None
    answers: str | None = None
    observer: Observer | None = None
    unusable: Unusable | None = None
    noted: bool = False
    flow: Flow = field(init=False)

    def __post_init__(self) -> None:
        self.flow = self.pipeline.flow

    def __call__(self, frame: Any, batch: int) -> None:
        """One batch; what goes wrong is remembered, for Spark tells it only as text."""
        try:
            self._commit(frame, batch)
        except BaseException as error:
            self.failure = error
            if self.observer is not None and not (isinstance(error, SinkDown) and self.asked.is_set()):
                self.observer.failed(self.lease.epoch, self.explain(error))
            raise

    def _commit(self, frame: Any, batch: int) -> None:
        if self.clocks.batch != batch:
            self.clocks = read_clock(self.store, self.lineage, batch)
        reached("batch:begin", batch)
        times = Times(time.monotonic())
        heard = gathered(frame.collect())
        reached("batch:collected", batch)
        times.collected(heard.began)
        self.lease.refuse_if_lost()
        bad = refuse_counts(self.flow, self.clocks.bad, heard.read)
        if self.unusable is not None:
            self.unusable.batch(heard)
        waiting = Waiting(self.asked, self._wait)
        given = self.deliver(heard, batch, waiting)
        if self.noted:
            self.noted = False
            waiting_is_over(self.store)
        times.written, times.waited = time.monotonic(), waiting.seconds
        reached("clock:before", batch)
        made = self._next(heard, bad, given)
        after = write_clock(self.store, self.lineage, made)
        reached("clock:after", batch)
        if self.answers is not None:
            # The batch before is committed, for this one began after it: nobody plays again what came before that.
            forget_answers(self.answers, batch - 1)
        self._tell(heard, after, times)
        # A batch that is run again has its clock already: the outage lies between it and the batch to come.
        self.clocks, self.resumed = after, after is not made
        # A batch that is run again was planned in an earlier run: what has come since is for the next one to read.
        planned_now = batch != self.replaying
        self.done = after.finished or (self.until == "caught_up" and after.drained and planned_now)
        self.before_next(after)
        self.publish(self.task_clock())
        reached("batch:end", batch)

    def deliver(self, heard: Heard, batch: int, waiting: Waiting) -> dict[str, int]:
        """Give every sink its rows; one that does not answer is waited for."""
        return self.outlets.write(heard, batch, self.clocks.given, waiting, replayed=batch == self.replaying)

    def _wait(self, error: SinkDown) -> None:
        """Tell that the batch waits for a sink, here and to whoever asks from outside."""
        if not self.noted:
            self.noted = True
            note_waiting(self.store, self.lease.epoch, self.clocks.batch, error.what)
        if self.told is not None:
            self.on_progress(replace(self.told, waiting=error.what, elapsed=time.monotonic() - self.begun))

    def before_next(self, after: Clocks) -> None:
        """What is done when a batch is over and before the next one has its clock: nothing, but for the test kit."""

    def task_clock(self) -> TaskClock:
        """What the tasks of the batch to come are told."""
        state = self.clocks.state
        watermarks = tuple(state.of(number) for number in range(len(self.flow.stages)))
        newest = {} if self.observer is None else newest_of(state)
        return TaskClock(
            self.lineage, self.clocks.batch, watermarks, MIN_TIME if state.now is None else state.now, newest
        )

    def _next(self, heard: Heard, bad: dict[str, list[int]], given: dict[str, int]) -> Clocks:
        """The clock of the batch to come, from what this one reported."""
        before, tick = self.clocks, heard.tick
        said = Tick(
            tick["now"],
            None,
            tuple((a, b) for a, b in tick["partitions"]),
            self.resumed,
            tuple((a, b) for a, b in tick["behind"]),
        )
        stages = range(len(self.flow.stages))
        holds = [heard.holds.get(number, MAX_TIME) for number in stages]
        finished, reached = before.finished, None
        # A batch without rows has run under the watermark of all that came before it.
        drained = not heard.counts.read and not tick["behind"] and not self._moved(before.batch)
        if self.until == "end":
            # W is held while input lasts; then every stage gives what it has left, one after the other. A batch that an
            # earlier run had planned does not know what has come since: it may go on with the end, but not begin it.
            begins = before.batch != self.replaying or before.watermark == MAX_TIME
            ended = tick["finished"] and drained and begins
            reached = MAX_TIME if ended else before.watermark
            finished = finished or (ended and all(before.state.of(number) == MAX_TIME for number in stages))
        state = end_batch(self.flow, before.state, heard.reports, tick["now"], said, holds, reached)
        return Clocks(
            before.batch + 1,
            state,
            before.totals + heard.counts,
            bad,
            before.panes + heard.results,
            finished,
            drained,
            given,
            heard.state.get("open", 0),
            [list(astuple(one)) for one in partition_clocks(self.flow, state)],
            offsets_digest(self.store, before.batch),
            tick.get("lag", []),
            tick.get("notes", []),
            self._held(heard),
        )

    def _moved(self, batch: int) -> bool:
        """Whether Spark's own sources have given a batch something, of which perhaps no row came as far as here."""
        framed = any(isinstance(one.source.reader, Frame) for one in self.flow.inputs)
        return framed and foreign(self.store, batch) != foreign(self.store, batch - 1)

    def _held(self, heard: Heard) -> dict[str, int]:
        """How much each stage remembers."""
        return {name: heard.held[number] for number, name in enumerate(self.flow.names) if number in heard.held}

    def _tell(self, heard: Heard, after: Clocks, times: Times) -> None:
        ended = time.monotonic()
        elapsed = ended - self.begun
        # The tick was read when the batch began; a clock that a test has moved says nothing of that.
        since_tick = time.time() - heard.tick["now"] / 1_000_000
        seconds = min(since_tick, elapsed) if since_tick > 0 else elapsed
        clocks = [one for one in (PartitionClock(*held) for held in after.partitions) if not one.idle]
        slowest = min(clocks, key=lambda one: one.watermark, default=None)
        lag = [end - at for _, _, at, end in after.lag]
        self.told = Progress(
            batch=after.batch - 1,
            now=heard.tick["now"],
            watermark=after.watermark,
            events=heard.counts.read,
            panes=heard.results,
            late=heard.all_rows("late"),
            quarantined=heard.rows("quarantine"),
            seconds=seconds,
            elapsed=elapsed,
            totals=after.totals,
            total_panes=after.panes,
            open_windows=heard.state.get("open", 0),
            laggard=None if slowest is None else f"{slowest.source}/{slowest.partition}",
            shares=times.shares(elapsed),
            lag=sum(lag) if lag else None,
            notes=tuple(heard.tick.get("notes", ())),
            rows=heard.sizes,
            held=after.held,
        )
        self.on_progress(self.told)
        if self.observer is not None:
            wrote = Wrote(dict(self.outlets.ledgers), times.waited, self.told.batch == self.replaying)
            self.observer.batch(heard, self.clocks, after, self.told, wrote)
        if self.throttle is not None:
            self.throttle.took(heard.counts.read, seconds - times.waited)
        self.begun = ended
