"""What a run says between its batches: that one waits for a sink, or why it failed. Kept beside the checkpoint."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from typing import TypeVar

from penstock.checkpoint.store import Store
from penstock.errors import PenstockError

FOLDER = "penstock/said"
LONGEST = 2_000  # characters of each part of an error


@dataclass(frozen=True, slots=True)
class Waiting:
    """A batch that waits: which one, for what, and since when by the clock of the machine."""

    batch: int
    what: str
    since: float


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a run ended: the start that failed, and the three parts of its error."""

    epoch: int
    what: str
    why: str
    instead: str


Said = TypeVar("Said", Waiting, Failure)


def say_waiting(store: Store, batch: int, what: str) -> None:
    """Say that a batch waits; where that was said before, it has waited since then."""
    _say(store, f"waiting-{batch:012d}", {"batch": batch, "what": what[:LONGEST], "since": time.time()})


def say_served(store: Store, batch: int) -> None:
    """Take back that a batch waits."""
    store.delete(f"{FOLDER}/waiting-{batch:012d}")


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
    _say(store, mine, {"epoch": epoch, **parts})


def waiting(store: Store, last: int | None) -> Waiting | None:
    """What the batch after the last one waits for, if it does."""
    for name in store.names(FOLDER):
        if name.startswith("waiting-"):
            held = _read(store, name, Waiting)
            if held is not None and held.batch > (-1 if last is None else last):
                return held
    return None


def failure(store: Store, epoch: int) -> Failure | None:
    """Why a start failed, if it has said so."""
    return _read(store, f"failed-{epoch:09d}", Failure)


def _say(store: Store, name: str, held: dict[str, object]) -> None:
    store.create(f"{FOLDER}/{name}", json.dumps(held).encode())


def _read(store: Store, name: str, kind: type[Said]) -> Said | None:
    """What was said; None where it was not, or by a version that says other things."""
    data = store.read(f"{FOLDER}/{name}")
    try:
        return None if data is None else kind(**json.loads(data))
    except (ValueError, TypeError):
        return None
