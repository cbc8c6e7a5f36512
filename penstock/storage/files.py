"""Where files lie: a local directory, or anything pyarrow reaches by URI, with the few things a sink needs of it.

On a local directory `create` is exclusive: a file appears whole, under a name that nobody has taken, or not at all.
Other file systems show a file when it is complete, but pyarrow has no exclusive creation for them: there a name is
looked at first and then written, so two writers at the same moment are not told apart.
"""

from __future__ import annotations

import os
import uuid
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow.fs as pafs


class Place(Protocol):
    """A directory of files, all named by their path below it."""

    exclusive: bool

    def create(self, name: str, content: bytes) -> bool:
        """Make a file, whole, unless the name is taken; whether it was made."""

    def read(self, name: str) -> bytes:
        """What a file holds."""

    def exists(self, name: str) -> bool:
        """Whether there is such a file."""

    def names(self, folder: str) -> list[str]:
        """The files directly in a folder, sorted; none where there is no such folder."""

    def folders(self, folder: str) -> list[str]:
        """The folders directly in a folder, sorted."""

    def remove(self, name: str) -> None:
        """Remove a file, if it is there."""

    def sink(self, name: str) -> Any:
        """A stream to write a file of a name that nobody else uses."""

    def settle(self, name: str) -> int:
        """Make sure that a written file outlives a loss of power; its size."""

    def full(self, name: str) -> str:
        """The path or URI by which others find the file."""


def place_of(path: str) -> Place:
    """The place that a path or URI names."""
    if "://" not in path:
        return LocalPlace(os.path.abspath(path))
    system, inner = pafs.FileSystem.from_uri(path)
    if isinstance(system, pafs.LocalFileSystem):
        return LocalPlace(inner)
    return RemotePlace(system, inner.rstrip("/"), path.split("://", 1)[0])


@dataclass(frozen=True, slots=True)
class LocalPlace:
    """A directory of this machine."""

    root: str
    exclusive = True

    def create(self, name: str, content: bytes) -> bool:
        """Written aside, made safe, then linked to its name, which fails if the name is taken."""
        whole = self.full(name)
        os.makedirs(os.path.dirname(whole), exist_ok=True)
        aside = f"{whole}.{uuid.uuid4().hex}.aside"
        try:
            with open(aside, "xb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            os.link(aside, whole)
        except FileExistsError:
            return False
        finally:
            if os.path.exists(aside):
                os.remove(aside)
        _settle_folder(os.path.dirname(whole))
        return True

    def read(self, name: str) -> bytes:
        """What a file holds."""
        with open(self.full(name), "rb") as file:
            return file.read()

    def exists(self, name: str) -> bool:
        """Whether there is such a file."""
        return os.path.exists(self.full(name))

    def names(self, folder: str) -> list[str]:
        """The files directly in a folder, sorted."""
        return self._listed(folder, files=True)

    def folders(self, folder: str) -> list[str]:
        """The folders directly in a folder, sorted."""
        return self._listed(folder, files=False)

    def remove(self, name: str) -> None:
        """Remove a file, if it is there."""
        if os.path.exists(self.full(name)):
            os.remove(self.full(name))

    def sink(self, name: str) -> Any:
        """A new file to write."""
        os.makedirs(os.path.dirname(self.full(name)), exist_ok=True)
        return open(self.full(name), "xb")

    def settle(self, name: str) -> int:
        """Put the file and its folder to disk."""
        whole = self.full(name)
        with open(whole, "rb") as file:
            os.fsync(file.fileno())
        _settle_folder(os.path.dirname(whole))
        return os.path.getsize(whole)

    def full(self, name: str) -> str:
        """The absolute path."""
        return os.path.join(self.root, *name.split("/")) if name else self.root

    def _listed(self, folder: str, *, files: bool) -> list[str]:
        try:
            with os.scandir(self.full(folder)) as found:
                return sorted(one.name for one in found if one.is_file() == files)
        except FileNotFoundError:
            return []


@dataclass(frozen=True, slots=True)
class RemotePlace:
    """A directory that pyarrow reaches: an object store or HDFS."""

    system: Any
    root: str
    scheme: str = "file"
    exclusive = False

    def create(self, name: str, content: bytes) -> bool:
        """Looked at, then written in one piece."""
        if self.exists(name):
            return False
        with self.sink(name) as stream:
            stream.write(content)
        return True

    def read(self, name: str) -> bytes:
        """What a file holds."""
        with self.system.open_input_stream(self._inner(name)) as stream:
            content: bytes = stream.read()
        return content

    def exists(self, name: str) -> bool:
        """Whether there is such a file."""
        return bool(self.system.get_file_info(self._inner(name)).type == pafs.FileType.File)

    def names(self, folder: str) -> list[str]:
        """The files directly in a folder, sorted."""
        return self._listed(folder, pafs.FileType.File)

    def folders(self, folder: str) -> list[str]:
        """The folders directly in a folder, sorted."""
        return self._listed(folder, pafs.FileType.Directory)

    def remove(self, name: str) -> None:
        """Remove a file, if it is there."""
        if self.exists(name):
            self.system.delete_file(self._inner(name))

    def sink(self, name: str) -> Any:
        """A new file to write; shown when it is complete."""
        self.system.create_dir(self._inner(name).rsplit("/", 1)[0], recursive=True)
        return self.system.open_output_stream(self._inner(name))

    def settle(self, name: str) -> int:
        """The size of the file; the store has it safe when its stream was closed."""
        return int(self.system.get_file_info(self._inner(name)).size)

    def full(self, name: str) -> str:
        """The URI."""
        return f"{self.scheme}://{self._inner(name)}"

    def _inner(self, name: str) -> str:
        return f"{self.root}/{name}" if name else self.root

    def _listed(self, folder: str, kind: Any) -> list[str]:
        selector = pafs.FileSelector(self._inner(folder), allow_not_found=True)
        return sorted(info.base_name for info in self.system.get_file_info(selector) if info.type == kind)


def _settle_folder(folder: str) -> None:
    number = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)
