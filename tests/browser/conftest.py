"""A real browser: Debian's Chromium, driven by Playwright; without either, these tests are skipped and say so.

Where CI is "true" nothing is skipped: what is missing fails. A test waits for what it wants to see, never for a time;
the limit is for a page that hangs, and is far beyond what a loaded machine needs.
"""

from __future__ import annotations

import base64
import hashlib
import os
import shutil
import subprocess
import tarfile
import threading
from pathlib import Path

import pytest

from penstock.playground.server import Playground

BUILD = Path(__file__).parents[2] / "build"
AXE, INTEGRITY = "4.14.0", "9WTZxEjsZ7b13TH8JPmbV2z8CHbl80/2hm3XPEG4JgNdQLK81IBRXmSxHfMAOkSqQeRxT/0dwNDz2GOm3zzpcQ=="
HANGS = 180_000  # milliseconds


def missing(what: str) -> None:
    """Skip, or fail where nothing may be missing."""
    if os.environ.get("CI") == "true":
        pytest.fail(what)
    pytest.skip(what)


@pytest.fixture(scope="session")
def browser():
    try:
        from playwright import sync_api
    except ImportError:
        missing("playwright is not installed")
    path = os.environ.get("PENSTOCK_BROWSER") or shutil.which("chromium") or shutil.which("google-chrome")
    if path is None:
        missing("there is no Chromium here: apt-get install chromium, or name one in PENSTOCK_BROWSER")
    with sync_api.sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"], timeout=HANGS)
        yield started
        started.close()


@pytest.fixture(scope="session")
def server():
    with Playground(0) as made:
        thread = threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        yield made
        made.shutdown()
        thread.join()


@pytest.fixture
def page(browser):
    """A fresh page; anything that the console is told as an error fails the test."""
    made, wrong = opened(browser)
    yield made
    made.context.close()
    assert wrong == []


def opened(browser):
    """A page, and a list to which all goes that a page should not say."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    context.set_default_timeout(HANGS)
    made = context.new_page()
    wrong: list[str] = []
    made.on("console", lambda said: wrong.append(said.text) if said.type in ("error", "warning") else None)
    made.on("pageerror", lambda error: wrong.append(str(error)))
    made.on("dialog", lambda dialog: (wrong.append(f"dialog: {dialog.message}"), dialog.dismiss()))
    return made, wrong


@pytest.fixture(scope="session")
def axe() -> str:
    """axe-core, pinned, from npm; kept under build/."""
    archive = BUILD / "npm" / f"axe-core-{AXE}.tgz"
    if not archive.exists():
        archive.parent.mkdir(parents=True, exist_ok=True)
        try:
            command = ["npm", "pack", "--silent", f"axe-core@{AXE}"]
            subprocess.run(command, cwd=archive.parent, check=True, capture_output=True, timeout=120)
        except (OSError, subprocess.SubprocessError) as error:
            missing(f"axe-core cannot be fetched from npm: {error}")
    held = archive.read_bytes()
    assert base64.b64encode(hashlib.sha512(held).digest()).decode() == INTEGRITY
    with tarfile.open(archive) as package:
        file = package.extractfile("package/axe.min.js")
        assert file is not None
        return file.read().decode()
