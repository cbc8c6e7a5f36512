"""What becomes of panes at a consumer: one that adds them up, and one that keeps a row for each window."""

from __future__ import annotations

from collections.abc import Iterable

from penstock.model.panes import Pane

Place = tuple[tuple[object, ...], int, int]


def added(panes: Iterable[Pane], name: str = "points") -> int:
    """The total of a consumer that adds every pane, and takes away what is withdrawn."""
    return sum(pane.op * (pane.values[name] or 0) for pane in panes)  # type: ignore[misc,operator]


def kept(panes: Iterable[Pane], name: str = "points") -> dict[Place, int]:
    """The rows of an upsert sink: the highest pane of each window stands; it is deleted if none remains."""
    rows: dict[Place, dict[int, int]] = {}
    for pane in panes:
        held = rows.setdefault((pane.key, pane.window.start, pane.window.end), {})
        if pane.op > 0:
            held[pane.index] = pane.values[name] or 0  # type: ignore[assignment]
        else:
            held.pop(pane.index, None)
    return {place: held[max(held)] for place, held in rows.items() if held}
