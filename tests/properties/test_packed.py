"""Law: what travels to a shard as bytes, dealt out by the hash of its keys, gives the same panes as rows in memory."""

from __future__ import annotations

from hypothesis import given, note

import penstock as ps
from penstock.engine.in_process import ColumnarRun
from penstock.engine.ingest.windows import Blob
from penstock.engine.shuffle.cells import by_shard, read_blob, written_blob
from penstock.plan.stages import Plan
from penstock.testing import Script
from tests.properties.comparing import same_outcome
from tests.properties.plans import plans
from tests.properties.profile import law
from tests.properties.streams import Step, play, scripts


class PackedRun(ColumnarRun):
    """The columnar engine with blobs that have been bytes, in three parts by the hash of their keys."""

    def sent(self, number: int, blobs: list[Blob]) -> list[Blob]:
        dealt = [part for blob in blobs for _, part in by_shard(self.compiled, blob, 3)]
        parts = [read_blob(self.compiled, written_blob(part)) for part in dealt]
        assert sum(len(part.cells) for part in parts) == sum(len(blob.cells) for blob in blobs)
        return parts


@law(150)
@given(plans(), scripts())
def test_blobs_that_travelled_give_the_same(plan: Plan, steps: list[Step]) -> None:
    reference, packed = Script(plan, "reference"), Script(plan, "columnar")
    packed.run = PackedRun(plan)
    for step in steps:
        if step.restart:
            snapshot, packed.run = packed.run.snapshot(), PackedRun(plan)
            packed.run.restore(snapshot)
        outcomes = [play(reference, step), play(packed, Step(step.rows, step.now, step.watermark, False, step.resumed))]
        note(f"reference: {[str(pane) for pane in outcomes[0].panes]}")
        note(f"packed:    {[str(pane) for pane in outcomes[1].panes]}")
        same_outcome(*outcomes)
        assert reference.W == packed.W


def test_records_that_are_one_each_are_added_up() -> None:
    stream = ps.events("at timestamp").event_time("at", watermark=ps.by_hand(max_skew=None))
    windowed = stream.window(ps.sliding("21 us", every="7 us")).trigger(ps.at_watermark(early=ps.never()))
    plan = windowed.accumulating().aggregate(n=ps.rows()).plan
    reference, packed = Script(plan, "reference"), Script(plan, "columnar")
    packed.run = PackedRun(plan)
    for script in (reference, packed):
        script.batch([{"at": 66}, {"at": 75}], now=1000, watermark=0)
    assert packed.counts == reference.counts
