"""Do the blocks of docs/running.md run, and print what the page says?"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.playing import ROOT, play


def test_the_page_prints_what_it_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert play(ROOT / "docs/running.md") > 0
