"""Rows of a static DataFrame as a log: held in memory, so that they can be read again, as a stream or all at once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.connectors.source import Chunk, Offsets, Split
from penstock.types.arrow import arrow_schema, one_batch
from penstock.types.schema import Schema

PARTITION = "0"


@dataclass(frozen=True)
class Held:
    """A table; an offset is the number of a row."""

    table: pa.Table
    kind: str = "held"

    def start(self) -> Offsets:
        """The first row."""
        return {"row": 0}

    def latest(self, since: Offsets, now: int, limit: int | None) -> Offsets:
        """So many rows further."""
        rows: int = self.table.num_rows
        return {"row": rows if limit is None else min(rows, since["row"] + limit)}

    def splits(self, since: Offsets, upto: Offsets) -> list[Split]:
        """One piece."""
        return [{"from": since["row"], "to": upto["row"]}] if since["row"] < upto["row"] else []

    def read(self, split: Split) -> Iterator[Chunk]:
        """The rows of the piece."""
        part = self.table.slice(split["from"], split["to"] - split["from"])
        offsets = np.arange(split["from"], split["to"], dtype=np.int64)
        yield Chunk(PARTITION, offsets, one_batch(part))

    def partitions(self, at: Offsets) -> list[str]:
        """There is one."""
        return [PARTITION]

    def behind(self, at: Offsets, now: int) -> list[str]:
        """The one, while there are rows left."""
        return [] if self.finished(at, now) else [PARTITION]

    def finished(self, at: Offsets, now: int) -> bool:
        """Whether the last row is read."""
        return bool(at["row"] >= self.table.num_rows)


def held(frame: Any, schema: Schema, rows: int) -> Held:
    """The first rows of a static DataFrame."""
    return Held(frame.limit(rows).toArrow().cast(arrow_schema(schema)))
