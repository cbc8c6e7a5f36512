"""A stage of every kind, killed: each result is written once, and is that of the undisturbed run."""

from __future__ import annotations

from pathlib import Path

from penstock.testing.plugin import prove as prove  # the fixture


def test_rows_1_and_2_a_stage_of_every_kind_survives_being_killed(prove):
    found = prove(Path(__file__).with_name("remembering_pipeline.py"), kills=2, batches=2, batch_rows=1_000)
    assert found.good
