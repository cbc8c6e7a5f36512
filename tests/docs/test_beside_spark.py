"""Does docs/beside_spark.md tell the truth: Spark's windows and ours over one DataFrame, run as the page has them?"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.playing import ROOT, play


def test_the_page_prints_what_it_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert play(ROOT / "docs/beside_spark.md") == 6
