"""What was observed of a run, read from beside its checkpoint: while it runs, and after it has stopped."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from penstock.observability.observation import Observation, observation
from penstock.observability.time_plane import COUNTED, LATE, QUARANTINED, Dot, Mark, Plane, Shown
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


@dataclass
class Recorded:
    """The observations of a checkpoint; `news` gives those that came since it was asked last."""

    store: Store
    read: dict[str, int] = field(default_factory=dict)

    @staticmethod
    def at(checkpoint: str) -> Recorded:
        """Those of a checkpoint on this machine's disk."""
        return Recorded(LocalStore(checkpoint))

    def news(self) -> list[Observation]:
        """What was written since; a batch that was run again may come a second time."""
        return list(self.arriving())

    def arriving(self) -> Iterator[Observation]:
        """The same, one at a time: of a long run all of it would be much to hold."""
        names = self.store.names(FOLDER)
        self.read = {name: at for name, at in self.read.items() if name in names}
        for name in names:
            yield from self._lines(name)

    def begin_with(self, size: int) -> None:
        """Pass over the oldest files, so that about so many bytes are left to be read; the newest file always is."""
        for name in reversed(self.store.names(FOLDER)):
            if size <= 0:
                self.read[name] = self._size(name)
            size -= self._size(name)

    def latest(self, seconds: float) -> list[Observation]:
        """What was written in the last seconds before the newest, without reading all that is older; then `news`."""
        found: list[Observation] = []
        names = self.store.names(FOLDER)
        for place, name in reversed(list(enumerate(names))):
            found = [*self._lines(name), *found]
            if found and found[0].wall < found[-1].wall - seconds:
                self.read |= {older: self._size(older) for older in names[:place]}
                break
        return [one for one in found if one.wall >= found[-1].wall - seconds]

    def _lines(self, name: str) -> Iterator[Observation]:
        since = self.read.get(name, 0)
        data = self._rest(name, since)
        whole = data[: data.rfind(b"\n") + 1]
        self.read[name] = since + len(whole)
        for line in whole.splitlines():
            one = observation(line)
            if one is not None:
                yield one

    def _rest(self, name: str, since: int) -> bytes:
        """What a file has beyond a place; where files cannot grow, one that was read has nothing new."""
        if isinstance(self.store, LocalStore):
            with suppress(FileNotFoundError), open(Path(self.store.root, FOLDER, name), "rb") as file:
                file.seek(since)
                return file.read()
            return b""
        return b"" if since else self.store.read(f"{FOLDER}/{name}") or b""

    def _size(self, name: str) -> int:
        """How much of a file is behind us, where it is passed over."""
        if isinstance(self.store, LocalStore):
            with suppress(OSError):
                return os.stat(Path(self.store.root, FOLDER, name)).st_size
        return 1


def latest_of_each(observed: Iterable[Observation]) -> list[Observation]:
    """The observations in order; of a batch that was run again, the last."""
    found = {one.batch: one for one in observed}
    return [found[batch] for batch in sorted(found)]


def plane_of(observed: Iterable[Observation], title: str = "", key: str | None = None, stage: int = 0) -> Plane:
    """The plane of what was observed: of all keys, or of one."""
    dots: dict[tuple[Any, ...], Dot] = {}
    marks: list[Mark] = []
    panes: list[Shown] = []
    for one in observed:
        marks.append(Mark(one.now, one.watermarks[stage] if stage < len(one.watermarks) else one.watermark))
        panes += [_shown(held, one.now) for held in one.panes if held["stage"] == stage]
        late = [held for held in one.late if held["stage"] == stage]
        # An event that was late is also among those that were read: what became of it is known last.
        for fate, some in ((COUNTED, one.dots), (LATE, late), (QUARANTINED, one.bad)):
            dots |= {(one.batch, held["partition"], held["offset"]): _dot(held, one.now, fate) for held in some}
    shown = [dot for dot in dots.values() if key is None or dot.key == key]
    return Plane(title, tuple(shown), tuple(marks), tuple(pane for pane in panes if key is None or pane.key == key))


def _dot(held: Mapping[str, Any], now: int, fate: str) -> Dot:
    return Dot(
        held.get("event_time"),
        now,
        held.get("key", ""),
        held.get("text", ""),
        held["partition"],
        fate,
        held.get("why", ""),
        held["offset"],
    )


def _shown(held: Mapping[str, Any], now: int) -> Shown:
    return Shown(
        held["key"],
        held["start"],
        held["end"],
        now,
        held["index"],
        held["timing"],
        held["text"],
        held["final"],
        held["op"],
    )
