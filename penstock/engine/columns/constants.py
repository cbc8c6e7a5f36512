"""Columns of numbers; one that is the same everywhere is kept as a single value, and costs nothing to move."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def different(numbers: np.ndarray) -> np.ndarray:
    """Each number once, in order; numpy's own `unique` takes fifteen times as long where many are different."""
    ordered = np.sort(numbers)
    return ordered[np.append(True, ordered[1:] != ordered[:-1])[: len(ordered)]]


def constant(value: int, rows: int) -> np.ndarray:
    """A column with one value in every row."""
    return np.broadcast_to(np.int64(value), rows)


def is_constant(column: np.ndarray) -> bool:
    """Whether the column is kept as a single value."""
    return len(column) > 0 and column.strides == (0,)


def places(rows: np.ndarray) -> np.ndarray:
    """Rows by their places; a mask is slower when several columns are to be taken by it."""
    return np.flatnonzero(rows) if rows.dtype == bool else rows


def is_nothing(column: np.ndarray) -> bool:
    """Whether the column is a single zero, which no sum can change."""
    return is_constant(column) and column[0] == 0


def kept_by(ufunc: np.ufunc, column: np.ndarray) -> bool:
    """Whether every reduction of the column is its single value: a least or greatest of any, a sum of zeros."""
    return is_nothing(column) or (is_constant(column) and ufunc is not np.add)


def pick(column: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Rows of a column, by place or by mask."""
    if is_constant(column):
        return np.broadcast_to(column[0], int(rows.sum()) if rows.dtype == bool else len(rows))
    return column[rows]


def join(columns: Sequence[np.ndarray]) -> np.ndarray:
    """Columns one after the other."""
    filled = [column for column in columns if len(column)]
    if filled and all(is_constant(column) and column[0] == filled[0][0] for column in filled):
        return np.broadcast_to(filled[0][0], sum(len(column) for column in filled))
    return np.concatenate(columns)


def changed(column: np.ndarray, rows: np.ndarray, values: np.ndarray | int) -> np.ndarray:
    """A copy of a column with some rows replaced."""
    if is_constant(column) and bool(np.all(values == column[0])):
        return column
    copy = column.copy()
    copy[rows] = values
    return copy


def reduced(ufunc: np.ufunc, column: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """A least, greatest or sum of each run of rows."""
    if kept_by(ufunc, column):
        return np.broadcast_to(column[0], len(starts))
    made: np.ndarray = ufunc.reduceat(column, starts) if len(starts) else column[:0]
    return made


def compressed(column: np.ndarray) -> np.ndarray:
    """The column, as a single value if it is one; floats are left alone, for equal zeros may differ in sign."""
    if column.dtype.kind == "f":
        return column
    if len(column) > 1 and column[0] == column[-1] and bool((column == column[0]).all()):
        return np.broadcast_to(column[0], len(column))
    return column
