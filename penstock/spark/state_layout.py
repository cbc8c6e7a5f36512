"""What a shard's state in the store is made of: one value with all that is small, and pieces of what is large.

Each question to the store is a turn between two processes, so a shard of few windows asks once and answers once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from penstock.engine.state.codec import framed, unframed
from penstock.engine.state.snapshot import Saved

PIECE = 4 << 20
_SMALL = 32 << 10
_SMALL_IN_ALL = 256 << 10


@dataclass(frozen=True, slots=True)
class Kept:
    """The head of a shard's memory, its small parts, and in how many pieces each large one lies in the store.

    `sizes` are those of the large parts.
    """

    head: bytes
    small: dict[str, bytes]
    pieces: dict[str, int]
    sizes: dict[str, int] = field(default_factory=dict)

    def measured(self) -> dict[str, int]:
        """How many bytes all of it has, and the largest part."""
        sizes = [len(data) for data in self.small.values()] + [self.size_of(name) for name in self.pieces]
        return {"bytes": len(self.head) + sum(sizes), "largest": max(sizes, default=0)}

    def size_of(self, name: str) -> int:
        """How many bytes a large part has; at most so many where an older version wrote it."""
        return self.sizes.get(name, self.pieces[name] * PIECE)


def kept_after(before: Kept, made: Saved, names: Sequence[str]) -> Kept:
    """What is kept after a batch: a part that lies in pieces stays there, the others are small while there is room."""
    small: dict[str, bytes] = {}
    pieces: dict[str, int] = {}
    sizes: dict[str, int] = {}
    room = _SMALL_IN_ALL
    for name in names:
        if name in before.pieces:
            pieces[name], sizes[name] = before.pieces[name], before.size_of(name)
            continue
        data = made.parts[name] if name in made.parts else before.small[name]
        if len(data) <= min(_SMALL, room):
            small[name] = data
            room -= len(data)
        else:
            pieces[name], sizes[name] = -(-len(data) // PIECE), len(data)
    return Kept(made.head, small, pieces, sizes)


def written_kept(kept: Kept) -> bytes:
    """The value that is stored."""
    small = {name: len(data) for name, data in kept.small.items()}
    said = {"head": len(kept.head), "pieces": kept.pieces, "sizes": kept.sizes, "small": small}
    return framed(said, [kept.head, *kept.small.values()])


def read_kept(data: bytes) -> Kept:
    """The value that was stored."""
    said, at = unframed(data)
    head, at = data[at : at + said["head"]], at + said["head"]
    small = {}
    for name, size in said["small"].items():
        small[name] = data[at : at + size]
        at += size
    return Kept(head, small, said["pieces"], said.get("sizes", {}))
