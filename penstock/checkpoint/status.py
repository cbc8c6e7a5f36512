"""How does a run stand, as its checkpoint tells: read from a few small files, without Spark on a local disk."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from penstock.checkpoint.checksummed_json import sealed, unsealed
from penstock.checkpoint.clock import latest_clock
from penstock.checkpoint.identity import read_identity
from penstock.checkpoint.lease import Owner, last_owner
from penstock.errors import did_you_mean
from penstock.runtime.batch import Counts
from penstock.storage.local import CheckpointError, LocalStore, Store, local_path
from penstock.types.timestamps import MAX_TIME, MIN_TIME

NAME = "penstock/waiting"


@dataclass(frozen=True, slots=True)
class Waits:
    """The batch that waits, for what, and since when, in microseconds."""

    batch: int
    what: str
    since: int


def note_waiting(store: Store, epoch: int, batch: int, what: str) -> None:
    """Leave the note; a run goes on waiting where it cannot be written."""
    with suppress(Exception):
        store.delete(NAME)
        store.create(NAME, sealed({"epoch": epoch, "batch": batch, "what": what, "since": time.time_ns() // 1000}))


def waiting_is_over(store: Store) -> None:
    """Take the note away."""
    with suppress(Exception):
        store.delete(NAME)


def waits(store: Store, owner: Owner | None) -> Waits | None:
    """What the run of the owner waits for; a note of one that has stopped or died tells nothing."""
    if owner is None or owner.released or owner.alive is False:
        return None
    data = store.read(NAME)
    held = unsealed(data, f"{store.root}/{NAME}") if data is not None else {}
    if held.get("epoch") != owner.epoch:
        return None
    return Waits(int(held["batch"]), str(held["what"]), int(held["since"]))


@dataclass(frozen=True, slots=True)
class Partition:
    """Where one partition of a source stands; the watermark does not wait for one that is idle."""

    source: str
    partition: str
    newest: int | None
    watermark: int
    idle: bool
    silent_for: int


@dataclass(frozen=True, slots=True)
class Lag:
    """How far one partition of a log was read, and how far it went when the last batch was planned."""

    source: str
    partition: str
    current: int
    end: int

    @property
    def lag(self) -> int:
        """What is left to read."""
        return self.end - self.current


@dataclass(frozen=True, slots=True)
class Standing:
    """All that a checkpoint tells of its run; the batch is the last whose clock was written, None before the first."""

    checkpoint: str
    name: str
    lineage: str
    shards: int
    batch: int | None
    now: int | None
    watermark: int
    totals: Counts
    panes: int
    finished: bool
    open_windows: int
    partitions: tuple[Partition, ...]
    owner: Owner | None
    lag: tuple[Lag, ...] = ()
    notes: tuple[str, ...] = ()
    waiting: Waits | None = None
    held: dict[str, int] = field(default_factory=dict)

    @property
    def behind(self) -> int | None:
        """How far the watermark was behind the clock of the last batch, in microseconds; None while it is infinite."""
        if self.now is None or self.watermark in (MIN_TIME, MAX_TIME):
            return None
        return self.now - self.watermark

    @property
    def running(self) -> bool | None:
        """Whether an instance is at work; None where that cannot be seen from here."""
        return False if self.owner is None or self.owner.released else self.owner.alive

    def plain(self) -> dict[str, Any]:
        """The same as values that JSON has."""
        return {**asdict(self), "behind": self.behind, "running": self.running}


def standing(checkpoint: str | Store) -> Standing:
    """How the run of a checkpoint stands; of one that is not on a local disk, hand in its store."""
    store = _store(checkpoint) if isinstance(checkpoint, str) else checkpoint
    identity = read_identity(store)
    if identity is None:
        raise _nothing_there(store.root)
    clocks, owner = latest_clock(store, identity.lineage), last_owner(store)
    return Standing(
        store.root,
        identity.name,
        identity.lineage,
        identity.shards,
        clocks.batch - 1 if clocks.batch else None,
        clocks.state.now,
        clocks.watermark,
        clocks.totals,
        clocks.panes,
        clocks.finished,
        clocks.open_windows,
        tuple(Partition(*one) for one in clocks.partitions),
        owner,
        tuple(Lag(*one) for one in clocks.lag),
        tuple(clocks.notes),
        waits(store, owner),
        clocks.held,
    )


def _store(checkpoint: str) -> Store:
    path = local_path(checkpoint)
    if path is None:
        raise CheckpointError(
            f"the checkpoint {checkpoint} is not on a disk of this machine",
            "without Spark only a local disk can be read",
            "write standing(store_of(spark, checkpoint)), with store_of from penstock.spark.hadoop_store",
        )
    return LocalStore(path)


def _nothing_there(root: str) -> CheckpointError:
    around = Path(root).parent
    near = sorted(str(one.parent.parent) for one in around.glob("*/penstock/identity"))
    inside = sorted(str(one.parent.parent) for one in Path(root).glob("*/penstock/identity"))
    there = os.path.isdir(root)
    return CheckpointError(
        f"{root} is not a checkpoint of a pipeline" if there else f"there is no checkpoint {root}",
        "it has no penstock/identity, which a run writes when it begins",
        f"name one of those in it: {', '.join(inside)}"
        if inside
        else did_you_mean(root, near, "run the pipeline first"),
    )
