"""What files are in a directory: names, sizes and times, on a local disk or any file system that pyarrow knows."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from penstock.errors import DataError

HIDDEN = (".", "_")


@dataclass(frozen=True, slots=True)
class File:
    """A file that has been listed: when its content was written, and when it came to be where it is.

    A copy that keeps its time (rsync -t) was written long ago and has only just come; where a file system knows one
    time alone, both are that.
    """

    name: str
    size: int
    written: int
    came: int

    @property
    def key(self) -> tuple[int, str]:
        """The order in which files are read."""
        return self.written, self.name


def listed(path: str) -> list[File]:
    """All files below a directory whose names, and whose directories' names, do not begin with a dot or underscore."""
    if is_local(path):
        root = _local(path)
        if not os.path.isdir(root):
            raise no_directory(path)
        return list(_walk(root, ""))
    return _remote(path)


def stat(path: str, name: str) -> tuple[int, int]:
    """A file's size and the time of its content."""
    if is_local(path):
        try:
            found = os.stat(os.path.join(_local(path), name))
        except FileNotFoundError:
            raise vanished(f"{path}/{name}") from None
        return found.st_size, found.st_mtime_ns
    system, root = system_of(path)
    info = system.get_file_info(f"{root}/{name}")
    if not info.is_file:
        raise vanished(f"{path}/{name}")
    return info.size, info.mtime_ns or 0


def opened(path: str, name: str, size: int, written: int, *, seekable: bool) -> Any:
    """A file as it was listed, open to be read; compressed text is inflated on the way."""
    if stat(path, name) != (size, written):
        raise changed(f"{path}/{name}")
    system, root = system_of(path)
    whole = f"{root}/{name}"
    return system.open_input_file(whole) if seekable else system.open_input_stream(whole, compression="detect")


def system_of(path: str) -> tuple[Any, str]:
    """The file system of a path, and the path within it."""
    import pyarrow.fs as fs

    if is_local(path):
        return fs.LocalFileSystem(), _local(path)
    system, root = fs.FileSystem.from_uri(path)
    return system, root


def is_local(path: str) -> bool:
    """Whether a path is one of the local disk rather than a URI."""
    return "://" not in path or path.startswith("file://")


def _local(path: str) -> str:
    return os.path.abspath(path.removeprefix("file://"))


def _walk(root: str, below: str) -> Iterator[File]:
    with os.scandir(os.path.join(root, below) if below else root) as entries:
        for entry in entries:
            if entry.name.startswith(HIDDEN):
                continue
            name = f"{below}/{entry.name}" if below else entry.name
            if entry.is_dir():
                yield from _walk(root, name)
                continue
            try:
                found = entry.stat()
            except FileNotFoundError:  # renamed or removed since the directory was opened
                continue
            if entry.is_file():
                yield File(name, found.st_size, found.st_mtime_ns, max(found.st_mtime_ns, found.st_ctime_ns))


def _remote(path: str) -> list[File]:
    import pyarrow.fs as fs

    system, root = system_of(path)
    if system.get_file_info(root).type == fs.FileType.NotFound:
        raise no_directory(path)
    files = []
    for info in system.get_file_info(fs.FileSelector(root, recursive=True)):
        name = info.path[len(root) :].lstrip("/")
        if info.is_file and not any(part.startswith(HIDDEN) for part in name.split("/")):
            files.append(File(name, info.size, info.mtime_ns or 0, info.mtime_ns or 0))
    return files


def vanished(where: str) -> DataError:
    """A file that is to be read and is not there any more."""
    return DataError(
        f"{where} is not there any more, and has not been read to its end",
        "a batch that was planned is read again after a crash, and must find the same files",
        "put the file back; move files away only when a later batch has been committed",
    )


def changed(where: str) -> DataError:
    """A file whose size or time is not what it was."""
    return DataError(
        f"{where} was changed after it had been listed",
        "the rows of a file have offsets, and a replay must find them where they were",
        "put the old content back with its old time, and write what is new into a file of its own",
    )


def no_directory(path: str) -> DataError:
    """A directory that is not there."""
    return DataError(
        f"there is no directory {path}",
        "the source reads the files that appear in it",
        "make the directory, empty if need be, or mend the path",
    )
