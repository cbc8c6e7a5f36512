"""What can be bent: a number in a range, a choice, a word; and whether what was asked for is one of these."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from penstock.errors import PenstockError, did_you_mean

Values = Mapping[str, Any]
LONGEST = 40


class AskedWrongly(PenstockError):
    """A lesson was asked for something that it does not have."""


@dataclass(frozen=True, slots=True)
class Slider:
    """A whole number between two ends."""

    name: str
    label: str
    low: int
    high: int
    value: int
    step: int = 1
    unit: str = ""

    def checked(self, given: Any) -> int:
        """The number, within the ends and on a step."""
        right = isinstance(given, (int, float)) and not isinstance(given, bool) and math.isfinite(given)
        if not right or given != int(given) or not self.low <= given <= self.high or (given - self.low) % self.step:
            raise AskedWrongly(
                f"{self.name} is {given!r}",
                f"it is a whole number from {self.low} to {self.high}, in steps of {self.step}",
                f"write {self.name}={self.value}",
            )
        return int(given)

    def plain(self) -> dict[str, Any]:
        """The control as JSON has it."""
        return {
            "kind": "slider",
            "name": self.name,
            "label": self.label,
            "low": self.low,
            "high": self.high,
            "step": self.step,
            "unit": self.unit,
            "value": self.value,
        }

    def others(self) -> tuple[int, ...]:
        """Values that differ from the first one, for tests."""
        return tuple({self.low, self.high} - {self.value})


@dataclass(frozen=True, slots=True)
class Choice:
    """One of several words, each with what is written beside it."""

    name: str
    label: str
    options: tuple[tuple[str, str], ...]
    value: str

    def checked(self, given: Any) -> str:
        """The word, which is one of the options."""
        words = [word for word, _ in self.options]
        if given not in words:
            raise AskedWrongly(
                f"{self.name} is {given!r}", f"it is one of: {', '.join(words)}", did_you_mean(str(given), words)
            )
        return str(given)

    def plain(self) -> dict[str, Any]:
        """The control as JSON has it."""
        return {
            "kind": "choice",
            "name": self.name,
            "label": self.label,
            "value": self.value,
            "options": [list(option) for option in self.options],
        }

    def others(self) -> tuple[str, ...]:
        """Values that differ from the first one, for tests."""
        return tuple(word for word, _ in self.options if word != self.value)


@dataclass(frozen=True, slots=True)
class Word:
    """A short text, shown as it is and never understood."""

    name: str
    label: str
    value: str

    def checked(self, given: Any) -> str:
        """The text, if it is short."""
        if not isinstance(given, str) or len(given) > LONGEST:
            raise AskedWrongly(
                f"{self.name} is no text of up to {LONGEST} signs",
                "it is shown in the picture, where there is little room",
                f"write {self.name}={self.value}",
            )
        return given

    def plain(self) -> dict[str, Any]:
        """The control as JSON has it."""
        return {"kind": "word", "name": self.name, "label": self.label, "value": self.value, "longest": LONGEST}

    def others(self) -> tuple[str, ...]:
        """Values that differ from the first one, for tests."""
        return (f"{self.value}?",)


Control = Slider | Choice | Word


def seed(value: int = 7) -> Slider:
    """The seed of what is made up: the same one makes the same events."""
    return Slider("seed", "seed", 1, 99, value)


def firsts(controls: Sequence[Control]) -> dict[str, Any]:
    """Each control as it stands at first."""
    return {control.name: control.value for control in controls}


def checked(controls: Sequence[Control], given: Mapping[str, Any]) -> dict[str, Any]:
    """All controls: those that were given, checked, and the others as they stand at first."""
    known = {control.name: control for control in controls}
    for name in given:
        if name not in known:
            raise AskedWrongly(
                f"there is no control {name!r}", f"there are: {', '.join(known)}", did_you_mean(str(name), known)
            )
    return {name: one.checked(given[name]) if name in given else one.value for name, one in known.items()}
