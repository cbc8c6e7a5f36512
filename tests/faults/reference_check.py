"""What must a pipeline write, whatever kills it? What the reference gives for the same batches, played in one go.

That is so where batches are the same in every run, as they are of sources that make up their rows and `batch_rows` of
no more than a thousand, which no slow machine makes less.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from penstock.api.pipeline import Output, Pipeline
from penstock.connectors.delivery import deliver
from penstock.connectors.sink import Batch, Writer
from penstock.observability.journal import Recorded, latest_of_each
from penstock.plan.stages import Plan
from penstock.reference.engine import ReferenceRun
from penstock.runtime.batch import Arrival, StageOutcome, Tick
from penstock.testing.crash.compare_outputs import Undisturbed
from penstock.testing.crash.sink_rows import held_by
from penstock.testing.crash.verdict import Verdict, in_batches
from penstock.types.durations import SECOND
from penstock.types.timestamps import MAX_TIME, to_datetime

BEGUN = 4_102_444_800 * SECOND  # the year 2100: nothing is ahead of it
Made = Callable[[str], Pipeline]


@dataclass(frozen=True, slots=True)
class Beat:
    """The processing clock of a batch, and whether all input had ended before it."""

    now: int
    ended: bool = False


@dataclass(frozen=True)
class Expected:
    """What each output must hold, and in which batches every stage has something to remember, before and after it."""

    outputs: tuple[Undisturbed, ...]
    full: tuple[int, ...]


@dataclass(frozen=True)
class ReferenceChecker:
    """Compares every output of a pipeline, made for a folder, with what the reference gives."""

    made: Made
    expected: Expected

    @classmethod
    def of(cls, made: Made, folder: str, log: str) -> ReferenceChecker:
        """A run that nothing disturbed must hold the same, or kills would show nothing."""
        checker = cls(made, expected(made))
        verdict = checker.check(folder, ended=True)
        if not verdict.good:
            raise AssertionError(f"the undisturbed run is not what the reference gives: {verdict}")
        return checker

    def check(self, folder: str, ended: bool) -> Verdict:
        """Every output, up to the last batch each has; at the end all of it."""
        verdict = Verdict()
        with tempfile.TemporaryDirectory() as aside:
            copy = Path(aside) / "copy"
            shutil.copytree(folder, copy, ignore=shutil.ignore_patterns("checkpoint"))
            for one, (_, sink, target) in zip(self.expected.outputs, _targets(self.made(str(copy))), strict=True):
                verdict += one.judge(held_by(sink, target), ended)
        return verdict


def beats_of(checkpoint: Path) -> tuple[Beat, ...]:
    """When the batches of a run were, as they were observed: what hangs on the processing clock hangs on these."""
    seen = latest_of_each(Recorded.at(str(checkpoint)).news())
    return tuple(Beat(one.now, MAX_TIME in one.watermarks) for one in seen)


@lru_cache(maxsize=1)
def expected(made: Made, beats: tuple[Beat, ...] = ()) -> Expected:
    """Play the batches that every run reads, and give what comes of them to sinks of the same kind."""
    import pyarrow as pa

    with tempfile.TemporaryDirectory() as folder:
        pipeline = made(folder)
        targets, outputs = _targets(pipeline), pipeline.outputs
        counts: list[list[int]] = [[] for _ in outputs]
        writers: dict[str, Writer] = {}
        full, remembered = [], False
        for number, (run, shown) in enumerate(_played(pipeline, beats)):
            for output, (_, sink, target), counted in zip(outputs, targets, counts, strict=True):
                rows = rows_of(output, shown[run.flow.stages.index(output.plan)])
                counted.append(len(rows))
                if rows:
                    batch = Batch("reference", number, 1, len(rows), "")
                    deliver(sink, target, writers, batch, [pa.Table.from_pylist(rows, target.schema)])
            before, remembered = remembered, all(stage.held() for stage in run.stages)
            full += [number] if before and remembered else []
        for writer in writers.values():
            writer.close()
        found = []
        for (name, sink, target), counted in zip(targets, counts, strict=True):
            held = held_by(sink, target)
            every = None if held.every is None else in_batches(name, held.every, counted)
            found.append(Undisturbed(name, every, held.current))
    return Expected(tuple(found), tuple(full))


def rows_of(output: Output, shown: StageOutcome) -> list[dict[str, Any]]:
    """What one batch gives to an output, with the columns that its sink is told of."""
    plan = output.plan
    if isinstance(plan, Plan):
        return [
            {**dict(zip(plan.keys, pane.key, strict=True)), "window_start": to_datetime(pane.window.start),
             "window_end": to_datetime(pane.window.end), **pane.values, "pane_index": pane.index,
             "pane_timing": pane.timing, "pane_final": pane.final, "op": pane.op}
            for pane in shown.panes
        ]  # fmt: skip
    sign = plan.withdraws(output.name)
    return [{**row.row, "op": row.op} if sign else dict(row.row) for row in shown.rows if row.output == output.name]


def _played(pipeline: Pipeline, beats: Sequence[Beat]) -> Iterator[tuple[ReferenceRun, tuple[StageOutcome, ...]]]:
    """Every batch of a run that reads all there is, finds that there is no more, and ends, stage after stage."""
    run = ReferenceRun(*(output.plan for output in pipeline.outputs))
    batches = _arrivals(run, pipeline.batch_rows)
    if not beats:
        ends = range(len(batches) + 1, len(batches) + 1 + len(run.flow.stages))
        beats = [Beat(BEGUN + number * SECOND, number in ends) for number in range(ends.stop)]
    for number, beat in enumerate(beats):
        tick = Tick(beat.now, MAX_TIME if beat.ended else None)
        yield run, run.batch(batches[number] if number < len(batches) else [], tick).stages


def _arrivals(run: ReferenceRun, batch_rows: int | None) -> list[list[Arrival]]:
    """The rows of each batch; those of tables that are read whole come with the first."""
    from penstock.types.arrow import from_arrow

    batches: list[list[Arrival]] = []
    whole: list[Arrival] = []
    for one in run.flow.inputs:
        name, reader = one.source.name, one.source.reader
        if hasattr(reader, "kept_under"):
            columns = dict.fromkeys(one.source.schema.names)
            whole += [Arrival(name, "0", offset, columns | row) for offset, row in enumerate(reader.rows())]
            continue
        at, number = reader.start(), 0
        while not reader.finished(at, 0):
            before, at = at, reader.latest(at, 0, batch_rows)
            batches += [[]] if number == len(batches) else []
            for chunk in (chunk for split in reader.splits(before, at) for chunk in reader.read(split)):
                rows = zip(chunk.offsets.tolist(), from_arrow(chunk.rows, one.source.schema), strict=True)
                batches[number] += [Arrival(name, chunk.partition, offset, row) for offset, row in rows]
            number += 1
    batches[0] = whole + batches[0]
    return batches


def _targets(pipeline: Pipeline) -> list[tuple[str, Any, Any]]:
    from penstock.coordinator.sink_targets import targets_of

    return list(targets_of(pipeline))
