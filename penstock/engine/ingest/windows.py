"""INGEST, stateless: a batch of one partition's rows to cells for the shards, late rows, suspects and a time report."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from penstock.engine.ingest.pre_aggregate import Rows, combine_rows
from penstock.engine.ingest.row_steps import Bad, Read, SourceBatch, prepared_rows, stamped_rows
from penstock.engine.windows.assignment import Assigned, assign, covering, end_of, last_end, windows_of
from penstock.engine.windows.compiled import Compiled
from penstock.engine.windows.late import LateRows
from penstock.engine.windows.partials import Cells, empty_cells
from penstock.engine.windows.sessions import bursts
from penstock.model.windows import Custom, Session, Sliding
from penstock.plan.stages import Input
from penstock.runtime.batch import Counts
from penstock.types.timestamps import MIN_TIME


@dataclass(frozen=True, slots=True)
class Report:
    """What a batch says of time: its events' stamps in order of their offsets, and the watermark the source gave."""

    source: str
    partition: str
    times: np.ndarray
    given: int


@dataclass(frozen=True, slots=True)
class Blob:
    """What one batch of one partition sends to a shard: cells, and rows that only the shard can judge."""

    origin: tuple[str, str, int]
    cells: Cells
    suspects: Rows | None


@dataclass(frozen=True, slots=True)
class Ingested:
    """All that comes of a batch of one partition."""

    blob: Blob
    late: LateRows | None
    report: Report
    bad: list[Bad]
    counts: Counts


def ingest(compiled: Compiled, given: SourceBatch, watermark: int, now: int) -> Ingested:
    """Row steps, event time, windows, and one row for each key and window."""
    one = next(one for one in compiled.plan.inputs if one.source.name == given.source)
    stamped = stamped_rows(one, given, now)
    part = ingest_rows(compiled, one, given, stamped, watermark)
    counts = Counts(read=len(given.offsets)) + counted(stamped) + part.counts
    return replace(part, bad=[*stamped.bad, *part.bad], counts=counts)


@np.errstate(all="ignore")
def ingest_rows(compiled: Compiled, one: Input, given: SourceBatch, stamped: Read, watermark: int) -> Ingested:
    """Rows that have their event time: the other row steps, windows, and one row for each key and window."""
    read = prepared_rows(compiled.plan, one, stamped)
    rows = arrived_rows(given, read, compiled.signed)
    placed = _placed(compiled, rows, watermark)
    late, judged_later = (0 if some is None else len(some) for some in (placed.late, placed.suspects))
    counts = counted(read) + Counts(late=late, kept=len(rows) - late - judged_later, missed=placed.missed)
    blob = Blob(given.origin, placed.cells, placed.suspects)
    return Ingested(blob, placed.late, report_of(given, stamped), read.bad, counts)


def arrived_rows(given: SourceBatch, read: Read, signed: bool) -> Rows:
    """Rows as a stage sees them; where some may be withdrawn, each has its sign."""
    rows = Rows(read.batch, read.times, f"{given.source}/{given.partition}", given.offsets, read.at, read.ops)
    return replace(rows, ops=rows.signs) if signed else rows


def report_of(given: SourceBatch, stamped: Read) -> Report:
    """What a batch of a source says of time; rows of another stage say nothing."""
    if stamped.stamps is None:
        return Report(given.source, given.partition, np.empty(0, np.int64), MIN_TIME)
    return Report(given.source, given.partition, stamped.stamps.good, stamped.stamps.given)


def counted(read: Read) -> Counts:
    """What became of the rows that did not go on."""
    return Counts(added=read.added, dropped=read.dropped, filtered=read.filtered, quarantined=len(read.bad))


class _Placed(NamedTuple):
    """Cells of what is alive, rows for the shard to judge, rows that are late, and placements that were missed."""

    cells: Cells
    suspects: Rows | None = None
    late: LateRows | None = None
    missed: int = 0


def _placed(compiled: Compiled, rows: Rows, watermark: int) -> _Placed:
    """Put rows into windows, as far as that can be done without knowing what the shard holds."""
    nothing = empty_cells(compiled.key_types, compiled.accumulators)
    if len(rows) == 0:
        return _Placed(nothing)
    assigned = assign(compiled, rows.times)
    if compiled.suspects:
        return _with_suspects(compiled, rows, assigned, watermark)
    if not assigned.alone:
        return _several(compiled, rows, assigned, watermark)
    late = None
    if watermark > MIN_TIME and _some_expired(compiled, rows.times, assigned, watermark):
        dead = compiled.expires_at(last_end(compiled, rows.times, assigned)) <= watermark
        if dead.any():
            late = _late(compiled, rows.take(dead), assigned.take(dead))
            rows, assigned = rows.take(~dead), assigned.take(~dead)
    cells = combine_rows(compiled, rows, assigned.start, assigned.end) if len(rows) else nothing
    return _Placed(cells, late=late, missed=_missed(compiled, cells, watermark))


def _some_expired(compiled: Compiled, times: np.ndarray, assigned: Assigned, watermark: int) -> bool:
    """Whether the windows of the oldest event have expired: a look at one row instead of all."""
    if assigned.end is None:
        oldest = times.min(keepdims=True)
        ends = last_end(compiled, oldest, Assigned(assigned.rows, oldest))
    else:
        ends = assigned.end.min(keepdims=True)
    return bool(compiled.expires_at(ends)[0] <= watermark)


def _missed(compiled: Compiled, cells: Cells, watermark: int) -> int:
    """How many placements in expired windows the records of live slices missed."""
    rule = compiled.plan.window
    if not isinstance(rule, Sliding) or not compiled.overlapping or watermark == MIN_TIME:
        return 0
    missed = covering(rule, cells.start, cells.end, upto=watermark - compiled.plan.lateness - rule.size)[1]
    return int((cells.records * missed).sum())


def _late(compiled: Compiled, rows: Rows, assigned: Assigned) -> LateRows:
    start = assigned.start
    end = end_of(compiled, start) if assigned.end is None else assigned.end
    rule = compiled.plan.window
    if isinstance(rule, Sliding) and compiled.overlapping:
        of, starts = windows_of(rule, start, end)
        return LateRows(rows, of, starts, starts + rule.size)
    return LateRows(rows, np.arange(len(rows)), start, end)


def _several(compiled: Compiled, rows: Rows, assigned: Assigned, watermark: int) -> _Placed:
    """Custom windows: a row may lie in several, each alive or not."""
    assert assigned.end is not None
    dead = compiled.expires_at(assigned.end) <= watermark
    alive = np.zeros(len(rows), dtype=bool)
    alive[assigned.rows[~dead]] = True
    late = None
    if not alive.all():
        lost = ~alive[assigned.rows]
        number = np.cumsum(~alive) - 1
        late = LateRows(rows.take(~alive), number[assigned.rows[lost]], assigned.start[lost], assigned.end[lost])
    missed = int((dead & alive[assigned.rows]).sum())
    cells, live = empty_cells(compiled.key_types, compiled.accumulators), ~dead
    if live.any():
        cells = combine_rows(compiled, rows.take(assigned.rows[live]), assigned.start[live], assigned.end[live])
    return _Placed(cells, late=late, missed=missed)


def _with_suspects(compiled: Compiled, rows: Rows, assigned: Assigned, watermark: int) -> _Placed:
    """Windows that merge or are made by the data: an event behind W travels as a row, for the shard to judge."""
    nothing = empty_cells(compiled.key_types, compiled.accumulators)
    if isinstance(compiled.plan.window, Custom):
        return _Placed(nothing, suspects=rows)
    suspects = None
    if _some_expired(compiled, rows.times, assigned, watermark):
        dead = compiled.expires_at(last_end(compiled, rows.times, assigned)) <= watermark
        suspects, rows, assigned = rows.take(dead), rows.take(~dead), assigned.take(~dead)
    if len(rows) == 0:
        return _Placed(nothing, suspects=suspects)
    if isinstance(compiled.plan.window, Session):
        return _Placed(bursts(compiled, rows, compiled.plan.window.gap), suspects=suspects)
    return _Placed(combine_rows(compiled, rows, assigned.start, assigned.end), suspects=suspects)
