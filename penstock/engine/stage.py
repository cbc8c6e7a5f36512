"""A stage in columns, whatever its kind: what reaches it, what a shard does with it, and what it remembers."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Protocol

import numpy as np
import pyarrow as pa

from penstock.engine.ingest.pre_aggregate import Rows, concat_rows
from penstock.engine.ingest.row_steps import Bad, Read, SourceBatch, prepared_rows
from penstock.engine.ingest.windows import Blob, arrived_rows, counted, ingest_rows
from penstock.engine.operators.enrich import Answerer, Enriching
from penstock.engine.operators.protocol import Choosing, Emitted, Outgoing
from penstock.engine.operators.registry import operator_of
from penstock.engine.outputs import quarantine_table, raw_text, shown_panes
from penstock.engine.shuffle.cells import by_shard, combined_blob, read_blob, written_blob
from penstock.engine.shuffle.rows import (
    RowBlob,
    dealt_rows,
    late_rows_table,
    put_together,
    read_rows,
    written_rows,
)
from penstock.engine.state.snapshot import Saved, part_names, restored, saved
from penstock.engine.windows.compiled import Compiled
from penstock.engine.windows.late import late_table
from penstock.engine.windows.lifecycle import Clock
from penstock.engine.windows.step import held_cells, open_records, open_windows, start, step
from penstock.plan.graph import AnyStage
from penstock.plan.operators.deduplicate import duplicates_of
from penstock.plan.stages import PANES, Input, Plan, RowStage
from penstock.runtime.batch import Counts
from penstock.types.arrow import one_batch
from penstock.types.timestamps import MAX_TIME

Answering = Callable[[Answerer], Answerer]


@dataclass(frozen=True, slots=True)
class Arrived:
    """What a batch of rows becomes on its way to a stage: a blob, late rows, and what could not be used."""

    blob: Any
    late: Any
    bad: list[Bad]
    counts: Counts


class Unusable(NamedTuple):
    """A row that a stage could not use: where it came from, at which step and why, and the row itself."""

    source: str
    partition: str
    offset: int
    step: str
    reason: str
    entry: int
    row: pa.RecordBatch


@dataclass(frozen=True, slots=True)
class StageStepped:
    """What a batch does to a shard of a stage; late rows by entry, and `hold` as operators have it."""

    memory: Any
    panes: pa.Table | None
    outputs: Mapping[str, Outgoing]
    late: Mapping[int, pa.Table]
    bad: Sequence[Unusable]
    counts: Counts
    hold: int = MAX_TIME


class StageEngine(Protocol):
    """What every kind of stage can do; blobs are its own."""

    def arrived(self, entry: int, one: Input, given: SourceBatch, stamped: Read, watermark: int) -> Arrived:
        """Rows that have their event time, as far as they can be judged and combined without knowing the shard."""

    def late(self, entry: int, parts: Sequence[Any], watermark: int) -> pa.Table:
        """Late rows of arrivals as a table."""

    def together(self, blobs: Sequence[Any]) -> list[Any]:
        """What one task has, as few blobs as can be."""

    def dealt(self, blob: Any, shards: int) -> Iterator[tuple[int, Any]]:
        """The part of a blob that belongs to each shard."""

    def written(self, blob: Any) -> bytes:
        """A blob as bytes."""

    def read(self, data: bytes) -> Any:
        """The blob that was written."""

    def start(self) -> Any:
        """A shard that remembers nothing."""

    def step(self, memory: Any, blobs: Sequence[Any], clock: Clock) -> StageStepped:
        """Play one batch."""

    def saved(self, memory: Any, known: Container[str] = ()) -> Saved:
        """The memory as bytes."""

    def parts(self, head: bytes) -> tuple[str, ...]:
        """The names of all parts of a memory."""

    def restored(self, head: bytes, fetch: Callable[[str], bytes]) -> Any:
        """The memory that was saved."""

    def held(self, memory: Any, first: bool = True) -> int:
        """How much is held, for a look at every batch; what lies on every shard counts on the first."""

    def counted(self, memory: Any, first: bool = True) -> dict[str, int]:
        """How much is held, exactly: open records and open windows, rows, entries and timers."""

    def answered_by(self, answering: Answering) -> StageEngine:
        """The same, where it asks the outside with another one to give the answers."""


@dataclass(frozen=True)
class WindowEngine:
    """Windows."""

    plan: Plan
    compiled: Compiled = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "compiled", Compiled(self.plan))

    def arrived(self, entry: int, one: Input, given: SourceBatch, stamped: Read, watermark: int) -> Arrived:
        part = ingest_rows(self.compiled, one, given, stamped, watermark)
        return Arrived(part.blob, part.late, part.bad, part.counts)

    def late(self, entry: int, parts: Sequence[Any], watermark: int) -> pa.Table:
        return late_table(self.compiled, parts, watermark)

    def together(self, blobs: Sequence[Blob]) -> list[Blob]:
        whole = combined_blob(self.compiled, blobs)
        return [] if whole is None else [whole]

    def dealt(self, blob: Blob, shards: int) -> Iterator[tuple[int, Blob]]:
        return by_shard(self.compiled, blob, shards)

    def written(self, blob: Blob) -> bytes:
        return written_blob(blob)

    def read(self, data: bytes) -> Blob:
        return read_blob(self.compiled, data)

    def start(self) -> Any:
        return start(self.compiled)

    def step(self, memory: Any, blobs: Sequence[Blob], clock: Clock) -> StageStepped:
        stepped = step(self.compiled, memory, blobs, clock)
        outputs = {PANES: _pane_rows(stepped.panes)} if stepped.panes.num_rows else {}
        late = {0: stepped.late} if stepped.late.num_rows else {}
        return StageStepped(stepped.memory, stepped.panes, outputs, late, (), stepped.counts)

    def saved(self, memory: Any, known: Container[str] = ()) -> Saved:
        return saved(self.compiled, memory, known)

    def parts(self, head: bytes) -> tuple[str, ...]:
        return part_names(head)

    def restored(self, head: bytes, fetch: Callable[[str], bytes]) -> Any:
        return restored(self.compiled, head, fetch)

    def held(self, memory: Any, first: bool = True) -> int:
        return held_cells(memory)

    def counted(self, memory: Any, first: bool = True) -> dict[str, int]:
        return {
            "open_records": open_records(self.compiled, memory),
            "open_windows": open_windows(self.compiled, memory),
        }

    def answered_by(self, answering: Answering) -> StageEngine:
        return self


@dataclass(frozen=True)
class RowEngine:
    """Any other stage: rows travel as they are, and an operator takes them."""

    stage: RowStage
    operator: Any = field(init=False)
    signed: tuple[bool, ...] = field(init=False)
    withdraws: bool = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "operator", operator_of(self.stage))
        object.__setattr__(self, "signed", tuple(entry.signed for entry in self.stage.entries))
        object.__setattr__(self, "withdraws", self.stage.withdraws())

    def arrived(self, entry: int, one: Input, given: SourceBatch, stamped: Read, watermark: int) -> Arrived:
        read = prepared_rows(self.stage, one, stamped)
        rows = arrived_rows(given, read, self.signed[entry])
        # A row that goes to every shard is one row, and is counted here, where it is still one.
        kept = Counts(kept=len(rows)) if self.stage.entries[entry].dealt == "everywhere" else Counts()
        return Arrived(RowBlob(entry, given.origin, rows), None, read.bad, counted(read) + kept)

    def late(self, entry: int, parts: Sequence[Any], watermark: int) -> pa.Table:
        return late_rows_table(parts, watermark)

    def together(self, blobs: Sequence[RowBlob]) -> list[RowBlob]:
        filled = [blob for blob in blobs if len(blob.rows)]
        if not filled or not isinstance(self.operator, Choosing):
            return filled
        rows = concat_rows([blob.rows for blob in filled])
        places = self.operator.chosen(rows)
        if len(places) == len(rows):
            return filled
        return [RowBlob(filled[0].entry, filled[0].origin, rows.take(places), len(rows) - len(places))]

    def dealt(self, blob: RowBlob, shards: int) -> Iterator[tuple[int, RowBlob]]:
        return dealt_rows(self.stage.entries[blob.entry], blob, shards)

    def written(self, blob: RowBlob) -> bytes:
        return written_rows(blob)

    def read(self, data: bytes) -> RowBlob:
        return read_rows(data)

    def start(self) -> Any:
        return self.operator.start()

    @np.errstate(all="ignore")
    def step(self, memory: Any, blobs: Sequence[RowBlob], clock: Clock) -> StageStepped:
        sides = put_together(self.stage, blobs)
        made = self.operator.step(memory, sides, clock)
        late = {
            i: late_rows_table([one], clock.watermark)
            for i, one in enumerate(made.late)
            if one is not None and len(one)
        }
        rejected = sum(len(one) for one in made.late if one is not None)
        here = [entry.dealt != "everywhere" for entry in self.stage.entries]
        kept = sum(len(rows) for rows, mine in zip(sides, here, strict=True) if mine) - rejected - len(made.bad)
        kept += sum(blob.without for blob in blobs)
        outputs = {name: self._with_signs(one) for name, one in made.outputs.items() if len(one.times)}
        again = duplicates_of(self.stage.operator, {name: len(one.times) for name, one in outputs.items()})
        counts = Counts(late=rejected, kept=kept, quarantined=len(made.bad), deduplicated=again)
        return StageStepped(made.memory, None, outputs, late, _unusable(sides, made), counts, made.hold)

    def _with_signs(self, rows: Outgoing) -> Outgoing:
        """Where rows may be withdrawn each has its sign, also in a batch in which none is."""
        if rows.ops is not None or not self.withdraws:
            return rows
        return replace(rows, ops=np.ones(len(rows.times), dtype=np.int8))

    def saved(self, memory: Any, known: Container[str] = ()) -> Saved:
        made: Saved = self.operator.saved(memory, known)
        return made

    def parts(self, head: bytes) -> tuple[str, ...]:
        names: tuple[str, ...] = self.operator.parts(head)
        return names

    def restored(self, head: bytes, fetch: Callable[[str], bytes]) -> Any:
        return self.operator.restored(head, fetch)

    def held(self, memory: Any, first: bool = True) -> int:
        again = not first and any(entry.dealt == "everywhere" for entry in self.stage.entries)
        return int(self.operator.held(memory)) - (int(self.operator.everywhere(memory)) if again else 0)

    def counted(self, memory: Any, first: bool = True) -> dict[str, int]:
        return {"open_records": 0, "open_windows": self.held(memory, first)}

    def answered_by(self, answering: Answering) -> StageEngine:
        if not isinstance(self.operator, Enriching):
            return self
        made = copy(self)
        object.__setattr__(made, "operator", self.operator.answered_by(answering(self.operator.answerer)))
        return made


def engine_of(stage: AnyStage) -> StageEngine:
    """A stage made ready for columns."""
    return WindowEngine(stage) if isinstance(stage, Plan) else RowEngine(stage)


def _pane_rows(panes: pa.Table) -> Outgoing:
    """Panes as the rows that the next stage sees."""
    times = panes.column("@event_time").to_numpy()
    ops = panes.column("op").to_numpy().astype(np.int8)
    shown = shown_panes(panes)
    shown = shown.select([name for name in shown.column_names if name != "op"])
    return Outgoing(one_batch(shown), times, ops if (ops < 0).any() else None)


def unusable_table(bad: Sequence[Unusable]) -> pa.Table:
    """Rows that a stage could not use, as the quarantine has them."""
    return pa.concat_tables(
        quarantine_table(
            one.source, one.partition, [(one.offset, one.step, one.reason, raw_text(one.row.to_pylist()[0]))]
        )
        for one in bad
    )


def _unusable(arrivals: Sequence[Rows], emitted: Emitted) -> tuple[Unusable, ...]:
    made = []
    for one in emitted.bad:
        rows, row = arrivals[one.side], one.row
        if row >= len(rows):
            held = emitted.waited[one.side]
            assert held is not None
            rows, row = held, row - len(rows)
        source, partition = str(rows.partitions[row]).split("/", 1)
        made.append(
            Unusable(
                source, partition, int(rows.offsets[row]), one.step, one.reason, one.side, rows.batch.slice(row, 1)
            )
        )
    return tuple(made)
