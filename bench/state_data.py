"""What the benchmark of state reads: logins, impressions and clicks, orders and rates, changes of customers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from bench.data import BEGIN, SECOND

Random = np.random.Generator
Columns = dict[str, Any]


def _logins(rng: Random, keys: int, count: int, first: int) -> Columns:
    return {"user": _named("user", rng.integers(0, keys, count)), "ok": rng.random(count) < 0.7}


def _impressions(rng: Random, keys: int, count: int, first: int) -> Columns:
    return {"ad": _named("ad", rng.integers(0, keys, count)), "page": rng.integers(0, 1_000, count)}


def _clicks(rng: Random, keys: int, count: int, first: int) -> Columns:
    return {"ad": _named("ad", rng.integers(0, keys, count)), "visitor": rng.integers(0, 1_000_000, count)}


def _orders(rng: Random, keys: int, count: int, first: int) -> Columns:
    return {
        "id": first + np.arange(count), "currency": _named("c", rng.integers(0, keys, count)),
        "amount": rng.integers(1, 100_000, count) / 100,
    }  # fmt: skip


def _rates(rng: Random, keys: int, count: int, first: int) -> Columns:
    return {"currency": _named("c", rng.integers(0, keys, count)), "rate": rng.integers(50, 200, count) / 100}


def _retried(rng: Random, keys: int, count: int, first: int) -> Columns:
    """One in five is said twice, a little later."""
    said = first + np.arange(count)
    return {"id": np.where(rng.random(count) < 0.2, np.maximum(said - rng.integers(1, 1_000, count), 0), said),
            "url": rng.integers(0, keys, count)}  # fmt: skip


_KINDS: dict[str, tuple[str, str, Callable[[Random, int, int, int], Columns]]] = {
    "logins": ("user string, ok boolean", "at", _logins),
    "impressions": ("ad string, page long", "at", _impressions),
    "clicks": ("ad string, visitor long", "clicked", _clicks),
    "orders": ("id long, currency string, amount double", "at", _orders),
    "rates": ("currency string, rate double", "since", _rates),
    "retried": ("id long, url long", "at", _retried),
}


@dataclass(frozen=True)
class Made:
    """Events of a kind, `a_second` of event time, up to half a second out of order."""

    kind: str
    events: int
    rows: int
    keys: int
    a_second: int
    seed: int = 7

    @property
    def schema(self) -> str:
        """The columns as `ps.directory` takes them."""
        columns, time, _ = _KINDS[self.kind]
        return f"{columns}, {time} timestamp"

    def table(self, number: int) -> pa.Table:
        """The rows of one file."""
        _, time, columns = _KINDS[self.kind]
        rng = np.random.default_rng([self.seed, len(self.kind), number])
        first = number * self.rows
        count = min(self.rows, self.events - first)
        at = BEGIN + (first + np.arange(count)) * SECOND // self.a_second - rng.integers(0, SECOND // 2, count)
        made = columns(rng, self.keys, count, first)
        return pa.table({**made, time: pa.array(at).cast(pa.timestamp("us", tz="UTC"))})


def _named(what: str, numbers: np.ndarray) -> pa.Array:
    """Numbers as names: keys are text more often than not."""
    names = pa.array([f"{what}-{n:06d}" for n in range(int(numbers.max()) + 1)])
    return names.take(pa.array(numbers))
