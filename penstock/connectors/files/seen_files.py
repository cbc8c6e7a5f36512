"""Which files have been read: exact for the last ones, and for all the others in sums that do not grow.

Files are read in order of (time, name), so all beyond the newest one read are new. One that is older and comes late
is told from those that have been read in two steps. The last 512 read are remembered one by one. All before them are
remembered in 64 buckets as their number and the sum of their hashes: if the bucket's files in the directory are more
than that, the ones too many are new, and the sum says which. Files that are removed make it less. Where files of a
bucket go while others of it are as young as the youngest that was ever listed, those may have come since: nobody can
tell, and that is an error that names them.
"""

from __future__ import annotations

import base64
import hashlib
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations, islice

from penstock.connectors.files.errors import cannot_tell
from penstock.storage.listing import File, changed
from penstock.types.durations import SECOND

REMEMBERED = 512
BUCKETS = 64
TRIES = 50_000
MARGIN = 2_000 * SECOND  # in nanoseconds: how much a listing may lag behind the times it shows
Sums = tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Seen:
    """What is remembered of the files that were read."""

    newest: tuple[int, str] | None = None
    looked: int = 0
    last: tuple[bytes, ...] = ()
    older: Sums = ((0, 0),) * BUCKETS

    def unread(self, files: Sequence[File], where: str) -> list[File]:
        """The files that have not been read, in the order in which they are to be."""
        if self.newest is None:
            return sorted(files, key=lambda file: file.key)
        last = {tag[:6]: tag for tag in self.last}
        fresh, old = [], []
        for file in files:
            tag = last.get(_hash(file.name))
            if tag is not None:
                if tag != _tag(file):
                    raise changed(f"{where}/{file.name}")
            elif file.key > self.newest:
                fresh.append(file)
            else:
                old.append(file)
        return sorted([*fresh, *self._late(old)], key=lambda file: file.key)

    def after(self, files: Sequence[File], unread: Sequence[File], read: Sequence[File]) -> Seen:
        """What is remembered when, of all files of a look and those unread, some have been read."""
        left = {file.name for file in unread} - {file.name for file in read}
        tags = (*self.last, *(_tag(file) for file in read))
        last = tags[-REMEMBERED:]
        kept = {tag[:6] for tag in last}
        done = (file.name for file in files if file.name not in left and _hash(file.name) not in kept)
        return Seen(
            max((key for key in (self.newest, *(file.key for file in read)) if key is not None), default=None),
            max([self.looked, *(file.came for file in files)]),
            last,
            _sums(done),
        )

    def _late(self, old: Sequence[File]) -> list[File]:
        """Which files are new although they are older than what was read."""
        buckets: dict[int, list[File]] = {}
        for file in old:
            buckets.setdefault(_number(file.name) % BUCKETS, []).append(file)
        return [file for bucket, files in buckets.items() for file in self._too_many(files, *self.older[bucket])]

    def _too_many(self, files: list[File], count: int, total: int) -> Sequence[File]:
        more, excess = len(files) - count, sum(_number(file.name) for file in files) - total
        if (more, excess) == (0, 0):
            return ()
        lately = [file for file in files if file.came >= self.looked - MARGIN]
        if more < 0 and not lately:
            return ()  # some have been removed, and none has come
        for pool in (lately, files) if more > 0 else ():
            for some in islice(combinations(pool, more), TRIES):
                if sum(_number(file.name) for file in some) == excess:
                    return some
        raise cannot_tell(sorted(file.name for file in lately or files))

    def encoded(self) -> dict[str, object]:
        """As JSON can hold it; about 7 kB when it is full."""
        sums = b"".join(struct.pack(">IQ", count, total % 2**64) for count, total in self.older)
        return {
            "newest": None if self.newest is None else list(self.newest),
            "looked": self.looked,
            "last": base64.b64encode(b"".join(self.last)).decode(),
            "older": base64.b64encode(sums).decode() if any(count for count, _ in self.older) else "",
        }


def decoded(held: dict[str, object]) -> Seen:
    """What `encoded` wrote down."""
    newest, looked, last, older = held["newest"], held["looked"], held["last"], held["older"]
    assert isinstance(last, str)
    assert isinstance(older, str)
    assert isinstance(looked, int)
    tags, sums = base64.b64decode(last), base64.b64decode(older)
    return Seen(
        (int(newest[0]), str(newest[1])) if isinstance(newest, list) else None,
        looked,
        tuple(tags[at : at + 8] for at in range(0, len(tags), 8)),
        tuple(struct.iter_unpack(">IQ", sums)) or Seen().older,
    )


def _sums(names: Iterable[str]) -> Sums:
    sums = [[0, 0] for _ in range(BUCKETS)]
    for name in names:
        number = _number(name)
        sums[number % BUCKETS][0] += 1
        sums[number % BUCKETS][1] += number
    return tuple((count, total) for count, total in sums)


def _number(name: str) -> int:
    return int.from_bytes(_hash(name))


@lru_cache(maxsize=2**17)
def _hash(name: str) -> bytes:
    return hashlib.blake2b(name.encode(errors="surrogateescape"), digest_size=6).digest()


def _tag(file: File) -> bytes:
    """A file's name in six bytes, its size and time in two."""
    version = hashlib.blake2b(f"{file.size} {file.written}".encode(), digest_size=2).digest()
    return _hash(file.name) + version
