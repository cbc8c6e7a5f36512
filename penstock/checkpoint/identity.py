"""Whose checkpoint this is: the pipeline's name, its lineage, its shards and what binds its plan, written once."""

from __future__ import annotations

import uuid
from dataclasses import dataclass

from penstock.checkpoint.checksummed_json import sealed, unsealed
from penstock.checkpoint.compatibility import binding, refuse_change
from penstock.plan.graph import Flow
from penstock.storage.local import CheckpointError, Store

FILE = "penstock/identity"


@dataclass(frozen=True, slots=True)
class Identity:
    """What was fixed when the checkpoint was made."""

    name: str
    lineage: str
    shards: int
    binding: dict[str, str]


def read_identity(store: Store) -> Identity | None:
    """What a checkpoint says of itself, or None where it is new."""
    data = store.read(FILE)
    if data is None:
        if store.names("offsets") or store.names("commits"):
            raise CheckpointError(
                f"{store.root} is a checkpoint of Spark, but not of a Penstock pipeline",
                "it has offsets and no penstock/identity",
                "choose another folder for this pipeline's checkpoint",
            )
        return None
    held = unsealed(data, f"{store.root}/{FILE}")
    return Identity(held["name"], held["lineage"], held["shards"], held["binding"])


def identity_of(store: Store, name: str, flow: Flow, shards: int | None, default: int) -> Identity:
    """The checkpoint's identity: read and compared with the plan, or made where it is new."""
    held = read_identity(store)
    if held is None:
        number = shards or default
        made = Identity(name, uuid.uuid4().hex, number, binding(flow, number))
        new = {"name": name, "lineage": made.lineage, "shards": number, "binding": made.binding}
        if store.create(FILE, sealed(new)):
            return made
        held = read_identity(store)
        assert held is not None
    refuse_foreign(store.root, held, name, flow, shards)
    return held


def refuse_foreign(checkpoint: str, held: Identity, name: str, flow: Flow, shards: int | None) -> None:
    """Refuse a checkpoint of another pipeline, or one that the plan does not fit."""
    if held.name != name:
        raise CheckpointError(
            f"the checkpoint {checkpoint} belongs to the pipeline {held.name!r}",
            f"this pipeline is called {name!r}, and two pipelines cannot share a checkpoint",
            "choose another folder, or give the pipeline its old name",
        )
    refuse_change(checkpoint, held.binding, binding(flow, shards or held.shards))
