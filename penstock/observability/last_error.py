"""Why a run failed, as it says itself: kept beside the checkpoint for whoever looks at it later."""

from __future__ import annotations

import json
from dataclasses import dataclass

from penstock.errors import PenstockError
from penstock.storage.local import Store

FOLDER = "penstock/said"
LONGEST = 2_000  # characters of each part of an error


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a run ended: the start that failed, and the three parts of its error."""

    epoch: int
    what: str
    why: str
    instead: str


def say_failed(store: Store, epoch: int, error: BaseException) -> None:
    """Say why a start failed, once; what earlier ones said is let go."""
    mine = f"failed-{epoch:09d}"
    for name in store.names(FOLDER):
        if name.startswith("failed-") and name < mine:
            store.delete(f"{FOLDER}/{name}")
    told = error
    if not isinstance(told, PenstockError):
        unforeseen = f"{type(error).__name__}: {error}"
        told = PenstockError(unforeseen, "nobody foresaw this error", "look at what the run has printed")
    parts = {"what": told.what[:LONGEST], "why": told.why[:LONGEST], "instead": told.instead[:LONGEST]}
    store.create(f"{FOLDER}/{mine}", json.dumps({"epoch": epoch, **parts}).encode())


def failure(store: Store, epoch: int) -> Failure | None:
    """Why a start failed; None where it did not say so, or a version did that says other things."""
    data = store.read(f"{FOLDER}/failed-{epoch:09d}")
    try:
        return None if data is None else Failure(**json.loads(data))
    except (ValueError, TypeError):
        return None
