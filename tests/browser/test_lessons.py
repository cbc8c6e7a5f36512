"""Every lesson in a real browser: its words, its picture, its controls, for every eye and on a phone."""

from __future__ import annotations

import json
from functools import cache

import pytest

from penstock.playground.api import played
from penstock.playground.controls import Choice, Slider, checked
from penstock.playground.lessons import LESSONS
from tests.browser.conftest import opened
from tests.browser.seeing import all_of, go, reached_by_tab, shown, visit

AXE = """async (rules) => {
    const only = rules ? { runOnly: rules } : {};
    const found = await axe.run(document, { resultTypes: ["violations"], ...only });
    return found.violations.filter((one) => ["serious", "critical"].includes(one.impact))
        .map((one) => `${one.id}: ${one.nodes[0].html.slice(0, 160)}`);
}"""
TOO_WIDE = """() => [...document.querySelectorAll("main *")]
    .filter((one) => !one.closest(".scroll, .records, pre, svg, #presets"))
    .filter((one) => one.getBoundingClientRect().right > innerWidth + 1)
    .map((one) => one.tagName + "." + one.className)"""


@pytest.fixture(scope="module")
def one_page(browser, server):
    """One page for all lessons, as a reader has it."""
    page, wrong = opened(browser)
    visit(page, server)
    yield page, wrong
    page.context.close()


@pytest.fixture(scope="module", params=LESSONS)
def lesson(request):
    return LESSONS[request.param]


@pytest.fixture
def page(one_page, lesson):
    """The lesson as it stands at first; anything that the console is told as an error fails the test."""
    made, wrong = one_page
    go(made, lesson.id)
    yield made
    made.set_viewport_size({"width": 1280, "height": 900})
    made.emulate_media(color_scheme="light")
    assert wrong == []


def test_it_says_its_words_and_numbers(page, lesson):
    given = played(lesson.id, {})
    assert page.inner_text("h2") == lesson.title
    assert page.locator("#look li").all_inner_texts() == list(lesson.look)
    assert page.locator("#model").is_visible() == bool(lesson.model)
    assert page.locator("#panels section").count() == len(given["panels"])
    assert numbers(page) == [figure["value"] for figure in given["figures"]]
    assert page.inner_text("#told") == given["steps"][-1]["text"]
    assert page.text_content("#code").strip() == given["code"].strip()


def numbers(page) -> list[str]:
    return page.evaluate("() => [...document.querySelectorAll('#figures dd')].map((one) => one.firstChild.textContent)")


def test_the_picture_shows_what_the_engine_gave(page, lesson):
    drawn = [panel["plane"] for panel in played(lesson.id, {})["panels"] if panel["kind"] == "plane"]
    pictures = page.evaluate("""() => [...document.querySelectorAll("#panels svg.plane:not(.sample)")].map((one) => ({
        dots: [...one.querySelectorAll(".dot")].map((dot) => dot.classList[1]),
        panes: [...one.querySelectorAll(".pane")].map((pane) =>
            [pane.classList[1], pane.querySelector("title").textContent.split(", ")[1]]),
    }))""")
    fates = [sorted(dot["fate"] for dot in plane["dots"]) for plane in drawn]
    assert [sorted(one["dots"]) for one in pictures] == fates
    assert [sorted(one["panes"]) for one in pictures] == [
        sorted([pane["timing"], f"{pane['key']} {pane['text']}"] for pane in plane["panes"]) for plane in drawn
    ]


def test_every_control_changes_the_picture(page, lesson):
    """By hand: a slider by its keys, a choice by its list, a word by typing; and the link says it."""
    for control in lesson.controls:
        other = control.others()[-1]
        start = next(
            preset.values
            for preset in lesson.presets
            if _shown(lesson.id, {**preset.values, control.name: control.value})
            != _shown(lesson.id, {**preset.values, control.name: other})
        )
        go(page, lesson.id, **{**start, control.name: control.value})
        before, field = all_of(page), page.locator(f"#c-{control.name}")
        if isinstance(control, Choice):
            field.select_option(other)
        elif isinstance(control, Slider):
            field.focus()
            page.keyboard.press("Home" if other == control.low else "End")
        else:
            field.fill(other)
        values = {**start, control.name: other}
        shown(page, lesson.id, **values)
        assert all_of(page) != before, control.name
        assert numbers(page) == [figure["value"] for figure in json.loads(_shown(lesson.id, values))[1]]
        assert f"{control.name}=" in page.evaluate("location.hash")


def _shown(lesson, values):
    whole = checked(LESSONS[lesson].controls, values)
    return _dumped(lesson, tuple(sorted(whole.items())))


@cache
def _dumped(lesson, values):
    given = played(lesson, dict(values))
    return json.dumps([given["panels"], given["figures"], given["steps"][-1]])


def test_every_preset_is_a_button(page, lesson):
    for preset in lesson.presets:
        page.get_by_role("button", name=preset.name, exact=True).click()
        shown(page, lesson.id, **preset.values)
    assert page.locator("#presets button[aria-pressed=true]").all_inner_texts() == [lesson.presets[-1].name]


def test_all_that_can_be_turned_is_reached_by_the_keyboard(page, lesson):
    assert reached_by_tab(page) == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_serious_fault(page, lesson, axe, scheme):
    """Every rule in the light; in the dark nothing but the colours is another."""
    page.emulate_media(color_scheme=scheme)
    page.evaluate("() => { document.querySelector('#code-box').open = true }")
    if not page.evaluate("() => 'axe' in window"):
        page.evaluate(axe)
    assert page.evaluate(AXE, ["color-contrast"] if scheme == "dark" else None) == []


def test_a_phone_is_wide_enough(page, lesson):
    page.set_viewport_size({"width": 390, "height": 800})
    page.wait_for_function("""() => {
        const pictures = [...document.querySelectorAll("#panels svg:not(.sample):not([aria-hidden]), #panels canvas")];
        return pictures.every((one) => one.getBoundingClientRect().right <= 390);
    }""")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert page.evaluate(TOO_WIDE) == []
