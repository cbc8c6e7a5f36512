"""Does Spark give what the case files say: ten with every window, mode and timing; and worked examples 14 to 16?"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from penstock.testing.case_player import play
from penstock.testing.cases import read
from tests.conformance.examples import test_remembering as worked

ROOT = Path(__file__).parents[2] / "conformance"
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


@pytest.mark.parametrize(
    "example",
    [
        worked.test_14_three_failed_logins_in_a_row,
        worked.test_15_clicks_within_five_minutes_of_an_impression,
        worked.test_16_an_order_at_the_rate_of_its_moment,
    ],
)
def test_worked_example_on_spark(example: Callable[[str], None]) -> None:
    example("spark")
