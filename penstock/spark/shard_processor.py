"""A shard of a stage in Spark: one call a batch, its memory in the state store, its answers as words for the driver."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.types import BinaryType, StringType, StructField, StructType

from penstock.coordinator.job import Job
from penstock.coordinator.messages import STATE, TICK, Packet, at, put_together, stage_of
from penstock.engine.state.cache import CACHE
from penstock.engine.windows.lifecycle import Clock
from penstock.runtime.failpoints import reached
from penstock.spark.shard_task import arrivals_step, tick_of, words_of
from penstock.spark.state_layout import PIECE, Kept, kept_after, read_kept, written_kept
from penstock.spark.task_clock import task_clock

_WORD = Row("shard", "kind", "head", "payload")
_PART = StructType([StructField("part", StringType())])
_DATA = StructType([StructField("data", BinaryType())])
_HEAD = "head"


class Shard(StatefulProcessor):
    """The processor Spark calls for each shard and batch.

    The stages are one after the other; what is not for this one goes on to the next, and at last to the driver.
    """

    def __init__(self, job: Job, stage: int = 0) -> None:
        self.job = job
        self.stage = stage

    def init(self, handle: StatefulProcessorHandle) -> None:
        # One state, with its types spelled out: each more, and each type as text, is a turn between two processes.
        self.parts = handle.getMapState("parts", _PART, _DATA)

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:  # noqa: N802, N803
        began = time.time()
        shard = int(key[0])
        clock = task_clock(self.job.lineage)
        came = []
        for row in rows:
            if stage_of(row.kind) == self.stage:
                came.append(Packet(row.shard, row.kind, row.payload))
            else:
                yield _WORD(row.shard, row.kind, row.head if self.stage else "", row.payload)
        packets = put_together(came)
        tick = tick_of(shard, packets, clock.batch, clock.before, self.stage)
        memory, before = self._memory()
        watermark = clock.watermarks[self.stage]
        now = Clock(watermark, tick["now"])
        stepped = arrivals_step(self.job, self.stage, memory, packets, now, clock.batch, shard)
        size = self._keep(shard, stepped.memory, before)
        for word in words_of(self.job, self.stage, shard, clock.batch, packets, [stepped], clock.watermarks):
            yield _WORD(*word)
        yield _WORD(shard, at(self.stage, STATE), json.dumps({**size, "hold": stepped.hold}), b"")
        if self.stage == 0:
            yield _WORD(shard, TICK, json.dumps({**tick, "began": began}), b"")
        if (after := self.job.after(self.stage)) is not None:
            yield _WORD(shard, at(after, TICK), "", json.dumps(tick).encode())
        reached("task:step", clock.batch)
        reached(f"task:step#{self.stage}", clock.batch)

    def close(self) -> None:
        """Nothing is held between batches but what the state store has."""

    def _memory(self) -> tuple[Any, Kept]:
        held, engine = self.parts.getValue((_HEAD,)), self.job.engine(self.stage)
        if held is None:
            return engine.start(), Kept(b"", {}, {})
        kept = read_kept(bytes(held[0]))
        return engine.restored(kept.head, lambda name: self._fetch(kept, name)), kept

    def _fetch(self, kept: Kept, name: str) -> bytes:
        if name in kept.small:
            return kept.small[name]
        pieces = [self.parts.getValue((f"{name}/{i}",)) for i in range(kept.pieces.get(name, 0))]
        return b"".join(bytes(piece[0]) for piece in pieces if piece is not None)

    def _keep(self, shard: int, memory: Any, before: Kept) -> dict[str, int]:
        """Write what is new, and let go of what is not held any more."""
        engine = self.job.engine(self.stage)
        made = engine.saved(memory, {*before.small, *before.pieces})
        names = engine.parts(made.head)
        after = kept_after(before, made, names)
        CACHE.only((self.job.lineage, self.stage, shard), [*before.small, *before.pieces], names)
        for name in after.pieces.keys() - before.pieces.keys():
            data = made.parts.get(name) or before.small[name]
            for i in range(after.pieces[name]):
                self.parts.updateValue((f"{name}/{i}",), (data[i * PIECE : (i + 1) * PIECE],))
        for name in before.pieces.keys() - after.pieces.keys():
            for i in range(before.pieces[name]):
                self.parts.removeKey((f"{name}/{i}",))
        self.parts.updateValue((_HEAD,), (written_kept(after),))
        written = len(made.head) + sum(len(data) for data in made.parts.values())
        first = shard == self.job.shards.ids[0]
        size = {"open": engine.held(memory, first), "parts": len(names), "written": written, **after.measured()}
        if self.job.raw:
            size |= engine.counted(memory, first)
        return size
