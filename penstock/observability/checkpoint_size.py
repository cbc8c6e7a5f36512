"""How large is a checkpoint? Its files on a local disk, counted now and then, and not without end."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field

from penstock.storage.local import LocalStore, Store

EVERY_SECONDS = 30.0  # between two counts
MOST_FILES = 20_000  # that are looked at


@dataclass
class Measured:
    """The size of a checkpoint as it was found last; nothing where its files are elsewhere."""

    store: Store
    found: dict[str, int] = field(default_factory=dict)
    at: float | None = None

    def now(self) -> dict[str, int]:
        """Bytes and files; `more` is there where not all of them were looked at."""
        if isinstance(self.store, LocalStore) and (self.at is None or time.monotonic() - self.at >= EVERY_SECONDS):
            self.found, self.at = counted(self.store.root), time.monotonic()
        return self.found


def counted(root: str) -> dict[str, int]:
    """The files below a folder: how many bytes, how many files. One that goes meanwhile is not counted."""
    bytes_, files, folders = 0, 0, [root]
    while folders:
        try:
            with os.scandir(folders.pop()) as inside:
                for one in inside:
                    if one.is_dir(follow_symlinks=False):
                        folders.append(one.path)
                    else:
                        bytes_ += one.stat(follow_symlinks=False).st_size
                        files += 1
                    if files >= MOST_FILES:
                        return {"bytes": bytes_, "files": files, "more": 1}
        except OSError:
            continue
    return {"bytes": bytes_, "files": files}
