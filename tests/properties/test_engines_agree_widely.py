"""Law: the engines agree on every type of column, on rows that throw, on unions, and on the errors that stop a run."""

from __future__ import annotations

from hypothesis import given, note

from penstock.errors import PenstockError, TooManyBadRows
from penstock.runtime.batch import Outcome
from penstock.testing import Script
from tests.properties.comparing import same_outcome
from tests.properties.profile import law
from tests.properties.streams import Step, play
from tests.properties.wide import LOOSE, Scenario, scenarios


def outcome_or_error(script: Script, step: Step) -> Outcome | tuple[type, str]:
    """What a batch gives, or the error that it stops with; which bad row was the last is no law."""
    try:
        return play(script, step)
    except PenstockError as error:
        return type(error), error.what if isinstance(error, TooManyBadRows) else str(error)


@law(200)
@given(scenarios())
def test_the_engines_agree_on_everything_else(scenario: Scenario) -> None:
    plan = scenario.plan
    reference, columnar = (Script(plan, name, partitions=scenario.partitions) for name in ("reference", "columnar"))
    for step in scenario.steps:
        left, right = (outcome_or_error(script, step) for script in (reference, columnar))
        note(f"reference: {left if isinstance(left, tuple) else [str(pane) for pane in left.panes]}")
        note(f"columnar:  {right if isinstance(right, tuple) else [str(pane) for pane in right.panes]}")
        if isinstance(left, tuple):
            assert left == right
            return
        assert not isinstance(right, tuple)
        same_outcome(left, right, LOOSE)
        assert reference.W == columnar.W
        assert reference.partitions() == columnar.partitions()
        assert reference.run.open_windows() == columnar.run.open_windows()
