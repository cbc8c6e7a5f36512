"""A picture played again, from nothing but what is on the page: its dots, its moments and the code it shows."""

from __future__ import annotations

from typing import Any

import penstock as ps
from penstock.observability.time_plane import Plane
from penstock.playground.simulation import shown
from penstock.testing import Script


def pipelines(code: str) -> dict[str, Any]:
    """The variables of the code that a page shows."""
    made: dict[str, Any] = {}
    exec(compile(code, "shown", "exec"), made)
    return made


def replayed(panel: dict[str, Any], code: str, engine: str) -> tuple[list[Any], list[int], list[str]]:
    """Panes, watermarks and fates, as another run of the shown code over the shown dots gives them."""
    plane = Plane.of(panel["plane"])
    panes = pipelines(code)[panel["variable"]]
    script = Script(panes, engine, partitions=sorted({dot.partition for dot in plane.dots}))
    script_rule = panes.plan.inputs[0].time.watermark
    given = isinstance(script_rule, type(ps.by_hand()))
    found, marks, fates, number = [], [], [], 0
    for mark in plane.marks:
        dots = [dot for dot in plane.dots if dot.now == mark.now]
        by_hand = mark.watermark if given or mark.watermark == 2**63 - 1 else None
        marks.append(max(script.W, mark.watermark) if by_hand is not None else script.W)
        rows = [{"id": number + n, "team": dot.key, "points": int(dot.text), "at": dot.event_time,
                 "@partition": dot.partition} for n, dot in enumerate(dots)]  # fmt: skip
        outcome = script.batch(rows, now=mark.now, watermark=by_hand)
        late = {one.row["id"] for one in outcome.late}
        bad = {one.row["id"] for one in outcome.quarantined}
        fates += ["late" if row["id"] in late else "quarantined" if row["id"] in bad else "counted" for row in rows]
        found += [shown(pane, mark.now) for pane in outcome.panes]
        number += len(rows)
    return found, marks, fates
