"""When do two runs agree: pane for pane and late row for late row, floats that are sums within 1e-9."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

from penstock.model.panes import Pane
from penstock.runtime.batch import Outcome

SUMS = frozenset(("mean", "var", "xs", "mean_v", "var_v", "sum_x"))


def same_outcome(left: Outcome, right: Outcome, loose: Collection[str] = ()) -> None:
    """Equal but for the order of keys and windows; `loose` answers are approximate, and only alike."""
    assert left.counts == right.counts
    same_panes(left.panes, right.panes, loose)
    assert sorted(map(repr, left.late)) == sorted(map(repr, right.late))
    assert sorted(map(str, left.quarantined)) == sorted(map(str, right.quarantined))
    withdrawn_first(left)
    withdrawn_first(right)


def same_panes(left: Sequence[Pane], right: Sequence[Pane], loose: Collection[str] = ()) -> None:
    """The same panes but for their order."""
    one, two = sorted(left, key=place), sorted(right, key=place)
    assert [facts(pane) for pane in one] == [facts(pane) for pane in two]
    for a, b in zip(one, two, strict=True):
        for name, value in a.values.items():
            alike = nearly(value, b.values[name]) if name in loose else same_value(name, value, b.values[name])
            assert alike, (str(a), name, value, b.values[name])


def withdrawn_first(outcome: Outcome) -> None:
    """A withdrawal of a window comes before what that window shows next."""
    shown = set()
    for pane in outcome.panes:
        here = (repr(pane.key), pane.window)
        assert pane.op == 1 or here not in shown, str(pane)
        shown |= {here} if pane.op == 1 else set()


def facts(pane: Pane) -> tuple[object, ...]:
    """All of a pane but its values; a key of NaN equals itself."""
    key = tuple(map(exact, pane.key))
    return (key, pane.window, pane.index, pane.timing, pane.final, pane.op, pane.event_time, list(pane.values))


def place(pane: Pane) -> tuple[object, ...]:
    """Where a pane stands among those of a batch."""
    return (repr(pane.key), pane.window, pane.index, pane.op)


def exact(value: object) -> object:
    """A value that equals itself: NaN is a word, and the zeros and the types are told apart."""
    if isinstance(value, float):
        return ("float", "nan" if math.isnan(value) else value.hex())
    return (type(value).__name__, value)


def same_value(name: str, left: object, right: object) -> bool:
    """Exactly equal, but for sums of floats."""
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(same_value(name, a, b) for a, b in zip(left, right, strict=True))
    if name in SUMS and isinstance(left, float) and isinstance(right, float) and not math.isnan(left):
        return math.isclose(left, right, rel_tol=1e-9, abs_tol=1e-9)
    return exact(left) == exact(right)


def nearly(left: object, right: object) -> bool:
    """Approximate answers of a few values: both none, or not far apart."""
    if isinstance(left, float) and isinstance(right, float):
        return math.isnan(left) == math.isnan(right) and not abs(left - right) > 8
    return left == right
