"""A pipeline that runs: stop it between two batches, wait for it, ask how it stands."""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from penstock.api.progress import Progress
from penstock.checkpoint.lease import Lease
from penstock.checkpoint.spark_logs import positions
from penstock.connectors.sink_errors import SinkDown
from penstock.coordinator.commit import Commit
from penstock.diagnostics.unknown_names import unknown_name
from penstock.spark.errors import told
from penstock.spark.source import beyond_end, tell_committed
from penstock.types.timestamps import show


@dataclass(frozen=True, slots=True)
class Ended:
    """How a run ended: why, after which batch, how it stood, and what came after the end of its sources, in words."""

    reason: str
    batches: int
    progress: Progress | None
    unread: tuple[str, ...] = ()

    def __str__(self) -> str:
        stood = "" if self.progress is None else f", watermark {show(self.progress.watermark)}"
        ran = f"{self.reason} after batch {self.batches - 1}{stood}" if self.batches else f"{self.reason}, no batch ran"
        return "; ".join((ran, *self.unread))


@dataclass
class Handle:
    """A pipeline that runs in the background."""

    query: Any
    commit: Commit
    lease: Lease
    stop_file: str | None
    scratch: Any
    status: Progress | None = None
    _ended: Ended | None = None
    _failed: BaseException | None = None
    _finishing: threading.Lock = field(default_factory=threading.Lock)

    if not TYPE_CHECKING:
        __getattr__ = unknown_name

    @property
    def running(self) -> bool:
        """Whether batches are still run."""
        return bool(self.query.isActive)

    def stop(self) -> Ended:
        """Finish the batch that runs, then stop."""
        self.ask_to_stop()
        return self.wait()

    def ask_to_stop(self) -> None:
        """Ask for a stop after the batch that runs; safe in a signal handler."""
        self.commit.asked.set()

    def wait(self, timeout: float | None = None) -> Ended:
        """Wait until it has ended; raises what made it fail."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while self._ended is None and self._failed is None:
            if not self.query.isActive or self.commit.done or self.commit.asked.is_set():
                self._finish_once()
            elif deadline is not None and time.monotonic() > deadline:
                raise TimeoutError(f"the pipeline still runs after {timeout} s")
            else:
                time.sleep(0.02)
        if self._failed is not None:
            raise self._failed
        assert self._ended is not None
        return self._ended

    def end_by_itself(self) -> None:
        """Stop when the input is drained or has ended, whether anybody waits or not."""

        def watch() -> None:
            with suppress(BaseException):
                self.wait()

        threading.Thread(target=watch, name="penstock-end", daemon=True).start()

    def _finish_once(self) -> None:
        with self._finishing:
            if self._ended is None and self._failed is None:
                try:
                    self._ended = self._finish()
                except Exception as error:
                    self._failed = error
                    if self.commit.observer is not None:
                        self.commit.observer.failed(self.lease.epoch, error)

    def _finish(self) -> Ended:
        """Let the batch that runs come to its end, stop the query, and say how it ended."""
        running = self.commit.clocks.batch
        if self.stop_file is not None:
            with open(self.stop_file, "w"):
                pass
        try:
            while self.query.isActive and not self._stands(running):
                time.sleep(0.01)
            failure = self.commit.failure or (None if self.query.isActive else self.query.exception())
            if self.query.isActive:
                self.query.stop()
            # Asked to stop while it waited for a sink, it gave the batch up: the next start plays it again.
            if failure is not None and not (isinstance(failure, SinkDown) and self.commit.asked.is_set()):
                explained = told(failure)
                raise explained from explained.__cause__  # the user's own error, where a function of theirs failed
            unread = self._tell_sources()
        finally:
            self.release()
        clocks = self.commit.clocks
        reason = "ended" if clocks.finished else "caught up" if self.commit.done else "stopped"
        ended = Ended(reason, clocks.batch, self.status, unread)
        if reason != "stopped" and self.commit.unusable is not None:
            refusal = self.commit.unusable.refusal(str(ended))
            if refusal is not None:
                raise refusal
        return ended

    def _tell_sources(self) -> tuple[str, ...]:
        """Tell the logs of the last batch: Spark tells them of a batch when the next one begins. What they have beyond
        their end is looked for anew, for more may have come since that batch was planned."""
        commit = self.commit
        readers = {one.source.name: one.source.reader for one in commit.flow.inputs}
        at = positions(commit.store, commit.clocks.batch - 1)
        tell_committed(readers, at)
        return beyond_end(readers, at, commit.clocks.state.now or 0)

    def release(self) -> None:
        """Let go of sinks, checkpoint and scratch files."""
        with suppress(Exception):
            self.commit.outlets.close()
        if self.commit.observer is not None:
            self.commit.observer.ended()
        try:
            self.lease.release()
        finally:
            self.scratch.cleanup()

    def _stands(self, running: int) -> bool:
        """Whether the last batch is committed and no other has begun, or, where Spark's own sources cannot be asked to
        wait, whether the batch that ran when the stop was asked for is committed."""
        last = self.query.lastProgress
        done = -1 if last is None else int(last["batchId"])
        if self.stop_file is None and done >= running:
            return True
        idle = not self.query.status["isTriggerActive"] or "Waiting for" in self.query.status["message"]
        return bool(idle and done >= self.commit.clocks.batch - 1)
