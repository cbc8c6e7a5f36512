"""Outputs too large to travel through the driver: put aside by the tasks as Parquet, read or adopted by the sinks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs

from penstock.spark.job import Job

_ROWS = 100_000


def staged(job: Job, kind: str, tag: str, table: pa.Table) -> dict[str, Any]:
    """Put a table aside, where sinks that adopt files want it and, if one needs the rows, in our own folder."""
    receipts = {sink: stager.stage(target, tag, table) for sink, stager, target in job.stagers if target.kind == kind}
    if kind in job.adopted:
        return {"receipts": receipts}
    assert job.staging is not None
    system, folder = fs.FileSystem.from_uri(job.staging)
    system.create_dir(folder, recursive=True)
    path = f"{folder}/{kind}-{tag}.parquet"
    pq.write_table(table, path, filesystem=system, row_group_size=_ROWS)
    return {"staged": path, "receipts": receipts}


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
