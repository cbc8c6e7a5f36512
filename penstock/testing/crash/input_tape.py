"""What every run of a pipeline reads: how far each batch went and when it was, taken down once and played to all.

Two runs of a live source read different batches at different times, and panes that depend on either could not be
compared. So positions and clocks are recorded first, without Spark; the undisturbed run and every life play them.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from penstock.api.pipeline import Pipeline
from penstock.connectors.source import Chunk, LogReader, Offsets, Split
from penstock.errors import PenstockError
from penstock.plan.graph import Flow
from penstock.plan.stages import Input

PATIENCE = 10.0  # seconds without anything to read before it is said that there is nothing
QUIET = 2.0  # seconds without anything new after which a source is taken to be drained
LOOK = 0.25


@dataclass(frozen=True, slots=True)
class Tape:
    """The clock of each batch, and for each source where it was before and after each of them."""

    clocks: tuple[int, ...]
    steps: dict[str, list[list[Offsets]]]
    partitions: dict[str, list[str]]
    rows: int
    whole: bool

    def save(self, file: Path) -> None:
        """Write it down."""
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(asdict(self)))

    @classmethod
    def load(cls, file: Path) -> Tape:
        """Read it again."""
        held = json.loads(file.read_text())
        return cls(**{**held, "clocks": tuple(held["clocks"])})

    def played(self, flow: Flow) -> Flow:
        """The stages over what was recorded: it ends there, and no silence makes a partition step aside.

        How long a partition was silent is counted anew after an outage, so that with `idle` a run that was killed might
        rightly close a window later.
        """
        return flow.rebuilt(self._played)

    def _played(self, one: Input) -> Input:
        name = one.source.name
        reader = Played(one.source.reader, self.steps[name], tuple(self.partitions[name]))
        assert one.time is not None
        waiting = replace(one.time.watermark, idle=None, when_idle="hold")
        return replace(
            one, source=replace(one.source, reader=reader, bounded=True), time=replace(one.time, watermark=waiting)
        )


@dataclass(frozen=True, slots=True)
class Played:
    """A reader that takes one recorded step after the other, whatever the log has by now."""

    reader: LogReader
    steps: list[list[Offsets]]
    spoke: tuple[str, ...]
    kind = "played"  # stands in checkpoints

    def start(self) -> Offsets:
        """Before the first batch."""
        return {"played": 0}

    def latest(self, since: Offsets, now: int, limit: int | None) -> Offsets:
        """The next step, as long as there is one."""
        return {"played": min(since["played"] + 1, len(self.steps))}

    def splits(self, since: Offsets, upto: Offsets) -> list[Split]:
        """The work of the steps between the two."""
        taken = self.steps[since["played"] : upto["played"]]
        return [split for before, after in taken for split in splits(self.reader, before, after)]

    def read(self, split: Split) -> Iterator[Chunk]:
        """The rows."""
        return self.reader.read(split)

    def partitions(self, at: Offsets) -> list[str]:
        """Those that are known and have rows on the tape; an empty one would hold the watermark to the end."""
        steps = self.steps[: at["played"]]
        return [one for one in self.reader.partitions(steps[-1][1]) if one in self.spoke] if steps else []

    def behind(self, at: Offsets, now: int) -> list[str]:
        """All of them until the tape has ended."""
        return [] if self.finished(at, now) else list(self.spoke)

    def finished(self, at: Offsets, now: int) -> bool:
        """Whether the tape has ended."""
        return bool(at["played"] == len(self.steps))


def recorded(
    pipeline: Pipeline,
    batches: int,
    batch_rows: int | None,
    *,
    clock: Callable[[], int] = lambda: time.time_ns() // 1000,
) -> Tape:
    """Let the sources say how far so many batches would go; sooner, where they have no more."""
    readers = {one.source.name: _reader(one) for one in pipeline.flow.inputs}
    at = {name: reader.start() for name, reader in readers.items()}
    steps: dict[str, list[list[Offsets]]] = {name: [] for name in readers}
    clocks: list[int] = []
    quiet = time.monotonic()
    whole = False
    while len(clocks) < batches and not whole:
        now = max([clock(), *clocks[-1:]])
        before, at = at, {name: reader.latest(at[name], now, batch_rows) for name, reader in readers.items()}
        if any(splits(reader, before[name], at[name]) for name, reader in readers.items()):
            clocks.append(now)
            quiet = time.monotonic()
            for name in readers:
                steps[name].append([before[name], at[name]])
        whole = all(reader.finished(at[name], now) for name, reader in readers.items())
        if not whole and not any(reader.behind(at[name], now) for name, reader in readers.items()):
            whole = time.monotonic() - quiet > (QUIET if clocks else PATIENCE)
            time.sleep(0 if whole else LOOK)
    rows, spoke = _read(readers, steps)
    if not rows:
        raise PenstockError(
            f"the sources of {pipeline.name!r} have no rows",
            "a pipeline that reads nothing writes nothing, and nothing would be proven",
            "let them have rows first; a few thousand are enough",
        )
    return Tape(tuple(clocks), steps, spoke, rows, whole)


def _reader(one: Input) -> LogReader:
    reader: Any = one.source.reader
    if hasattr(reader, "kept_under"):
        raise PenstockError(
            f"the source {one.source.name!r} is a table that is read whole",
            "what was read of it is kept under the checkpoint of one run, and each life is to read the same",
            "prove the pipeline with the table as a stream of changes: ps.directory(...) or ps.kafka(...)",
        )
    if reader is None or hasattr(reader, "frame"):
        raise PenstockError(
            f"the source {one.source.name!r} is {'read by nobody' if reader is None else 'a DataFrame of Spark'}",
            "each life is to read the same batches again, and only a source of Penstock can be told which",
            "prove the pipeline on ps.directory(...), ps.kafka(...) or ps.game_scores(...) with such rows",
        )
    found: LogReader = reader
    return found


def splits(reader: LogReader, since: Offsets, upto: Offsets) -> list[Split]:
    """The work of a step, of which there may be none."""
    return [] if since == upto else reader.splits(since, upto)


def _read(readers: dict[str, LogReader], steps: dict[str, list[list[Offsets]]]) -> tuple[int, dict[str, list[str]]]:
    """Read all of it once: how many rows there are, and which partitions have any."""
    rows, spoke = 0, {}
    for name, reader in readers.items():
        seen = set()
        for split in (split for since, upto in steps[name] for split in splits(reader, since, upto)):
            for chunk in reader.read(split):
                rows += len(chunk.offsets) + len(chunk.undecoded)
                seen.add(chunk.partition)
        spoke[name] = sorted(seen)
    return rows, spoke
