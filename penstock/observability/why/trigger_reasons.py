"""Which part of a trigger made a window show a pane, and what it saw: the same rules as those that fired it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from penstock.model.triggers import (
    After,
    AtExpiry,
    AtWatermark,
    Both,
    Count,
    Either,
    Every,
    Repeat,
    Then,
    Trigger,
    Until,
    When,
)
from penstock.reference.triggers import Memory, Sight, finished, ready
from penstock.types.timestamps import plus

# Kinds of reasons, which `words` puts into words.
WATERMARK, NEW, COUNTED, WAITED, TICKED, HELD, EXPIRED, UNSHOWN = (
    "watermark",
    "new",
    "counted",
    "waited",
    "ticked",
    "held",
    "expired",
    "unshown",
)


@dataclass(frozen=True, slots=True)
class Because:
    """One reason: the part of `at_watermark` it belongs to, what kind it is, the trigger's own words, and numbers."""

    kind: str
    rule: str
    part: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)

    def plain(self) -> dict[str, Any]:
        """The same as values that JSON has."""
        return {"kind": self.kind, "part": self.part, "rule": self.rule, **self.facts}


def reasons(trigger: Trigger, memory: Memory, sight: Sight) -> list[Because]:
    """Why a trigger is ready: each of its parts that is."""
    if not ready(trigger, memory, sight):
        return []
    match trigger:
        case AtWatermark():
            return _at_watermark(trigger, memory, sight)
        case Either(first, second) | Until(first, second):
            return [*reasons(first, memory[1], sight), *reasons(second, memory[2], sight)]
        case Both(first, second):
            parts = ((first, memory[1]), (second, memory[2]))
            return [one for part, held in parts if not finished(part, held) for one in reasons(part, held, sight)]
        case Then(first, second):
            return reasons(second, memory[2], sight) if memory[0] else reasons(first, memory[1], sight)
        case Repeat(again):
            return reasons(again, memory[1], sight)
    return [_alone(trigger, sight)]


def last_reasons(trigger: Trigger, memory: Memory, sight: Sight) -> list[Because]:
    """Why a window that expires shows a pane: its trigger is ready, or something in it was never shown."""
    due = reasons(trigger, memory, sight)
    if due:
        return due
    kind = UNSHOWN if sight.unshown else EXPIRED
    return [Because(kind, str(trigger), "last", {"new": sight.unshown})]


def _at_watermark(trigger: AtWatermark, memory: Memory, sight: Sight) -> list[Because]:
    if not sight.complete:
        assert trigger.early is not None
        return [replace(one, part="early") for one in reasons(trigger.early, memory[1], sight)]
    if sight.on_time_due:
        return [Because(WATERMARK, str(trigger), "on time", {"new": sight.unshown})]
    if trigger.late is None:
        return [Because(NEW, str(trigger), "late", {"new": sight.unshown})]
    return [replace(one, part="late") for one in reasons(trigger.late, memory[-1], sight)]


def _alone(trigger: Trigger, sight: Sight) -> Because:
    match trigger:
        case Count(n):
            return Because(COUNTED, str(trigger), facts={"new": sight.came, "wanted": n})
        case After(delay):
            first = sight.first_unshown_at
            return Because(WAITED, str(trigger), facts={"first_at": first, "due_at": plus(first, delay)})
        case Every():
            first = sight.first_unshown_at
            return Because(TICKED, str(trigger), facts={"first_at": first, "due_at": trigger.tick_after(first)})
        case When():
            return Because(HELD, str(trigger), facts={"new": sight.unshown})
        case AtExpiry():
            return Because(EXPIRED, str(trigger), "last", {"new": sight.unshown})
    return Because(NEW, str(trigger), facts={"new": sight.unshown})
