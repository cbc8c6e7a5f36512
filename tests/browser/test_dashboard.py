"""The dashboard in a real browser: pages load and live, nothing is more than text, nothing grows, nothing stutters.

What is shown was written beside a checkpoint by `observed.py`, so that no Spark is needed.
"""

from __future__ import annotations

import json
import re
import shutil

import pytest

from penstock.dashboard.embedded import Place
from penstock.dashboard.server import Dashboard
from tests.browser.conftest import opened
from tests.browser.frames import DOTS, PANES, frames_a_second, large_run
from tests.browser.observed import Run
from tests.browser.seeing import reached_by_tab

PAGES = ("", "windows", "partitions", "late", "batches", "state", "sinks", "plan")
HOSTILE = "<img src=x onerror=alert(1)>"
TOPIC = "</script><script>alert(2)</script>"


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    made = Run(tmp_path_factory.mktemp("run")).batches(90)
    made.store.create("penstock/plan/000000001", _plan())
    return made


@pytest.fixture(scope="module")
def dashboard(run):
    made = Dashboard(str(run.root)).start()
    yield made
    made.stop()


def _plan() -> bytes:
    import penstock as ps
    from penstock.checkpoint.checksummed_json import sealed
    from penstock.observability.run_metadata import graph_of

    scores = ps.game_scores(rate=2_000, teams=5, partitions=4)
    totals = (
        scores.event_time("at", watermark=ps.bounded("4 seconds")).key_by("team").window(ps.tumbling("10 seconds"))
        .aggregate(points=ps.sum("points"), plays=ps.rows())
    )  # fmt: skip
    made = ps.pipeline("team-scores", totals.write(ps.sqlite("scores.db", table="team_scores")),
                       totals.late.write(ps.files("late", format="json")))  # fmt: skip
    return sealed({"graph": graph_of(made)})


def visit(page, dashboard, name="", batches=1):
    if not page.url.startswith(f"http://127.0.0.1:{dashboard.port}/"):
        page.goto(dashboard.address)
    page.evaluate("name => { location.hash = `#/${name}` }", name)
    page.wait_for_function("count => penstock.held.heard >= count && document.querySelector('#link.live')", arg=batches)
    page.wait_for_selector(f'#pages a[aria-current][data-page="{name}"]')


def served(dashboard) -> list[dict]:
    return [json.loads(one.data) for one in dashboard.followed.batches.values()]


@pytest.fixture
def loose(browser):
    """A page whose server ends under it: that is told to the console, and nothing else may be."""
    made, wrong = opened(browser)
    yield made
    made.context.close()
    assert [one for one in wrong if "net::ERR" not in one] == []


def seen(page) -> str:
    return page.inner_text("body")


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("", ["What needs attention", "The plane", "● running", "pane"]),
        ("windows", ["Windows of amber", "✓ on time", "✓ complete", "… open"]),
        ("partitions", ["scores/3", "The watermark waits for the slowest", "active"]),
        (
            "late",
            ["took corrections any more", "Late rows, newest first", "'twelve' is not a long", "Why?"],
        ),
        ("batches", ["Where the time went", "reading", "writing to sinks", "idle"]),
        ("state", ["Keys with the most events", "amber", "rows of state", "1: join"]),
        ("sinks", ["team-scores/panes/team_scores", "✓ has all", "No batch was run again"]),
        ("plan", ["tumbling", "scores.db", "Delivered exactly once", "newest event time less 4 seconds"]),
    ],
)
def test_a_page_loads_and_says_what_it_is_for(page, dashboard, name, says):
    visit(page, dashboard, name, 90)
    page.wait_for_function("text => document.body.innerText.includes(text)", arg=says[1])
    text = seen(page)
    assert [one for one in says if one not in text] == []


def test_the_plane_shows_what_was_observed(page, dashboard, run):
    visit(page, dashboard, "", 90)
    page.get_by_role("button", name="all", exact=True).click()
    held = page.evaluate("""() => ({ dots: penstock.held.dots.count, panes: penstock.held.panes.count,
        mark: penstock.held.last().next, groups: penstock.app.plane.groups.length })""")
    assert held["mark"] == run.watermark
    assert held["panes"] == run.panes
    assert 0 < held["groups"] < held["panes"]
    page.wait_for_function("() => /[0-9,]+ panes in sight/.test(document.querySelector('.told').textContent)")
    page.wait_for_timeout(700)
    told = re.search(r"([\d,]+) events?, .* ([\d,]+) panes in sight", page.inner_text(".told"))
    counted = sum(len(one["dots"]) for one in served(dashboard))
    assert 0.98 * counted <= int(told[1].replace(",", "")) <= counted
    assert 0.9 * run.panes <= int(told[2].replace(",", "")) <= run.panes
    box = page.locator("canvas.plane").bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    drawn = page.evaluate("""() => {
        const canvas = document.querySelector("canvas.plane");
        const data = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
        const colours = new Set();
        for (let at = 0; at < data.length; at += 4) colours.add(`${data[at]},${data[at + 1]},${data[at + 2]}`);
        return colours.size;
    }""")
    assert drawn > 20


def test_a_dot_that_is_pointed_at_is_told(page, dashboard):
    visit(page, dashboard, "", 90)
    page.wait_for_function("() => penstock.app.plane.drawn?.seen.counted.length > 0")
    page.wait_for_timeout(700)
    place, key = page.evaluate("""() => { const { drawn, held } = penstock.app.plane;
        const at = drawn.seen.counted[drawn.seen.counted.length >> 1];
        return [[drawn.to.x(held.dots.time[at]), drawn.to.y(held.dots.now[at])], held.dots.key[at]] }""")
    box = page.locator("canvas.plane").bounding_box()
    page.mouse.move(box["x"] + place[0], box["y"] + place[1])
    page.wait_for_selector(".tip:not([hidden])")
    assert "seen 2026-05-01 12:" in page.inner_text(".tip")
    assert "offset" in page.inner_text(".tip")
    assert key


def test_a_pane_that_is_pointed_at_is_told(page, dashboard):
    visit(page, dashboard, "", 90)
    page.wait_for_function("() => penstock.app.plane.drawn?.seen.counted.length > 0")
    page.wait_for_timeout(700)
    place = page.evaluate("""() => { const { drawn, groups } = penstock.app.plane; const { to, box } = drawn;
        const inside = (pane) => to.x(pane.start) > box.left && to.y(pane.now) > box.top + 20;
        const one = groups.find((pane) => pane.kind === 1 && inside(pane));
        return [to.x((one.start + one.end) / 2), to.y(one.now) - 7] }""")
    box = page.locator("canvas.plane").bounding_box()
    page.mouse.move(box["x"] + place[0], box["y"] + place[1])
    page.wait_for_selector(".tip:not([hidden])")
    assert re.search(r"window 2026-05-01 12:0\d:\d0 to 12:0\d:\d0", page.inner_text(".tip"))


def test_one_key_can_be_chosen_and_its_answers_are_those_that_were_counted(page, dashboard, run):
    visit(page, dashboard, "", 90)
    page.fill("#plane-key", "blue")
    page.keyboard.press("Enter")
    page.wait_for_function("() => document.querySelector('.told').textContent.includes('key blue')")
    assert page.evaluate("() => penstock.app.plane.groups.every((one) => one.key === 'blue' && one.count === 1)")
    page.get_by_text("The same as a table").click()
    window = max(start for team, start in run.sums if team == "blue" and run.shown["blue", start])
    points, plays, _ = run.sums["blue", window]
    assert f"points {points}, plays {plays}" in page.locator(".planebox table").inner_text()


def test_why_a_pane_is_as_it_is(page, dashboard, run):
    visit(page, dashboard, "windows", 90)
    page.fill("#key", "coral")
    page.keyboard.press("Enter")
    page.locator("#windows button").nth(2).click()
    page.wait_for_function("() => document.querySelector('ol.why')?.innerText.includes('W was')")
    assert "key coral, window 2026-05-01 12:01:" in page.inner_text("ol.why")
    assert "pane 0" in page.inner_text("#detail table")
    visit(page, dashboard, "late", 90)
    page.get_by_role("button", name="why was offset").first.click()
    page.wait_for_function("() => document.querySelector('ol.why')?.innerText.includes('behind W')")


def test_the_plane_is_moved_by_keyboard_follows_again_and_pauses(page, dashboard):
    visit(page, dashboard, "", 90)
    page.wait_for_function("() => penstock.app.plane.view !== null")
    view = "() => ({ ...penstock.app.plane.target })"
    page.focus("canvas.plane")
    before = page.evaluate(view)
    page.keyboard.press("ArrowLeft")
    moved = page.evaluate(view)
    assert moved["left"] < before["left"]
    page.keyboard.press("+")
    closer = page.evaluate(view)
    assert closer["right"] - closer["left"] < moved["right"] - moved["left"]
    assert page.locator(".follow").get_attribute("aria-pressed") == "false"
    page.keyboard.press("0")
    assert page.locator(".follow").get_attribute("aria-pressed") == "true"
    reached = []
    for _ in range(30):
        page.keyboard.press("Tab")
        reached.append(page.evaluate("document.activeElement.id || document.activeElement.tagName"))
    page.focus("#pause")
    for _ in range(30):
        page.keyboard.press("Tab")
        reached.append(page.evaluate("document.activeElement.className || document.activeElement.tagName"))
    assert {"follow", "plane", "SUMMARY"} <= set(reached)


@pytest.mark.parametrize("name", PAGES)
def test_all_that_can_be_pressed_is_reached_by_the_keyboard(page, dashboard, name):
    visit(page, dashboard, name, 90)
    page.wait_for_timeout(300)
    page.click("#pause")  # so that nothing is put in the place of what was reached
    assert reached_by_tab(page) == []


def test_two_fingers_zoom_the_plane_and_one_drags_it(browser, dashboard):
    """Real touches, as Chromium makes them of a phone: what lies between the fingers stays between them."""
    context = browser.new_context(viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True)
    page = context.new_page()
    visit(page, dashboard, "", 90)
    page.wait_for_function("() => penstock.app.plane.drawn?.seen.counted.length > 0")
    page.locator("canvas.plane").scroll_into_view_if_needed()
    page.wait_for_timeout(700)
    box = page.locator("canvas.plane").bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    talk = context.new_cdp_session(page)

    def touch(kind, *places):
        points = [{"x": x + across, "y": y + up, "id": number} for number, (across, up) in enumerate(places)]
        talk.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

    def sight() -> dict:
        return page.evaluate(
            """([x, y]) => { const { view, drawn, follow } = penstock.app.plane;
            return { wide: view.right - view.left, high: view.top - view.bottom, left: view.left, follow,
                time: drawn.to.time(x), seen: drawn.to.now(y) } }""",
            [box["width"] / 2, box["height"] / 2],
        )

    def wide(than: float) -> None:
        page.wait_for_function(
            """than => { const { view } = penstock.app.plane;
            return Math.abs(view.right - view.left - than) < than / 50 }""",
            arg=than,
        )

    before = sight()
    touch("touchStart", (-30, 0), (30, 0))
    for far in (35, 45, 60):
        touch("touchMove", (-far, 0), (far, 0))
    wide(before["wide"] / 2)
    closer = sight()
    assert closer["high"] == pytest.approx(before["high"] / 2, rel=0.02)
    assert closer["time"] == pytest.approx(before["time"], abs=before["wide"] / 50)
    assert closer["seen"] == pytest.approx(before["seen"], abs=before["high"] / 50)
    assert not closer["follow"]
    touch("touchEnd")
    touch("touchStart", (0, 0))
    for far in (20, 40, 60):
        touch("touchMove", (far, 0))
    page.wait_for_function("left => penstock.app.plane.view.left < left", arg=closer["left"])
    touch("touchEnd")
    assert sight()["wide"] == pytest.approx(closer["wide"])
    touch("touchStart", (-60, 0), (60, 0))
    touch("touchMove", (-30, 0), (30, 0))
    wide(before["wide"])
    touch("touchEnd")
    assert page.evaluate("visualViewport.scale") == 1
    context.close()


def test_news_arrive_by_themselves_stop_while_paused_and_come_back_after_a_loss(loose, tmp_path):
    made = Run(tmp_path).batches(20)
    server = Dashboard(str(tmp_path)).start()
    try:
        visit(loose, server, "batches", 20)
        made.batches(3)
        loose.wait_for_selector(".scroll tbody th:has-text('22')")
        loose.click("#pause")
        made.batches(2)
        loose.wait_for_function("() => penstock.held.heard >= 25")
        loose.wait_for_timeout(200)
        assert loose.locator(".scroll tbody th").first.inner_text() == "22"
        loose.click("#pause")
        loose.wait_for_selector(".scroll tbody th:has-text('24')")
    finally:
        server.stop()
    loose.wait_for_selector("#link.lost")
    made.batches(1)
    again = Dashboard(str(tmp_path), Place(server.port, token=server.token)).start()
    try:
        loose.wait_for_selector("#link.live")
        loose.wait_for_selector(".scroll tbody th:has-text('25')")
        assert loose.evaluate("() => penstock.held.batches.map((one) => one.batch).join()") == ",".join(
            map(str, range(26))
        )
    finally:
        again.stop()


def test_row_24_hostile_keys_and_topics_stay_text(page, tmp_path):
    made = Run(tmp_path, teams=(HOSTILE, "red"), source=TOPIC).batches(60)
    server = Dashboard(str(tmp_path)).start()
    try:
        for name in PAGES:
            visit(page, server, name, 60)
            page.wait_for_timeout(150)
            assert page.locator("main img, main script, main b").count() == 0
            if name in ("partitions", "late"):
                assert TOPIC in seen(page)
            if name == "state":
                assert HOSTILE in seen(page)
        visit(page, server, "windows", 60)
        page.fill("#key", HOSTILE)
        page.keyboard.press("Enter")
        page.locator("#windows button").first.click()
        page.wait_for_function("text => document.querySelector('ol.why')?.textContent.includes(text)", arg=HOSTILE)
        visit(page, server, "", 60)
        page.fill("#plane-key", HOSTILE)
        page.keyboard.press("Enter")
        page.get_by_text("The same as a table").click()
        assert HOSTILE in page.inner_text(".planebox table")
        assert page.locator("main img").count() == 0
    finally:
        server.stop()
    assert made.panes


def test_row_24_nothing_is_asked_of_another_server_and_the_key_is_out_of_sight(page, dashboard):
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    for name in PAGES:
        visit(page, dashboard, name, 90)
    assert all(url.startswith(f"http://127.0.0.1:{dashboard.port}/") for url in asked)
    assert not any(dashboard.token in url for url in asked if "/?token=" not in url)
    assert dashboard.token not in page.evaluate("location.href + document.cookie + document.documentElement.outerHTML")


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """A hundred thousand dots and ten thousand panes."""
    made = large_run(tmp_path_factory.mktemp("large"))
    server = Dashboard(str(made.root)).start()
    yield server
    server.stop()


def test_a_hundred_thousand_dots_and_ten_thousand_panes_stay_smooth(page, large):
    visit(page, large, "", 102)
    page.get_by_role("button", name="all", exact=True).click()
    held = page.evaluate("() => [penstock.held.dots.count, penstock.held.panes.count]")
    assert held[0] >= DOTS
    assert held[1] >= PANES
    page.wait_for_timeout(800)
    best = 0.0
    for _ in range(3):  # a machine that is busy with something else for a moment says nothing of the page
        best = max(best, frames_a_second(page))
        if best >= 30:
            break
    assert best >= 30


def test_ten_thousand_batches_do_not_grow_it(loose, tmp_path):
    made = Run(tmp_path, dots=2, clocks=False).batches(50)
    server = Dashboard(str(tmp_path)).start()
    talk = loose.context.new_cdp_session(loose)

    def heap() -> float:
        talk.send("HeapProfiler.collectGarbage")
        return talk.send("Runtime.getHeapUsage")["usedSize"] / 1e6

    sizes = []
    try:
        visit(loose, server, "", 50)
        for upto in (4_000, 7_000, 10_000):
            while made.number < upto:
                made.repeated(min(1_000, upto - made.number))
                loose.wait_for_function("count => penstock.held.heard >= count", arg=made.number)
            sizes.append(heap())
        counts = loose.evaluate("""() => { const { held } = penstock;
            return [held.batches.length, held.dots.limit, held.panes.count, held.late.length, held.bad.length,
                document.querySelectorAll("*").length] }""")
    finally:
        server.stop()
    assert counts[0] <= 3_000
    assert counts[2] <= 20_000
    assert max(counts[3], counts[4]) <= 400
    assert counts[5] < 2_000
    assert sizes[2] < sizes[1] * 1.1 + 2, sizes


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_serious_fault(browser, dashboard, axe, scheme):
    """In a context that may evaluate axe; the page itself is the same."""
    context = browser.new_context(color_scheme=scheme, bypass_csp=True, viewport={"width": 1280, "height": 900})
    page = context.new_page()
    found = []
    for name in PAGES:
        visit(page, dashboard, name, 90)
        page.wait_for_timeout(200)
        page.evaluate(axe)
        wrong, passed = page.evaluate(
            "async () => { const r = await axe.run(); return [r.violations, r.passes.length] }"
        )
        found += [f"{name}: {one['id']}: {one['nodes'][0]['html'][:160]}" for one in wrong
                  if one["impact"] in ("serious", "critical")]  # fmt: skip
        assert passed > 10
    context.close()
    assert found == []


def test_a_phone_is_wide_enough(browser, dashboard):
    context = browser.new_context(viewport={"width": 390, "height": 844})
    page = context.new_page()
    wide = {}
    for name in PAGES:
        visit(page, dashboard, name, 90)
        page.wait_for_timeout(200)
        wide[name] = page.evaluate("document.documentElement.scrollWidth")
    context.close()
    assert {name: width for name, width in wide.items() if width > 390} == {}


def test_a_run_that_has_not_begun_says_so_and_one_that_begins_anew_is_another(loose, tmp_path):
    server = Dashboard(str(tmp_path / "none")).start()
    try:
        loose.goto(server.address)
        loose.wait_for_selector("text=Spark is being started")
        Run(tmp_path / "none").batches(5)
        loose.wait_for_function("() => penstock.held.heard >= 5")
        loose.wait_for_selector("#state.running")
        shutil.rmtree(tmp_path / "none")
        loose.wait_for_selector("#state.starting")
        Run(tmp_path / "none", name="another", lineage="2e" * 16).batches(2)
        loose.wait_for_function("() => penstock.held.batches.length === 2 && penstock.held.standing.name === 'another'")
        loose.wait_for_function("() => penstock.app.plane.marks.length === 3")
    finally:
        server.stop()


def test_news_take_neither_the_place_nor_the_focus_of_who_reads(page, tmp_path):
    made = Run(tmp_path).batches(150)
    server = Dashboard(str(tmp_path)).start()
    try:
        visit(page, server, "late", 150)
        page.wait_for_selector("button:has-text('Why?')")
        page.evaluate("() => { document.querySelector('.scroll').scrollTop = 150 }")
        page.locator("button:has-text('Why?')").nth(4).focus()
        name = page.evaluate("document.activeElement.dataset.name")
        while not made.batch().late:
            pass
        page.wait_for_function("count => penstock.held.heard >= count", arg=made.number)
        page.wait_for_function("name => document.querySelectorAll('[data-name]')[4].dataset.name !== name", arg=name)
        assert page.evaluate("document.activeElement.dataset.name") == name
        assert page.evaluate("document.querySelector('.scroll').scrollTop") == 150
    finally:
        page.goto("about:blank")
        server.stop()
