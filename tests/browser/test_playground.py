"""The playground in a real browser: it loads, its controls change the picture, and no text is ever more than text."""

from __future__ import annotations

import json
from urllib.parse import urlencode

import pytest

from penstock.playground.answering import played
from penstock.playground.control import Choice, Slider
from penstock.playground.lessons import LESSONS

CONTROLS = [(lesson.id, control.name) for lesson in LESSONS.values() for control in lesson.controls]
HOSTILE = "<img src=x onerror=alert(1)>"


def visit(page, server, lesson="two-clocks", **values):
    page.goto(server.address)
    page.evaluate("hash => { location.hash = hash }", urlencode({"lesson": lesson, **values}))
    settled(page, lesson)


def settled(page, lesson):
    page.wait_for_selector(f'#lessons a[aria-current][data-lesson="{lesson}"]')
    page.wait_for_function(
        "() => !document.body.hasAttribute('aria-busy') && document.querySelector('#panels section')"
    )


def seen(page) -> str:
    """All that a reader gets: pictures with their shapes, tables, numbers, and what is told."""
    return page.evaluate("""() => ["#panels", "#figures", "#told", "#step-number"]
        .map((one) => document.querySelector(one).innerHTML).join("|")""")


@pytest.mark.parametrize("lesson", LESSONS)
def test_a_lesson_loads_and_shows_its_words_and_numbers(page, server, lesson):
    visit(page, server, lesson)
    held, given = LESSONS[lesson], played(lesson, {})
    assert page.inner_text("h2") == held.title
    assert page.locator("#look li").all_inner_texts() == list(held.look)
    assert page.locator("#model").is_visible() == bool(held.model)
    assert page.locator("#panels section").count() == len(given["panels"])
    assert [text.split("\n")[1] for text in page.locator("#figures div").all_inner_texts()] == [
        figure["value"] for figure in given["figures"]
    ]
    assert page.inner_text("#told") == given["steps"][-1]["text"]
    page.click("summary")
    assert page.inner_text("#code").strip() == given["code"].strip()


@pytest.mark.parametrize("lesson", LESSONS)
def test_the_picture_shows_what_the_engine_gave(page, server, lesson):
    visit(page, server, lesson)
    drawn = [panel for panel in played(lesson, {})["panels"] if panel["kind"] == "plane"]
    pictures = page.locator("#panels svg.plane:not(.sample)")
    assert pictures.count() == len(drawn)
    for number, panel in enumerate(drawn):
        picture = pictures.nth(number)
        for fate in ("counted", "late", "quarantined"):
            wanted = sum(dot["fate"] == fate for dot in panel["plane"]["dots"])
            assert picture.locator(f".dot.{fate}").count() == wanted
        for timing in ("early", "on_time", "late"):
            titles = picture.locator(f".pane.{timing} title").all_text_contents()
            wanted = [f"{one['key']} {one['text']}" for one in panel["plane"]["panes"] if one["timing"] == timing]
            assert sorted(title.split(", ")[1] for title in titles) == sorted(wanted)


@pytest.mark.parametrize(("lesson", "control"), CONTROLS)
def test_every_control_changes_the_picture(page, server, lesson, control):
    held = next(one for one in LESSONS[lesson].controls if one.name == control)
    other = held.others()[-1]
    start = next(
        preset.values
        for preset in LESSONS[lesson].presets
        if _shown(lesson, {**preset.values, control: held.value}) != _shown(lesson, {**preset.values, control: other})
    )
    visit(page, server, lesson, **{**start, control: held.value})
    before, field = seen(page), page.locator(f"#c-{control}")
    if isinstance(held, Choice):
        field.select_option(other)
    elif isinstance(held, Slider):
        field.focus()
        page.keyboard.press("Home" if other == held.low else "End")
    else:
        field.fill(other)
    settled(page, lesson)
    assert seen(page) != before
    assert f"{control}=" in page.evaluate("location.hash")


def _shown(lesson, values):
    given = played(lesson, values)
    return json.dumps([given["panels"], given["figures"], given["steps"][-1]])


def test_presets_set_the_controls(page, server):
    visit(page, server, "delay")
    page.get_by_role("button", name="wait for everyone").click()
    settled(page, "delay")
    page.wait_for_function("() => document.querySelector('#figures').textContent.includes('100 %')")
    assert page.input_value("#c-delay") == "420"


def test_a_link_reproduces_what_one_sees(page, server):
    visit(page, server, "modes", early="count", step=12)
    told, link = page.inner_text("#told"), page.evaluate("location.hash")
    before = seen(page)
    visit(page, server, "windows")
    page.evaluate("hash => { location.hash = hash }", link)
    settled(page, "modes")
    page.wait_for_function("told => document.querySelector('#told').textContent === told", arg=told)
    assert seen(page) == before
    assert "step=12" in link


def test_a_broken_link_opens_what_it_can(page, server):
    visit(page, server, "delay", delay="7", stragglers="x", seed="", nosuch="1", step="99999")
    assert page.input_value("#c-delay") == "30"
    assert page.inner_text("#step-number").startswith("133 of")


def test_pause_and_step(page, server):
    visit(page, server, "modes")
    page.click("#first")
    assert page.inner_text("#step-number") == "1 of 31"
    page.click("#next")
    assert page.inner_text("#step-number") == "2 of 31"
    page.click("#play")
    assert page.inner_text("#play") == "Pause"
    page.wait_for_function("() => parseInt(document.querySelector('#step-number').textContent) > 3")
    page.click("#play")
    stopped = page.inner_text("#step-number")
    page.wait_for_timeout(1200)
    assert page.inner_text("#step-number") == stopped


def test_it_pauses_by_itself_at_the_end(page, server):
    visit(page, server, "two-clocks", step=1)
    page.click("#play")
    page.wait_for_function("() => document.querySelector('#play').textContent === 'Play'")
    assert page.inner_text("#step-number") == "3 of 3"


def test_the_keyboard_alone(page, server):
    visit(page, server, "modes")
    page.keyboard.press("Home")
    assert page.inner_text("#step-number") == "1 of 31"
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowLeft")
    assert page.inner_text("#step-number") == "2 of 31"
    page.keyboard.press(" ")
    assert page.inner_text("#play") == "Pause"
    page.keyboard.press(" ")
    page.keyboard.press("End")
    assert page.inner_text("#step-number") == "31 of 31"
    reached = []
    for _ in range(60):
        page.keyboard.press("Tab")
        reached.append(page.evaluate("document.activeElement.id || document.activeElement.tagName"))
    assert {"c-early", "c-late", "play", "next", "step", "SUMMARY", "A", "BUTTON"} <= set(reached)


def test_hostile_text_stays_text(page, server):
    visit(page, server, "two-clocks")
    page.fill("#c-who", HOSTILE)
    page.wait_for_function("text => document.querySelector('#told').textContent.includes(text)", arg=HOSTILE)
    page.wait_for_timeout(200)
    assert page.locator("main img").count() == 0
    assert any(HOSTILE in title for title in page.locator(".dot title").all_text_contents())
    link = page.evaluate("location.hash")
    visit(page, server, "windows")
    page.evaluate("hash => { location.hash = hash }", link)
    settled(page, "two-clocks")
    page.wait_for_function("text => document.querySelector('#told').textContent.includes(text)", arg=HOSTILE)
    assert page.locator("main img").count() == 0


def test_nothing_is_asked_of_another_server(page, server):
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    visit(page, server, "triangle")
    assert asked
    assert all(url.startswith(f"http://127.0.0.1:{server.port}/") for url in asked)
    assert not any(server.token in url for url in asked[1:])


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("lesson", LESSONS)
def test_axe_finds_no_serious_fault(browser, server, axe, lesson, scheme):
    """In a context that may evaluate axe; the page itself is the same."""
    context = browser.new_context(color_scheme=scheme, bypass_csp=True, viewport={"width": 1100, "height": 900})
    page = context.new_page()
    visit(page, server, lesson)
    page.click("summary")
    page.evaluate(axe)
    found, passed = page.evaluate("async () => { const r = await axe.run(); return [r.violations, r.passes.length] }")
    context.close()
    serious = [one for one in found if one["impact"] in ("serious", "critical")]
    assert [f"{one['id']}: {one['nodes'][0]['html'][:120]}" for one in serious] == []
    assert passed > 10


@pytest.mark.parametrize("lesson", LESSONS)
def test_a_phone_is_wide_enough(browser, server, lesson):
    context = browser.new_context(viewport={"width": 400, "height": 800})
    page = context.new_page()
    visit(page, server, lesson)
    wide = page.evaluate("document.documentElement.scrollWidth")
    context.close()
    assert wide <= 400
