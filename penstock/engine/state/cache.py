"""Parts of memories that this process has decoded, kept by their content's name while a memory has them.

A name is the hash of the bytes, so what is found here is right whichever attempt, restore or pipeline asks for it.
Where there is no room for all, the least recently used leaves.
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable
from typing import Any

SHARE = 4  # all workers of a machine together keep up to one part in so many of its memory
LEAST_MB, MOST_MB = 256, 4096


class Cache:
    """Values by name, as many as fit into so many bytes."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.held = 0
        self._values: OrderedDict[str, tuple[Any, int]] = OrderedDict()
        self._names: dict[Hashable, frozenset[str]] = {}
        self._lock = threading.Lock()

    def get(self, name: str, make: Callable[[], tuple[Any, int]]) -> Any:
        """The value of this name: one that is here, or else one that is made, with its size in bytes."""
        with self._lock:
            if name in self._values:
                self._values.move_to_end(name)
                return self._values[name][0]
        value, size = make()
        self.put(name, value, size)
        return value

    def put(self, name: str, value: Any, size: int) -> None:
        """Keep a value, and let go of others for it; one that is too large for the cache is not kept."""
        with self._lock:
            if name in self._values or size > self.limit:
                return
            self._values[name] = (value, size)
            self.held += size
            while self.held > self.limit:
                _, (_, gone) = self._values.popitem(last=False)
                self.held -= gone

    def only(self, owner: Hashable, before: Iterable[str], after: Iterable[str]) -> None:
        """Let go of what a memory had before and has no more: before its last batch, or when it was here last."""
        with self._lock:
            kept = frozenset(after)
            for name in {*before, *self._names.get(owner, ())} - kept:
                _, gone = self._values.pop(name, (None, 0))
                self.held -= gone
            self._names[owner] = kept

    def clear(self) -> None:
        """Forget everything, as a new process would."""
        with self._lock:
            self._values.clear()
            self._names.clear()
            self.held = 0


def default_mb(memory: int, cores: int) -> int:
    """How much a worker keeps unless it is told: tasks wander, so each may come to hold the shards of all."""
    return max(LEAST_MB, min(memory // SHARE // cores >> 20, MOST_MB))


def machine_memory() -> int:
    """The bytes of memory that this process may use: the machine's, or fewer where its group is held to fewer."""
    whole = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    try:
        with open("/sys/fs/cgroup/memory.max") as told:
            return min(whole, int(told.read()))
    except (OSError, ValueError):  # no such groups here, or "max"
        return whole


CACHE = Cache(int(os.environ.get("PENSTOCK_CACHE_MB") or default_mb(machine_memory(), os.cpu_count() or 1)) << 20)
