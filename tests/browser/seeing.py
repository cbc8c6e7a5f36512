"""What a reader does and sees: a link is opened, and awaited until the page says that it shows it."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from penstock.playground.controls import checked, firsts
from penstock.playground.lessons import LESSONS

# The page says itself what is drawn: lesson and controls, once the newest question has been answered.
SHOWS = """([lesson, values]) => {
    const said = document.querySelector("#panels").dataset.shows;
    if (!said || document.body.hasAttribute("aria-busy")) return false;
    const [shown, controls] = JSON.parse(said);
    return shown === lesson && Object.entries(values).every(([name, value]) => controls[name] === value);
}"""
ALL = """() => ["#panels", "#figures", "#told", "#step-number"]
    .map((one) => document.querySelector(one).innerHTML).join("|")"""


def visit(page, server, lesson: str = "two-clocks", **values: Any) -> None:
    """Open the page anew at a link."""
    page.goto(server.address)
    go(page, lesson, **values)


def go(page, lesson: str, *, step: int | None = None, **values: Any) -> None:
    """Follow a link within the page."""
    said = {"lesson": lesson, **values, **({} if step is None else {"step": step})}
    page.evaluate("hash => { location.hash = hash }", urlencode(said))
    shown(page, lesson, **values)


def shown(page, lesson: str, **values: Any) -> None:
    """Wait until the lesson is shown with these controls, and the others as they stand at first."""
    controls = LESSONS[lesson].controls
    page.wait_for_function(SHOWS, arg=[lesson, {**firsts(controls), **checked(controls, values)}])


def all_of(page) -> str:
    """All that a reader gets: pictures with their shapes, tables, numbers, and what is told."""
    return page.evaluate(ALL)


PRESSED = """() => [...document.querySelectorAll("a[href], button, input, select, summary")]
    .filter((one) => !one.disabled && one.checkVisibility({ checkVisibilityCSS: true }))"""


def reached_by_tab(page) -> list[str]:
    """Links, buttons and fields in sight that Tab does not come to, though it goes all the way round."""
    count = page.evaluate(f"""() => {{ window.left = new Set(({PRESSED})());
        document.activeElement?.blur();
        document.addEventListener("focusin", (event) => window.left.delete(event.target));
        return window.left.size }}""")
    for _ in range(2 * count + 20):  # regions that scroll are on the way, too
        page.keyboard.press("Tab")
        if page.evaluate("() => window.left.size") == 0:
            break
    return page.evaluate("() => [...window.left].map((one) => one.outerHTML.slice(0, 120))")


def says(page, step: str) -> None:
    """Wait until a step is told, as `2 of 31`."""
    page.wait_for_function("text => document.querySelector('#step-number').textContent === text", arg=step)
