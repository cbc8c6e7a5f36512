"""Do the pipelines of *Streaming Systems* show the book's panes, but for the deviations that are named?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import cast

import pytest

from penstock.testing.case_player import pipeline, play
from penstock.testing.cases import Case, read
from penstock.testing.script import Script

HERE = Path(__file__).parent
BOOK = read(HERE / "streaming_systems.toml")
TABLES = read(HERE / "accumulation_tables.toml")


@pytest.mark.parametrize("case", BOOK + TABLES, ids=lambda case: case.name)
def test_example(case: Case, engine: str) -> None:
    assert play(case, engine).failure is None


def test_all_thirteen_examples_and_92_panes_are_there() -> None:
    panes = [pane for case in BOOK for step in case.steps for pane in step.panes if isinstance(pane, Mapping)]
    assert len(BOOK) == 13
    assert sum(1 for pane in panes if pane.get("op") != -1) == 92


def test_the_deviations_are_these_and_no_more() -> None:
    named = Counter(name.split(":")[0] for case in BOOK for name in case.deviations)
    assert named == {"timers": 1, "end of stream": 6, "withdrawal": 4}


@pytest.mark.parametrize(
    ("name", "sum_of_all"),
    [
        ("7, 3 and 4, 8: accumulating", 43),
        ("7, 3 and 4, 8: discarding", 22),
        ("7, 3 and 4, 8: retracting", 22),
        ("table 2-1: accumulating", 15),
        ("table 2-1: discarding", 12),
        ("table 2-1: retracting", 12),
        ("2015: sessions of one minute, retracting", 51),
    ],
)
def test_what_a_consumer_gets_that_simply_adds(name: str, sum_of_all: int, engine: str) -> None:
    case = next(case for case in TABLES if case.name == name)
    script = Script(pipeline(case), engine)
    for step in case.steps:
        script.end() if step.end else script.batch(step.rows, now=step.now, watermark=step.watermark)
    assert sum(pane.op * cast(int, pane.values["total"]) for pane in script.panes) == sum_of_all
