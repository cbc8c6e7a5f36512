"""What the reference gives for the batches that a checkpoint says were read, from the first to the last."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from penstock.checkpoint.spark_logs import located, positions
from penstock.connectors.delivery import deliver
from penstock.connectors.sink import Batch, Writer
from penstock.connectors.source import Chunk
from penstock.coordinator.sink_targets import targets_of
from penstock.observability.journal import Recorded, latest_of_each
from penstock.quarantine.replay import FOLDER as REPAIRED, PARTITION, Inbox
from penstock.reference.engine import ReferenceRun
from penstock.runtime.batch import Arrival, Counts, Outcome, Tick
from penstock.spark.query import reader_of
from penstock.storage.local import LocalStore
from penstock.testing.crash.sink_rows import Held, held_by
from penstock.types.arrow import from_arrow
from penstock.types.schema import Schema
from tests.faults.reference_check import rows_of
from tests.golden.cases import Case, Made

Rows = Counter[tuple[Any, ...]]
Partitions = tuple[tuple[str, str], ...]


def batches(case: Case, folder: Path, arrivals: list[Arrival] | None = None) -> list[Outcome]:
    """Every batch of a run again, as its checkpoint has it: where it ended in each source, and what time it was.

    The watermarks until it was stopped are the reference's own, and must be those. A run to the end holds them while
    it has input left: so what comes later is played under those that it had.
    """
    checkpoint = folder / "checkpoint"
    run = ReferenceRun(*(output.plan for output in case.made(folder).outputs))
    read = list(_read(run, checkpoint)) if arrivals is None else [(arrivals, ())]
    observed = latest_of_each(Recorded.at(str(checkpoint)).news())
    assert [one.batch for one in observed] == list(range(len(observed)))
    assert len(observed) >= len(read)
    outcomes = []
    for number, one in enumerate(observed):
        if case.stop_after is not None and number <= case.stop_after:
            assert run.clock.stages == one.watermarks
        else:
            run.clock.stages = [*one.watermarks]
        rows, partitions = read[number] if number < len(read) else ([], ())
        outcomes.append(run.batch(rows, Tick(one.now, partitions=partitions)))
    return outcomes


def _read(run: ReferenceRun, checkpoint: Path) -> Iterator[tuple[list[Arrival], Partitions]]:
    """The rows of each batch, and which partitions were known in it."""
    store = LocalStore(str(checkpoint))
    inputs = {one.source.name: one for one in run.flow.inputs}
    readers = {name: reader_of(one, str(checkpoint), "") for name, one in inputs.items()}
    at = {name: reader.start() for name, reader in readers.items()}
    before: dict[str, Any] = {}
    for number in sorted(int(name) for name in store.names("offsets")):
        upto: dict[str, Any] = positions(store, number)
        batch: list[Arrival] = []
        for name, reader in readers.items():
            chunks = (chunk for split in reader.splits(at[name], upto[name]) for chunk in reader.read(split))
            batch += _of(name, chunks, inputs[name].source.schema)
        inbox = Inbox(str(checkpoint / REPAIRED))
        for split in inbox.splits(before, located(store, number), list(inputs)):
            schema = inputs[split["source"]].source.schema
            batch += _of(split["source"], inbox.read(split[PARTITION], split["source"], schema), schema)
        at, before = upto, located(store, number)
        yield batch, tuple((name, one) for name, reader in readers.items() for one in reader.partitions(upto[name]))


def _of(name: str, chunks: Iterable[Chunk], schema: Schema) -> Iterator[Arrival]:
    for chunk in chunks:
        for offset, row in zip(chunk.offsets.tolist(), from_arrow(chunk.rows, schema), strict=True):
            yield Arrival(name, chunk.partition, offset, row)
        for one in chunk.undecoded:
            yield Arrival(name, chunk.partition, one.offset, {}, one.reason)


def answers(made: Made, folder: Path, outcomes: list[Outcome]) -> dict[str, Held]:
    """What each output that gives panes or rows must hold, by its id: written to a sink of the same kind, and read."""
    found = {}
    with tempfile.TemporaryDirectory() as aside:
        pipeline = made(Path(aside))
        stages = ReferenceRun(*(output.plan for output in pipeline.outputs)).flow.stages
        writers: dict[str, Writer] = {}
        for (name, sink, target), output in zip(targets_of(pipeline), pipeline.outputs, strict=True):
            if output.kind not in ("panes", "rows") or not hasattr(sink, "path"):
                continue
            for number, outcome in enumerate(outcomes):
                if rows := rows_of(output, outcome.stages[stages.index(output.plan)]):
                    batch = Batch("reference", number, 1, len(rows), "")
                    deliver(sink, target, writers, batch, [pa.Table.from_pylist(rows, target.schema)])
            for writer in writers.values():
                writer.close()
            writers.clear()
            found[name] = held_by(sink, target)
    return found


def written(made: Made, folder: Path) -> dict[str, Held]:
    """What each output holds that can be looked into."""
    return {name: held_by(sink, target) for name, sink, target in targets_of(made(folder)) if hasattr(sink, "path")}


def counted(rows: list[Any] | None) -> Rows | None:
    """Rows in no order; sums of fractions may differ in their last digits."""
    return None if rows is None else Counter(tuple(map(_rounded, row)) for row in rows)


def _rounded(value: Any) -> Any:
    return float(f"{value:.9g}") if isinstance(value, float) else value


def ended(case: Case, folder: Path, spark: Any) -> Counts:
    """Run to the end of the input, and of every window; what was counted from the first batch on."""
    for until in case.until:
        last = case.made(folder).run(checkpoint=str(folder / "checkpoint"), batch_every="0", until=until, spark=spark)
    assert last.progress is not None
    return last.progress.totals
