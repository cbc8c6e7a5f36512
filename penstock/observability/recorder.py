"""Where observations are kept: in files of lines beside the checkpoint, the newest of them, up to a size.

To observe must never stop a run: what cannot be written is left out, and that is said.
"""

from __future__ import annotations

import errno
import os
import time
from dataclasses import dataclass, field
from pathlib import Path

from penstock.observability.observation import Observation
from penstock.storage.local import LocalStore, Store

FOLDER = "penstock/monitor"
SEGMENT_BYTES = 4 << 20
SEGMENTS = 16
EVERY_SECONDS = 30.0  # between two files where a file cannot grow
SMALL_SEGMENTS = 480  # of such files: four hours at least


@dataclass
class Recorder:
    """Writes observations, one line for each batch; `missed` counts those since the last that could be written."""

    store: Store
    held: list[bytes] = field(default_factory=list)
    name: str = ""
    size: int = 0
    since: float = field(default_factory=time.monotonic)
    failed: str | None = None
    missed: int = 0

    def write(self, one: Observation) -> None:
        """Keep an observation."""
        line = one.line() + b"\n"
        try:
            if isinstance(self.store, LocalStore):
                self._append(Path(self.store.root, FOLDER), one.batch, line)
            else:
                self._hold(one.batch, line)
            self.failed, self.missed = None, 0
        except Exception as error:  # a run goes on unobserved
            self.miss(one.batch, error)

    def miss(self, batch: int, error: Exception) -> None:
        """Remember that a batch is not among those that were observed; the next one says so."""
        self.failed = f"batch {batch} could not be observed: {error}"
        self.missed += 1

    def flush(self) -> None:
        """Write what is held back, at the end of a run."""
        try:
            self._publish()
        except Exception as error:
            self.failed = f"what was observed last could not be written: {error}"

    def _append(self, folder: Path, batch: int, line: bytes) -> None:
        if not self.size or self.size + len(line) > SEGMENT_BYTES:
            folder.mkdir(parents=True, exist_ok=True)
            self.name, self.size = segment(batch), 0
            _forget(self.store, SEGMENTS)
        number = os.open(folder / self.name, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            written = os.write(number, line)
        finally:
            os.close(number)
        self.size += len(line)
        if written < len(line):
            self.size = 0  # what comes next begins a new file: it would be the end of half a line
            raise OSError(errno.ENOSPC, "the disk is full")

    def _hold(self, batch: int, line: bytes) -> None:
        if not self.held:
            self.name = segment(batch)
        self.held.append(line)
        self.size += len(line)
        if self.size > SEGMENT_BYTES or time.monotonic() - self.since > EVERY_SECONDS:
            self._publish()

    def _publish(self) -> None:
        if self.held:
            self.store.create(f"{FOLDER}/{self.name}", b"".join(self.held))
            _forget(self.store, SMALL_SEGMENTS)
        self.held, self.size, self.since = [], 0, time.monotonic()


def segment(first: int) -> str:
    """The name of the file that begins with a batch; a batch that is run again begins another."""
    return f"{first:012d}-{time.time_ns() // 1_000_000:013d}.jsonl"


def _forget(store: Store, most: int) -> None:
    """Let the oldest files go, so that with the one to come there are not too many."""
    for name in store.names(FOLDER)[: 1 - most]:
        store.delete(f"{FOLDER}/{name}")
