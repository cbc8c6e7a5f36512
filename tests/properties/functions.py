"""What users might write: row functions, some of which throw, and folds."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

Row = dict[str, Any]


def not_five(row: Row) -> bool:
    """A predicate that never throws."""
    return bool(row["v"] != 5)


def picky(row: Row) -> bool:
    """A predicate that throws on zero and on null."""
    return bool(7 // row["v"] >= -7)


def bumped(row: Row) -> Row:
    """One more, but not for four."""
    if row["v"] == 4:
        raise ValueError("four is not to be had")
    return {**row, "v": None if row["v"] is None else row["v"] + 1}


def sloppy(row: Row) -> Row:
    """A row that is not always one of the schema."""
    if row["v"] == 6:
        return {**row, "x": "many"}
    return {**row, "unheard_of": 1} if row["v"] == 7 else row


def longer(row: Row) -> Row:
    """A row with one column more; throws where there is no text."""
    return {**row, "letters": len(row["k"])}


def doubled(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Twice as much, but throws where there is a seven, and where twice as much is too much."""
    if pc.any(pc.equal(batch["v"], 7), min_count=0).as_py():
        raise ValueError("seven is not to be had")
    twice = pc.multiply_checked(batch["v"], 2)
    return batch.set_column(batch.schema.get_field_index("v"), "v", twice)


def dropping(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Without the rows that have no value."""
    return batch.filter(pc.is_valid(batch["v"]))


def repeating(batch: pa.RecordBatch) -> pa.Table:
    """Rows below three are there twice, the second time as a hundred."""
    again = batch.filter(pc.fill_null(pc.less(batch["v"], 3), False))
    hundred = pa.array([100] * again.num_rows, pa.int64())
    again = again.set_column(batch.schema.get_field_index("v"), "v", hundred)
    return pa.Table.from_batches([batch, again])


class Squares:
    """The sum of squares, saturated."""

    def zero(self) -> int:
        return 0

    def add(self, accumulator: int, value: int) -> int:
        return min(accumulator + value * value, 10**18)

    def combine(self, left: int, right: int) -> int:
        return min(left + right, 10**18)

    def result(self, accumulator: int) -> int:
        return accumulator


class InOrder:
    """The values one after the other: tells orders apart."""

    def zero(self) -> list[int]:
        return []

    def add(self, accumulator: list[int], value: int) -> list[int]:
        return [*accumulator, value]

    def combine(self, left: list[int], right: list[int]) -> list[int]:
        return left + right

    def result(self, accumulator: list[int]) -> str:
        return " ".join(map(str, accumulator))
