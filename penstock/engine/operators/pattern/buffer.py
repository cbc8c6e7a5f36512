"""Events that wait for W: piles in order of time, from the front of which a batch takes those that W has passed."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from penstock.engine.columns.sorting import order_codes
from penstock.engine.ingest.pre_aggregate import Rows
from penstock.engine.operators.pattern.state import EVENT_COLUMNS, Pile, Rest
from penstock.types.arrow import one_batch

MANY = 8  # so many piles are borne before those of like size become one


@dataclass(frozen=True, slots=True)
class Due:
    """Events that W has passed, in order of time, partition and offset, with the conditions that each fits."""

    rows: Rows
    bits: np.ndarray

    def __len__(self) -> int:
        return len(self.bits)


def piled(rest: Rest, piles: tuple[Pile, ...], rows: Rows, good: np.ndarray, bits: np.ndarray) -> tuple[Pile, ...]:
    """The piles with one more, of the arrivals that can be used."""
    if not len(good):
        return piles
    # Arrivals are in order of partition and offset already.
    order = good[np.argsort(rows.times[good], kind="stable")]
    taken = rows.take(order)
    columns = [
        *taken.batch.columns,
        pa.array(taken.times),
        taken.partitions,
        pa.array(taken.offsets),
        pa.array(bits[order]),
    ]
    piles = (*piles, rest.pile(pa.RecordBatch.from_arrays(columns, schema=rest.events)))
    return piles if len(piles) <= MANY else _fewer(rest, piles)


def due(rest: Rest, piles: tuple[Pile, ...], horizon: int) -> tuple[tuple[Pile, ...], Due]:
    """The piles without the events before an instant, and those events."""
    left: list[Pile] = []
    taken: list[pa.RecordBatch] = []
    for pile in piles:
        if pile.low >= horizon:
            left.append(pile)
            continue
        batch = pile.piece.get()
        times = batch.column("@time").to_numpy()
        end = int(np.searchsorted(times, horizon))
        taken.append(batch.slice(pile.done, end - pile.done))
        if end < pile.rows:
            left.append(replace(pile, done=end, low=int(times[end])))
    return tuple(left), _due(_together(rest, taken))


def _fewer(rest: Rest, piles: tuple[Pile, ...]) -> tuple[Pile, ...]:
    """The piles with the newest ones made one, for as long as the one before is no more than twice as large."""
    kept, last = list(piles[:-1]), [piles[-1]]
    while kept and kept[-1].rows - kept[-1].done <= 2 * sum(pile.rows - pile.done for pile in last):
        last.insert(0, kept.pop())
    if len(last) < 2:
        return piles
    left = [pile.piece.get().slice(pile.done) for pile in last]
    return (*kept, rest.pile(_together(rest, left)))


def _together(rest: Rest, batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    """Batches in order as one in order; of events equal in time, partition and offset the earlier one is first."""
    if not batches:
        return pa.RecordBatch.from_pylist([], schema=rest.events)
    if len(batches) == 1:
        return batches[0]
    batch = one_batch(pa.Table.from_batches(batches))
    times, offsets = batch.column("@time").to_numpy(), batch.column("@offset").to_numpy()
    order = np.lexsort((offsets, order_codes(batch.column("@partition")), times))
    return batch.take(pa.array(order))


def _due(batch: pa.RecordBatch) -> Due:
    names = batch.schema.names[: -len(EVENT_COLUMNS)]
    times, offsets, bits = (batch.column(name).to_numpy() for name in ("@time", "@offset", "@bits"))
    return Due(Rows(batch.select(names), times, batch.column("@partition"), offsets), bits)
