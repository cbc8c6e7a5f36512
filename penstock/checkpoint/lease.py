"""Who may write to a checkpoint: a number that grows with every start; whoever holds an older one has lost it."""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock.checkpoint.checksummed_json import sealed, unsealed
from penstock.storage.local import CheckpointError, Store

FOLDER = "penstock/epochs"
_here: set[str] = set()


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to write, as long as no later epoch was taken."""

    store: Store
    epoch: int

    def refuse_if_lost(self) -> None:
        """Stop where another instance has taken the checkpoint over."""
        latest = _latest(self.store)
        if latest != self.epoch:
            owner = _owner(self.store, latest)
            raise CheckpointError(
                f"another instance has taken over the checkpoint {self.store.root}",
                f"process {owner.get('pid')} on {owner.get('host')} started after this one",
                "nothing of this instance was written since; stop one of the two for good",
            )

    def release(self) -> None:
        """Say that this instance has stopped of its own will."""
        _here.discard(self.store.root)
        self.store.create(f"{FOLDER}/{self.epoch:09d}.released", b"")


@dataclass(frozen=True, slots=True)
class Owner:
    """The instance that started last: `alive` is None where that cannot be seen from this machine."""

    epoch: int
    pid: int
    host: str
    released: bool
    alive: bool | None


def last_owner(store: Store) -> Owner | None:
    """Who took the checkpoint last, and whether it is still at work."""
    epoch = _latest(store)
    held = _owner(store, epoch) if epoch else {}
    if not held:
        return None
    pid, host = int(held["pid"]), str(held["host"])
    here = host == socket.gethostname()
    alive = _started(pid) == held.get("started") and not _stopped(pid) if here else None
    return Owner(epoch, pid, host, f"{epoch:09d}.released" in store.names(FOLDER), alive)


def take_lease(store: Store) -> Lease:
    """Take the next epoch; refused while another instance on this machine is alive."""
    while True:
        last = last_owner(store)
        latest = last.epoch if last is not None else 0
        if last is not None and not last.released and last.alive and (last.pid != os.getpid() or store.root in _here):
            raise CheckpointError(
                f"the checkpoint {store.root} is in use",
                f"process {last.pid} on this machine runs it",
                "stop it first, by its handle" if last.pid == os.getpid() else f"stop that one first: kill {last.pid}",
            )
        owner = {"host": socket.gethostname(), "pid": os.getpid(), "started": _started(os.getpid())}
        if store.create(f"{FOLDER}/{latest + 1:09d}", sealed(owner)):
            for old in [name for name in store.names(FOLDER) if int(name[:9]) < latest]:
                store.delete(f"{FOLDER}/{old}")
            _here.add(store.root)
            return Lease(store, latest + 1)


def _latest(store: Store) -> int:
    return max((int(name) for name in store.names(FOLDER) if name.isdigit()), default=0)


def _owner(store: Store, epoch: int) -> dict[str, Any]:
    name = f"{FOLDER}/{epoch:09d}"
    data = store.read(name)
    return unsealed(data, f"{store.root}/{name}") if data is not None else {}


def _started(pid: int) -> str | None:
    """When a process of this machine began, which tells it from a later one of the same number."""
    fields = _stat(pid)
    return fields[19] if fields else None


def _stopped(pid: int) -> bool:
    """Whether a process is stopped or dead: it cannot object to losing its checkpoint."""
    fields = _stat(pid)
    return not fields or fields[0] in "TtZXx"


def _stat(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []
