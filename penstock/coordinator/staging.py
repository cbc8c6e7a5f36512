"""Outputs too large to travel through the driver: put aside by the tasks as Parquet, read or adopted by the sinks."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs

from penstock.connectors.fingerprint import fingerprint
from penstock.connectors.source import Chunk
from penstock.coordinator.job import Job
from penstock.coordinator.messages import ARCHIVE

_ROWS = 100_000
_FILE = 500_000


def staged(job: Job, kind: str, tag: str, table: pa.Table) -> dict[str, Any]:
    """Put a table aside, where sinks that adopt files want it and, if one needs the rows, in our own folder."""
    receipts = {sink: stager.stage(target, tag, table) for sink, stager, target in job.stagers if target.stream == kind}
    if kind in job.adopted:
        return {"receipts": receipts}
    assert job.staging is not None
    system, folder = fs.FileSystem.from_uri(job.staging)
    system.create_dir(folder, recursive=True)
    path = f"{folder}/{re.sub('[^a-z0-9]', '-', kind)}-{tag}.parquet"
    pq.write_table(table, path, filesystem=system, row_group_size=_ROWS)
    return {"staged": path, "receipts": receipts}


def written_by_task(job: Job, kind: str, tag: str, table: pa.Table) -> dict[str, Any]:
    """Receipts of sinks whose rows always come from tasks, also where they are few."""
    receipts = {
        sink: stager.stage(target, tag, table)
        for sink, stager, target in job.stagers
        if target.stream == kind and getattr(stager, "stages_all", False)
    }
    return {"receipts": receipts} if receipts else {}


class Archive:
    """The rows of a source on their way to the files of an archive, written by the task that has read them."""

    def __init__(self, job: Job, source: str, batch: int) -> None:
        self.stagers = [] if job.raw else [one for one in job.stagers if one[2].kind == ARCHIVE]
        self.source, self.batch = source, batch
        self.held: list[pa.Table] = []
        self.heads: list[dict[str, Any]] = []

    def add(self, chunk: Chunk) -> None:
        """Take the rows of a chunk."""
        if not self.stagers or not chunk.rows.num_rows:
            return
        rows, (_, _, target) = chunk.rows.num_rows, self.stagers[0]
        said = [
            pa.repeat(self.source, rows),
            pa.repeat(chunk.partition, rows),
            pa.array(chunk.offsets, pa.int64()),
            pa.repeat(pa.scalar(self.batch, pa.int64()), rows),
        ]
        self.held.append(pa.Table.from_arrays([*chunk.rows.columns, *said], schema=target.schema))
        if sum(one.num_rows for one in self.held) >= _FILE:
            self._write()

    def receipts(self) -> list[dict[str, Any]]:
        """What the driver is told: of each file its rows, their fingerprint, and a receipt for each sink."""
        self._write()
        return self.heads

    def _write(self) -> None:
        if not self.held:
            return
        table, self.held = pa.concat_tables(self.held), []
        tag = f"{self.batch:012d}-{uuid.uuid4().hex[:12]}"
        receipts = {sink: stager.stage(target, tag, table) for sink, stager, target in self.stagers}
        self.heads.append({"rows": table.num_rows, "fingerprint": fingerprint(table), "receipts": receipts})


def staged_rows(staging: str, path: str) -> Iterator[pa.Table]:
    """The rows that were put aside, a bounded part at a time."""
    system, _ = fs.FileSystem.from_uri(staging)
    with system.open_input_file(path) as file:
        for batch in pq.ParquetFile(file).iter_batches(batch_size=_ROWS):
            yield pa.Table.from_batches([batch])


def for_spark(staging: str, path: str) -> str:
    """A file that was put aside as Spark's readers name it: with its scheme, and no sign of it taken for a pattern."""
    scheme = urlsplit(staging).scheme
    return ("file:" if scheme == "file" else f"{scheme}://") + re.sub(r"([][{}*?\\])", r"\\\1", path)


def clear_staging(staging: str) -> None:
    """Remove all that was put aside: no batch needs it any more."""
    system, folder = fs.FileSystem.from_uri(staging)
    if system.get_file_info(folder).type != fs.FileType.NotFound:
        system.delete_dir_contents(folder)
