"""Does the detector that docs/state.md shows do what the page says of it: three in a row, a reset, an hour to live?"""

from __future__ import annotations

from typing import Any

import penstock as ps
from penstock.testing import Script
from tests.docs.playing import ROOT, blocks


def detector(engine: str) -> Script:
    """The page's own stage, of its first block."""
    shared: dict[str, Any] = {}
    exec(blocks(ROOT / "docs/state.md", "python")[0].source, shared)
    alerts = shared["alerts"]
    assert isinstance(alerts, ps.Stream)
    return Script(alerts, engine)


def tried(script: Script, *logins: str) -> None:
    """Logins, each a time with - where it fails and + where it does not, and the end."""
    for login in logins:
        script.batch([{"user": "ann", "ok": login[-1] == "+", "at": login[:-1]}])
        script.restart()
    script.end()


def test_three_failed_logins_in_a_row_raise_an_alert(engine: str) -> None:
    script = detector(engine)
    tried(script, "10:00-", "10:01-", "10:02-", "10:03-")
    script.expect_rows({"user": "ann", "tries": 3, "at": "10:02"})
    script.expect_rows(output="resets")


def test_a_success_resets(engine: str) -> None:
    script = detector(engine)
    tried(script, "10:00-", "10:01-", "10:02+", "10:03-", "10:04-", "10:05+", "10:06+")
    script.expect_rows()
    script.expect_rows({"user": "ann"}, {"user": "ann"}, output="resets")


def test_a_failure_counts_for_an_hour_after_the_last_one(engine: str) -> None:
    script = detector(engine)
    tried(script, "10:00-", "10:40-", "11:41-")
    script.expect_rows()
    script = detector(engine)
    tried(script, "10:00-", "10:40-", "11:39-")
    script.expect_rows({"user": "ann", "tries": 3, "at": "11:39"})
