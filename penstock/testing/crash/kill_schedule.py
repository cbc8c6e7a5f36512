"""Which kill comes next: every named point in turn, and moments in between, all from one seed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

from penstock.testing.crash.process import Kill

BATCH_POINTS = (
    "offsets",
    "batch:begin",
    "task:read",
    "task:step",
    "batch:collected",
    "clock:before",
    "clock:after",
    "batch:end",
    "commits",
)
SINK_POINTS = ("sink:begin", "sink:write", "sink:commit:before", "sink:commit:after")
SHARD_POINTS = ("task:sent", "task:committed")  # of sinks that tasks write themselves
STAGE_POINT = "task:step#{}"  # when a shard of that stage has stepped: those before it have kept what they remember
GIVEN_UP = 4  # misses


@dataclass(frozen=True, slots=True)
class Pace:
    """How long a run takes on this machine: to its lease, from there to its first commit, and for a batch after it."""

    lease: float = 6.0
    first: float = 8.0
    batch: float = 0.5


def points(sinks: tuple[str, ...], more: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Every named point: those of a batch, those of a delivery for the first sink reached and for each, and more."""
    each = [f"{point}#{sink}" for point in SINK_POINTS for sink in sinks]
    return (*BATCH_POINTS, *SINK_POINTS, *each, *more)


def kill_of(
    number: int,
    seed: int,
    sinks: tuple[str, ...],
    committed: int,
    pace: Pace,
    missed: int = 0,
    more: tuple[str, ...] = (),
) -> Kill:
    """The kill of that number, in a run that goes on after so many batches: a point if it is even, else a moment.

    If it was missed, as late rows come late and a run may end too soon, it is tried again in a later batch, or sooner;
    a point that was missed too often is given up for a moment.
    """
    random = Random(f"{seed}/{number}")
    if number % 2 == 0 and missed < GIVEN_UP:
        names = list(points(sinks, more))
        Random(seed).shuffle(names)
        name = names[number // 2 % len(names)]
        # The batch in flight may have its offsets and be in the ledgers: then these are not reached in it.
        flown = name == "offsets" or name.startswith((*SINK_POINTS, *SHARD_POINTS))
        return Kill(name, committed + (1 if flown else random.randrange(2)) + 3 * missed)
    kind, soon = random.randrange(8), random.random() / (1 + missed)
    if kind == 0:
        return Kill("start", after=soon * pace.lease)
    if kind < 4:
        return Kill("lease", after=soon * pace.first)
    return Kill("commit", 1 + random.randrange(2), soon * pace.batch)


def each_point_once(sinks: tuple[str, ...]) -> Iterator[Kill]:
    """A dozen kills that reach every point of a batch and of a delivery, each a batch further or in the same again."""
    names = (
        "batch:begin",
        "task:read",
        "task:step",
        "batch:collected",
        *SINK_POINTS,
        "clock:before",
        "clock:after",
        "batch:end",
        "offsets",
    )
    for i, name in enumerate(names):
        whose = f"#{sinks[SINK_POINTS.index(name) % len(sinks)]}" if name in SINK_POINTS else ""
        yield Kill(f"{name}{whose}", 1 + i * 2 // 3)
