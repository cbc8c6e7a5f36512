"""The clock, one event at a time: what each partition has said, which are silent, and the watermark that follows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field

from penstock.model.watermarks import (
    DELAYS_A_CHUNK,
    EXACT_DELAYS,
    REMEMBERED_DELAYS,
    Bounded,
    FromColumn,
    Percentile,
    Punctuated,
    TimeBase,
    coarse,
    quantile_rank,
)
from penstock.plan.graph import Flow
from penstock.reference.row_steps import Stamped
from penstock.runtime.batch import WHOLE, PartitionClock, Tick
from penstock.types.timestamps import MIN_TIME, plus


@dataclass
class Chunk:
    """Some delays, counted; rounded to coarse ones for good once too many are different."""

    counts: Counter[int] = field(default_factory=Counter)
    rounded: bool = False

    def add(self, delay: int) -> None:
        self.counts[coarse(delay) if self.rounded else delay] += 1
        if not self.rounded and len(self.counts) > EXACT_DELAYS:
            exact, self.counts, self.rounded = self.counts, Counter(), True
            for value, times in exact.items():
                self.counts[coarse(value)] += times


@dataclass
class Spoken:
    """What one partition has said so far."""

    newest: int = MIN_TIME
    given: int = MIN_TIME
    silent_for: int = 0
    last_batch: int = -1
    chunks: list[Chunk] = field(default_factory=list)

    def hear(self, stamp: Stamped, remember: bool) -> None:
        self.newest = max(self.newest, stamp.time)
        self.given = max(self.given, stamp.given)
        if remember:
            if not self.chunks or self.chunks[-1].counts.total() == DELAYS_A_CHUNK:
                self.chunks = [*self.chunks, Chunk()]
            self.chunks[-1].add(self.newest - stamp.time)
            if self.chunks[-1].counts.total() == DELAYS_A_CHUNK:
                self.chunks = self.chunks[-(REMEMBERED_DELAYS // DELAYS_A_CHUNK) :]

    def delay(self, p: float) -> int:
        """The smallest delay that a share `p` of the remembered ones does not exceed."""
        counted = sum((chunk.counts for chunk in self.chunks), Counter())
        rank, below = quantile_rank(p, counted.total()), 0
        for delay in sorted(counted):
            below += counted[delay]
            if below >= rank:
                return delay
        return 0


@dataclass
class Clock:
    """The memory of all rules, and the watermark so far."""

    flow: Flow
    watermark: int = MIN_TIME
    now: int | None = None
    batch: int = 0
    spoken: dict[tuple[str, str], Spoken] = field(default_factory=dict)
    stages: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.stages = [MIN_TIME] * len(self.flow.stages)

    def given(self, watermark: int) -> None:
        """A watermark from outside, for all that reads sources alone."""
        self.watermark = max(self.watermark, watermark)
        for number, held in enumerate(self.stages):
            if not self.flow.waits_for(number)[1]:
                self.stages[number] = max(held, self.watermark)

    def end_batch(
        self, stamps: list[Stamped], heard: set[tuple[str, str]], now: int, tick: Tick, holds: list[int]
    ) -> None:
        """Hear the batch's reports and decide the watermarks of the next one."""
        elapsed = 0 if self.now is None or tick.resumed else now - self.now
        self.now = now
        before = set(self.spoken)
        for name in (*tick.partitions, *sorted(heard)):
            self.spoken.setdefault(name, Spoken())
        self._stand_in({*tick.partitions, *heard})
        for name, partition in self.spoken.items():
            spared = name in heard or name in tick.behind or name not in before or tick.resumed
            partition.silent_for = 0 if spared else partition.silent_for + elapsed
            partition.last_batch = self.batch if name in heard else partition.last_batch
        for stamp in stamps:
            remember = isinstance(self._time(stamp.source).watermark, Percentile)
            self.spoken[stamp.source, stamp.partition].hear(stamp, remember)
        self.batch += 1
        given, self.watermark = self.watermark, max(self.watermark, self._minimum(now, self.flow.waited))
        self.stages = [self._stage(number, now, given, holds) for number in range(len(self.stages))]

    def _stand_in(self, named: set[tuple[str, str]]) -> None:
        """A source of which no partition is known yet is one partition that was not yet read."""
        for source in self.flow.waited:
            whole = (source, WHOLE)
            unheard = whole in self.spoken and self.spoken[whole].last_batch < 0
            if all(name[0] != source for name in self.spoken) and self._time(source).basis != "processing":
                self.spoken[whole] = Spoken()
            elif unheard and whole not in named and any(name[0] == source for name in named):
                del self.spoken[whole]

    def _stage(self, number: int, now: int, given: int, holds: list[int]) -> int:
        """A stage follows its own sources, and those it reads as they stood in this batch."""
        own, above = self.flow.waits_for(number)
        reached = [max(given, self._minimum(now, own))] if own else []
        reached += [min(self.stages[one], holds[one]) for one in above]
        return max(self.stages[number], min(reached))

    def partitions(self) -> tuple[PartitionClock, ...]:
        """What each partition stands at that a watermark waits for, for people to read."""
        waited = self.flow.waited
        return tuple(
            PartitionClock(
                name[0],
                name[1],
                None if partition.newest == MIN_TIME else partition.newest,
                self._watermark_of(name),
                self._idle(name),
                partition.silent_for,
            )
            for name, partition in sorted(self.spoken.items())
            if name[0] in waited
        )

    def _minimum(self, now: int, sources: Collection[str]) -> int:
        processing = [now for name in sources if self._time(name).basis == "processing"]
        timed = {name for name in self.spoken if name[0] in sources and self._time(name[0]).basis != "processing"}
        active = {name for name in timed if not self._idle(name)}
        if active or processing:
            return min([*processing, *(self._watermark_of(name) for name in active)])
        if not timed:
            return MIN_TIME
        # All are silent: the partitions that spoke last are the last to step aside.
        last = max(self.spoken[name].last_batch for name in timed)
        held = min(self._watermark_of(name) for name in timed if self.spoken[name].last_batch == last)
        advanced = [self._advanced(source) for source in sorted({name[0] for name in timed})]
        return max(held, min((at for at in advanced if at is not None), default=MIN_TIME))

    def _advanced(self, source: str) -> int | None:
        """How far silence lets a source's watermark go: as far as the processing clock went, if it may.

        None is said of a source that may, and has never spoken: the others do not wait for it any more.
        """
        partitions = [name for name in self.spoken if name[0] == source]
        newest = max(self.spoken[name].newest for name in partitions)
        if self._time(source).watermark.when_idle == "hold":
            return MIN_TIME
        if newest == MIN_TIME:
            return None
        behind = min(
            plus(self.spoken[n].newest, -self._watermark_of(n)) for n in partitions if self.spoken[n].newest == newest
        )
        return newest + min(self.spoken[name].silent_for for name in partitions) - max(behind, 0)

    def _idle(self, name: tuple[str, str]) -> bool:
        idle = self._time(name[0]).watermark.idle
        return idle is not None and self.spoken[name].silent_for >= idle

    def _watermark_of(self, name: tuple[str, str]) -> int:
        partition = self.spoken[name]
        match self._time(name[0]).watermark:
            case Bounded(delay=delay):
                return plus(partition.newest, -delay)
            case Percentile(p=p, floor=floor, ceiling=ceiling):
                return plus(partition.newest, -min(max(partition.delay(p), floor), ceiling))
            case FromColumn() | Punctuated():
                return partition.given
        return MIN_TIME

    def _time(self, source: str) -> TimeBase:
        time = next(one.time for one in self.flow.inputs if one.source.name == source)
        assert time is not None
        return time
