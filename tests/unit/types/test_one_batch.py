"""Rows put together as one batch: all of them, or the run stops; Arrow would give several, and we take the first."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from penstock.connectors.formats.chunks import Piece, chunks
from penstock.errors import DataError
from penstock.types.arrow import gathered, one_batch
from penstock.types.schema import schema

LETTERS = pa.array(["x" * (1 << 20)] * 256)


def test_rows_are_one_batch_with_or_without_rows():
    table = pa.table({"a": pa.chunked_array([[1, 2], [3]])})
    assert one_batch(table).to_pydict() == {"a": [1, 2, 3]}
    empty = one_batch(table.slice(0, 0))
    assert (empty.num_rows, empty.schema) == (0, table.schema)


def test_more_text_than_a_batch_holds_stops_and_loses_nothing():
    table = pa.table({"text": pa.chunked_array([LETTERS] * 9)})
    assert len(table.combine_chunks().to_batches()) > 1
    with pytest.raises(DataError, match=r"2,304 rows are more than one batch can hold") as told:
        one_batch(table)
    assert "2 GB" in str(told.value)
    assert "batch_rows=" in str(told.value)


def test_more_text_than_a_batch_holds_stops_where_rows_are_asked_for_often():
    few = pa.record_batch({"text": LETTERS[:1]})
    with pytest.raises(DataError, match=r"2,304 rows are more than one batch can hold"):
        gathered(few, pa.array([0] * 2_304))
    assert gathered(few, pa.array([0, None])).column("text").null_count == 1


@pytest.mark.parametrize("most", [1, 3_000, 1 << 30])
def test_pieces_of_long_rows_are_several_chunks(most):
    wide = pa.record_batch({"text": ["y" * 1_000, "z" * 1_000]})
    pieces = [("0", Piece(np.arange(2 * at, 2 * at + 2), wide)) for at in range(5)]
    made = list(chunks(pieces, schema("text string"), most))
    assert np.concatenate([one.offsets for one in made]).tolist() == list(range(10))
    assert [len(one.offsets) for one in made] == [one.rows.num_rows for one in made]
    assert len(made) == {1: 5, 3_000: 5, 1 << 30: 1}[most]
