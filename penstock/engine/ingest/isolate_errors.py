"""Which rows make a function throw: found by halving the batch, so that the good rows never run one by one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from penstock.errors import EvaluationError


def failing_rows(
    batch: pa.RecordBatch, function: Callable[[pa.RecordBatch], Any], at: int = 0
) -> list[tuple[int, str]]:
    """The rows on which a function throws, each with its reason."""
    try:
        function(batch)
        return []
    except EvaluationError as error:
        if batch.num_rows == 1:
            return [(at, str(error))]
    half = batch.num_rows // 2
    return [*failing_rows(batch.slice(0, half), function, at), *failing_rows(batch.slice(half), function, at + half)]
