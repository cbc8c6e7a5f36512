"""Law: the reference and the columnar engine agree, pane for pane and late row for late row."""

from __future__ import annotations

from hypothesis import given, note

from penstock.plan.stages import Plan
from penstock.testing import Script
from tests.properties.comparing import same_outcome
from tests.properties.plans import plans
from tests.properties.profile import law
from tests.properties.streams import Step, play, scripts


@law(200)
@given(plans(), scripts())
def test_the_engines_agree(plan: Plan, steps: list[Step]) -> None:
    reference, columnar = Script(plan, "reference"), Script(plan, "columnar")
    for step in steps:
        outcomes = [play(script, step) for script in (reference, columnar)]
        note(f"reference: {[str(pane) for pane in outcomes[0].panes]}")
        note(f"columnar:  {[str(pane) for pane in outcomes[1].panes]}")
        same_outcome(*outcomes)
        assert reference.W == columnar.W
        assert reference.partitions() == columnar.partitions()
        assert reference.run.open_windows() == columnar.run.open_windows()
