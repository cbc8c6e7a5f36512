"""Values of messages as they are decoded: laid end to end, each with the place where it ends."""

from __future__ import annotations

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
