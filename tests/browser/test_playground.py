"""The playground in a real browser: links, steps, keys and dragging, and no text is ever more than text."""

from __future__ import annotations

from penstock.playground.api import played
from penstock.playground.lessons import LESSONS
from tests.browser.seeing import all_of, go, says, shown, visit

HOSTILE = "<img src=x onerror=alert(1)>"


def test_a_link_reproduces_what_one_sees(page, server):
    visit(page, server, "modes", early="count", step=12)
    says(page, "13 of 31")
    link, before = page.evaluate("location.hash"), all_of(page)
    go(page, "windows")
    page.evaluate("hash => { location.hash = hash }", link)
    shown(page, "modes", early="count")
    assert all_of(page) == before
    assert "step=12" in link


def test_a_broken_link_opens_what_it_can(page, server):
    page.goto(server.address)
    page.evaluate("location.hash = 'lesson=delay&delay=7&stragglers=x&seed=&nosuch=1&step=99999'")
    shown(page, "delay")
    assert page.input_value("#c-delay") == "30"
    last = len(played("delay", {})["steps"])
    assert page.inner_text("#step-number") == f"{last} of {last}"


def test_a_link_is_followed_though_something_is_drawn_at_that_moment(page, server):
    """The browser tells a page of a new address a little later; what is drawn in between must not write over it."""
    visit(page, server, "modes")
    page.evaluate("() => { location.hash = 'lesson=windows&gap=60'; document.querySelector('#first').click() }")
    shown(page, "windows", gap=60)


def test_only_the_newest_question_is_left_standing(page, server):
    """Controls that are turned while the engine plays, and another lesson meanwhile."""
    visit(page, server, "delay")
    page.focus("#c-delay")
    for _ in range(5):
        page.keyboard.press("ArrowRight")
    shown(page, "delay", delay=80)
    page.keyboard.press("ArrowRight")
    go(page, "sessions")
    assert page.locator("h2").inner_text() == LESSONS["sessions"].title
    assert page.inner_text("#told") == played("sessions", {})["steps"][-1]["text"]


def test_pause_and_step(page, server):
    visit(page, server, "modes")
    page.click("#first")
    says(page, "1 of 31")
    page.click("#next")
    says(page, "2 of 31")
    page.click("#play")
    page.wait_for_function("() => parseInt(document.querySelector('#step-number').textContent) > 3")
    page.click("#play")
    assert page.inner_text("#play") == "Play"
    stopped = page.inner_text("#step-number")
    page.evaluate("""() => { window.redrawn = 0; new MutationObserver(() => { window.redrawn += 1 })
        .observe(document.querySelector("#step-number"), { childList: true, characterData: true, subtree: true }) }""")
    page.wait_for_function("since => performance.now() > since + 900", arg=page.evaluate("performance.now()"))
    assert page.evaluate("window.redrawn") == 0
    assert page.inner_text("#step-number") == stopped


def test_it_pauses_by_itself_at_the_end(page, server):
    visit(page, server, "two-clocks", step=1)
    page.click("#play")
    says(page, "3 of 3")
    page.wait_for_function("() => document.querySelector('#play').textContent === 'Play'")


def test_the_keyboard_alone(page, server):
    visit(page, server, "modes")
    for key, number in (("Home", 1), ("ArrowRight", 2), ("ArrowRight", 3), ("ArrowLeft", 2)):
        page.keyboard.press(key)
        says(page, f"{number} of 31")
    page.keyboard.press(" ")
    page.wait_for_function("() => document.querySelector('#play').textContent === 'Pause'")
    page.keyboard.press(" ")
    page.wait_for_function("() => document.querySelector('#play').textContent === 'Play'")
    page.keyboard.press("End")
    says(page, "31 of 31")
    reached = set()
    for _ in range(60):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("document.activeElement.id || document.activeElement.tagName"))
    assert {"c-early", "c-late", "play", "next", "step", "SUMMARY", "A", "BUTTON"} <= reached


def test_the_watermark_can_be_dragged(page, server):
    """To the left the delay grows, by as much as the line was moved; to the right it shrinks."""
    visit(page, server, "delay")
    each = float(page.get_attribute("#panels svg.plane", "data-per-pixel")) / 1_000_000
    grip = page.locator("#panels .grip circle")
    grip.scroll_into_view_if_needed()
    box = grip.bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x - 60 / each, y, steps=3)
    shown(page, "delay", delay=90)
    assert page.inner_text("#controls output") == "90 seconds"
    page.mouse.move(x + 900 / each, y)
    page.mouse.up()
    shown(page, "delay", delay=0)
    page.mouse.move(x, y)
    assert page.input_value("#c-delay") == "0"


def test_hostile_text_stays_text(page, server):
    visit(page, server, "two-clocks")
    page.fill("#c-who", HOSTILE)
    shown(page, "two-clocks", who=HOSTILE)
    assert HOSTILE in page.inner_text("#told")
    assert any(HOSTILE in title for title in page.locator(".dot title").all_text_contents())
    link = page.evaluate("location.hash")
    go(page, "windows")
    page.evaluate("hash => { location.hash = hash }", link)
    shown(page, "two-clocks", who=HOSTILE)
    assert page.locator("main img").count() == 0


def test_nothing_is_asked_of_another_server(page, server):
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    visit(page, server, "triangle")
    assert asked
    assert all(url.startswith(f"http://127.0.0.1:{server.port}/") for url in asked)
    assert not any(server.token in url for url in asked[1:])
