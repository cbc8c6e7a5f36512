"""Do the triggers fire as Apache Beam's transcripts say, but for the deviations that are named?"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from penstock.testing.cases import Case, read
from penstock.testing.player import play

CASES = read(Path(__file__).parent / "beam.toml")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_transcript(case: Case, engine: str) -> None:
    assert play(case, engine).failure is None


def test_all_eighteen_are_there() -> None:
    assert len(CASES) == 18


def test_five_are_wrong_on_purpose() -> None:
    assert Counter(case.error for case in CASES if case.error) == {"Unmatched output": 3, "Unexpected output": 2}


def test_the_deviations_are_these_and_no_more() -> None:
    named = Counter(name.split(":")[0] for case in CASES for name in case.deviations)
    assert named == {"pane time": 5, "closed sessions": 1, "withdrawal": 2}
