"""Small files beside Spark's own in a checkpoint: read, create once, list; on a local disk or where Spark reaches."""

from __future__ import annotations

import errno
import os
import uuid
from pathlib import Path
from typing import Protocol
from urllib.parse import unquote, urlsplit

from penstock.errors import PenstockError


class CheckpointError(PenstockError):
    """A checkpoint cannot be read, written or used, and why."""


class Store(Protocol):
    """Files by name below a checkpoint."""

    root: str

    def read(self, name: str) -> bytes | None:
        """The bytes of a file, or None where there is none."""

    def create(self, name: str, data: bytes) -> bool:
        """Make a file, whole or not at all; False where it is there already."""

    def names(self, folder: str) -> list[str]:
        """The names of the files in a folder, in order."""

    def delete(self, name: str) -> None:
        """Remove a file, if it is there."""


class LocalStore:
    """A checkpoint on a disk of this machine."""

    def __init__(self, root: str) -> None:
        self.root = root
        self._path = Path(root)

    def read(self, name: str) -> bytes | None:
        """The bytes of a file, or None where there is none."""
        try:
            return (self._path / name).read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise unreadable(f"{self.root}/{name}", error) from error

    def create(self, name: str, data: bytes) -> bool:
        """Make a file, whole or not at all; False where it is there already."""
        path = self._path / name
        aside = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with open(aside, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            try:
                os.link(aside, path)
            except FileExistsError:
                return False
            finally:
                aside.unlink(missing_ok=True)
        except OSError as error:
            raise unwritable(f"{self.root}/{name}", error) from error
        return True

    def names(self, folder: str) -> list[str]:
        """The names of the files in a folder, in order."""
        try:
            return sorted(one.name for one in os.scandir(self._path / folder) if not one.name.startswith("."))
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as error:
            raise unreadable(f"{self.root}/{folder}", error) from error

    def delete(self, name: str) -> None:
        """Remove a file, if it is there."""
        (self._path / name).unlink(missing_ok=True)


def local_path(checkpoint: str) -> str | None:
    """The path of a checkpoint on this machine's disk, or None where it lies elsewhere."""
    parts = urlsplit(checkpoint)
    if parts.scheme in ("", "file") or len(parts.scheme) == 1:
        return os.path.abspath(unquote(parts.path) if parts.scheme == "file" else checkpoint)
    return None


def unreadable(where: str, error: Exception) -> CheckpointError:
    """The refusal of a checkpoint that cannot be read."""
    return CheckpointError(
        f"the checkpoint file {where} cannot be read",
        str(error),
        "give this user the right to read it, or restore the checkpoint from a copy",
    )


def unwritable(where: str, error: Exception) -> CheckpointError:
    """The end of a run whose checkpoint cannot be written."""
    full = isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)
    return CheckpointError(
        f"the checkpoint file {where} cannot be written",
        "the disk is full" if full else str(error),
        "free some space and start again: nothing was half committed, and the run goes on where it stopped"
        if full
        else "give this user the right to write there, and start again",
    )
