"""What a run takes of the machine: its processes, the memory they hold and held at most, the files they have open."""

from __future__ import annotations

import os
from pathlib import Path


def tree(root: int) -> list[int]:
    """A process and all below it."""
    parents: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                fields = Path(f"/proc/{name}/stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            parents.setdefault(int(fields[1]), []).append(int(name))
    found, left = [], [root]
    while left:
        one = left.pop()
        found.append(one)
        left += parents.get(one, [])
    return found


def resident(pids: list[int]) -> float:
    """The memory they hold, in MB; shared pages are split among those who share them."""
    total = 0
    for pid in pids:
        try:
            lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
        except OSError:
            continue
        total += sum(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    return total / 1024


def open_files(pids: list[int]) -> int:
    """How many files and sockets they have open."""
    count = 0
    for pid in pids:
        try:
            count += len(os.listdir(f"/proc/{pid}/fd"))
        except OSError:
            continue
    return count


def peaks() -> dict[str, int]:
    """What this process, the JVM and all other processes below it have held at most, each at its own time, in MB.

    Pages that workers share with the process they were forked from count for each.
    """
    found = {"driver": 0, "jvm": 0, "workers": 0}
    for pid in tree(os.getpid()):
        try:
            name = Path(f"/proc/{pid}/comm").read_text().strip()
            held = [line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmHWM:")]
        except OSError:
            continue
        who = "driver" if pid == os.getpid() else "jvm" if name == "java" else "workers"
        found[who] += sum(int(line.split()[1]) for line in held) // 1024
    return found


def told(held: dict[str, int]) -> str:
    """The same for people."""
    return "peak memory: " + ", ".join(f"{who} {megabytes:,} MB" for who, megabytes in held.items())
