"""The plane: event time across, processing time up; events as dots, the watermark as a line, panes where they came.

Plain values without any library, so that it is the same of a run on Spark, of a transcript and in a browser. Times are
microseconds since 1970, with the infinities of `penstock.types.timestamps`; in JSON these are "-inf" and "+inf".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from penstock.types.timestamps import MAX_TIME, MIN_TIME

# What became of an event.
COUNTED, LATE, QUARANTINED = "counted", "late", "quarantined"
FATES = (COUNTED, LATE, QUARANTINED)
_INFINITE = {MIN_TIME: "-inf", MAX_TIME: "+inf"}
_FINITE = {word: time for time, word in _INFINITE.items()}


@dataclass(frozen=True, slots=True)
class Dot:
    """An event: when it happened, when it was seen, where it came from and what became of it.

    `event_time` is None where the event has none that could be read; `why` says why it is late or quarantined. The
    offset is that in its partition, where it has one.
    """

    event_time: int | None
    now: int
    key: str = ""
    text: str = ""
    partition: str = ""
    fate: str = COUNTED
    why: str = ""
    offset: int | None = None


@dataclass(frozen=True, slots=True)
class Mark:
    """The watermark that stood at a moment of processing time."""

    now: int
    watermark: int


@dataclass(frozen=True, slots=True)
class Shown:
    """A pane and the moment at which it was emitted; `text` is its answer, `op` is -1 where one is withdrawn."""

    key: str
    start: int
    end: int
    now: int
    index: int
    timing: str
    text: str
    final: bool = False
    op: int = 1


@dataclass(frozen=True, slots=True)
class Plane:
    """All that is drawn."""

    title: str = ""
    dots: tuple[Dot, ...] = ()
    marks: tuple[Mark, ...] = ()
    panes: tuple[Shown, ...] = ()

    def plain(self) -> dict[str, Any]:
        """The same as values that JSON has."""
        return {
            "title": self.title,
            **{name: [_plain(asdict(one)) for one in getattr(self, name)] for name in ("dots", "marks", "panes")},
        }

    @staticmethod
    def of(plain: Mapping[str, Any]) -> Plane:
        """A plane from what `plain` made."""
        made = {name: tuple(_made(kind, one) for one in plain.get(name, ())) for name, kind in _KINDS.items()}
        return Plane(plain.get("title", ""), **made)


_KINDS: dict[str, type[Dot] | type[Mark] | type[Shown]] = {"dots": Dot, "marks": Mark, "panes": Shown}


def _plain(given: dict[str, Any]) -> dict[str, Any]:
    return {name: _INFINITE.get(value, value) if type(value) is int else value for name, value in given.items()}


def _made(kind: Any, given: Mapping[str, Any]) -> Any:
    names = {field.name for field in fields(kind)}
    times = {"event_time", "now", "watermark", "start", "end"}
    return kind(
        **{
            name: _FINITE.get(value, value) if name in times else value
            for name, value in given.items()
            if name in names
        }
    )
