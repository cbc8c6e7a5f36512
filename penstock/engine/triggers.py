"""When, for all windows at once: a trigger tree over columns.

A trigger's memory is one small column for each node that has any; nodes are numbered outermost first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from penstock.engine.columns.arrays import plus
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

State = tuple[np.ndarray, ...]


@dataclass(frozen=True, slots=True)
class Sight:
    """What triggers see of their windows: a value or a truth for each; of `unshown` records so many `came`."""

    now: int
    unshown: np.ndarray
    came: np.ndarray
    first_unshown: np.ndarray
    complete: np.ndarray
    on_time_due: np.ndarray
    holds: Mapping[When, np.ndarray]


def slots(trigger: Trigger) -> dict[int, int]:
    """Which column of the state belongs to which node, by the node's number."""
    stateful = [
        number for number, (node, parent) in enumerate(_with_parents(trigger, None)) if _remembers(node, parent)
    ]
    return {number: column for column, number in enumerate(stateful)}


def _with_parents(node: Trigger, parent: Trigger | None) -> Iterator[tuple[Trigger, Trigger | None]]:
    """Every node, outermost first, with the one it is a part of."""
    yield node, parent
    for part in node.parts:
        yield from _with_parents(part, node)


def _remembers(node: Trigger, parent: Trigger | None) -> bool:
    """Whether a firing leaves a trace: not in a leaf that finishes with every firing and starts anew at once."""
    if isinstance(node, (Then, Until)):
        return True
    leaf = isinstance(node, (Count, After, AtExpiry)) or (isinstance(node, When) and node.once)
    return leaf and not isinstance(parent, (AtWatermark, Repeat))


def ready(trigger: Trigger, state: State, sight: Sight) -> np.ndarray:
    """Where a pane should be shown now."""
    return _Tree(trigger, state, sight).ready(trigger, 0)


def fired(trigger: Trigger, state: State, sight: Sight, fire: np.ndarray) -> State:
    """The state after panes were shown where `fire` says; parts that were not ready do not notice."""
    if not state:
        return state
    tree = _Tree(trigger, state, sight)
    tree.new = [column.copy() for column in state]
    tree.fire(trigger, 0, fire)
    return tuple(tree.new)


def normalized(trigger: Trigger, state: State) -> State:
    """A merged state, the furthest of each, in which the first part of a finished step is forgotten."""
    if not state:
        return state
    tree = _Tree(trigger, state, None)
    tree.new = [column.copy() for column in state]
    for number, node in enumerate(trigger.walk()):
        if isinstance(node, Then):
            tree.reset(node.first, number + 1, tree.new[tree.slots[number]] > 0)
    return tuple(tree.new)


class _Tree:
    """A trigger with its state in columns and what it sees."""

    def __init__(self, trigger: Trigger, state: State, sight: Sight | None) -> None:
        self.slots = slots(trigger)
        self.state = list(state)
        self.new = self.state
        self._sight = sight

    @property
    def sight(self) -> Sight:
        assert self._sight is not None
        return self._sight

    def ready(self, node: Trigger, number: int) -> np.ndarray:
        """Where the node is ready, by the state before this batch's firings."""
        return self._ready(node, number) & ~self.finished(node, number, self.state)

    def _ready(self, node: Trigger, number: int) -> np.ndarray:
        sight = self.sight
        new = sight.unshown > 0
        match node:
            case AtWatermark():
                return self._at_watermark(node, number)
            case Count(n):
                return sight.came >= n
            case After(delay):
                return new & (sight.now >= plus(sight.first_unshown, delay))
            case Every(period, offset):
                tick = ((sight.first_unshown - offset) // period + 1) * period + offset
                return new & (sight.now >= tick)
            case When():
                return new & sight.holds[node]
            case Either(first, second) | Until(first, second):
                return self.ready(first, number + 1) | self.ready(second, number + 1 + _size(first))
            case Both(first, second):
                places = ((first, number + 1), (second, number + 1 + _size(first)))
                one, two = (self.ready(part, at) | self.finished(part, at, self.state) for part, at in places)
                return one & two
            case Then(first, second):
                beyond = self.state[self.slots[number]] > 0
                return np.where(beyond, self.ready(second, number + 1 + _size(first)), self.ready(first, number + 1))
            case Repeat(again):
                return self.ready(again, number + 1)
        return np.zeros(len(new), dtype=bool)

    def _at_watermark(self, node: AtWatermark, number: int) -> np.ndarray:
        sight = self.sight
        early = np.zeros(len(sight.unshown), dtype=bool)
        if node.early is not None:
            early = self.ready(node.early, number + 1)
        late = sight.unshown > 0
        if node.late is not None:
            late = self.ready(node.late, number + 1 + (_size(node.early) if node.early is not None else 0))
        return np.where(sight.complete, sight.on_time_due | late, early)

    def finished(self, node: Trigger, number: int, state: list[np.ndarray]) -> np.ndarray:
        """Where the node will not be ready again."""
        match node:
            case Count() | After() | AtExpiry() | Until() | When(_, True) if number in self.slots:
                return state[self.slots[number]] > 0
            case Either(first, second):
                other = number + 1 + _size(first)
                return self.finished(first, number + 1, state) | self.finished(second, other, state)
            case Both(first, second):
                other = number + 1 + _size(first)
                return self.finished(first, number + 1, state) & self.finished(second, other, state)
            case Then(first, second):
                done = self.finished(second, number + 1 + _size(first), state)
                return (state[self.slots[number]] > 0) & done
        return np.zeros(len(self.state[0]) if self.state else len(self.sight.unshown), dtype=bool)

    def fire(self, node: Trigger, number: int, where: np.ndarray) -> None:
        """Let the node notice a firing where it was ready."""
        where = where & self.ready(node, number)
        match node:
            case AtWatermark(early, late):
                if early is not None:
                    self._again(early, number + 1, where & ~self.sight.complete)
                if late is not None:
                    at = number + 1 + (_size(early) if early is not None else 0)
                    self._again(late, at, where & self.sight.complete & ~self.sight.on_time_due)
            case Count() | After() | AtExpiry() | When(_, True) if number in self.slots:
                self.new[self.slots[number]][where] = 1
            case Either(first, second) | Both(first, second):
                self.fire(first, number + 1, where)
                self.fire(second, number + 1 + _size(first), where)
            case Until(first, second):
                other = number + 1 + _size(first)
                done = where & self.ready(second, other)
                self.fire(first, number + 1, where)
                self.fire(second, other, where)
                self.new[self.slots[number]][done] = 1
            case Then(first, second):
                beyond = self.state[self.slots[number]] > 0
                self.fire(second, number + 1 + _size(first), where & beyond)
                self.fire(first, number + 1, where & ~beyond)
                passed = where & ~beyond & self.finished(first, number + 1, self.new)
                self.new[self.slots[number]][passed] = 1
                self.reset(first, number + 1, passed)
            case Repeat(again):
                self._again(again, number + 1, where)

    def _again(self, node: Trigger, number: int, where: np.ndarray) -> None:
        """Fire a part that starts anew when it is finished."""
        self.fire(node, number, where)
        self.reset(node, number, where & self.finished(node, number, self.new))

    def reset(self, node: Trigger, number: int, where: np.ndarray) -> None:
        """Make a part as if it had never fired."""
        for inner in range(number, number + _size(node)):
            if inner in self.slots:
                self.new[self.slots[inner]][where] = 0


def _size(trigger: Trigger) -> int:
    return sum(1 for _ in trigger.walk())
