"""Which batches of a run are still known: the clock of each, and from where to where it was read.

What is observed knows most of them. Clocks and Spark's own log of offsets are fewer, and there also where a run was not
observed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from penstock.checkpoint.clock import FOLDER, Clocks, read_clock
from penstock.checkpoint.identity import Identity
from penstock.checkpoint.spark_logs import located
from penstock.observability.journal import Recorded, latest_of_each
from penstock.observability.observation import Observation
from penstock.runtime.batch import PartitionClock
from penstock.storage.local import Store
from penstock.types.timestamps import MIN_TIME

Position = Mapping[str, Any]
_CLOCK = tuple(one.name for one in fields(PartitionClock))


@dataclass(frozen=True, slots=True)
class Batch:
    """A batch as it was run.

    `watermarks` stood in it, one for each stage, and `next_watermarks` after it, where that is known. `before` are the
    clocks of the partitions when it began. It was read from `since` to `upto`; `since` is None for the first of all.
    """

    number: int
    now: int
    watermarks: tuple[int, ...]
    next_watermarks: tuple[int, ...] | None
    before: tuple[PartitionClock, ...]
    since: Position | None
    upto: Position

    def watermark(self, stage: int) -> int:
        """W of a stage in this batch."""
        return self.watermarks[stage] if stage < len(self.watermarks) else MIN_TIME

    def next_watermark(self, stage: int) -> int | None:
        """W of a stage in the batch after it."""
        held = self.next_watermarks
        return held[stage] if held is not None and stage < len(held) else None


@dataclass
class _Found:
    """What is known of each batch, by its number; the clocks of partitions are those before it."""

    now: dict[int, int] = field(default_factory=dict)
    watermarks: dict[int, tuple[int, ...]] = field(default_factory=dict)
    before: dict[int, tuple[PartitionClock, ...]] = field(default_factory=dict)
    upto: dict[int, Position] = field(default_factory=dict)

    def observed(self, one: Observation) -> None:
        self.now[one.batch] = one.now
        self.watermarks[one.batch] = tuple(one.watermarks)
        self.before[one.batch + 1] = tuple(clock_of(held) for held in one.partitions)
        if one.positions:
            self.upto[one.batch] = one.positions

    def clock(self, clocks: Clocks, stages: int) -> None:
        self.watermarks.setdefault(clocks.batch, tuple(clocks.state.of(number) for number in range(stages)))
        self.before.setdefault(clocks.batch, tuple(PartitionClock(*held) for held in clocks.partitions))
        if clocks.state.now is not None:
            self.now.setdefault(clocks.batch - 1, clocks.state.now)


def kept_batches(store: Store, identity: Identity, stages: int) -> list[Batch]:
    """The last batches of a run, one after the other, as far back as all is known that is needed to play them."""
    found = _Found(watermarks={0: (MIN_TIME,) * stages}, before={0: ()})
    for one in latest_of_each(Recorded(store).news()):
        found.observed(one)
    for name in store.names(FOLDER):
        found.clock(read_clock(store, identity.lineage, int(name)), stages)
    for number in found.now:
        position = found.upto.get(number) or located(store, number)
        if position:
            found.upto[number] = position
    return _together(found)


def observations(store: Store) -> list[Observation]:
    """What was observed of a run, in order."""
    return latest_of_each(Recorded(store).news())


def clock_of(held: Mapping[str, Any]) -> PartitionClock:
    """A partition's clock as an observation has it."""
    return PartitionClock(**{name: held[name] for name in _CLOCK})


def _together(found: _Found) -> list[Batch]:
    """From the last batch back to the first one that can be played, without a gap."""
    made: list[Batch] = []
    for number in sorted(found.now, reverse=True):
        playable = number in found.upto and number in found.watermarks and (number == 0 or number - 1 in found.upto)
        if (made and made[-1].number != number + 1) or (made and not playable):
            break
        if playable:
            made.append(
                Batch(
                    number,
                    found.now[number],
                    found.watermarks[number],
                    found.watermarks.get(number + 1),
                    found.before.get(number, ()),
                    found.upto.get(number - 1),
                    found.upto[number],
                )
            )
    return made[::-1]


def newest_before(batches: Sequence[Batch]) -> int:
    """The newest event time that had come before the first of these batches."""
    return max((one.newest for one in batches[0].before if one.newest is not None), default=MIN_TIME)


def numbers(batches: Iterable[Batch]) -> str:
    """Which batches these are, in words."""
    held = [one.number for one in batches]
    return f"{held[0]} to {held[-1]}" if held else "none"
