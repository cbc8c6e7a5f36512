"""The clock of each batch, written down before the batch before it commits: W, now and all the rules remember."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from penstock.checkpoint.checksummed_json import sealed, unsealed
from penstock.engine.watermarks import ClockState, decoded, encoded
from penstock.runtime.batch import Counts
from penstock.storage.local import CheckpointError, Store

FOLDER = "penstock/clock"
KEPT = 200


@dataclass(frozen=True)
class Clocks:
    """What is known when a batch begins: the clock, and what all batches before it counted.

    `partitions` are for people: source, partition, newest event, watermark, idle or not, silent for how long. So is
    `lag`: source, partition, where the batch ended, and where the log did; and `notes`, what logs say of themselves.
    `held` says how much each stage remembers.
    """

    batch: int = 0
    state: ClockState = field(default_factory=ClockState)
    totals: Counts = field(default_factory=Counts)
    bad: dict[str, list[int]] = field(default_factory=dict)
    panes: int = 0
    finished: bool = False
    drained: bool = False
    given: dict[str, int] = field(default_factory=dict)
    open_windows: int = 0
    partitions: list[list[Any]] = field(default_factory=list)
    offsets: str = ""
    lag: list[list[Any]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    held: dict[str, int] = field(default_factory=dict)

    @property
    def watermark(self) -> int:
        """W of this batch."""
        return self.state.watermark


def write_clock(store: Store, lineage: str, clocks: Clocks) -> Clocks:
    """Write the clock of a batch down, once; where it was written before, that one holds, and is given back."""
    name = f"{FOLDER}/{clocks.batch:012d}"
    if not store.create(name, sealed({"lineage": lineage, "state": encoded(clocks.state), **_plain(clocks)})):
        return _read(store, name, lineage)
    if clocks.batch >= KEPT:
        store.delete(f"{FOLDER}/{clocks.batch - KEPT:012d}")
    return clocks


def read_clock(store: Store, lineage: str, batch: int) -> Clocks:
    """The clock of a batch, which was written before the batch before it committed."""
    if batch == 0:
        return Clocks()
    if f"{batch:012d}" not in store.names(FOLDER):
        raise CheckpointError(
            f"the checkpoint {store.root} has no clock for batch {batch}",
            "the watermark of each batch is kept in penstock/clock, and a file is missing there",
            "restore the checkpoint from a copy, or start anew with an empty one",
        )
    return _read(store, f"{FOLDER}/{batch:012d}", lineage)


def latest_clock(store: Store, lineage: str) -> Clocks:
    """The clock of the batch to come, as far as it was written."""
    names = store.names(FOLDER)
    return _read(store, f"{FOLDER}/{names[-1]}", lineage) if names else Clocks()


def _plain(clocks: Clocks) -> dict[str, Any]:
    return {
        "batch": clocks.batch,
        "totals": asdict(clocks.totals),
        "bad": clocks.bad,
        "panes": clocks.panes,
        "finished": clocks.finished,
        "drained": clocks.drained,
        "given": clocks.given,
        "offsets": clocks.offsets,
        "open_windows": clocks.open_windows,
        "partitions": clocks.partitions,
        "lag": clocks.lag,
        "notes": clocks.notes,
        "held": clocks.held,
    }


def _read(store: Store, name: str, lineage: str) -> Clocks:
    data = store.read(name)
    assert data is not None
    held = unsealed(data, f"{store.root}/{name}")
    if held["lineage"] != lineage:
        raise CheckpointError(
            f"the clock {store.root}/{name} belongs to another run",
            "its lineage is not that of this checkpoint: files of two checkpoints were mixed",
            "restore the checkpoint from a copy, or start anew with an empty one",
        )
    return Clocks(
        held["batch"],
        decoded(held["state"]),
        Counts(**held["totals"]),
        held["bad"],
        held["panes"],
        held["finished"],
        held["drained"],
        held["given"],
        held["open_windows"],
        held["partitions"],
        held["offsets"],
        held.get("lag", []),
        held.get("notes", []),
        held.get("held", {}),
    )
