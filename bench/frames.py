"""How many frames a second does the dashboard draw of 100,000 dots and 10,000 panes?

Use:

    python -m bench.frames [--rounds 9] [--json FILE]

Needs Chromium, as the tests of pages do. Without a graphics card the processor draws, and 60 is the most there is.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import sys
import tempfile
from pathlib import Path

from playwright import sync_api

from penstock.dashboard.server import Dashboard
from tests.browser.frames import frames_a_second, large_run

BATCHES = 102


def measured(rounds: int) -> list[float]:
    """Frames a second of each round, in a fresh page."""
    path = os.environ.get("PENSTOCK_BROWSER") or shutil.which("chromium")
    with tempfile.TemporaryDirectory() as folder, sync_api.sync_playwright() as playwright:
        server = Dashboard(str(large_run(Path(folder)).root)).start()
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"], timeout=180_000)
        try:
            page = browser.new_page(viewport={"width": 1280, "height": 900})
            page.set_default_timeout(180_000)
            page.goto(server.address)
            page.wait_for_function("count => penstock.held.heard >= count", arg=BATCHES)
            page.get_by_role("button", name="all", exact=True).click()
            page.wait_for_timeout(1_500)
            return [frames_a_second(page) for _ in range(rounds)]
        finally:
            browser.close()
            server.stop()


def main() -> int:
    """Measure, and say it."""
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--rounds", type=int, default=9)
    asked.add_argument("--json", type=Path)
    how = asked.parse_args()
    found = measured(how.rounds)
    said = {"frames_a_second": found, "median": statistics.median(found), "load": os.getloadavg()[0]}
    print(f"median {said['median']:.0f} frames a second, from {min(found):.0f} to {max(found):.0f} in {len(found)} "
          f"rounds; load of the machine {said['load']:.1f} on {os.cpu_count()} cores")  # fmt: skip
    if how.json is not None:
        how.json.parent.mkdir(parents=True, exist_ok=True)
        how.json.write_text(json.dumps(said, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
