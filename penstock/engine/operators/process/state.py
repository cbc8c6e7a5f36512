"""The state of keys as columns and back: one row for each key, read into cells for a batch's calls and written again.

`end` is the next event time at which a key has something due, a timer or an entry that runs out; `newest` is the
processing time at which an alarm is set for it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import timedelta
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.engine.columns.constants import constant
from penstock.engine.columns.keys import Keys
from penstock.engine.windows.partials import Cells, Held
from penstock.plan.operators.process import KINDS, Field, KeyedFunction, TimeKind
from penstock.runtime.process_context import Context
from penstock.runtime.process_state import view
from penstock.types.arrow import arrow_type
from penstock.types.schema import Schema
from penstock.types.timestamps import EPOCH, MAX_TIME

Timers = dict[TimeKind, dict[int, list[tuple[int, str]]]]
CHUNK = 8_192  # so many rows at a time are made dicts of
_TIMER_TYPES = (pa.list_(pa.int64()), pa.list_(pa.string()))


class StateColumns:
    """How a function's fields and timers lie in columns."""

    def __init__(self, fields: dict[str, Field], key_schema: Schema, context: Context) -> None:
        self.fields, self.context = fields, context
        self.key_types = [arrow_type(column.type) for column in key_schema.columns]
        self.types = [_types(field) for field in fields.values()]

    def none(self) -> Cells:
        """The state of no keys."""
        nothing = np.empty(0, dtype=np.int64)
        held: Held = tuple(tuple(pa.array([], kind) for kind in kinds) for kinds in (*self.types, *(_TIMER_TYPES,) * 2))
        keys = tuple(pa.array([], kind) for kind in self.key_types)
        return Cells(keys, nothing.astype(np.uint64), nothing, nothing, nothing, nothing, nothing, held)

    def read(self, rows: Cells, cells: Sequence[KeyedFunction], timers: Timers, upto: int) -> None:
        """Put the state of rows into as many cells, and the timers by the cells' places.

        Cells of which something may run out up to an event time are told when the first of it does.
        """
        for (name, field), columns in zip(self.fields.items(), rows.held, strict=False):
            if columns[0].null_count < len(columns[0]):
                self._read_field(name, field, columns, cells)
        for kind, (times, names) in zip(KINDS, rows.held[len(self.fields) :], strict=True):
            if times.null_count < len(times):
                pairs = enumerate(zip(_lists(times), _lists(names), strict=True))
                timers[kind] = {i: list(zip(at, by, strict=True)) for i, (at, by) in pairs if at and by}
        if any(field.ttl is not None for field in self.fields.values()):
            soon = np.flatnonzero(rows.end <= upto)
            for place, end in zip(soon.tolist(), rows.end[soon].tolist(), strict=True):
                cells[place].__dict__["@"] = end

    def _read_field(self, name: str, field: Field, columns: Sequence[Any], cells: Sequence[KeyedFunction]) -> None:
        if field.shape == "value":
            mark, values = f"@{name}", plain_list(columns[0])
            for cell, value, until in zip(cells, values, plain_list(columns[-1]), strict=True):
                if value is not None:
                    cell.__dict__[name] = value
                    if field.ttl is not None:
                        cell.__dict__[mark] = until
            return
        lists = [_lists(column) for column in columns]
        forever = [MAX_TIME]
        for cell, (first, *more) in zip(cells, zip(*lists, strict=True), strict=True):
            if first is None:
                continue
            made = view(cell, name, field, self.context)
            until = more[-1] if field.ttl is not None else forever * len(first)
            if field.shape == "items":
                made.values_, made.until = first, until
            else:
                keys = [math.nan if key != key else key for key in first]
                made.values_ = dict(zip(keys, more[0], strict=True))
                made.until = dict(zip(keys, until, strict=True))

    def written(
        self, keys: Keys, hashed: np.ndarray, cells: Sequence[KeyedFunction], timers: Timers
    ) -> tuple[Cells, np.ndarray]:
        """The state of cells as rows, and the next processing time at which each has something due."""
        states = [cell.__dict__ for cell in cells]
        next_at = {kind: np.full(len(cells), MAX_TIME) for kind in KINDS}
        count = np.zeros(len(cells), dtype=np.int64)
        held = []
        for (name, field), kinds in zip(self.fields.items(), self.types, strict=True):
            columns, sizes, until = _written_field(name, field, kinds, states)
            held.append(columns)
            count += sizes
            if until is not None:
                next_at[field.ttl_by] = np.minimum(next_at[field.ttl_by], until)
        for kind in KINDS:
            times, names = _written_timers(timers[kind], len(cells))
            held.append((times, names))
            for place, waiting in timers[kind].items():
                count[place] += len(waiting)
                if waiting:
                    next_at[kind][place] = min(next_at[kind][place], waiting[0][0])
        zero = constant(0, len(cells))
        return Cells(keys, hashed, zero, next_at["event"], count, zero, zero, tuple(held)), next_at["processing"]


def _types(field: Field) -> tuple[pa.DataType, ...]:
    kinds = [arrow_type(kind) for kind in (field.key_type, field.type) if kind is not None]
    kinds += [pa.int64()] if field.ttl is not None else []
    return tuple(kinds if field.shape == "value" else map(pa.list_, kinds))


def _written_field(
    name: str, field: Field, kinds: Sequence[pa.DataType], states: Sequence[dict[str, Any]]
) -> tuple[tuple[pa.Array, ...], np.ndarray, np.ndarray | None]:
    """A field's columns, how many entries each key has, and when the first of them runs out."""
    if field.shape == "value":
        places = (name, f"@{name}")[: len(kinds)]
        columns = tuple(
            pa.array([state.get(place) for state in states], kind) for place, kind in zip(places, kinds, strict=True)
        )
        sizes = columns[0].is_valid().to_numpy(zero_copy_only=False).astype(np.int64)
        until = columns[1].fill_null(MAX_TIME).to_numpy() if field.ttl is not None else None
        return columns, sizes, until
    views = [state.get(name) or None for state in states]
    parts: list[list[Any]] = []
    if field.shape == "mapping":
        parts.append([None if view is None else list(view.values_) for view in views])
        parts.append([None if view is None else list(view.values_.values()) for view in views])
    else:
        parts.append([None if view is None else view.values_ for view in views])
    lasting = [
        None if view is None else list(view.until.values() if field.shape == "mapping" else view.until)
        for view in views
    ]
    if field.ttl is not None:
        parts.append(lasting)
    columns = tuple(pa.array(part, kind) for part, kind in zip(parts, kinds, strict=True))
    sizes = np.array([0 if view is None else len(view) for view in views], dtype=np.int64)
    soonest = np.array([MAX_TIME if held is None else min(held) for held in lasting], dtype=np.int64)
    return columns, sizes, soonest if field.ttl is not None else None


def _written_timers(timers: dict[int, list[tuple[int, str]]], n: int) -> tuple[pa.Array, pa.Array]:
    if not any(timers.values()):
        return pa.nulls(n, _TIMER_TYPES[0]), pa.nulls(n, _TIMER_TYPES[1])
    of = [timers.get(i) or None for i in range(n)]
    times = pa.array([None if held is None else [at for at, _ in held] for held in of], _TIMER_TYPES[0])
    return times, pa.array([None if held is None else [name for _, name in held] for held in of], _TIMER_TYPES[1])


def plain_list(column: pa.Array) -> list[Any]:
    """A column as the values that users' functions see: times are aware datetimes in UTC."""
    if not pa.types.is_timestamp(column.type):
        values: list[Any] = column.to_pylist()
        return values
    if column.null_count == 0:
        since = column.view(pa.int64()).to_numpy().view("m8[us]").astype(object).tolist()
        return [EPOCH + length for length in since]
    return [None if v is None else EPOCH + timedelta(microseconds=v) for v in column.view(pa.int64()).to_pylist()]


def _lists(column: pa.Array) -> list[list[Any] | None]:
    """A column of lists as such."""
    values, bounds = plain_list(column.values), column.offsets.to_numpy().tolist()
    valid = column.is_valid().to_numpy(zero_copy_only=False).tolist()
    return [values[a:b] if there else None for a, b, there in zip(bounds, bounds[1:], valid, strict=False)]


def user_rows(batch: pa.RecordBatch) -> Iterator[dict[str, Any]]:
    """Rows as the dicts that users' functions get, made a few thousand at a time."""
    rows_of = _row_maker(tuple(batch.schema.names))
    for at in range(0, batch.num_rows, CHUNK):
        part = batch.slice(at, CHUNK)
        yield from rows_of(zip(*(plain_list(column) for column in part.columns), strict=True))


@lru_cache(maxsize=64)
def _row_maker(names: tuple[str, ...]) -> Callable[[Iterable[tuple[Any, ...]]], list[dict[str, Any]]]:
    """Makes dicts of rows by a dict written out, which takes a third of the time of dict(zip(names, row))."""
    values = [f"v{i}" for i in range(len(names))]
    shown = ", ".join(f"{name!r}: {value}" for name, value in zip(names, values, strict=True))
    made: Callable[..., Any] = eval(f"lambda rows: [{{{shown}}} for {', '.join(values)}, in rows]", {})
    return made


def user_keys(keys: Keys) -> list[Any]:
    """Keys as users' functions see them: of one column the value, of several a tuple."""
    columns = [plain_list(column) for column in keys]
    return columns[0] if len(columns) == 1 else list(zip(*columns, strict=True))
