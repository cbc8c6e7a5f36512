"""A shard in Spark: one call for each batch, its memory in the state store, its answers as words for the driver."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from penstock.engine.memory import part_names, restored, saved
from penstock.engine.step import Memory, held_cells, open_records, open_windows, start
from penstock.engine.windows import Clock
from penstock.killpoint import reached
from penstock.spark.job import Job
from penstock.spark.packets import STATE, TICK, Packet
from penstock.spark.property import task_clock
from penstock.spark.stepping import arrivals_step, tick_of, words_of

_PIECE = 4 << 20
_WORD = Row("shard", "kind", "head", "payload")


class Shard(StatefulProcessor):
    """The processor Spark calls for each shard and batch."""

    def __init__(self, job: Job) -> None:
        self.job = job

    def init(self, handle: StatefulProcessorHandle) -> None:
        self.head = handle.getValueState("head", "head binary")
        self.pieces = handle.getMapState("parts", "name string, piece int", "data binary")

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:  # noqa: N802, N803
        shard = int(key[0])
        clock = task_clock(self.job.lineage)
        packets = [Packet(row.shard, row.kind, row.payload) for row in rows]
        tick = tick_of(shard, packets, clock.batch, clock.before)
        memory, known = self._memory()
        stepped = arrivals_step(self.job, memory, packets, Clock(clock.watermark, tick["now"]))
        size = self._keep(stepped.memory, known)
        for word in words_of(self.job, shard, clock.batch, packets, [stepped]):
            yield _WORD(*word)
        yield _WORD(shard, STATE, json.dumps(size), b"")
        yield _WORD(shard, TICK, json.dumps(tick), b"")
        reached("task:step", clock.batch)

    def close(self) -> None:
        """Nothing is held between batches but what the state store has."""

    def _memory(self) -> tuple[Memory, tuple[str, ...]]:
        held = self.head.get()
        if held is None:
            return start(self.job.compiled()), ()
        head = bytes(held[0])
        return restored(self.job.compiled(), head, self._fetch), part_names(head)

    def _fetch(self, name: str) -> bytes:
        found: list[bytes] = []
        while (piece := self.pieces.getValue((name, len(found)))) is not None:
            found.append(bytes(piece[0]))
        return b"".join(found)

    def _keep(self, memory: Memory, known: tuple[str, ...]) -> dict[str, int]:
        """Write what is new, and let go of what is not held any more."""
        compiled = self.job.compiled()
        kept = saved(compiled, memory, set(known))
        names = part_names(kept.head)
        written = len(kept.head)
        for name, data in kept.parts.items():
            written += len(data)
            for i, at in enumerate(range(0, len(data), _PIECE)):
                self.pieces.updateValue((name, i), (data[at : at + _PIECE],))
        for name in sorted(set(known) - set(names)):
            piece = 0
            while self.pieces.containsKey((name, piece)):
                self.pieces.removeKey((name, piece))
                piece += 1
        self.head.update((kept.head,))
        size = {"open": held_cells(memory), "parts": len(names), "written": written}
        if self.job.raw:
            size |= {"open_records": open_records(compiled, memory), "open_windows": open_windows(compiled, memory)}
        return size
