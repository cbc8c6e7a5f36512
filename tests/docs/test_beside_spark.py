"""Does docs/beside_spark.md tell the truth: Spark's windows and ours over one DataFrame, run as the page has them?"""

from __future__ import annotations

from pathlib import Path

from tests.docs.playing import play_apart


def test_the_page_prints_what_it_shows(tmp_path: Path) -> None:
    assert play_apart("docs/beside_spark.md", tmp_path) == 6
