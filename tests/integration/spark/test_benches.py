"""The benchmarks of what remembers run, on few events; how fast is for `make bench-state` and `make bench-nexmark`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bench import beside, nexmark, state
from bench.beside import IN_MEMORY, OURS, ROCKSDB
from bench.state import PER_KEY

ASKED = [
    (state, "failed logins, a function", {OURS, "penstock, as they come", PER_KEY}),
    (state, "clicks within 5 minutes, a join", {OURS, IN_MEMORY, ROCKSDB}),
    (nexmark, "q5", {OURS, IN_MEMORY, ROCKSDB}),
    (nexmark, "cep3", {OURS}),
]


@pytest.mark.parametrize(("bench", "name", "whose"), ASKED, ids=[name for _, name, _ in ASKED])
def test_a_question_is_asked_of_all(
    bench: Any, name: str, whose: set[str], spark: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (question,) = (one for one in bench.questions(quick=True) if one.name == name)
    found = beside.compare(spark, question, tmp_path)
    assert found["seconds_per_million"].keys() == whose
    assert all(seconds > 0 for seconds in found["seconds_per_million"].values())
    beside.told([found], tmp_path / "figures.json")
    written = json.loads((tmp_path / "figures.json").read_text())
    assert written["results"] == [found]
    assert written["machine"]["cores"]
    assert name in capsys.readouterr().out
