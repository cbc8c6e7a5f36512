"""Event time in columns: the stamp of each row, the watermark it carries, and the rows that cannot be stamped."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.engine.expressions import evaluate
from penstock.engine.ingest.isolate_errors import failing_rows
from penstock.model.watermarks import FromColumn, Punctuated, TimeBase
from penstock.types.schema import Schema
from penstock.types.timestamps import EARLIEST, LATEST, MIN_TIME, event_time_of, plus

_UNITS = {"s": 1_000_000, "ms": 1_000, "us": 1}
_DAY = 86_400_000_000
_PLAIN_TIME = r"^\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(\.\d{6})?$"


@dataclass(frozen=True, slots=True)
class Stamps:
    """The event time of each row, what is wrong with those that have none, and what the good ones report."""

    times: np.ndarray
    bad: list[tuple[int, str]]
    good: np.ndarray
    given: int


def stamp(batch: pa.RecordBatch, held: Schema, base: TimeBase, now: int) -> Stamps:
    """Stamp a batch's rows by their time base."""
    if base.column is None:
        times = np.full(batch.num_rows, now, dtype=np.int64)
        return Stamps(times, [], times, MIN_TIME)
    times, reasons = instants(batch.column(base.column), held.type_of(base.column, "event_time"), base.unit)
    if base.watermark.max_skew is not None:
        ahead = times > plus(now, base.watermark.max_skew)
        if ahead.any():
            for row in np.flatnonzero(ahead).tolist():
                reasons.setdefault(row, "event time is ahead of the processing clock by more than max_skew")
    given, wrong = _given(batch, held, base, times, now)
    for row, reason in wrong.items():
        reasons.setdefault(row, reason)
    if not reasons:
        return Stamps(times, [], times, int(given.max(initial=MIN_TIME)) if given is not None else MIN_TIME)
    good = np.ones(len(times), dtype=bool)
    good[list(reasons)] = False
    carried = int(given[good].max(initial=MIN_TIME)) if given is not None else MIN_TIME
    return Stamps(times, sorted(reasons.items()), times[good], carried)


def instants(column: pa.Array, kind: str, unit: str | None) -> tuple[np.ndarray, dict[int, str]]:
    """A time column as microseconds, and the reason for each row that has no time."""
    reasons: dict[int, str] = {}
    if kind == "string":
        return _texts(column)
    if kind in ("float", "double"):
        numbers = column.fill_null(0.0).to_numpy(zero_copy_only=False)
        for row in np.flatnonzero(~np.isfinite(numbers)).tolist():
            reasons[row] = f"event time is {numbers[row]}"
        scaled = np.rint(np.where(np.isfinite(numbers), numbers, 0.0) * _UNITS[unit or "us"])
        outside = (scaled < EARLIEST) | (scaled > LATEST)
        times = np.where(outside, 0, scaled).astype(np.int64)
    else:
        raw = column.cast(pa.int32()) if kind == "date" else column
        raw = raw if pa.types.is_int64(raw.type) else raw.cast(pa.int64())
        values = (raw.fill_null(0) if raw.null_count else raw).to_numpy(zero_copy_only=False)
        scale = _DAY if kind == "date" else 1 if kind == "timestamp" else _UNITS[unit or "us"]
        low, high = -(-EARLIEST // scale), LATEST // scale
        if len(values) and (values.min() < low or values.max() > high):
            outside = (values < low) | (values > high)
            times = np.where(outside, 0, values) * scale
        else:
            outside, times = np.zeros(0, dtype=bool), values * scale if scale != 1 else values
    for row in np.flatnonzero(outside).tolist():
        reasons.setdefault(row, "event time is outside the years 1 to 9999")
    if column.null_count:
        for row in np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False)).tolist():
            reasons[row] = "event time is null"
    return times, reasons


def _texts(column: pa.Array) -> tuple[np.ndarray, dict[int, str]]:
    """ISO 8601 texts: plain ones at once, others one by one for each different text."""
    if not column.null_count and pc.all(pc.match_substring_regex(column, _PLAIN_TIME), min_count=0).as_py():
        try:
            times = column.cast(pa.timestamp("us")).cast(pa.int64()).to_numpy(zero_copy_only=False)
            if not len(times) or (times.min() >= EARLIEST and times.max() <= LATEST):
                return times, {}
        except pa.ArrowInvalid:
            pass
    encoded = column.dictionary_encode()
    read: list[tuple[int, str | None]] = []
    for text in encoded.dictionary.to_pylist():
        try:
            read.append((event_time_of(text, None), None))
        except ValueError as error:
            read.append((0, str(error)))
    read.append((0, "event time is null"))
    codes = encoded.indices.fill_null(len(read) - 1).to_numpy(zero_copy_only=False)
    times = np.array([time for time, _ in read], dtype=np.int64)[codes]
    wrong = np.array([reason is not None for _, reason in read])[codes]
    return times, {row: read[codes[row]][1] or "" for row in np.flatnonzero(wrong).tolist()}


def _given(
    batch: pa.RecordBatch, held: Schema, base: TimeBase, times: np.ndarray, now: int
) -> tuple[np.ndarray | None, dict[int, str]]:
    """The watermark that each row carries: in its column, or by being a mark."""
    match base.watermark:
        case FromColumn(column=name):
            column = batch.column(name)
            marks, reasons = instants(column, held.type_of(name, "event_time"), base.unit)
            empty = column.is_null().to_numpy(zero_copy_only=False)
            wrong = {row: why for row, why in reasons.items() if not empty[row]}
            if base.watermark.max_skew is not None:
                ahead = "the watermark it carries is ahead of the processing clock by more than max_skew"
                for row in np.flatnonzero(~empty & (marks > plus(now, base.watermark.max_skew))).tolist():
                    wrong.setdefault(row, ahead)
            return np.where(empty, MIN_TIME, marks), wrong
        case Punctuated(mark=mark):
            wrong = dict(failing_rows(batch, lambda part: evaluate(mark, part, held)))
            sure = np.ones(batch.num_rows, dtype=bool)
            sure[list(wrong)] = False
            marked = np.zeros(batch.num_rows, dtype=bool)
            found = evaluate(mark, batch.filter(pa.array(sure)), held)
            marked[sure] = found.fill_null(False).to_numpy(zero_copy_only=False)
            return np.where(marked, times, MIN_TIME), wrong
    return None, {}
