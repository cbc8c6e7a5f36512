"""What is known of a run beside what was observed: is it at work, how far does its checkpoint go, does it wait?"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.checkpoint.status import Waits
from penstock.observability.last_error import Failure, failure
from penstock.storage.local import LocalStore, Store

if TYPE_CHECKING:
    from penstock.checkpoint.status import Standing


@dataclass(frozen=True, slots=True)
class Situation:
    """A run at the moment `at`, in seconds since 1970, at which somebody looks.

    `alive` is None where that cannot be seen from here, `stopped` says that it ended of its own will, `finished` that
    its input is at its end and every window closed. `batch` is the last one that the checkpoint knows.
    """

    at: float
    name: str = ""
    alive: bool | None = True
    stopped: bool = False
    finished: bool = False
    batch: int | None = None
    who: str = "the process that ran it"
    waiting: Waits | None = None
    failure: Failure | None = None

    @property
    def ended(self) -> bool:
        """Whether nobody is at work any more, for whatever reason."""
        return self.stopped or self.finished or self.alive is False or self.failure is not None

    @property
    def state(self) -> str:
        """In a word: running, stopped, finished, failed, died, or unknown."""
        if self.finished:
            return "finished"
        if self.failure is not None:
            return "failed"
        if self.stopped:
            return "stopped"
        return {True: "running", False: "died", None: "unknown"}[self.alive]


def situation(checkpoint: str | Store) -> Situation:
    """How the run of a checkpoint is situated now, as a few small files tell."""
    from penstock.checkpoint.status import standing

    return situated(standing(checkpoint), checkpoint if not isinstance(checkpoint, str) else None)


def situated(found: Standing, store: Store | None = None, at: float | None = None) -> Situation:
    """The situation of a run whose standing is known; `store` has its files, where they are not on a local disk."""
    files = LocalStore(found.checkpoint) if store is None else store
    owner = found.owner
    stopped = owner is None or owner.released
    failed = None if owner is None else failure(files, owner.epoch)
    return Situation(
        at=time.time() if at is None else at,
        name=found.name,
        alive=found.running,
        stopped=stopped,
        finished=found.finished,
        batch=found.batch,
        who="the process that ran it" if owner is None else f"process {owner.pid} on {owner.host}",
        waiting=found.waiting,
        failure=failed,
    )
