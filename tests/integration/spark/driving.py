"""How the tests drive a pipeline: files that appear, batches that are waited for, clocks that are moved."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import penstock as ps
from penstock.api.progress import Progress
from penstock.checkpoint.clock import FOLDER as CLOCKS

ROWS = "team string, points long, at timestamp"
SECONDS = 120


def put(folder: Path, name: str, *rows: tuple[Any, ...]) -> None:
    """Let a file appear, whole: rows of team, points and the second of the minute at which they happened."""
    lines = [json.dumps({"team": team, "points": points, "at": clock(at)}) for team, points, at in rows]
    put_text(folder, name, "\n".join(lines) + "\n")


def put_text(folder: Path, name: str, text: str) -> None:
    """Let a file of any text appear."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_name(f".{path.name}")
    aside.write_text(text)
    os.rename(aside, path)


def clock(second: float) -> str:
    """An instant of the first hour of 2026."""
    return f"2026-01-01T00:{int(second) // 60:02d}:{second % 60:09.6f}Z"


def scores(folder: Path, **how: Any) -> ps.Stream:
    """The rows of those files."""
    folder.mkdir(parents=True, exist_ok=True)
    return ps.directory(folder, **{"schema": ROWS, "format": "json", "name": "scores", **how})


def totals(source: ps.Stream, watermark: Any = None) -> ps.Panes:
    """Points by team in windows of ten seconds, one pane each."""
    timed = source.event_time("at", watermark=watermark or ps.ascending(idle=None))
    return timed.key_by("team").window(ps.tumbling("10 seconds")).aggregate(points=ps.sum("points"), plays=ps.rows())


def seconds(rows: list[dict[str, Any]], *names: str) -> list[tuple[Any, ...]]:
    """Rows as sorted tuples: the second at which the window starts, then columns by name."""
    starts = [(None if row["window_start"] is None else _second(row["window_start"]), row) for row in rows]
    return sorted((start, *(row[name] for name in names)) for start, row in starts)


def _second(value: Any) -> int:
    return int(value.timestamp()) % 3600


def clock_files(checkpoint: Path) -> dict[int, bytes]:
    """The clock of each batch as it was written."""
    return {int(one.name): one.read_bytes() for one in (checkpoint / CLOCKS).iterdir() if one.name.isdigit()}


def lose_last_commit(checkpoint: Path, *, clock_too: bool = False) -> int:
    """As if it had been killed in its last batch, before Spark's commit or before the clock as well; its number."""
    last = max(int(one.name) for one in (checkpoint / "commits").iterdir() if one.name.isdigit())
    (checkpoint / "commits" / str(last)).unlink()
    if clock_too:
        (checkpoint / CLOCKS / f"{last + 1:012d}").unlink()
    return last


def clock_of(checkpoint: Path, batch: int) -> dict[str, Any]:
    """The clock of a batch, read without looking at its checksum."""
    held: dict[str, Any] = json.loads(clock_files(checkpoint)[batch].partition(b"\n")[2])
    return held


class Unspoken:
    """A session that fails at any question: what is refused before Spark starts never asks it."""

    def __getattr__(self, name: str) -> None:
        raise AssertionError(f"Spark was asked for {name}")


class Running:
    """A pipeline in the background, and the progress it told."""

    def __init__(self, pipeline: ps.Pipeline, checkpoint: Any, look: Callable[[Progress], None] | None = None,
                 **how: Any) -> None:  # fmt: skip
        self.told: list[Progress] = []
        self.look = look
        self.handle = pipeline.start(checkpoint=str(checkpoint), on_progress=self.hear, **{"batch_every": "0", **how})

    def hear(self, progress: Progress) -> None:
        """A batch has its clock written, and is not committed yet."""
        if self.look is not None:
            self.look(progress)
        self.told.append(progress)

    def until(self, holds: Callable[[Progress], bool]) -> Progress:
        """Wait for a batch of which that holds."""
        return self.wait(lambda: next((one for one in self.told if holds(one)), None))

    def batches(self, more: int) -> Progress:
        """Wait for so many batches more."""
        wanted = len(self.told) + more
        return self.wait(lambda: self.told[wanted - 1] if len(self.told) >= wanted else None)

    def wait(self, found: Callable[[], Any]) -> Any:
        """Wait until something is found."""
        deadline = time.monotonic() + SECONDS
        while (it := found()) is None:
            if not self.handle.running:
                self.handle.wait()
            assert time.monotonic() < deadline, f"nothing came; told: {self.told[-3:]}"
            time.sleep(0.01)
        return it


@contextmanager
def running(pipeline: ps.Pipeline, checkpoint: Any, **how: Any) -> Iterator[Running]:
    """A pipeline that runs in the background, stopped at the end."""
    made = Running(pipeline, checkpoint, **how)
    try:
        yield made
    finally:
        if made.handle.running:
            made.handle.stop()


def caught_up(pipeline: ps.Pipeline, checkpoint: Any, **how: Any) -> list[Progress]:
    """Run a pipeline until it has read all there is; gives what it told."""
    told: list[Progress] = []
    ended = pipeline.run(checkpoint=str(checkpoint), on_progress=told.append,
                         **{"batch_every": "0", "until": "caught_up", **how})  # fmt: skip
    assert ended.progress == told[-1]
    return told
