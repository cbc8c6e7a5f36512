"""Packets of any size: in pieces that Spark can hold, whole again in whatever order they come."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest

from penstock.coordinator.messages import PIECE, LostPiece, Packet, in_pieces, packet_batches, put_together, stage_of
from penstock.engine.ingest.pre_aggregate import Rows
from penstock.engine.shuffle.codec import packed, unpacked
from penstock.engine.shuffle.rows import RowBlob, read_rows, written_rows

SMALL = Packet(1, "3/cells", b"small")
LARGE = Packet(2, "3/cells", random.Random(7).randbytes(3 * PIECE + 5))
EXACT = Packet(2, "cells", bytes(PIECE))


def test_a_small_packet_travels_as_it_is():
    assert list(in_pieces(SMALL)) == [SMALL]
    assert list(in_pieces(EXACT)) == [EXACT]


def test_a_large_one_travels_in_pieces_for_the_same_stage_and_shard():
    pieces = list(in_pieces(LARGE))
    assert [len(one.payload) for one in pieces] == [PIECE, PIECE, PIECE, 5]
    assert {(one.shard, stage_of(one.kind)) for one in pieces} == {(2, 3)}


def test_they_are_whole_again_in_whatever_order_they_come():
    same = LARGE._replace(payload=LARGE.payload[::-1])
    pieces = [piece for packet in (SMALL, LARGE, same, EXACT) for piece in in_pieces(packet)]
    random.Random(3).shuffle(pieces)
    assert sorted(put_together(pieces)) == sorted([SMALL, LARGE, same, EXACT])


def test_a_piece_that_is_missing_stops_the_batch():
    with pytest.raises(LostPiece, match="without some of their pieces"):
        put_together(list(in_pieces(LARGE))[1:])


@pytest.mark.parametrize("kind", ["cells", "2/late:1", "quarantine", "reports"])
def test_whatever_leaves_a_task_leaves_it_in_pieces(kind):
    """Cells, late rows and quarantine alike: no row that Spark is given is larger than a piece."""
    sent = [row for batch in packet_batches([LARGE._replace(kind=kind), SMALL]) for row in batch.to_pylist()]
    assert max(len(row["payload"]) for row in sent) == PIECE
    assert put_together(Packet(**row) for row in sent) == [LARGE._replace(kind=kind), SMALL]


def test_a_large_table_travels_compressed_and_comes_as_it_was():
    table = pa.table({"text": ["what is said again and again"] * 20_000, "number": range(20_000)})
    data = packed({"a": 1}, {"rows": table})
    assert len(data) < table.nbytes / 4
    assert packed({"a": 1}, {"rows": table}) == data
    head, tables = unpacked(data)
    assert (head, tables["rows"]) == ({"a": 1}, table)


@pytest.mark.parametrize("place", ["events/0", pa.array(["events/0", "events/1", "events/0"])], ids=["one", "each"])
def test_rows_arrive_with_the_places_they_came_from(place):
    batch = pa.RecordBatch.from_pydict({"key": [1, 2, 3]})
    sent = Rows(batch, np.array([5, 6, 7]), place, np.array([8, 9, 10]))
    came = read_rows(written_rows(RowBlob(1, ("events", "0", 8), sent, 4)))
    assert (came.entry, came.origin, came.without) == (1, ("events", "0", 8), 4)
    assert came.rows.partitions.equals(sent.partitions)
    assert (came.rows.times.tolist(), came.rows.offsets.tolist()) == ([5, 6, 7], [8, 9, 10])
    assert came.rows.batch.equals(batch)
