"""The late and quarantined rows that no sink is given: kept as Parquet under the checkpoint."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.storage.local import Store


def folder_of(stream: str) -> str:
    """The folder under a checkpoint in which rows are kept that nobody writes."""
    return re.sub("[^a-z0-9]", "-", stream)


def kept_rows(store: Store, kind: str) -> Iterator[pa.Table]:
    """The late or quarantined rows that were kept under a checkpoint."""
    for name in store.names(f"penstock/{kind}"):
        data = store.read(f"penstock/{kind}/{name}")
        if data is not None:
            yield pq.read_table(pa.BufferReader(data))
