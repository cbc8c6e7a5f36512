"""What a stage gives in a batch, in columns, and what each kind of stage must be able to do."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
import pyarrow as pa

from penstock.engine.ingest.pre_aggregate import Rows
from penstock.engine.state.snapshot import Saved
from penstock.engine.windows.lifecycle import Clock


@dataclass(frozen=True, slots=True)
class Outgoing:
    """Rows that a stage gives, with their event times; `ops` are +1 and -1, or None where nothing is withdrawn."""

    batch: pa.RecordBatch
    times: np.ndarray
    ops: np.ndarray | None = None


class BadRow(NamedTuple):
    """A row that a stage could not use: which one of which side's rows, at which step, and why.

    Rows count on after the arrivals of a side into those that had waited there.
    """

    side: int
    row: int
    step: str
    reason: str


@dataclass(frozen=True, slots=True)
class Emitted:
    """What a batch does. `hold` is the least event time that the memory may still give behind the watermark.

    `late` has for each side the arrivals that came too late, or None; `waited` rows of earlier batches that are bad.
    """

    memory: Any
    outputs: Mapping[str, Outgoing]
    late: tuple[Rows | None, ...]
    bad: tuple[BadRow, ...]
    hold: int
    waited: tuple[Rows | None, ...] = (None,)


class Operator(Protocol):
    """A stage made ready for columns.

    One that has a side whose rows go to every shard also has `everywhere(memory)`: how many rows of it are held.
    """

    def start(self) -> Any:
        """A memory of nothing."""

    def step(self, memory: Any, arrivals: Sequence[Rows], clock: Clock) -> Emitted:
        """Play one batch: for each side its rows, in order of partition and offset."""

    def saved(self, memory: Any, known: Container[str] = ()) -> Saved:
        """The memory as bytes: a head, and the parts that are not known yet."""

    def parts(self, head: bytes) -> tuple[str, ...]:
        """The names of all parts that a head speaks of."""

    def restored(self, head: bytes, fetch: Callable[[str], bytes]) -> Any:
        """The memory that was saved."""

    def held(self, memory: Any) -> int:
        """How many rows, entries and timers are held."""


@runtime_checkable
class Choosing(Protocol):
    """An operator of one side, of whose rows many change nothing: these need not travel to the shards."""

    def chosen(self, rows: Rows) -> np.ndarray:
        """The places of the rows that may change something, whatever rows other tasks have."""
