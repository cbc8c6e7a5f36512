"""What is a concern: something about a run that a person should know, with its cause and what can be done."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

# Results do not come, or soon will not; something is wrong or costly; good to know.
URGENT, WARNING, NOTE = LEVELS = ("urgent", "warning", "note")

# What a concern may be about: a name for each that stays, so that machines can count them.
ABOUT = (
    "run",
    "stall",
    "sink",
    "silence",
    "watermark",
    "lag",
    "quarantine",
    "kept",
    "late",
    "state",
    "hot_key",
    "log",
    "batches",
    "observing",
    "replay",
    "idle",
)


@dataclass(frozen=True, slots=True)
class Concern:
    """What is the matter, why, and what to do instead; `about` is one of the names in `ABOUT`."""

    level: str
    about: str
    what: str
    why: str
    instead: str

    def plain(self) -> dict[str, Any]:
        """The same as values that JSON has."""
        return asdict(self)

    def __str__(self) -> str:
        return f"{self.what}: {self.why}; {self.instead}"


def by_urgency(concerns: Iterable[Concern]) -> list[Concern]:
    """The most urgent first; of those that are equally urgent, in the order of `ABOUT`."""
    return sorted(concerns, key=lambda one: (LEVELS.index(one.level), ABOUT.index(one.about)))
