"""Which conditions arrivals fit that look at the event alone: each asked once, of all arrivals together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.diagnostics.user_functions import failure
from penstock.engine.expressions import evaluator
from penstock.engine.ingest.isolate_errors import failing_rows
from penstock.engine.ingest.pre_aggregate import Rows
from penstock.engine.operators.protocol import BadRow
from penstock.errors import EvaluationError
from penstock.plan.operators.match import Test
from penstock.types.schema import Schema

Answer = tuple[np.ndarray, list[tuple[int, str]]]
Asking = Callable[[pa.RecordBatch], Answer]


def asking(tests: Sequence[Test], schema: Schema) -> tuple[Asking, ...]:
    """What each condition says of a whole batch; one that looks at a match too says nothing yet."""
    return tuple(_asking(test, schema) for test in tests)


def answered(asked: Sequence[Asking], rows: Rows, judged: np.ndarray) -> tuple[np.ndarray, tuple[BadRow, ...]]:
    """For each arrival a bit for each condition that it fits; -1 where it is not judged, or cannot be used."""
    bits = np.full(len(rows), -1, dtype=np.int64)
    if not len(judged):
        return bits, ()
    bits[judged] = 0
    batch = rows.batch if len(judged) == len(rows) else rows.batch.take(pa.array(judged))
    failing: dict[int, str] = {}
    for n, answer in enumerate(asked):
        fits, failed = answer(batch)
        bits[judged] |= fits.astype(np.int64) << n
        for row, reason in failed:
            failing.setdefault(int(judged[row]), reason)
    bits[list(failing)] = -1
    return bits, tuple(BadRow(0, row, "match", failing[row]) for row in sorted(failing))


def _asking(test: Test, schema: Schema) -> Asking:
    if not test.plain:
        return _nothing
    if test.read is not None:
        return _by_columns(evaluator(test.read.node, schema, "match"))
    return _everything if test.function is None else _by_rows(test.function)


def _nothing(batch: pa.RecordBatch) -> Answer:
    return np.zeros(batch.num_rows, dtype=bool), []


def _everything(batch: pa.RecordBatch) -> Answer:
    return np.ones(batch.num_rows, dtype=bool), []


def _by_columns(evaluate: Callable[[pa.RecordBatch], pa.Array]) -> Asking:
    def answered(batch: pa.RecordBatch) -> Answer:
        try:
            return evaluate(batch).fill_null(False).to_numpy(zero_copy_only=False), []
        except EvaluationError:
            failing = failing_rows(batch, evaluate)
        good = np.ones(batch.num_rows, dtype=bool)
        good[[row for row, _ in failing]] = False
        fits = np.zeros(batch.num_rows, dtype=bool)
        fits[good] = evaluate(batch.filter(pa.array(good))).fill_null(False).to_numpy(zero_copy_only=False)
        return fits, failing

    return answered


def _by_rows(function: Callable[..., Any]) -> Asking:
    def answered(batch: pa.RecordBatch) -> Answer:
        fits = np.zeros(batch.num_rows, dtype=bool)
        failing: list[tuple[int, str]] = []
        for n, event in enumerate(batch.to_pylist()):
            try:
                fits[n] = bool(function(event))
            except Exception as error:
                failing.append((n, failure(error, function, batch.slice(n, 1).to_pylist()[0])))
        return fits, failing

    return answered
