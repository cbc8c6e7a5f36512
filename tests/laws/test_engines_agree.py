"""Law: the reference and the columnar engine agree, pane for pane and late row for late row."""

from __future__ import annotations

import math
import os

from hypothesis import HealthCheck, given, note, settings

from penstock.batch import Outcome
from penstock.pane import Pane
from penstock.plan import Plan
from penstock.testing import Script
from tests.laws.streams import Step, plans, scripts

EXAMPLES = int(os.environ.get("PENSTOCK_EXAMPLES", "300"))
FLOATS = ("mean", "var", "xs")


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
@given(plans(), scripts())
def test_the_engines_agree(plan: Plan, steps: list[Step]) -> None:
    reference, columnar = Script(plan, "reference"), Script(plan, "columnar")
    for step in steps:
        outcomes = []
        for script in (reference, columnar):
            if step.restart:
                script.restart()
            outcomes.append(script.batch(list(step.rows), now=step.now, watermark=step.watermark))
        note(f"reference: {[str(pane) for pane in outcomes[0].panes]}")
        note(f"columnar:  {[str(pane) for pane in outcomes[1].panes]}")
        same_outcome(*outcomes)
        assert reference.W == columnar.W
        assert reference.partitions() == columnar.partitions()
        assert reference.run.open_windows() == columnar.run.open_windows()


def same_outcome(left: Outcome, right: Outcome) -> None:
    """Equal but for the order of keys and windows; a withdrawal comes before what replaces it in both."""
    assert left.counts == right.counts
    one, two = sorted(left.panes, key=pane_order), sorted(right.panes, key=pane_order)
    assert [facts(pane) for pane in one] == [facts(pane) for pane in two]
    for a, b in zip(one, two, strict=True):
        for name, value in a.values.items():
            assert same_value(name, value, b.values[name]), (name, value, b.values[name])
    assert sorted(map(repr, left.late)) == sorted(map(repr, right.late))
    order = [sorted(map(str, rows)) for rows in (left.quarantined, right.quarantined)]
    assert order[0] == order[1]


def facts(pane: Pane) -> tuple[object, ...]:
    return (pane.key, pane.window, pane.index, pane.timing, pane.final, pane.op, pane.event_time, list(pane.values))


def pane_order(pane: Pane) -> tuple[object, ...]:
    return (str(pane.key), pane.window, pane.index, pane.op)


def same_value(name: str, left: object, right: object) -> bool:
    if isinstance(left, float) and isinstance(right, float):
        if math.isnan(left) or math.isnan(right):
            return math.isnan(left) and math.isnan(right)
        if name in FLOATS:
            return math.isclose(left, right, rel_tol=1e-9, abs_tol=1e-9)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(same_value(name, a, b) for a, b in zip(left, right, strict=True))
    return type(left) is type(right) and left == right
