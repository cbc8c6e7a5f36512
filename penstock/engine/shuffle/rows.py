"""Rows on their way to the shards of a stage: dealt by the hash of their keys, as bytes and back; and late ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from penstock.engine.columns.keys import canonical, hashes, whole
from penstock.engine.ingest.pre_aggregate import Rows, concat_rows
from penstock.engine.shuffle.cells import dealt
from penstock.engine.shuffle.codec import packed, unpacked
from penstock.engine.windows.late import behind
from penstock.plan.stages import Entry, RowStage
from penstock.types.arrow import arrow_schema, one_batch
from penstock.types.schema import Schema

Origin = tuple[str, str, int]


@dataclass(frozen=True, slots=True)
class RowBlob:
    """Rows of one partition for one entry of a stage; `without` so many that were left out, for they change nothing."""

    entry: int
    origin: Origin
    rows: Rows
    without: int = 0


def dealt_rows(entry: Entry, blob: RowBlob, shards: int) -> Iterator[tuple[int, RowBlob]]:
    """The part of a blob that belongs to each shard; rows without a key are dealt by their partition."""
    rows = blob.rows
    if entry.dealt == "everywhere":
        yield from ((shard, blob) for shard in range(shards))
        return
    if entry.dealt == "evenly":
        hashed = hashes((rows.partitions, pa.array(rows.offsets)), len(rows))
    elif entry.keys:
        hashed = hashes(tuple(canonical(rows.batch.column(name)) for name in entry.keys), len(rows))
    else:
        hashed = hashes((rows.partitions,), len(rows))
    without = blob.without  # counted once, wherever
    for shard, places in dealt(hashed, shards).items():
        yield shard, RowBlob(blob.entry, blob.origin, blob.rows.take(places), without)
        without = 0


def written_rows(blob: RowBlob) -> bytes:
    """A blob as bytes."""
    rows = blob.rows
    columns = {"times": pa.array(rows.times), "offset": pa.array(rows.offsets)}
    head = {"entry": blob.entry, "origin": list(blob.origin), "without": blob.without}
    if isinstance(rows.place, str):
        head["place"] = rows.place
    else:
        columns["place"] = rows.place
    if rows.ops is not None:
        columns["op"] = pa.array(rows.ops)
    places = pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))
    return packed(head, {"rows": rows.batch, "places": places})


def read_rows(data: bytes) -> RowBlob:
    """The blob that was written."""
    head, tables = unpacked(data)
    places = tables["places"]
    source, partition, offset = head["origin"]
    rows = Rows(
        one_batch(tables["rows"]),
        whole(places.column("times")).to_numpy(),
        head["place"] if "place" in head else whole(places.column("place")),
        whole(places.column("offset")).to_numpy(),
        ops=whole(places.column("op")).to_numpy() if "op" in places.column_names else None,
    )
    return RowBlob(head["entry"], (source, partition, offset), rows, head["without"])


def put_together(stage: RowStage, blobs: Sequence[RowBlob]) -> tuple[Rows, ...]:
    """For each entry its rows, in order of partition and offset."""
    sides = []
    for number, entry in enumerate(stage.entries):
        mine = [blob for blob in blobs if blob.entry == number]
        mine.sort(key=lambda blob: (f"{blob.origin[0]}/{blob.origin[1]}", blob.origin[2]))
        sides.append(concat_rows([blob.rows for blob in mine]) if mine else _nothing(entry.schema))
    return tuple(sides)


def late_rows_table(parts: Sequence[Rows], watermark: int) -> pa.Table:
    """Late rows as a table, with W, how late each is and where it came from; there are no windows to miss."""
    tables = []
    for rows in parts:
        signs = [] if rows.ops is None else [pa.array(rows.ops)]
        schema = pa.schema(
            [
                *rows.batch.schema,
                ("@event_time", pa.int64()),
                ("@watermark", pa.int64()),
                ("@late_by", pa.int64()),
                ("@partition", pa.string()),
                ("@offset", pa.int64()),
                *([("@op", pa.int8())] if signs else []),
            ]
        )
        columns = [
            *rows.batch.columns,
            pa.array(rows.times),
            pa.array(np.full(len(rows), watermark)),
            pa.array(behind(watermark, rows.times)),
            rows.partitions,
            pa.array(rows.offsets),
            *signs,
        ]
        tables.append(pa.Table.from_arrays(columns, schema=schema))
    return pa.concat_tables(tables)


def _nothing(schema: Schema) -> Rows:
    batch = pa.RecordBatch.from_arrays(
        [pa.array([], field.type) for field in arrow_schema(schema)], schema=arrow_schema(schema)
    )
    none = np.empty(0, dtype=np.int64)
    return Rows(batch, none, pa.array([], pa.string()), none)
