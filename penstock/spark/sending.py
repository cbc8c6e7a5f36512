"""Rows that have their event time, to the stages that read them: what one task has for all of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from penstock.coordinator.job import Job
from penstock.coordinator.messages import CELLS, Packet, at, late_of
from penstock.engine.ingest.row_steps import Read, SourceBatch
from penstock.engine.outputs import quarantined, shown_late
from penstock.engine.shuffle.codec import packed
from penstock.plan.graph import Feed
from penstock.runtime.batch import Counts


@dataclass
class Sending:
    """Blobs for the stages, rows that came too late for one, and rows that could not be used."""

    job: Job
    watermarks: Sequence[int]
    blobs: dict[int, list[Any]] = field(default_factory=dict)
    late: dict[tuple[int, int], list[Any]] = field(default_factory=dict)
    bad: list[pa.Table] = field(default_factory=list)
    counts: Counts = field(default_factory=Counts)

    def add(self, given: SourceBatch, stamped: Read, feeds: Sequence[Feed]) -> None:
        """Rows on their way to stages."""
        for feed in feeds:
            engine = self.job.engine(feed.stage)
            part = engine.arrived(feed.entry, feed.input, given, stamped, self.watermarks[feed.stage])
            self.blobs.setdefault(feed.stage, []).append(part.blob)
            self.counts += part.counts
            if part.late is not None:
                self.late.setdefault((feed.stage, feed.entry), []).append(part.late)
            if part.bad:
                self.bad.append(quarantined(given, part.bad))

    def to_shards(self) -> Iterator[Packet]:
        """The blobs, each to the shards it is for."""
        for stage, blobs in sorted(self.blobs.items()):
            engine = self.job.engine(stage)
            for blob in engine.together(blobs):
                last, data = None, b""
                for shard, part in engine.dealt(blob, len(self.job.shards)):
                    if part is not last:  # what goes to every shard is written once
                        last, data = part, engine.written(part)
                    yield Packet(self.job.shards.ids[shard], at(stage, CELLS), data)

    def too_late(self, through: int) -> Iterator[Packet]:
        """Rows that came too late for a stage."""
        for (stage, entry), parts in sorted(self.late.items()):
            engine = self.job.engine(stage)
            table = engine.late(entry, parts, self.watermarks[stage])
            if table.num_rows:
                shown = table if self.job.raw else shown_late(self.job.flow.stages[stage], entry, table)
                yield table_packet(through, at(stage, late_of(entry)), shown)


def table_packet(shard: int, kind: str, table: pa.Table) -> Packet:
    """A table on its way."""
    return Packet(shard, kind, packed({}, {"rows": table}))
