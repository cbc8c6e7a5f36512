"""How far behind the newest of their partition events come: counted by coarse lengths, so that counts add up.

The delay of an event is the running maximum of event time in its partition, in order of offsets, less its own. A length
is rounded up to five significant bits: at most 6 % too long, and never too short. Of very many events some are counted,
and the longest delay is always that of all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from penstock.model.watermarks import quantile_rank
from penstock.types.timestamps import MIN_TIME

if TYPE_CHECKING:
    import numpy as np

BITS = 5
_SHIFT = BITS + 1  # a length that was rounded up may need one bit more
_MASK = (1 << _SHIFT) - 1
LOOKED_AT = 16_384  # events of a chunk that are counted; of a larger one, at even distances
BLOCK = 32_768  # events that are looked at at once
PARTITIONS = 32  # that are told apart; the others are counted together
OTHERS = "*"


@dataclass
class Lateness:
    """Delays, counted: how many of each coarse length, and the longest as it was."""

    counts: Counter[int] = field(default_factory=Counter)
    longest: int = 0

    @property
    def total(self) -> int:
        """How many events were looked at."""
        return self.counts.total()

    def add(self, other: Lateness) -> None:
        """Count those of another, too."""
        self.counts.update(other.counts)
        self.longest = max(self.longest, other.longest)

    def quantile(self, p: float) -> int:
        """The smallest delay that a share `p` of the events does not exceed, rounded up; never above the longest."""
        rank, below = quantile_rank(p, self.total), 0
        for length in sorted(self.counts):
            below += self.counts[length]
            if below >= rank:
                return min(length, self.longest)
        return self.longest

    def beyond(self, delay: int) -> int:
        """How many events came later than a delay; those that were rounded up beyond it are among them."""
        return sum(number for length, number in self.counts.items() if min(length, self.longest) > delay)

    def plain(self) -> dict[str, Any]:
        """The same as values that JSON has."""
        return {"counts": [[length, number] for length, number in sorted(self.counts.items())], "longest": self.longest}

    @staticmethod
    def of(plain: Mapping[str, Any]) -> Lateness:
        """Delays from what `plain` made."""
        return Lateness(Counter(dict(plain["counts"])), plain["longest"])


@dataclass
class Behind:
    """What is needed to tell the delays of one batch after the other: the newest event time of each partition."""

    newest: dict[str, int] = field(default_factory=dict)

    def batch(self, times: Mapping[str, np.ndarray]) -> dict[str, Lateness]:
        """The delays of a batch's events, given for each partition in order of their offsets."""
        return {name: self.more(name, some) for name, some in times.items() if len(some)}

    def more(self, partition: str, times: np.ndarray) -> Lateness:
        """The delays of a partition's next events."""
        import numpy as np

        newest, longest, looked = self.newest.get(partition, MIN_TIME), 0, []
        step = -(-len(times) // LOOKED_AT)
        # A block at a time, in one place that stays near the processor: new memory for all would take most of the time.
        block = step * max(1, BLOCK // step)
        room = np.empty(min(block, len(times)), dtype=np.int64)
        for at in range(0, len(times), block):
            some = times[at : at + block]
            running = np.maximum.accumulate(some, out=room[: len(some)])
            if newest > running[0]:
                running[: np.searchsorted(running, newest)] = newest
            newest = int(running[-1])
            delays = np.subtract(running, some, out=running)
            longest = max(longest, int(delays.max()))
            looked.append(delays[step - 1 :: step].copy())
        self.newest[partition] = newest
        found = counted(np.concatenate(looked), step)
        found.longest = longest
        return found


def counted(delays: np.ndarray, times: int = 1) -> Lateness:
    """Delays that are not negative, counted; where only some are given, each stands for so many."""
    import numpy as np

    if not len(delays):
        return Lateness()
    # The exponent of a double is the number of bits; where the double was rounded up to one more, it is coarser.
    low = np.maximum(np.frexp(delays.astype(np.float64))[1] - BITS, 0).astype(np.int64)
    places = np.bincount((low << _SHIFT) + -((-delays) >> low))
    found = np.flatnonzero(places)
    lengths = ((found & _MASK) << (found >> _SHIFT)).tolist()
    counts: Counter[int] = Counter()
    for length, number in zip(lengths, (places[found] * times).tolist(), strict=True):
        counts[length] += number
    return Lateness(counts, int(delays.max()))


def told_of(found: Mapping[str, Lateness]) -> list[dict[str, Any]]:
    """Delays by partition as an observation keeps them: of a few partitions apart, of all others together."""
    names = sorted(found, key=lambda name: (-found[name].total, name))
    rest = Lateness()
    for name in names[PARTITIONS:]:
        rest.add(found[name])
    told = [{"partition": name, **found[name].plain()} for name in sorted(names[:PARTITIONS])]
    return told + ([{"partition": OTHERS, **rest.plain()}] if rest.total else [])


def together(told: Iterable[Sequence[Mapping[str, Any]]]) -> dict[str, Lateness]:
    """The delays of several batches, by partition."""
    found: dict[str, Lateness] = {}
    for batch in told:
        for one in batch:
            found.setdefault(one["partition"], Lateness()).add(Lateness.of(one))
    return found
