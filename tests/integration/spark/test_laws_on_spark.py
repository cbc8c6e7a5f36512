"""Laws on Spark, a sample: the reference and real shards agree, through restarts from the checkpoint."""

from __future__ import annotations

from hypothesis import given, note

from penstock.plan.stages import Plan
from penstock.testing import Script
from tests.properties.comparing import same_outcome
from tests.properties.plans import plans
from tests.properties.profile import law
from tests.properties.streams import Step, play, scripts


@law(4)
@given(plans(), scripts(max_batches=4))
def test_spark_agrees_with_the_reference(plan: Plan, steps: list[Step]) -> None:
    reference, spark = Script(plan, "reference"), Script(plan, "spark")
    for step in steps:
        outcomes = [play(script, step) for script in (reference, spark)]
        note(f"reference: {[str(pane) for pane in outcomes[0].panes]}")
        note(f"spark:     {[str(pane) for pane in outcomes[1].panes]}")
        same_outcome(*outcomes)
        assert reference.W == spark.W
        assert reference.partitions() == spark.partitions()
        assert reference.run.open_windows() == spark.run.open_windows()
