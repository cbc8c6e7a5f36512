"""A shard in Spark: one call for each batch, its memory in the state store, its answers as words for the driver."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.types import BinaryType, StringType, StructField, StructType

from penstock.engine.cache import CACHE
from penstock.engine.memory import part_names, restored, saved
from penstock.engine.step import Memory, held_cells, open_records, open_windows, start
from penstock.engine.windows import Clock
from penstock.killpoint import reached
from penstock.spark.job import Job
from penstock.spark.kept import PIECE, Kept, kept_after, read_kept, written_kept
from penstock.spark.packets import STATE, TICK, Packet
from penstock.spark.property import task_clock
from penstock.spark.stepping import arrivals_step, tick_of, words_of

_WORD = Row("shard", "kind", "head", "payload")
_PART = StructType([StructField("part", StringType())])
_DATA = StructType([StructField("data", BinaryType())])
_HEAD = "head"


class Shard(StatefulProcessor):
    """The processor Spark calls for each shard and batch."""

    def __init__(self, job: Job) -> None:
        self.job = job

    def init(self, handle: StatefulProcessorHandle) -> None:
        # One state, with its types spelled out: each more, and each type as text, is a turn between two processes.
        self.parts = handle.getMapState("parts", _PART, _DATA)

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:  # noqa: N802, N803
        began = time.time()
        shard = int(key[0])
        clock = task_clock(self.job.lineage)
        packets = [Packet(row.shard, row.kind, row.payload) for row in rows]
        tick = tick_of(shard, packets, clock.batch, clock.before)
        memory, before = self._memory()
        stepped = arrivals_step(self.job, memory, packets, Clock(clock.watermark, tick["now"]))
        size = self._keep(shard, stepped.memory, before)
        for word in words_of(self.job, shard, clock.batch, packets, [stepped]):
            yield _WORD(*word)
        yield _WORD(shard, STATE, json.dumps(size), b"")
        yield _WORD(shard, TICK, json.dumps({**tick, "began": began}), b"")
        reached("task:step", clock.batch)

    def close(self) -> None:
        """Nothing is held between batches but what the state store has."""

    def _memory(self) -> tuple[Memory, Kept]:
        held = self.parts.getValue((_HEAD,))
        if held is None:
            return start(self.job.compiled()), Kept(b"", {}, {})
        kept = read_kept(bytes(held[0]))
        return restored(self.job.compiled(), kept.head, lambda name: self._fetch(kept, name)), kept

    def _fetch(self, kept: Kept, name: str) -> bytes:
        if name in kept.small:
            return kept.small[name]
        pieces = [self.parts.getValue((f"{name}/{i}",)) for i in range(kept.pieces.get(name, 0))]
        return b"".join(bytes(piece[0]) for piece in pieces if piece is not None)

    def _keep(self, shard: int, memory: Memory, before: Kept) -> dict[str, int]:
        """Write what is new, and let go of what is not held any more."""
        compiled = self.job.compiled()
        made = saved(compiled, memory, {*before.small, *before.pieces})
        names = part_names(made.head)
        after = kept_after(before, made, names)
        CACHE.only((self.job.lineage, shard), [*before.small, *before.pieces], names)
        for name in after.pieces.keys() - before.pieces.keys():
            data = made.parts.get(name) or before.small[name]
            for i in range(after.pieces[name]):
                self.parts.updateValue((f"{name}/{i}",), (data[i * PIECE : (i + 1) * PIECE],))
        for name in before.pieces.keys() - after.pieces.keys():
            for i in range(before.pieces[name]):
                self.parts.removeKey((f"{name}/{i}",))
        self.parts.updateValue((_HEAD,), (written_kept(after),))
        written = len(made.head) + sum(len(data) for data in made.parts.values())
        size = {"open": held_cells(memory), "parts": len(after.small) + len(after.pieces), "written": written}
        if self.job.raw:
            size |= {"open_records": open_records(compiled, memory), "open_windows": open_windows(compiled, memory)}
        return size
