"""Answers that are remembered, in the order in which they were given: runs that never change, and the oldest leave.

What leaves is always at the beginning, whether its time has run out or there are too many, so that a run only says how
many of its rows are gone. The last runs of like size become one, so that a row is written a few times.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.engine.columns.keys import Keys, canonical, equal, hashes
from penstock.engine.state.codec import framed, unframed
from penstock.engine.state.rows import Kind, Part
from penstock.engine.state.time_index import expanded
from penstock.engine.windows.partials import concat_arrays, take_arrays
from penstock.types.arrow import one_batch

SMALL = 1_024  # runs of so few rows are all of one size
ALIKE = 4  # so many runs of like size become one
_OPTIONS = pa.ipc.IpcWriteOptions(compression="lz4")
_SAID = ("rows", "gone", "first", "last")

Columns = tuple[pa.Array, ...]


class Answered:
    """Questions, their answers, and when each was given, in that order; the way to find one is made once."""

    def __init__(self, questions: Columns, answers: Columns, times: np.ndarray) -> None:
        self.questions, self.answers, self.times = questions, answers, times
        self._sorted: tuple[np.ndarray, np.ndarray] | None = None

    def __len__(self) -> int:
        return len(self.times)

    def take(self, rows: np.ndarray) -> Answered:
        """These rows, by place."""
        return Answered(take_arrays(self.questions, rows), take_arrays(self.answers, rows), self.times[rows])

    def find(self, asked: Keys, hashed: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Which questions are among these, and where."""
        if self._sorted is None:
            own = hashes(self.questions, len(self))
            order = np.argsort(own, kind="stable")
            self._sorted = (own[order], order)
        numbers, order = self._sorted
        of, at = expanded((np.searchsorted(numbers, hashed), np.searchsorted(numbers, hashed, side="right")))
        rows = order[at]
        same = equal(take_arrays(asked, of), take_arrays(self.questions, rows))
        return of[same], rows[same]


@dataclass(frozen=True, slots=True, eq=False)
class Run:
    """Some answers, how many of the first are gone, and when the first and the last of the others were given."""

    part: Part[Answered]
    rows: int
    gone: int
    first: int
    last: int

    @property
    def live(self) -> int:
        """How many are left."""
        return self.rows - self.gone

    def after(self, gone: int) -> Run | None:
        """The run without so many of its first rows, or None where nothing is left."""
        if gone <= self.gone:
            return self
        return None if gone >= self.rows else replace(self, gone=gone, first=int(self.part.get().times[gone]))


Runs = tuple[Run, ...]


def new_run(answered: Answered) -> Run:
    """A run of answers, none of which is gone."""
    return Run(Part(ANSWERED, answered), len(answered), 0, int(answered.times[0]), int(answered.times[-1]))


def since(runs: Runs, time: int) -> Runs:
    """The runs without what was answered at a time or before."""
    kept: list[Run | None] = []
    for run in runs:
        if run.last <= time:
            continue
        left = run.gone if run.first > time else int(np.searchsorted(run.part.get().times, time, side="right"))
        kept.append(run.after(left))
    return tuple(run for run in kept if run is not None)


def last(runs: Runs, rows: int) -> Runs:
    """The runs with so many of their last rows."""
    surplus = sum(run.live for run in runs) - rows
    kept = []
    for run in runs:
        left = run.after(run.gone + max(0, min(surplus, run.live)))
        surplus -= run.live
        if left is not None:
            kept.append(left)
    return tuple(kept)


def tidy(runs: Runs) -> Runs:
    """The runs with the last ones of like size made one, and those that have lost half of their rows written anew."""
    kept = [run if 2 * run.live >= run.rows else _merged([run]) for run in runs]
    tier = 0
    while len(kept) >= ALIKE and tier <= max(map(_tier, kept)):
        begin = len(kept)
        while begin and _tier(kept[begin - 1]) <= tier:
            begin -= 1
        if len(kept) - begin >= ALIKE:
            kept = [*kept[:begin], _merged(kept[begin:])]
        tier += 1
    return tuple(kept)


def _tier(run: Run) -> int:
    """Runs of like size: of one tier, each up to four times as large as the one before."""
    return max(0, run.live.bit_length() - SMALL.bit_length() + 1) // 2


def _merged(runs: Sequence[Run]) -> Run:
    parts = [run.part.get().take(np.arange(run.gone, run.rows)) for run in runs]
    return new_run(
        Answered(
            concat_arrays([part.questions for part in parts]),
            concat_arrays([part.answers for part in parts]),
            np.concatenate([part.times for part in parts]),
        )
    )


def run_said(run: Run) -> list[Any]:
    """A run as it stands in a head; its part must have been written."""
    return [run.part.name, *(getattr(run, name) for name in _SAID)]


def run_read(said: Sequence[Any], fetch: Callable[[str], bytes]) -> Run:
    """The run that stands in a head."""
    name, *numbers = said
    return Run(Part(ANSWERED, name=name, fetch=fetch), **dict(zip(_SAID, numbers, strict=True)))


def _encoded(answered: Answered) -> bytes:
    arrays = [*answered.questions, *answered.answers, pa.array(answered.times)]
    batch = pa.RecordBatch.from_arrays(arrays, names=[str(i) for i in range(len(arrays))])
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema, options=_OPTIONS) as writer:
        writer.write_batch(batch)
    return framed({"questions": len(answered.questions)}, [sink.getvalue().to_pybytes()])


def _decoded(data: bytes) -> Answered:
    head, at = unframed(data)
    batch = one_batch(pa.ipc.open_stream(pa.py_buffer(data).slice(at)).read_all())
    asked, columns = head["questions"], batch.columns
    questions = tuple(canonical(column) for column in columns[:asked])
    return Answered(questions, tuple(columns[asked:-1]), columns[-1].to_numpy())


ANSWERED = Kind(_encoded, _decoded, lambda answered, data: 3 * len(data) + 64 * len(answered))
