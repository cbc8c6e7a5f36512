"""INGEST in a task: chunks of a source to packets for the shards, whoever read them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict

import pyarrow as pa

from penstock.batch import Counts
from penstock.engine.ingest import ingest
from penstock.engine.late import late_table
from penstock.engine.outputs import quarantine_table, quarantined, shown_late
from penstock.engine.pack import Gathered, by_shard, written_blob, written_reports
from penstock.engine.rows import SourceBatch
from penstock.engine.wire import packed
from penstock.sources.source import Chunk
from penstock.spark.job import Job
from penstock.spark.packets import ARCHIVE, BAD, CELLS, COUNTS, LATE, REPORTS, Packet
from penstock.spark.staging import Archive

_ROWS_A_PACKET = 50_000


def ingested(job: Job, source: str, chunks: Iterable[Chunk], watermark: int, now: int, batch: int = 0
             ) -> Iterator[Packet]:  # fmt: skip
    """What a task sends for the chunks it has read; an archive of them is written here and now."""
    compiled = job.compiled()
    gathered = Gathered()
    archive = Archive(job, source, batch)
    bad: list[pa.Table] = []
    read = rejected = 0
    for chunk in chunks:
        archive.add(chunk)
        given = SourceBatch(source, chunk.partition, chunk.offsets, chunk.rows)
        part = ingest(compiled, given, watermark, now)
        gathered.add(compiled, part)
        if part.bad:
            bad.append(quarantined(given, part.bad))
        if chunk.undecoded:
            rows = [(one.offset, "decode", one.reason, one.raw) for one in chunk.undecoded]
            bad.append(quarantine_table(source, chunk.partition, rows))
            gathered.counts += Counts(read=len(rows), quarantined=len(rows))
        read += len(chunk.offsets) + len(chunk.undecoded)
        rejected += len(part.bad) + len(chunk.undecoded)
    blob = gathered.blob(compiled)
    if blob is None:
        return
    for shard, part_blob in by_shard(compiled, blob, len(job.shards)):
        yield Packet(job.shards.ids[shard], CELLS, written_blob(part_blob))
    # What is for the driver takes its way through a shard, for there is no other; which one does not matter.
    through = job.shards.ids[sum(blob.origin[1].encode()) % len(job.shards)]
    yield Packet(through, REPORTS, written_reports(gathered.reports))
    counts = {"counts": asdict(gathered.counts), "source": source, "read": read, "bad": rejected}
    yield Packet(through, COUNTS, json.dumps(counts).encode())
    for head in archive.receipts():
        yield Packet(through, ARCHIVE, json.dumps(head).encode())
    late = late_table(compiled, gathered.late, watermark)
    if late.num_rows:
        yield from _pieces(through, LATE, late if job.raw else shown_late(compiled, late))
    if bad:
        yield from _pieces(through, BAD, pa.concat_tables(bad))


def _pieces(shard: int, kind: str, table: pa.Table) -> Iterator[Packet]:
    for at in range(0, table.num_rows, _ROWS_A_PACKET):
        yield Packet(shard, kind, packed({}, {"rows": table.slice(at, _ROWS_A_PACKET)}))
