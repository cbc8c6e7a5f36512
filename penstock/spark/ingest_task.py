"""INGEST in a task: chunks of a source to packets for the stages that read it, whoever read them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import pyarrow as pa

from penstock.connectors.source import Chunk
from penstock.coordinator.job import Job
from penstock.coordinator.messages import ARCHIVE, BAD, CELLS, COUNTS, REPORTS, SEEN, Packet, at, late_of
from penstock.coordinator.staging import Archive
from penstock.engine.ingest.row_steps import Read, SourceBatch, stamped_rows
from penstock.engine.ingest.windows import Report, counted, report_of
from penstock.engine.outputs import quarantine_table, quarantined, shown_late
from penstock.engine.shuffle.cells import short_report, written_reports
from penstock.engine.shuffle.codec import packed
from penstock.observability.lateness_histogram import Behind
from penstock.observability.sampling import Sample
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


def ingested(
    job: Job,
    source: str,
    chunks: Iterable[Chunk],
    watermarks: Sequence[int],
    now: int,
    batch: int = 0,
    newest: Mapping[str, int] | None = None,
) -> Iterator[Packet]:
    """What a task sends for the chunks it has read; an archive of them is written here and now.

    `newest` are the newest event times of partitions before this batch, for what is observed.
    """
    one = next(one for one in job.flow.inputs if one.source.name == source)
    feeds = job.flow.fed_by(source)
    sending = Sending(job, watermarks)
    archive = Archive(job, source, batch)
    sample = _sample(job, source, newest or {}) if job.observed else None
    reports: list[tuple[int, Report]] = []
    for chunk in chunks:
        archive.add(chunk)
        given = SourceBatch(source, chunk.partition, chunk.offsets, chunk.rows)
        stamped = stamped_rows(one, given, now)
        reports.append((given.origin[2], short_report(one, report_of(given, stamped))))
        again = (len(feeds) - 1) * len(stamped.times)
        sending.counts += Counts(read=len(chunk.offsets), given=again) + counted(stamped)
        if stamped.bad:
            sending.bad.append(quarantined(given, stamped.bad))
        if chunk.undecoded:
            rows = [(bad.offset, "decode", bad.reason, bad.raw) for bad in chunk.undecoded]
            sending.bad.append(quarantine_table(source, chunk.partition, rows))
            sending.counts += Counts(read=len(rows), quarantined=len(rows))
        if sample is not None:
            sample.add(chunk, stamped, now)
        sending.add(given, stamped, feeds)
    if not reports:
        return
    yield from sending.to_shards()
    # What is for the driver takes its way through a shard, for there is no other; which one does not matter.
    through = job.shards.ids[sum(reports[0][1].partition.encode()) % len(job.shards)]
    yield Packet(through, REPORTS, written_reports(reports))
    rejected = sum(table.num_rows for table in sending.bad)
    counts = {"counts": asdict(sending.counts), "source": source, "read": sending.counts.read, "bad": rejected}
    yield Packet(through, COUNTS, json.dumps(counts).encode())
    if sample is not None:
        yield Packet(through, SEEN, json.dumps(sample.plain()).encode())
    for head in archive.receipts():
        yield Packet(through, ARCHIVE, json.dumps(head).encode())
    yield from sending.too_late(through)
    if sending.bad:
        yield table_packet(through, BAD, pa.concat_tables(sending.bad))


def _sample(job: Job, source: str, newest: Mapping[str, int]) -> Sample:
    """A sample of a source's events, told apart by the keys of the first stage that reads them."""
    feed = job.flow.fed_by(source)[0]
    time = feed.input.time
    before = {name.removeprefix(f"{source}/"): at for name, at in newest.items() if name.startswith(f"{source}/")}
    return Sample(
        source,
        job.flow.stages[feed.stage].entries[feed.entry].keys,
        None if time is None else time.column,
        behind=Behind(before),
    )
