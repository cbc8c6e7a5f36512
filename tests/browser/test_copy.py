"""The copy that needs no server of ours: the same engine, in the browser."""

from __future__ import annotations

import functools
import json
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import pytest

from penstock.errors import PenstockError
from penstock.playground import static_site
from penstock.playground.api import played
from penstock.playground.controls import checked
from penstock.playground.lessons import LESSONS
from tests.browser.conftest import BUILD, HANGS, missing
from tests.browser.seeing import shown

# The page's own engine is asked: a module is there once.
ASK = """async (asked) => {
    const { backend } = await import("./backend.js");
    return Promise.all(asked.map((one) => backend().ask(one)));
}"""

# Off every preset, so that the engine in the browser has to play it.
ASKED = [
    ("two-clocks", {"delay": 13}), ("windows", {"seed": 41, "size": 3}), ("delay", {"delay": 90, "seed": 12}),
    ("lateness", {"delay": 80}), ("modes", {"straggler": 17}), ("sessions", {"gap": 7}),
    ("silent", {"idle": "30 seconds", "seed": 9}),
    ("bad-clock", {"ahead": 2, "seed": 3}), ("joins", {"how": "full", "within": 3}), ("rates", {"delay": 25}),
    ("patterns", {"logins": "FFFSFFFF", "skip": "no_skip"}), ("hot-key", {"share": 35}),
    ("delivery", {"kill": "write", "batch": 5}), ("log", {"rewind": 2}), ("backpressure", {"slow": 45}),
    ("replay", {"fix": 4, "speed": 3}), ("triangle", {"delay": 70, "mode": "retracting"}),
]  # fmt: skip


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    """The copy, made here and served by a server that knows nothing but files."""
    out, kept = tmp_path_factory.mktemp("copy"), BUILD / "npm" / f"pyodide-{static_site.VERSION}.tgz"
    static_site.site(out)
    try:
        if not kept.exists():
            kept.parent.mkdir(parents=True, exist_ok=True)
            kept.write_bytes(static_site._fetched(out).read_bytes())
        static_site.pyodide(out, kept)
    except PenstockError as error:
        missing(f"Pyodide cannot be fetched: {error.why}")
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(out)))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}/index.html"
    server.shutdown()
    server.server_close()
    thread.join()


def test_every_lesson_is_asked_off_its_presets():
    assert [lesson for lesson, _ in ASKED] == list(LESSONS)
    for lesson, values in ASKED:
        controls = LESSONS[lesson].controls
        assert checked(controls, values) not in [checked(controls, one.values) for one in LESSONS[lesson].presets]


def test_the_copy_plays_by_itself(page, copy):
    """A preset is there before the engine is; then the engine answers a control, and gives what it gives here."""
    page.goto(f"{copy}#lesson=delay")
    shown(page, "delay")
    assert page.inner_text("#engine") == "as the reference engine gave it when this page was made"
    page.focus("#c-delay")
    page.keyboard.press("ArrowRight")
    shown(page, "delay", delay=40)
    assert page.inner_text("#engine") == "played by the reference engine, in this browser"
    asked = [{"lesson": lesson, "values": values} for lesson, values in ASKED]
    given = page.evaluate(ASK, asked)
    for (lesson, values), got in zip(ASKED, given, strict=True):
        assert got == json.loads(json.dumps(played(lesson, values))), lesson


def test_a_browser_without_the_engine_still_shows_the_presets_and_says_so(browser, copy):
    context = browser.new_context()
    context.route("**/pyodide/*", lambda route: route.abort())
    page = context.new_page()
    page.set_default_timeout(HANGS)
    page.goto(f"{copy}#lesson=sessions&gap=10")
    shown(page, "sessions", gap=10)
    page.focus("#c-gap")
    page.keyboard.press("ArrowRight")
    page.wait_for_selector("#error:not([hidden])")
    assert "did not start in this browser" in page.inner_text("#error")
    context.close()
