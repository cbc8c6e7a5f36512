"""A process to be killed or stopped: servers, topic, delivery, how many batches, the first, the epoch, rows, a pause.

It says `begun 3` before batch 3, as a checkpoint would, and `taken 3` after it.
With a pause it says `open` and waits inside the transaction of each batch, after half of the rows were sent.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

import penstock as ps
from penstock.connectors.delivery import deliver
from penstock.connectors.sink_errors import SinkDown
from tests.unit.connectors.sinks.outputs import PANES, batch_of, pane, panes

PATIENCE = 60.0


def sink_of(servers: str, topic: str) -> Any:
    """Every pane, appended."""
    return ps.to_kafka(topic, servers=servers, compacted=False, create=True, partitions=2)


def ids(batch: int, rows: int) -> list[str]:
    """The unique ids of a batch."""
    return [f"{batch}-{number}" for number in range(rows)]


def batch_table(batch: int, rows: int) -> pa.Table:
    """Panes with unique ids; the same whenever they are asked for."""
    return panes(*(pane(one, batch) for one in ids(batch, rows)))


def main(servers: str, topic: str, delivery: str, batches: int, start: int = 0, epoch: int = 1, rows: int = 40,
         pause: int = 0) -> None:  # fmt: skip
    """Deliver batches in two parts, one after the other; a sink that is down is waited for, as a run does."""
    sink, writers = sink_of(servers, topic), {}
    for number in range(start, batches):
        table = batch_table(number, rows)
        print("begun", number, flush=True)
        until = time.monotonic() + PATIENCE
        while True:
            try:
                deliver(sink, PANES, writers, batch_of(number, table, epoch=epoch), _parts(table, writers, pause),
                        delivery)  # type: ignore[arg-type]  # fmt: skip
                break
            except SinkDown:
                if time.monotonic() > until:
                    raise
                time.sleep(0.2)
        print("taken", number, flush=True)


def _parts(table: pa.Table, writers: dict[str, Any], pause: int) -> Iterator[pa.Table]:
    yield table.slice(0, table.num_rows // 2)
    if pause:
        writers[PANES.sink].transactions.flush()
        print("open", flush=True)
        time.sleep(pause)
    yield table.slice(table.num_rows // 2)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], *(int(word) for word in sys.argv[4:]))
