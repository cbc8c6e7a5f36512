"""What does a run wait for: a note beside its clocks while a sink does not answer, for whoever asks from outside."""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass

from penstock.checkpoint.checksummed_json import sealed, unsealed
from penstock.checkpoint.lease import Owner
from penstock.storage.local import Store

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
