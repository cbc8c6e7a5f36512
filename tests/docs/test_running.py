"""Do the blocks of docs/running.md run, and print what the page says?"""

from __future__ import annotations

from pathlib import Path

from tests.docs.playing import play_apart


def test_the_page_prints_what_it_shows(tmp_path: Path) -> None:
    assert play_apart("docs/running.md", tmp_path) > 0
