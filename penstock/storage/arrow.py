"""Files by name wherever pyarrow reaches: what the tasks of a run write, in whatever process each of them is."""

from __future__ import annotations

import uuid
from contextlib import suppress

from pyarrow import fs

from penstock.storage.local import LocalStore, Store, local_path, unreadable, unwritable


class ArrowStore:
    """A folder in a file system of pyarrow: an object store, HDFS.

    A file is written aside and moved to its name. Of two that are made at one moment neither need be refused; but Spark
    runs one attempt of a task at a time, for speculation is refused.
    """

    def __init__(self, root: str) -> None:
        self.root = root
        self._system, self._folder = fs.FileSystem.from_uri(root)

    def read(self, name: str) -> bytes | None:
        """The bytes of a file, or None where there is none."""
        try:
            if not self._there(name):
                return None
            with self._system.open_input_stream(self._path(name)) as stream:
                return bytes(stream.read())
        except OSError as error:
            raise unreadable(f"{self.root}/{name}", error) from error

    def create(self, name: str, data: bytes) -> bool:
        """Make a file, whole or not at all; False where it is there already."""
        path = self._path(name)
        folder, _, plain = path.rpartition("/")
        aside = f"{folder}/.{plain}.{uuid.uuid4().hex}"
        try:
            self._system.create_dir(folder, recursive=True)
            with self._system.open_output_stream(aside) as stream:
                stream.write(data)
            if self._there(name):
                self._system.delete_file(aside)
                return False
            self._system.move(aside, path)
        except OSError as error:
            raise unwritable(f"{self.root}/{name}", error) from error
        return True

    def names(self, folder: str) -> list[str]:
        """The names of the files in a folder, in order."""
        try:
            found = self._system.get_file_info(fs.FileSelector(self._path(folder), allow_not_found=True))
        except OSError as error:
            raise unreadable(f"{self.root}/{folder}", error) from error
        return sorted(one.base_name for one in found if not one.base_name.startswith("."))

    def delete(self, name: str) -> None:
        """Remove a file, if it is there."""
        with suppress(FileNotFoundError):
            self._system.delete_file(self._path(name))

    def _there(self, name: str) -> bool:
        return bool(self._system.get_file_info(self._path(name)).type != fs.FileType.NotFound)

    def _path(self, name: str) -> str:
        return f"{self._folder.rstrip('/')}/{name}".rstrip("/")


def store_at(place: str) -> Store:
    """The files of a place that is named by a path or a URI, as any process may open it."""
    local = local_path(place)
    return LocalStore(local) if local is not None else ArrowStore(place)
