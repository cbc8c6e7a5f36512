"""Are Spark's own logs whole? Nothing guards its offsets and commits, so they are looked at before it reads them."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from penstock.checkpoint.checksummed_json import checksum
from penstock.storage.local import CheckpointError, Store

CHECK = "check"
NOWHERE = "-"  # Spark's word for a source that has no offset yet
READ_AT_START = 2
_OURS = {"now", "sources", CHECK}


def checked(offset: dict[str, Any]) -> dict[str, Any]:
    """An offset of our source with a checksum, which Spark keeps with it."""
    return {**offset, CHECK: _check(offset)}


def refuse_damaged_logs(store: Store) -> None:
    """Refuse a checkpoint in which a file that Spark reads as it starts was cut short or changed."""
    for folder in ("offsets", "commits"):
        numbers = sorted(int(name) for name in store.names(folder) if name.isdigit())
        for number in numbers[-READ_AT_START:]:
            name = f"{folder}/{number}"
            if not _whole((store.read(name) or b"").decode("utf-8", "replace")):
                raise _damaged(store, name)


def offsets_digest(store: Store, batch: int) -> str:
    """A checksum of what Spark wrote down of a batch's offsets, to be kept in the clock of the next batch."""
    return checksum(store.read(f"offsets/{batch}") or b"")


def positions(store: Store, batch: int) -> dict[str, Any]:
    """Where a batch ended in each of our sources, as Spark wrote it down; nothing where it has not."""
    sources: dict[str, Any] = located(store, batch).get("sources", {})
    return sources


def located(store: Store, batch: int) -> dict[str, Any]:
    """Where a batch ended: in each of our sources, and how many files of repaired rows it had read."""
    for line in _lines(store, batch):
        if _is_ours(line):
            held = json.loads(line)
            return {name: held[name] for name in ("sources", "repaired") if name in held}
    return {}


def foreign(store: Store, batch: int) -> list[str]:
    """Where a batch ended in the sources that are not ours, as Spark wrote it down."""
    return [line for line in _lines(store, batch)[2:] if line != NOWHERE and not _is_ours(line)]


def refuse_changed_offsets(store: Store, batch: int, digest: str) -> None:
    """Refuse a checkpoint in which the offsets of a batch that was finished are not those it ran with."""
    name = f"offsets/{batch}"
    found = store.read(name)
    if digest and found is not None and checksum(found) != digest:
        raise _damaged(store, name)


def _lines(store: Store, batch: int) -> list[str]:
    """A version, what Spark knows of the batch, and a line for each source."""
    return (store.read(f"offsets/{batch}") or b"").decode().splitlines()


def _is_ours(line: str) -> bool:
    return line.startswith("{") and set(json.loads(line)) >= _OURS


def _damaged(store: Store, name: str) -> CheckpointError:
    return CheckpointError(
        f"the checkpoint file {store.root}/{name} is damaged",
        "it is not what Spark wrote there: it was cut short or changed",
        "restore the checkpoint from a copy, or start anew with an empty one",
    )


def drop_orphans(root: str) -> None:
    """Remove the checksums of files that are gone, as after `rm commits/7`: Hadoop would refuse to write them again."""
    for folder in ("offsets", "commits"):
        path = Path(root) / folder
        names = set(os.listdir(path)) if path.is_dir() else set()
        for name in names:
            if name.startswith(".") and name.endswith(".crc") and name[1:-4].isdigit() and name[1:-4] not in names:
                (path / name).unlink(missing_ok=True)


def _whole(text: str) -> bool:
    """A line with a version, then JSON; a source of Spark's may have an offset of its own kind."""
    version, *lines = text.splitlines() or [""]
    if version not in ("v1", "v2", "v3") or not lines:
        return False
    for line in lines:
        if line.startswith("{"):
            try:
                held = json.loads(line)
            except ValueError:
                return False
            if _OURS & set(held) and held.pop(CHECK, None) != _check(held):
                return False
    return lines[0].startswith("{")


def _check(offset: dict[str, Any]) -> str:
    return checksum(json.dumps(offset, separators=(",", ":"), sort_keys=True).encode())
