"""When, for one window: is the trigger ready, what a firing does to it, whether it is finished, how it merges.

A trigger's memory is a list: one number (0 at first), then the memories of its parts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
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
from penstock.types.timestamps import plus

Memory = list[Any]


@dataclass(frozen=True, slots=True)
class Sight:
    """What a trigger sees of its window; of `unshown` records so many `came`, and the others are withdrawals."""

    now: int
    unshown: int
    came: int
    first_unshown_at: int
    complete: bool
    on_time_due: bool
    holds: Mapping[Trigger, bool]


def fresh(trigger: Trigger) -> Memory:
    """The memory of a trigger that has not fired."""
    return [0, *(fresh(part) for part in trigger.parts)]


def ready(trigger: Trigger, memory: Memory, sight: Sight) -> bool:
    """Whether a pane should be shown now."""
    if finished(trigger, memory):
        return False
    match trigger:
        case AtWatermark():
            if not sight.complete:
                return trigger.early is not None and ready(trigger.early, memory[1], sight)
            if sight.on_time_due:
                return True
            return sight.unshown > 0 if trigger.late is None else ready(trigger.late, memory[-1], sight)
        case Count(n):
            return sight.came >= n
        case After(delay):
            return sight.unshown > 0 and sight.now >= plus(sight.first_unshown_at, delay)
        case Every():
            return sight.unshown > 0 and sight.now >= trigger.tick_after(sight.first_unshown_at)
        case When():
            return sight.unshown > 0 and sight.holds[trigger]
        case Either(first, second) | Until(first, second):
            return ready(first, memory[1], sight) or ready(second, memory[2], sight)
        case Both(first, second):
            return all(
                finished(part, held) or ready(part, held, sight)
                for part, held in ((first, memory[1]), (second, memory[2]))
            )
        case Then(first, second):
            return ready(second, memory[2], sight) if memory[0] else ready(first, memory[1], sight)
        case Repeat(again):
            return ready(again, memory[1], sight)
    return False


def fired(trigger: Trigger, memory: Memory, sight: Sight) -> Memory:
    """The memory after a pane was shown; parts that were not ready do not notice."""
    if not ready(trigger, memory, sight):
        return memory
    match trigger:
        case AtWatermark(early, late):
            held = list(memory)
            if not sight.complete and early is not None:
                held[1] = _again(early, fired(early, memory[1], sight))
            elif not sight.on_time_due and late is not None:
                held[-1] = _again(late, fired(late, memory[-1], sight))
            return held
        case Count() | After() | AtExpiry():
            return [1]
        case When(_, once):
            return [int(once)]
        case Either(first, second) | Both(first, second):
            return [0, fired(first, memory[1], sight), fired(second, memory[2], sight)]
        case Until(first, second):
            done = int(ready(second, memory[2], sight))
            return [done, fired(first, memory[1], sight), fired(second, memory[2], sight)]
        case Then(first, second):
            if memory[0]:
                return [1, memory[1], fired(second, memory[2], sight)]
            held = fired(first, memory[1], sight)
            return [1, fresh(first), memory[2]] if finished(first, held) else [0, held, memory[2]]
        case Repeat(again):
            return [0, _again(again, fired(again, memory[1], sight))]
    return memory


def finished(trigger: Trigger, memory: Memory) -> bool:
    """Whether it will not be ready again."""
    match trigger:
        case Count() | After() | When() | AtExpiry() | Until():
            return bool(memory[0])
        case Either(first, second):
            return finished(first, memory[1]) or finished(second, memory[2])
        case Both(first, second):
            return finished(first, memory[1]) and finished(second, memory[2])
        case Then(_, second):
            return bool(memory[0]) and finished(second, memory[2])
    return False


def merged(trigger: Trigger, memories: list[Memory]) -> Memory:
    """The memory of a window made of several: the furthest of each."""
    furthest = max(memory[0] for memory in memories)
    parts = trigger.parts
    held = [merged(part, [memory[i + 1] for memory in memories]) for i, part in enumerate(parts)]
    if isinstance(trigger, Then) and furthest:
        held[0] = fresh(trigger.first)
    return [furthest, *held]


def _again(trigger: Trigger, memory: Memory) -> Memory:
    return fresh(trigger) if finished(trigger, memory) else memory
