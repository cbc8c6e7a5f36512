"""Values of messages as they are decoded: laid end to end, each with the place where it ends."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc


@dataclass(frozen=True, slots=True)
class Values:
    """Bytes in order; some may be null."""

    array: pa.LargeBinaryArray

    @staticmethod
    def of(some: Iterable[bytes | None]) -> Values:
        """Values that are there one by one."""
        return Values(pa.array(some, pa.large_binary()))

    @staticmethod
    def joined(some: list[Values]) -> Values:
        """Values one after the other."""
        return some[0] if len(some) == 1 else Values(pa.concat_arrays([one.array for one in some]))

    def __len__(self) -> int:
        return len(self.array)

    def __getitem__(self, at: int) -> Any:
        """One of them."""
        return self.array[at].as_py()

    def part(self, low: int, high: int) -> Values:
        """Some of them, from one to before another."""
        return Values(self.array[low:high])

    def take(self, places: np.ndarray) -> Values:
        """Some of them, by their places."""
        return Values(self.array.take(pa.array(places)))

    @property
    def there(self) -> np.ndarray:
        """Which are not null."""
        found: np.ndarray = self.array.is_valid().to_numpy(zero_copy_only=False)
        return found

    @property
    def nulls(self) -> bool:
        """Whether some are null."""
        return bool(self.array.null_count)

    @property
    def edges(self) -> np.ndarray:
        """Where the first begins and each one ends in the bytes of them all."""
        if not len(self):
            return np.zeros(1, np.int64)
        low = self.array.offset
        return np.frombuffer(self.array.buffers()[1], np.int64)[low : low + len(self) + 1]

    @property
    def sizes(self) -> np.ndarray:
        """How many bytes each has; one that is null has none."""
        return np.diff(self.edges)

    @property
    def size(self) -> int:
        """How many bytes they all have."""
        edges = self.edges
        return int(edges[-1] - edges[0])

    def laid(self, beyond: int) -> np.ndarray:
        """The bytes of them all, and so many zeros behind them."""
        edges = self.edges
        made = np.zeros(self.size + beyond, np.uint8)
        if self.size:
            data = np.frombuffer(self.array.buffers()[2], np.uint8)
            made[: self.size] = data[edges[0] : edges[-1]]
        return made

    def lines(self) -> bytes:
        """All of them, with an end of a line between two."""
        every = pa.ListArray.from_arrays(pa.array([0, len(self)], pa.int32()), self.array)
        text: bytes = pc.binary_join(every, pa.scalar(b"\n", pa.large_binary()))[0].as_py()
        return text


MARK = "base64:"
LONGEST = 65_536  # bytes of a bad message that are kept; topic, partition and offset lead to the rest
_CUT = re.compile(r"… \([\d,]+ bytes in all\)$")


def kept(data: bytes | None) -> str:
    """Bytes as text: as they are, or in base64 after a mark where they are no text that every database takes."""
    if not data:
        return ""
    head = data[:LONGEST]
    more = f"… ({len(data):,} bytes in all)" if len(data) > LONGEST else ""
    try:
        text = head.decode()
    except UnicodeDecodeError as error:
        cut = more and error.start >= len(head) - 3 and error.reason == "unexpected end of data"
        text = head[: error.start].decode() if cut else "\0"
    if "\0" in text or text.startswith(MARK):
        text = MARK + base64.b64encode(head).decode()
    return text + more


def bytes_of(text: str) -> bytes:
    """The bytes that a text was kept of; ValueError where only their beginning was."""
    if _CUT.search(text):
        raise ValueError("only the beginning of this message was kept; read it from its topic, partition and offset")
    return base64.b64decode(text.removeprefix(MARK), validate=True) if text.startswith(MARK) else text.encode()
