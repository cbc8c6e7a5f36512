"""What is published: the manifests of a directory, its epochs, and who may add the next one."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

import pyarrow as pa

from penstock.connectors.ownership import Claim, Held, claimed
from penstock.connectors.sink import Batch, Ledger
from penstock.connectors.sink_errors import columns_differ, manifests_lost
from penstock.errors import PenstockError
from penstock.plan.output_schemas import Target
from penstock.storage.files import Place

EPOCHS = "_penstock/epochs"
# Outlives a deleted `_penstock`, so that files which were data are not taken for leftovers.
BEGUN = "data/_begun.json"
VERSION = 1


@dataclass(frozen=True, slots=True)
class Epoch:
    """Who may write from here on, and what of the lineages before stays: `kept` is the last batch of each."""

    number: int
    sink: str
    lineage: str
    epoch: int
    format: str
    kind: str
    mode: str
    keys: list[str]
    schema: str
    kept: dict[str, int] = field(default_factory=dict)
    version: int = VERSION

    def arrow_schema(self) -> pa.Schema:
        """The columns of the rows."""
        return pa.ipc.read_schema(pa.py_buffer(base64.b64decode(self.schema)))


@dataclass(frozen=True, slots=True)
class Manifest:
    """One published batch."""

    sink: str
    lineage: str
    batch: int
    epoch: int
    rows: int
    fingerprint: str
    files: list[dict[str, Any]]
    version: int = VERSION


def last_epoch(place: Place) -> Epoch | None:
    """Who may write now."""
    names = [name for name in place.names(EPOCHS) if name.endswith(".json")]
    return Epoch(**_read(place, f"{EPOCHS}/{names[-1]}")) if names else None


def superseded(place: Place, mine: Epoch) -> bool:
    """Whether somebody has taken the next epoch."""
    return place.exists(_epoch_name(mine.number + 1))


def claim_place(place: Place, claim: Claim, target: Target, format: str) -> Epoch:
    """Take the directory for a lineage and an epoch: compare, then set by a file that only one can make."""
    while True:
        found = last_epoch(place)
        if found is not None:
            _check_columns(claim.place, found, target, format)
        elif place.exists(BEGUN):
            raise manifests_lost(claim.place)
        now = None if found is None else last_ledger(place, found)
        taken = claimed(claim, Held(now, list(found.kept) if found else ()))
        if found is not None and now == taken:
            return found
        kept = dict(found.kept) if found else {}
        if now is not None and now.lineage != claim.lineage:
            kept[now.lineage] = now.batch
        schema = base64.b64encode(target.schema.serialize().to_pybytes()).decode()
        mine = Epoch(
            found.number + 1 if found else 0,
            claim.sink,
            claim.lineage,
            claim.epoch,
            format,
            target.kind,
            target.mode,
            list(target.keys),
            schema,
            kept,
        )
        if place.create(_epoch_name(mine.number), _bytes(asdict(mine))):
            place.create(BEGUN, _bytes({"sink": claim.sink, "lineage": claim.lineage}))
            return mine


def last_ledger(place: Place, epoch: Epoch) -> Ledger:
    """What the lineage of an epoch published or marked last."""
    names = place.names(f"_penstock/{epoch.lineage}")
    last = max((name for name in names if name.endswith((".json", ".mark"))), default=None)
    if last is None:
        return Ledger(epoch.sink, epoch.lineage, -1, epoch.epoch, 0, "")
    found = Manifest(**_read(place, f"_penstock/{epoch.lineage}/{last}"))
    return Ledger(found.sink, found.lineage, found.batch, epoch.epoch, found.rows, found.fingerprint)


def publish(place: Place, sink: str, batch: Batch, files: list[dict[str, Any]] | None) -> None:
    """Make a manifest, or a mark where there are no files to name; FileExistsError if the batch is published."""
    manifest = Manifest(sink, batch.lineage, batch.batch, batch.epoch, batch.rows, batch.fingerprint, files or [])
    stem = f"_penstock/{batch.lineage}/{batch.batch:09d}"
    if files is None:
        place.create(f"{stem}.mark", _bytes(asdict(manifest)))
        return
    # At least once: a batch that is there is published again, beside itself.
    again = 0
    while not place.create(f"{stem}{f'-again-{again}' if again else ''}.json", _bytes(asdict(manifest))):
        if not batch.replayed:
            raise FileExistsError(f"{stem}.json is there already")
        again += 1


def manifests(place: Place) -> Iterator[Manifest]:
    """All that is published, in the order in which it was: lineage after lineage, batch after batch."""
    epoch = last_epoch(place)
    if epoch is None:
        return
    for lineage in [*epoch.kept, *([epoch.lineage] if epoch.lineage not in epoch.kept else [])]:
        for name in place.names(f"_penstock/{lineage}"):
            if name.endswith(".json"):
                manifest = Manifest(**_read(place, f"_penstock/{lineage}/{name}"))
                # What a lineage published after it was taken over is not data.
                if manifest.batch <= epoch.kept.get(lineage, manifest.batch):
                    yield manifest


def _check_columns(name: str, found: Epoch, target: Target, format: str) -> None:
    there, here = found.arrow_schema(), target.schema
    if not there.equals(here) or found.format != format:
        raise columns_differ(
            name,
            [*((one.name, str(one.type)) for one in there), ("the format", found.format)],
            [*((one.name, str(one.type)) for one in here), ("the format", format)],
        )


def _read(place: Place, name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(place.read(name))
    if found.get("version") != VERSION:
        raise PenstockError(
            f"{place.full(name)} has the version {found.get('version')}, and this Penstock knows {VERSION}",
            "it was written by another version of Penstock",
            "use the version that wrote it, or a newer one",
        )
    return found


def _bytes(record: dict[str, Any]) -> bytes:
    return json.dumps(record, indent=1).encode()


def _epoch_name(number: int) -> str:
    return f"{EPOCHS}/{number:09d}.json"
