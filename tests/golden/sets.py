"""A set on disk: one archive for each case, with all that a run had written when it was stopped, wherever it lies.

A checkpoint and what belongs to it lie in one folder. Spark names that folder in what it notes of its state, and in the
log of its own file source: the archive has a mark in its place. Times of files are whole seconds, which it keeps.
"""

from __future__ import annotations

import io
import re
import tarfile
from pathlib import Path

HERE = Path(__file__).parent
MARK = b"@@HERE@@"
_NAMING = re.compile(r"checkpoint/(sources/\d+/\d+|state/\d+/_metadata/v2/\d+)")
_LEFT_OUT = re.compile(r".*\.crc|checkpoint/penstock/staging(/.*)?|.*\.(wal|db-shm|db-wal)")


def versions() -> list[str]:
    """The versions of which there is a set, in the order of their names."""
    return sorted(one.name for one in HERE.iterdir() if one.is_dir() and one.name[:1].isdigit())


def archive(version: str, case: str) -> Path:
    """Where a case of a version is kept."""
    return HERE / version / f"{case}.tar.xz"


def pack(folder: Path, file: Path) -> None:
    """Put all of a folder into an archive, in the order of the names, without who owns it."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(file, "w:xz", preset=9, format=tarfile.PAX_FORMAT) as out:
        for path in sorted(folder.rglob("*")):
            name = path.relative_to(folder).as_posix()
            if _LEFT_OUT.fullmatch(name) or not path.is_file():
                continue
            data = path.read_bytes()
            if _NAMING.fullmatch(name):
                data = data.replace(str(folder).encode(), MARK)
            entry = tarfile.TarInfo(name)
            entry.size, entry.mtime, entry.mode = len(data), int(path.stat().st_mtime), 0o644
            out.addfile(entry, io.BytesIO(data))


def unpack(file: Path, folder: Path) -> None:
    """Lay a case out in a folder, as if it had been written there."""
    with tarfile.open(file) as held:
        held.extractall(folder, filter="data")
    for path in (folder / "checkpoint").rglob("*"):
        if path.is_file() and _NAMING.fullmatch(path.relative_to(folder).as_posix()):
            path.write_bytes(path.read_bytes().replace(MARK, str(folder).encode()))
