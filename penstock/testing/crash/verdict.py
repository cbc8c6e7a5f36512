"""Is anything lost, doubled, torn or different: what sinks hold, against a run that nothing disturbed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

Rows = list[tuple[Any, ...]]


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is wrong: rows lost, doubled, of a batch that is there in part, or that the undisturbed run has not."""

    lost: int = 0
    duplicated: int = 0
    torn: int = 0
    foreign: int = 0
    said: tuple[str, ...] = ()

    @property
    def good(self) -> bool:
        """Whether nothing is wrong."""
        return not (self.lost or self.duplicated or self.torn or self.foreign or self.said)

    def __add__(self, other: Verdict) -> Verdict:
        return Verdict(
            self.lost + other.lost,
            self.duplicated + other.duplicated,
            self.torn + other.torn,
            self.foreign + other.foreign,
            self.said + other.said,
        )


class Checker(Protocol):
    """Looks at what a pipeline has written below a folder."""

    def check(self, folder: str, ended: bool) -> Verdict:
        """What is wrong after a kill, or when the run has ended."""


@dataclass(frozen=True, slots=True)
class Written:
    """What an output holds after a run that nothing disturbed: its rows, batch by batch.

    Where a batch is not seen at one moment, the last one may be there in part until the run has ended.
    """

    name: str
    batches: tuple[Rows, ...]
    at_once: bool = True

    def judge(self, found: Rows, ended: bool) -> Verdict:
        """Compare what is found with the batches up to the last one that is there, or with all of them.

        Equal rows may be in several batches: what is found of them is taken for the first ones.
        """
        held, last = Counter(found), -1
        missing: list[tuple[int, tuple[Any, ...]]] = []
        for number, rows in enumerate(self.batches):
            for row in rows:
                if held[row]:
                    held[row] -= 1
                    last = number
                else:
                    missing.append((number, row))
        whole = last if self.at_once else last - 1
        lost = [(number, row) for number, row in missing if ended or number <= whole]
        torn = sum(number == last for number, _ in lost)
        known = {row for rows in self.batches for row in rows}
        foreign = [row for row in +held if row not in known]
        twice = sum(times for row, times in (+held).items() if row in known)
        said = [f"{self.name}: lacks {lost[0][1]}"] if lost else []
        said += [f"{self.name}: has {foreign[0]}"] if foreign else []
        return Verdict(len(lost) - torn, twice, torn, len(foreign), tuple(said))


def in_batches(name: str, rows: Sequence[tuple[Any, ...]], counts: Sequence[int], *, at_once: bool = True) -> Written:
    """The rows of an undisturbed run, cut at the number that each batch wrote."""
    batches, at = [], 0
    for count in counts:
        batches.append(list(rows[at : at + count]))
        at += count
    if at != len(rows):
        raise AssertionError(f"{name} has {len(rows)} rows, and its batches say {at}")
    return Written(name, tuple(batches), at_once)


def unequal(what: str, found: Any, wanted: Any) -> Verdict:
    """A verdict on two values that should be the same."""
    return Verdict() if found == wanted else Verdict(said=(f"{what}: {_short(found)}, not {_short(wanted)}",))


def differing(what: str, found: Mapping[Any, Any], wanted: Mapping[Any, Any]) -> Verdict:
    """A verdict on two tables that should be the same, with the first place where they are not."""
    for key in sorted({*found, *wanted}, key=repr):
        if found.get(key) != wanted.get(key):
            return Verdict(said=(f"{what}, {key}: {found.get(key)}, not {wanted.get(key)}",))
    return Verdict()


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) < 80 else text[:77] + "..."
