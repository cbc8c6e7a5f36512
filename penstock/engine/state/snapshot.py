"""A shard's memory at rest and back: a small head that names its parts, and parts that are written once.

After a batch only new runs are written; a memory that is read again fetches a part when a step first needs it.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator
from dataclasses import dataclass
from typing import Any

from penstock.engine.state.codec import framed, unframed
from penstock.engine.state.parts import Part
from penstock.engine.state.runs import Run
from penstock.engine.windows.compiled import Compiled
from penstock.engine.windows.lifecycle import Clock
from penstock.engine.windows.slices import Piece, SliceRun, Slices
from penstock.engine.windows.step import Memory

_RUN = ("number", "rows", "live", "records", "low", "high", "due_at", "wake_at")
_PIECE = ("rows", "start", "end")


@dataclass(frozen=True, slots=True)
class Saved:
    """A memory as bytes: the head, and the parts that were not known yet, by name."""

    head: bytes
    parts: dict[str, bytes]


def saved(compiled: Compiled, memory: Memory, known: Container[str] = ()) -> Saved:
    """The memory as bytes; equal memories give equal bytes, and parts that are known are not written again."""
    parts: dict[str, bytes] = {}
    for part in _parts(memory):
        if part.name is None or part.name not in known:
            name, data = part.written()
            if name not in known:
                parts[name] = data
    head = framed(
        {
            "clock": [memory.clock.watermark, memory.clock.now],
            "windows": [_run_said(run) for run in memory.windows],
            "events": [_run_said(run) for run in memory.events],
            "watermark": memory.slices.watermark,
            "slices": [
                [[piece.part.name, *(getattr(piece, name) for name in _PIECE)] for piece in run.pieces]
                for run in memory.slices.runs
            ],
        }
    )
    return Saved(head, parts)


def part_names(head: bytes) -> tuple[str, ...]:
    """The names of all parts of a memory."""
    said, _ = unframed(head)
    runs = [run[0] for run in (*said["windows"], *said["events"])]
    return (*runs, *(piece[0] for run in said["slices"] for piece in run))


def restored(compiled: Compiled, head: bytes, fetch: Callable[[str], bytes]) -> Memory:
    """The memory that was saved; each part is fetched when a step first needs it, if this process has it no more."""
    said, _ = unframed(head)

    def run(given: list[Any]) -> Run[Any]:
        name, took, *numbers = given
        return Run(part=Part(name=name, fetch=fetch), took=tuple(took), **dict(zip(_RUN, numbers, strict=True)))

    def piece(given: list[Any]) -> Piece:
        return Piece(Part(name=given[0], fetch=fetch), **dict(zip(_PIECE, given[1:], strict=True)))

    slices = tuple(SliceRun(tuple(map(piece, pieces))) for pieces in said["slices"])
    return Memory(
        tuple(map(run, said["windows"])),
        Slices(slices, said["watermark"]),
        tuple(map(run, said["events"])),
        Clock(*said["clock"]),
    )


def _parts(memory: Memory) -> Iterator[Part[Any]]:
    yield from (run.part for run in memory.windows)
    yield from (run.part for run in memory.events)
    for slices in memory.slices.runs:
        for piece in slices.pieces:
            yield piece.part


def _run_said(run: Run[Any]) -> list[Any]:
    return [run.part.name, run.took, *(getattr(run, name) for name in _RUN)]
