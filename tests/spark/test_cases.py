"""Does Spark give the panes that the case files say: ten that have every window, mode and timing."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.testing.cases import read
from penstock.testing.player import play

ROOT = Path(__file__).parents[1]
CASES = {case.name: case for path in ("transcripts/beam.toml", "book/accumulation_tables.toml",
                                      "book/streaming_systems.toml", "examples/worked.toml")
         for case in read(ROOT / path)}  # fmt: skip
TEN = [
    "early_late_sessions",
    "fixed_drop_late_data_after_allowed_lateness",
    "missing_output_at_end",
    "2-8, figure 2-12: allowed lateness",
    "2-9, figure 2-13: discarding",
    "2015: sessions of one minute, retracting",
    "2015: global window, every two elements, discarding",
    "2015: processing time, two minutes",
    "validity windows",
    "12: size 10, a new window every 5",
]


@pytest.mark.parametrize("name", TEN)
def test_case_on_spark(name: str) -> None:
    assert play(CASES[name], "spark").failure is None
